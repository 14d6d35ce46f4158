"""A table of the training rows in each leaf: size, events and Kaplan-Meier curve. The rows themselves are not kept."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.survival_data import SurvivalData
from softsurv.data.threads import in_threads, threads_for
from softsurv.nonparametric import StepFunction, in_interval, median, survival_interval
from softsurv.trees.leaf_curve import survival_curve

CELLS_A_ROW = 8
"""A row costs as much as so many cells of a table that are copied."""


@dataclass(frozen=True)
class LeafTable:
    """Numbers of the training rows in each leaf, leaves from left to right; rows of weight 0 do not count.

    Attributes
    ----------
    n, events : ndarray (L,)
        Numbers of rows and of events, not sums of weights. An event in an interval counts as an event. 0 where the leaf
        has no row.
    median : ndarray (L,)
        Median of the curve; inf where it stays above one half, nan without rows.
    median_lower, median_upper : ndarray (L,)
        95 % interval of the median (log-log), weights taken as counts; nan where it does not exist, where the leaf has
        events in intervals, or where events recur: those of a subject are not independent.
    curves : tuple of StepFunction
        Survival curve of each leaf with weights and late entries: Kaplan-Meier, or Turnbull's with intervals.
    cause_names : tuple of str (K,)
        Competing causes; empty where there is one kind of event.
    cause_events : ndarray (L, K)
        Events of each cause.
    subjects : ndarray (L,), optional
        Subjects with a row in the leaf, where subjects have several rows; one may count in several leaves.
    predicted : ndarray (L,), optional
        Median of the mean predicted curve of the rows, where leaves hold regressions (see
        `softsurv.trees.leaf_medians`).
    """

    n: IntArray
    events: IntArray
    median: FloatArray
    median_lower: FloatArray
    median_upper: FloatArray
    curves: tuple[StepFunction, ...]
    cause_names: tuple[str, ...] = ()
    cause_events: IntArray = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))
    subjects: IntArray | None = None
    predicted: FloatArray | None = None

    def take(self, leaves: IntArray) -> LeafTable:
        """The numbers of some leaves."""
        medians = (self.median[leaves], self.median_lower[leaves], self.median_upper[leaves])
        return LeafTable(
            self.n[leaves],
            self.events[leaves],
            *medians,
            tuple(self.curves[k] for k in leaves),
            self.cause_names,
            self.cause_events[leaves] if self.cause_names else self.cause_events,
            None if self.subjects is None else self.subjects[leaves],
            None if self.predicted is None else self.predicted[leaves],
        )

    def with_history(
        self,
        leaf: IntArray,  # (N,)
        cause: IntArray | None,  # (N,)
        cause_names: tuple[str, ...],
        subject: IntArray | None,  # (N,)
    ) -> LeafTable:
        """The table with the events of each cause and the number of subjects, of the rows that count."""
        table = self
        if cause is not None:
            count = np.zeros((len(self.n), len(cause_names) + 1), dtype=np.int64)
            np.add.at(count, (leaf, cause), 1)
            table = replace(table, cause_names=cause_names, cause_events=count[:, 1:])
        if subject is not None:
            pairs = np.unique(np.stack([leaf, subject]), axis=1)
            table = replace(table, subjects=np.bincount(pairs[0], minlength=len(self.n)))
        return table

    def state(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Arrays and plain values to save."""
        arrays = {
            f"{name}.{k}": getattr(curve, name) for k, curve in enumerate(self.curves) for name in ("times", "values")
        }
        fields = ("median", "median_lower", "median_upper")
        arrays |= {name: getattr(self, name) for name in fields}
        if self.predicted is not None:
            arrays["predicted"] = self.predicted
        return arrays, {
            "n": self.n.tolist(),
            "events": self.events.tolist(),
            "cause_names": list(self.cause_names),
            "cause_events": self.cause_events.tolist(),
            "subjects": None if self.subjects is None else self.subjects.tolist(),
        }

    @classmethod
    def restore(cls, arrays: dict[str, FloatArray], meta: dict[str, Any]) -> LeafTable:
        """The table that :meth:`state` wrote."""
        curves = tuple(StepFunction(arrays[f"times.{k}"], arrays[f"values.{k}"], 1.0) for k in range(len(meta["n"])))
        n, events = (np.asarray(meta[name], dtype=np.int64) for name in ("n", "events"))
        names = tuple(meta.get("cause_names", ()))
        by_cause = np.asarray(meta.get("cause_events", []), dtype=np.int64).reshape(-1, max(len(names), 1))
        subjects = meta.get("subjects")
        return cls(
            n,
            events,
            arrays["median"],
            arrays["median_lower"],
            arrays["median_upper"],
            curves,
            names,
            by_cause,
            None if subjects is None else np.asarray(subjects, dtype=np.int64),
            arrays.get("predicted"),
        )


def leaf_table(
    leaf: IntArray,  # (N,)
    time: FloatArray,
    event: BoolArray,
    n_leaves: int,
    weight: FloatArray | None = None,
    entry: FloatArray | None = None,
    upper: FloatArray | None = None,
    recurrent: bool = False,
) -> LeafTable:
    """Summarise the rows of each leaf; the columns are those of `SurvivalData`."""
    present = np.ones(len(leaf), dtype=bool) if weight is None else weight > 0
    failed = present & (event | in_interval(event, upper))
    counts = np.bincount(leaf[present], minlength=n_leaves)
    events = np.bincount(leaf[failed], minlength=n_leaves)

    def summary(k: int) -> tuple[StepFunction, FloatArray]:
        """Curve of a leaf; its median and the ends of the interval, (3,)."""
        rows, medians = present & (leaf == k), np.full(3, np.nan)
        if not rows.any():
            return StepFunction(np.empty(0), np.empty(0), 1.0), medians
        own = time[rows], event[rows], *(None if column is None else column[rows] for column in (weight, entry, upper))
        curve = survival_curve(*own)
        medians[0] = median(curve)
        if not (recurrent or in_interval(own[1], own[4]).any()):
            medians[1:] = [median(limit) for limit in survival_interval(*own[:4])]
        return _jumps(curve), medians

    found = in_threads(summary, range(n_leaves), threads_for(CELLS_A_ROW * len(leaf)))
    middle, lower, upper_end = np.array([own for _, own in found]).reshape(n_leaves, 3).T
    return LeafTable(counts, events, middle, lower, upper_end, tuple(curve for curve, _ in found))


def leaf_table_of(data: SurvivalData, leaf: IntArray, n_leaves: int) -> LeafTable:
    """Summarise the rows (N,) of some data by their leaves (N,)."""
    table = leaf_table(leaf, n_leaves=n_leaves, recurrent=data.recurrent, **data.outcomes())
    counts = slice(None) if data.weight is None else np.flatnonzero(data.weight.cpu().numpy() > 0)
    cause, subject = (None if column is None else column.cpu().numpy()[counts] for column in (data.cause, data.subject))
    return table.with_history(leaf[counts], cause, data.cause_names, subject)


def same_rows(trained: LeafTable, other: LeafTable) -> bool:
    """Whether both tables count as many rows and events in every leaf, as tables of the same rows do."""
    return np.array_equal(trained.n, other.n) and np.array_equal(trained.events, other.events)


def _jumps(curve: StepFunction) -> StepFunction:
    """The curve at the times of its jumps, and at its last time."""
    before = np.concatenate([[curve.initial], curve.values[:-1]])
    keep = curve.values != before
    keep[-1:] = True
    return StepFunction(curve.times[keep], curve.values[keep], curve.initial)
