"""The integrated Brier score as the objective of an optimal tree (OSST, paper `osst`, section 2.1).

Conventions, as the reference implementation `osst` 0.1.8 has them (tests/exact/brier/test_peers.py checks each):

- S in a leaf is the Kaplan-Meier curve of the leaf's rows (eq. 3).
- G is the same product-limit estimate for censoring over all rows: 1 - (censored at t) / (rows with time >= t). At
  a time with events *and* censorings the events stay in the at-risk set (eq. 3 read literally), where
  `softsurv.nonparametric.censoring_survival` and scikit-survival take them out first.
- Both are right-continuous: an event at t is weighted by 1 / G(t), a survivor of t by 1 / G(t).
- The time range is [first observed time, last observed time]. Before the first time the score is 0, so the printed
  1 / y_max of eq. 1 differs by the constant factor (y_max - y_min) / y_max only; ``time_range="origin"`` uses it.
- Nothing is divided by G(t) = 0: G reaches 0 at the last time only, where no time is left to integrate over.

The reference computes in single precision: on its thirteen data sets its objective is within 4e-6 of the sums here
(the most on employee, with 14,999 rows).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from softsurv.arrays import BoolArray, FloatArray
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.exact.prepare import check_weights
from softsurv.nonparametric import StepFunction, checked_columns, kaplan_meier

NEGLIGIBLE = 1e-12
"""Share of the largest weight below which a step of time does not move a curve."""

Leaf = Literal["km", "ipcw"]
TimeRange = Literal["observed", "origin"]


class ScoreGrid(NamedTuple):
    """The distinct times and what the score needs at each, shape (T,)."""

    times: FloatArray
    g: FloatArray
    """G at each time."""
    dt: FloatArray
    """Length of the step that starts there, 0 for the last, divided by (sum of weights * time range)."""


@dataclass(frozen=True)
class IbsScore:
    """Integrated Brier score of step curves on fixed training rows: the definition, written for reading.

    Parameters
    ----------
    time, event : ndarray, shape (N,)
        Observed times and event indicators.
    weight : ndarray, shape (N,)
        Case weights, > 0, with mean 1: only their ratios matter.
    time_range : {"observed", "origin"}
        Divide by (last - first time), or by the last time (eq. 1 as printed).
    """

    time: FloatArray
    event: BoolArray
    weight: FloatArray
    time_range: TimeRange = "observed"
    censoring_curve: StepFunction | None = None
    """G from elsewhere: a test fold is scored with the training fold's."""

    @classmethod
    def from_columns(
        cls, time: ArrayLike, event: ArrayLike, weight: ArrayLike | None = None, time_range: TimeRange = "observed"
    ) -> IbsScore:
        """Check the columns and build the score."""
        time_, event_, weight_, _ = checked_columns(time, event, weight)
        if time_range not in ("observed", "origin"):
            raise InvalidParameterError(f"time_range must be 'observed' or 'origin', got {time_range!r}")
        if time_.min() < 0.0:
            raise InvalidSurvivalDataError(
                f"time must be >= 0, got {time_.min():g} at row {int(time_.argmin())}; shift the time origin"
            )
        if not (weight_ > 0.0).all():
            raise InvalidSurvivalDataError("weight must be > 0 for an optimal tree, got 0; drop these rows")
        check_weights(weight_)
        equal = bool(np.ptp(weight_) == 0.0)
        return cls(time_, event_, np.ones_like(weight_) if equal else weight_ / weight_.mean(), time_range)

    @property
    def censoring(self) -> StepFunction:
        """G, the Kaplan-Meier estimate of being uncensored."""
        if self.censoring_curve is not None:
            return self.censoring_curve
        return kaplan_meier(self.time, ~self.event, self.weight)

    @property
    def unit(self) -> float:
        """What a row's integral is divided by: sum of weights times the length of the time range."""
        start = self.time.min() if self.time_range == "observed" else 0.0
        length = float(self.time.max() - start)
        return float(self.weight.sum()) * (length if length > 0.0 else 1.0)

    def grid(self) -> ScoreGrid:
        """Distinct times with G and the scaled step lengths."""
        return self._grid

    @cached_property
    def _grid(self) -> ScoreGrid:
        times = np.unique(self.time)
        dt = np.append(np.diff(times), 0.0) / self.unit
        return ScoreGrid(times, np.asarray(self.censoring(times)), dt)

    def curve_weights(self, rows: NDArray[np.int_]) -> tuple[FloatArray, FloatArray]:
        """B and D (T,) of some rows: weighted survivors and weighted deaths at each distinct time.

        The rows' score is the sum over times of dt * (B (1 - S)^2 + D S^2).
        """
        grid = self.grid()
        at = np.searchsorted(grid.times, self.time[rows])
        size = grid.times.size
        left = np.bincount(at, self.weight[rows], size)
        alive = np.cumsum(left[::-1])[::-1] - left  # rows with time > t
        g = np.where(grid.g > 0.0, grid.g, np.inf)
        died = np.bincount(at, self.weight[rows] * self.event[rows] / g[at], size)
        return alive / g, np.cumsum(died)

    def loss(self, rows: NDArray[np.int_], survival: FloatArray) -> float:
        """Score of one curve (T,) on some rows; losses of leaves add up to the tree's (Theorem 2.1)."""
        return self.weighted_loss(*self.curve_weights(rows), survival)

    def weighted_loss(self, alive: FloatArray, died: FloatArray, survival: FloatArray) -> float:
        """As :meth:`loss`, of rows whose :meth:`curve_weights` (T,) are known."""
        return float(np.sum(self.grid().dt * (alive * (1.0 - survival) ** 2 + died * survival**2)))

    def row_losses(self, survival: FloatArray) -> FloatArray:
        """Score of every row (N,) under its own curve, ``survival`` (N, T): the reference model's losses."""
        grid = self.grid()
        at = np.searchsorted(grid.times, self.time)  # (N,)
        g = np.where(grid.g > 0.0, grid.g, np.inf)
        steps = np.arange(grid.times.size)
        alive = steps < at[:, None]  # (N, T)
        dead = ~alive & self.event[:, None]
        survivor = np.where(alive, (1.0 - survival) ** 2 / g, 0.0) @ grid.dt
        victim = np.where(dead, survival**2, 0.0) @ grid.dt / g[at]
        return np.asarray(self.weight * (survivor + victim))

    def curve(self, rows: NDArray[np.int_], leaf: Leaf = "km", monotone: bool = False) -> FloatArray:
        """Leaf curve (T,) of some rows: Kaplan-Meier, or the pointwise minimiser of their score.

        The minimiser is S* = B / (B + D). Where nobody is at risk and nobody died it is not determined: it keeps
        its last value. ``monotone`` makes it non-increasing: weighted antitonic regression with weights
        dt * (B + D), the best non-increasing curve for the same score.
        """
        times, _, dt = self.grid()
        if leaf == "km":
            return np.asarray(kaplan_meier(self.time[rows], self.event[rows], self.weight[rows])(times))
        b, d = self.curve_weights(rows)
        total = b + d
        known = np.flatnonzero(total > 0.0)
        value = b[known] / total[known]
        if monotone:
            value = isotonic_regression(value, weights=_positive(dt * total)[known], increasing=False).x
        levels = np.concatenate([[1.0], value])
        return np.asarray(levels[np.searchsorted(known, np.arange(times.size), side="right")])

    def leaf_loss(self, rows: NDArray[np.int_], leaf: Leaf = "km") -> float:
        """Score of a leaf under its own curve."""
        return self.loss(rows, self.curve(rows, leaf))


def _positive(weights: FloatArray) -> FloatArray:
    """Weights with zeros (steps of no length) replaced by one too small to matter."""
    scale = float(weights.max(initial=0.0))
    return np.maximum(weights, NEGLIGIBLE * scale if scale > 0.0 else 1.0)
