"""What the leaves of an optimal tree predict: one cumulative hazard per leaf, a step function of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsurv.estimators.optimal_rows import FloatArray, Rows, baseline_of
from softsurv.exact.objectives.brier import IbsScore
from softsurv.nonparametric import StepFunction, kaplan_meier, quantile, restricted_mean
from softsurv.trees.hard_tree import HardTree


@dataclass(frozen=True)
class LeafCurves:
    """Cumulative hazard of each of L leaves, from 0 at time 0; ``inf`` from where nobody survives.

    Only times at which it steps are kept.
    """

    hazards: tuple[StepFunction, ...]

    @classmethod
    def of(cls, hazards: Sequence[StepFunction]) -> LeafCurves:
        """Keep the steps alone."""
        return cls(tuple(_steps(hazard) for hazard in hazards))

    @property
    def survival(self) -> tuple[StepFunction, ...]:
        """Survival curve of each leaf."""
        return tuple(StepFunction(h.times, np.exp(-h.values), 1.0) for h in self.hazards)

    def log_cumulative_hazard(self, leaf: NDArray[np.int64], times: FloatArray) -> FloatArray:
        """Log H of each row's leaf, (n, T); -inf before the first step."""
        with np.errstate(divide="ignore"):
            table = np.log(np.stack([hazard(times) for hazard in self.hazards]))  # (L, T)
        return np.asarray(table[leaf])

    def hazard(self, leaf: NDArray[np.int64], times: FloatArray) -> FloatArray:
        """Slope of H drawn as straight lines between its steps, (n, T); 0 after the last step."""
        return np.stack([_slope(hazard, times) for hazard in self.hazards])[leaf]

    def quantile(self, leaf: NDArray[np.int64], probability: float) -> FloatArray:
        """Time of the first step by which the share ``probability`` has had the event, (n,); inf if none."""
        return np.array([quantile(curve, probability) for curve in self.survival])[leaf]

    def restricted_mean(self, leaf: NDArray[np.int64], horizon: float) -> FloatArray:
        """Area under the survival curve up to the horizon, exactly, (n,)."""
        return np.array([restricted_mean(curve, horizon) for curve in self.survival])[leaf]

    def state(self) -> dict[str, FloatArray]:
        """Arrays to save."""
        return {
            f"{name}.{k}": getattr(hazard, name)
            for k, hazard in enumerate(self.hazards)
            for name in ("times", "values")
        }

    @classmethod
    def restore(cls, arrays: dict[str, FloatArray], n_leaves: int) -> LeafCurves:
        """The curves that :meth:`state` wrote."""
        return cls(tuple(StepFunction(arrays[f"times.{k}"], arrays[f"values.{k}"], 0.0) for k in range(n_leaves)))


def leaf_curves(rows: Rows, tree: HardTree, kind: str) -> LeafCurves:
    """Curves of a tree's leaves from the training rows: "nelson_aalen", "km" or "ipcw"."""
    if kind == "nelson_aalen":
        baseline = baseline_of(rows)
        return LeafCurves.of([StepFunction(baseline.times, theta * baseline.values, 0.0) for theta in tree.value[:, 0]])
    leaf = rows.leaf_of(tree)
    members = [np.flatnonzero(leaf == k) for k in range(tree.n_leaves)]
    if kind == "ipcw":
        score = IbsScore.from_columns(rows.time, rows.event, rows.weight)
        grid = score.grid().times
        return LeafCurves.of([_cumulative(grid, score.curve(some, "ipcw", monotone=True)) for some in members])
    curves = [
        kaplan_meier(rows.time[i], rows.event[i], rows.weight[i], None if rows.entry is None else rows.entry[i])
        for i in members
    ]
    return LeafCurves.of([_cumulative(curve.times, curve.values) for curve in curves])


def _cumulative(times: FloatArray, survival: FloatArray) -> StepFunction:
    with np.errstate(divide="ignore"):
        return StepFunction(times, -np.log(np.maximum(survival, 0.0)), 0.0)


def _steps(hazard: StepFunction) -> StepFunction:
    """The function without the times at which it stays where it is."""
    keep = hazard.values != np.concatenate([[0.0], hazard.values[:-1]])
    return StepFunction(hazard.times[keep], hazard.values[keep] + 0.0, 0.0)


def _slope(hazard: StepFunction, times: FloatArray) -> FloatArray:
    """Slope of the straight line that ends in the next step at or after each time, (T,)."""
    later = hazard.times > 0  # a step at time 0 has no width
    ends, values = hazard.times[later], hazard.values[later]
    start = float(hazard(0.0))
    slopes = np.diff(values, prepend=start) / np.diff(ends, prepend=0.0)
    return np.append(slopes, 0.0)[np.searchsorted(ends, times, side="left")]
