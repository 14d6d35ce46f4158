"""Training rows as the exact solvers take them, and their trees in the data's own units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.binarize import Binarizer
from softsurv.data.blocks import NumberBlock
from softsurv.data.encoding import Source
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning, InvalidSurvivalDataError, warn
from softsurv.exact.brier.nodes import TreePlan
from softsurv.exact.objectives import relative_risk
from softsurv.nonparametric import StepFunction, at_risk_table, nelson_aalen
from softsurv.trees.hard_tree import Branch, HardTree


@dataclass(frozen=True)
class Rows:
    """Training rows as the solvers take them.

    Attributes
    ----------
    table : dict of str to ndarray (N,)
        Raw columns, as `Binarizer.filled` gives them.
    codes : ndarray (N, P)
    time, event, weight : ndarray (N,)
    entry : ndarray (N,) or None
    cause : ndarray (N,) or None
        Code 1..K of what happened, 0 for censored rows; None where there is one kind of event.
    cause_names : tuple of str (K,)
    subject : ndarray (N,) or None
        Code of the subject, where subjects have several rows.
    """

    binarizer: Binarizer
    table: dict[str, NDArray[Any]]
    codes: NDArray[np.int32]
    time: FloatArray
    event: BoolArray
    weight: FloatArray
    entry: FloatArray | None
    cause: IntArray | None = None
    cause_names: tuple[str, ...] = ()
    subject: IntArray | None = None

    @classmethod
    def of(cls, data: SurvivalData, binarizer: Binarizer) -> Rows:
        """Rows of data without interval censoring."""
        return cls.coded(data, binarizer, binarizer.filled(data.X)[0])

    @classmethod
    def coded(
        cls,
        data: SurvivalData,
        binarizer: Binarizer,
        table: dict[str, NDArray[Any]],
        order: IntArray | None = None,
        block: NumberBlock | None = None,
    ) -> Rows:
        """Rows of data whose columns the binarizer has read already, in another order where one is given."""
        if data.upper is not None and not bool((data.event | data.upper.isinf()).all()):
            raise InvalidSurvivalDataError(
                "upper must be inf in every row for an optimal tree, got interval censoring; fit a SoftSurvivalTree"
            )
        late = data.entry is not None and bool((data.entry > 0).any())

        def column(name: str) -> Any:
            values = getattr(data, name)
            return None if values is None else values.numpy() if order is None else values.numpy()[order]

        return cls(
            binarizer,
            table,
            binarizer.codes_of(table, data.n, block),
            column("time"),
            column("event"),
            np.ones(data.n) if data.weight is None else column("weight"),
            column("entry") if late else None,
            column("cause"),
            data.cause_names,
            column("subject"),
        )

    @property
    def by_cause(self) -> tuple[Rows, ...]:
        """The rows once for each cause, with the events of that cause alone; once where there is one kind of event."""
        if self.cause is None:
            return (self,)
        return tuple(replace(self, event=self.cause == k, cause=None) for k in range(1, len(self.cause_names) + 1))

    @cached_property
    def one_subject(self) -> float:
        """What one subject weighs."""
        return relative_risk.one_subject(self.weight)

    @property
    def n(self) -> int:
        """N."""
        return len(self.time)

    @property
    def sources(self) -> list[Source]:
        return self.binarizer.sources_

    def leaf_of(self, tree: HardTree) -> IntArray:
        """Leaf of each row, (N,)."""
        return tree.leaf_of(self.table, self.n)


def branches_of_plan(plan: TreePlan | None, binarizer: Binarizer) -> Branch | None:
    """A tree on 0/1 columns as branches in the data's units; a row with 1 answers yes to the column's rule."""
    if plan is None:
        return None
    rule, _ = binarizer.rule(*binarizer.splits[plan.split])
    return Branch(rule, branches_of_plan(plan.one, binarizer), branches_of_plan(plan.zero, binarizer))


def baseline_of(rows: Rows) -> StepFunction:
    """Nelson-Aalen estimate of the training rows."""
    return nelson_aalen(rows.time, rows.event, rows.weight, rows.entry)


def exposure(baseline: StepFunction, rows: Rows) -> FloatArray:
    """Cumulative baseline hazard that each training row went through, (N,), never 0."""
    subjects = rows.weight.sum() / rows.one_subject
    return relative_risk.baseline_hazard(went_through(baseline, rows), subjects)


def went_through(baseline: StepFunction, rows: Rows) -> FloatArray:
    """Cumulative baseline hazard from entry to time of each row, (N,); who is there from the start met time 0 too."""
    hazard = baseline(rows.time)
    return hazard if rows.entry is None else hazard - np.where(rows.entry > 0, baseline(rows.entry), 0.0)


def warn_of_early_end(rows: Rows, leaf: IntArray | None = None) -> None:
    """Say where all who are at risk have the event though others enter later: an estimate ends there.

    With ``leaf`` (N,) the rows of each leaf are looked at by themselves.
    """
    if rows.entry is None or rows.subject is not None:
        return
    ends: list[float] = []
    for mine in [np.full(rows.n, True)] if leaf is None else [leaf == k for k in np.unique(leaf)]:
        time = rows.time[mine]
        table = at_risk_table(time, rows.event[mine], rows.weight[mine], rows.entry[mine])
        ends += table.times[(table.events >= table.at_risk) & (table.times < time.max())].tolist()
    if ends := [end for end in ends if end > 0]:
        of = "all rows" if leaf is None else "a leaf"
        warn(
            f"at time {min(ends):g} all who are at risk have the event, though others enter later (late entry): the "
            f"curve of {of} means nothing from there on; read it up to there alone, or, where that is early, leave out "
            f"rows with times up to {max(ends):g}, and curves are those of rows that last longer",
            DataWarning,
        )
