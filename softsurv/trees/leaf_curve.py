"""Survival curve of some rows: Kaplan-Meier, or Turnbull's estimate where events lie in intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import FloatArray, IntArray
from softsurv.nonparametric import (
    QUANTILE_TOLERANCE,
    StepFunction,
    as_exact,
    checked_columns,
    in_interval,
    kaplan_meier,
)

TURNBULL_TOLERANCE, TURNBULL_STEPS = 1e-8, 5000
"""The iteration ends when a step moves the curve by less than this tolerance, or after this number of steps: more would
not show in a picture."""


def survival_curve(
    time: ArrayLike,
    event: ArrayLike,
    weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> StepFunction:
    """Kaplan-Meier curve, or `turnbull` where the event of some row lies in an interval (time, upper].

    Notes
    -----
    With intervals and late entries the likelihood favours a large drop before most rows have entered: its maximum is
    not a consistent estimate. Then the Kaplan-Meier curve is taken, with each event at the middle of its interval.
    """
    late = entry is not None and bool((np.asarray(entry) > 0).any())
    if upper is not None and in_interval(event, upper).any() and not late:
        return turnbull(time, event, upper, weight)
    return kaplan_meier(*as_exact(time, event, upper, 0.5), weight, entry)


def turnbull(time: ArrayLike, event: ArrayLike, upper: ArrayLike, weight: ArrayLike | None = None) -> StepFunction:
    """Survival function of greatest likelihood where events lie in intervals.

    Parameters
    ----------
    time, event, weight
        As in `softsurv.nonparametric.at_risk_table`.
    upper : array_like, shape (N,)
        Where ``event`` is False, the end of the interval (time, upper] that holds the event; inf: right censoring.

    Returns
    -------
    StepFunction
        The likelihood says by how much the curve falls within each innermost interval, not where in it. The fall is put
        at the middle, as R's ``survfit`` does. Without intervals this is the Kaplan-Meier curve.

    Notes
    -----
    Self-consistency (EM) over the innermost intervals, O(N + K) a step: the share p_j of an interval becomes its mean
    over the rows, p_j / P(own interval) for rows whose interval holds it and 0 for others. lifelines takes intervals as
    closed, so that (0, 1] and (1, 2] would share an event at 1.

    References
    ----------
    Turnbull (1976), The empirical distribution function with arbitrarily grouped, censored and truncated data.
    """
    time_, event_, weight_, _ = checked_columns(time, event, weight)
    counts = weight_ > 0
    time_, event_, weight_ = time_[counts], event_[counts], weight_[counts]
    begin = np.where(event_, np.nextafter(time_, -np.inf), time_)  # an exact time is the shortest interval
    end = np.where(event_, time_, np.asarray(upper, dtype=float)[counts])
    left, right = _innermost(begin, end)
    # (N, 2) first and last + 1 of the innermost intervals within each row's own
    span = np.column_stack([np.searchsorted(left, begin), np.searchsorted(right, end, side="right")])
    kinds, row = np.unique(span, axis=0, return_inverse=True)
    share = _self_consistent(kinds, np.bincount(row.ravel(), weights=weight_).astype(float), left.size)
    finite = np.isfinite(right)
    left, right, share = left[finite], right[finite], share[finite]
    middle = np.where(np.nextafter(left, np.inf) == right, right, 0.5 * (left + right))
    survival = np.maximum(1.0 - np.cumsum(share), 0.0)
    survival[survival < QUANTILE_TOLERANCE] = 0.0
    last = max(time_.max(), end[np.isfinite(end)].max(initial=0.0))
    if middle.size and last <= middle[-1]:
        return StepFunction(middle, survival, 1.0)
    return StepFunction(np.append(middle, last), np.append(survival, survival[-1] if survival.size else 1.0), 1.0)


def _innermost(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turnbull's innermost intervals (left, right], (K,): a right end follows a left end with no left end between."""
    begin, ends = np.unique(left), np.unique(right)
    following = ends[np.searchsorted(ends, begin, side="right")]
    inner = np.append(begin[1:], np.inf) >= following
    return begin[inner], following[inner]


def _self_consistent(
    span: IntArray,  # (N, 2) innermost intervals of each kind of row
    weight: FloatArray,  # (N,)
    n: int,
) -> FloatArray:  # (n,)
    """Shares of the innermost intervals."""
    first, end = span.T
    share, least = np.full(n, 1.0 / n), weight / weight.sum()  # a row's own mass is in its intervals
    for _ in range(TURNBULL_STEPS):
        below = np.concatenate([[0.0], np.cumsum(share)])
        mass = below[end] - below[first]
        own = weight / np.where(mass > 0, mass, least)  # a small mass is lost in the difference of larger ones
        total = np.cumsum(np.bincount(first, own, n + 1) - np.bincount(end, own, n + 1))[:n]
        new = share * np.maximum(total, 0.0)  # rounding of the difference
        new /= new.sum()
        moved = np.abs(np.cumsum(new - share)).max()
        share = new
        if moved < TURNBULL_TOLERANCE:
            break
    return share
