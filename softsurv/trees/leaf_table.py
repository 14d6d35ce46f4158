"""What training rows say of each leaf: size, events and Kaplan-Meier curve; no row is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.nonparametric import StepFunction, kaplan_meier, median, survival_interval

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class LeafTable:
    """Numbers of the training rows in each leaf, leaves from left to right.

    Attributes
    ----------
    n, events : ndarray (L,)
        Rows and events; 0 where no row arrived.
    median : ndarray (L,)
        Kaplan-Meier median survival; inf where the curve stays above one half, nan without rows.
    median_lower, median_upper : ndarray (L,)
        95 % interval of the median (log-log).
    curves : tuple of StepFunction
        Kaplan-Meier curve of each leaf.
    """

    n: NDArray[np.int64]
    events: NDArray[np.int64]
    median: FloatArray
    median_lower: FloatArray
    median_upper: FloatArray
    curves: tuple[StepFunction, ...]

    def state(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Arrays and plain values to save."""
        arrays = {
            f"{name}.{k}": getattr(curve, name) for k, curve in enumerate(self.curves) for name in ("times", "values")
        }
        fields = ("median", "median_lower", "median_upper")
        arrays |= {name: getattr(self, name) for name in fields}
        return arrays, {"n": self.n.tolist(), "events": self.events.tolist()}

    @classmethod
    def restore(cls, arrays: dict[str, FloatArray], meta: dict[str, Any]) -> LeafTable:
        """The table that :meth:`state` wrote."""
        curves = tuple(StepFunction(arrays[f"times.{k}"], arrays[f"values.{k}"], 1.0) for k in range(len(meta["n"])))
        n, events = (np.asarray(meta[name], dtype=np.int64) for name in ("n", "events"))
        return cls(n, events, arrays["median"], arrays["median_lower"], arrays["median_upper"], curves)


def leaf_table(
    leaf: NDArray[np.int64],  # (N,)
    time: FloatArray,
    event: NDArray[np.bool_],
    n_leaves: int,
) -> LeafTable:
    """Summarise the rows of each leaf."""
    counts = np.bincount(leaf, minlength=n_leaves)
    events = np.bincount(leaf, weights=event, minlength=n_leaves).astype(np.int64)
    curves, medians = [], np.full((3, n_leaves), np.nan)
    for k in range(n_leaves):
        rows = leaf == k
        if not rows.any():
            curves.append(StepFunction(np.empty(0), np.empty(0), 1.0))
            continue
        curve = kaplan_meier(time[rows], event[rows])
        low, high = survival_interval(time[rows], event[rows])
        curves.append(_jumps(curve))
        medians[:, k] = median(curve), median(low), median(high)
    return LeafTable(counts, events, medians[0], medians[1], medians[2], tuple(curves))


def _jumps(curve: StepFunction) -> StepFunction:
    """The curve without the times at which it stays where it is; the last time is kept as its end."""
    before = np.concatenate([[curve.initial], curve.values[:-1]])
    keep = curve.values != before
    keep[-1:] = True
    return StepFunction(curve.times[keep], curve.values[keep], curve.initial)
