"""Held-out rows on the device of the trees, where whole stacks of trees are measured at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import BoolArray
from softsurv.data.survival_data import SurvivalData
from softsurv.metrics.evaluate import outcome
from softsurv.metrics.ranges import refuse_nan
from softsurv.metrics.stacked import CELLS, StackedFold
from softsurv.metrics.stacked_causes import StackedCauses
from softsurv.metrics.stacked_histories import StackedHistories
from softsurv.nonparametric import StepFunction
from softsurv.trees.soft_tree import SoftTree, joined
from softsurv.trees.stacked_incidence import Lattice, StackOfCauses

TreesOfCauses = tuple[SoftTree, ...]
"""A tree for each cause, which differ in their leaves alone; one where there is one kind of event."""


@dataclass(frozen=True)
class TrainingTimes:
    """What measures need to know of the training rows.

    Attributes
    ----------
    censoring : StepFunction
        G.
    floor : float
        The time that stands for time 0.
    horizon : float
        The last time.
    first : float
        The first time of an event.
    """

    censoring: StepFunction
    floor: float
    horizon: float
    first: float


class HeldOut:
    """Held-out rows on a device, ready to measure stacks of trees. The measures are those of `evaluate`.

    Parameters
    ----------
    data : SurvivalData
        The rows, as `SurvivalData.joined` gives them.
    x : Tensor (N, P)
        Their features as the trees read them.
    known : TrainingTimes
    like : Tensor
        Gives the device and type of the trees.
    by_cause : bool
        Whether each cause is measured too.

    Raises
    ------
    NoComparablePairsError, InvalidTimesError
        Where the rows cannot be measured.
    """

    def __init__(
        self, data: SurvivalData, x: Tensor, known: TrainingTimes, like: Tensor, by_cause: bool = True
    ) -> None:
        self.x = x.to(like)
        self.has_causes = data.cause is not None
        fold = outcome(data, known.floor)
        self.events: StackedFold | StackedHistories
        own: dict[str, Any] = {}
        if data.n_subjects < data.n:
            assert data.subject is not None
            self.events = StackedHistories(fold, data.subject.cpu().numpy(), like)
            ends = self.events.ends
        else:
            self.events = StackedFold(known.censoring, fold, like, two_groups(data))
            ends = self.events.rows.time
            own = {"censoring": known.censoring, "grid": self.events.grid}
        self.causes, self._lattice = None, None
        if data.cause is not None and by_cause:
            at_risk = {"entry": fold["entry"], "weight": fold["weight"]}
            self.causes = StackedCauses(ends, data.cause.cpu().numpy(), data.cause_names, like, **at_risk, **own)
            self._lattice = Lattice(self.causes.times, known.horizon, known.first, like)

    def measures(self, trees: TreesOfCauses) -> Tensor:
        """The measures of stacks of M trees, (K, M), on their device."""
        stack = StackOfCauses(trees, self.x)
        with torch.no_grad():
            log_hazard = stack.log_hazard_of_all if self.has_causes else stack.log_hazard
            found = self.events.measures(log_hazard, stack.n_trees)
            if self.causes is None or self._lattice is None:
                return found
            blocks = stack.incidences(self._lattice, CELLS)
            return torch.cat([found, self.causes.measures(blocks, stack.n_trees)])

    def result(self, values: Sequence[float]) -> dict[str, Any]:
        """The numbers (K,) of one model, and what they rest on, as `evaluate` returns them."""
        n = len(self.events.names)
        result = dict(zip(self.events.names, values[:n], strict=True)) | self.events.facts
        return result if self.causes is None else result | {"causes": self.causes.by_cause(values[n:])}


def two_groups(data: SurvivalData) -> BoolArray | None:
    """Members (N,) of the last of two groups; None where there are no groups or not two."""
    if data.group is None or data.group.unique().numel() != 2:
        return None
    return np.asarray((data.group == data.group.max()).cpu().numpy())


def measure_stacks(
    held_out: Sequence[HeldOut],
    trees: Sequence[Sequence[TreesOfCauses]],
    finished: Callable[[], None] = lambda: None,
) -> list[list[dict[str, Any]]]:
    """The measures of each setting's trees (S) on every set of held-out rows (F). Trees that are alike form one stack.

    All scores come to the host together, after a call of ``finished``, which may wait for the device and raise.
    """
    found = []
    for f, rows in enumerate(held_out):
        of_rows = [one[f] for one in trees]
        groups = alike_trees([own[0] for own in of_rows])
        tables = [rows.measures(_stacked([of_rows[k] for k in members])) for members in groups]
        places = np.argsort([k for members in groups for k in members])
        found.append((torch.cat(tables, 1), places))
    finished()
    scores = [table.cpu().numpy()[:, places] for table, places in found]
    for table in scores:
        refuse_nan("log_cumulative_hazard", table)
    return [
        [rows.result(of_rows[:, k].tolist()) for rows, of_rows in zip(held_out, scores, strict=True)]
        for k in range(len(trees))
    ]


def alike_trees(trees: Sequence[SoftTree]) -> list[list[int]]:
    """Numbers of the trees that can stand in one stack: of one leaf family, depth and number of features."""
    groups: dict[Hashable, list[int]] = {}
    for number, tree in enumerate(trees):
        family = tree.family
        settings = tuple(sorted(family.settings().items()))
        key = type(family), family.name, settings, tree.depth, tree.n_features, tree.leaves.dtype
        groups.setdefault(key, []).append(number)
    return list(groups.values())


def _stacked(trees: Sequence[TreesOfCauses]) -> TreesOfCauses:
    """One stack for each cause of the trees of several settings."""
    return tuple(joined(of_cause) for of_cause in zip(*trees, strict=True))
