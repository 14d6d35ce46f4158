"""Late entry in the measures: who was under observation at a time, and how likely that was."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import BoolArray, FloatArray
from softsurv.nonparametric import StepFunction, checked_columns, ipcw_weights, ratio


class CheckedRows(NamedTuple):
    """A test fold, checked: columns (N,) and what is known of its entries."""

    time: FloatArray
    event: BoolArray
    mass: FloatArray
    entry: FloatArray | None  # -inf: from the start
    entering: StepFunction

    @classmethod
    def of(cls, time: ArrayLike, event: ArrayLike, weight: ArrayLike | None, entry: ArrayLike | None) -> CheckedRows:
        """These columns; errors as `softsurv.nonparametric.at_risk_table`."""
        time_, event_, mass, entry_ = checked_columns(time, event, weight, entry)
        return cls(time_, event_, mass, entry_, entry_distribution(time_, entry, mass))

    def case_weights(self, last: float, censoring: StepFunction) -> FloatArray:
        """Weight of each row as a case at its time (N,), 0 of those that are none up to ``last``."""
        return self.mass * case_weights(self.time, self.event & (self.time <= last), censoring, self.entering)


def entry_distribution(time: ArrayLike, entry: ArrayLike | None, weight: ArrayLike | None = None) -> StepFunction:
    """A(t), the probability that a subject of the population has entered at t or before.

    Parameters
    ----------
    time : array_like (N,)
        Observed times, of events and censorings alike.
    entry : array_like (N,), optional
        Left-truncation times, below ``time``; 0 and None: from the start.
    weight : array_like (N,), optional
        Sample weights.

    Returns
    -------
    StepFunction
        Above 0 at all times. ``left_limit`` is the probability of having entered before t, as an event at t asks.

    Notes
    -----
    A subject is in the sample only where it enters before its end, so early entries are seen too often. Backwards in
    time the product-limit estimate is A(t) = prod over entries e > t of (1 - entering(e) / at_risk(e)), with those at
    risk whose span [entry, time) holds e (Lynden-Bell 1971; Woodroofe 1985). Exact where entry is independent of the
    event and of censoring. Where those who enter are the only ones at risk, the factor would be 0, and nothing would be
    known of earlier times. It is left out: times on both sides of such a gap compare as if nobody had entered there.
    """
    time_, _, weight_, entry_ = checked_columns(time, np.zeros(np.shape(time), dtype=bool), weight, entry)
    if entry_ is None or not (late := entry_ > 0).any():
        return StepFunction(np.array([0.0]), np.array([1.0]), 1.0)
    times, index = np.unique(entry_[late], return_inverse=True)
    entering = np.bincount(index, weights=weight_[late]).astype(float)
    at_risk = _mass_up_to(entry_, weight_, times) - _mass_up_to(time_, weight_, times)
    # where nobody else is at risk the share is left out; rounding of the sums must not leave a little there
    share = np.where(entering >= at_risk * (1 - 1e-12), 1.0, 1 - ratio(entering, at_risk))
    before = np.cumprod(share[::-1])[::-1]  # (K,) probability of entering before each of the times
    return StepFunction(times, np.append(before[1:], 1.0), float(before[0]))


def case_weights(time: FloatArray, event: ArrayLike, censoring: StepFunction, entering: StepFunction) -> FloatArray:
    """1 / (A(t-) G(t)) of the events, 0 for the others, (N,); errors as `ipcw_weights`."""
    return ipcw_weights(time, event, censoring) / entering.left_limit(time)


def some_late(entry: FloatArray | None) -> bool:
    """Whether any checked entry (N,) is late: those from the start are -inf."""
    return entry is not None and bool(np.isfinite(entry).any())


def under_observation(entry: FloatArray | None, time: FloatArray, t: float | FloatArray) -> np.ndarray:
    """Who is free of the event and under observation just after t: entered at t or before, ends later.

    (N,) of one time, (T, N) of times (T, 1).
    """
    free = time > t
    return free if entry is None else free & (entry <= t)


def _mass_up_to(values: FloatArray, weight: FloatArray, times: FloatArray) -> FloatArray:
    """Weight of the values at or before each of the times."""
    order = np.argsort(values)
    sums = np.concatenate([[0.0], np.cumsum(weight[order])])
    return np.asarray(sums[np.searchsorted(values[order], times, side="right")])
