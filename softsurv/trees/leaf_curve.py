"""Survival curve of some rows: Kaplan-Meier, or Turnbull's estimate where events lie in intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from softsurv.arrays import FloatArray, IntArray
from softsurv.nonparametric import (
    QUANTILE_TOLERANCE,
    StepFunction,
    as_exact,
    checked_columns,
    in_interval,
    kaplan_meier,
)

TURNBULL_TOLERANCE, TURNBULL_STEPS, TURNBULL_HALVINGS = 1e-9, 1000, 30
"""The iteration ends when the log-likelihood is proven to lie below its maximum by no more than this share of the total
weight, or after this number of steps; a step is halved so often at most."""


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
    Steps of self-consistency (EM) and of the iterative convex minorant by turns, each O(N + K) for K innermost
    intervals. The likelihood is concave, and its slope towards an interval bounds how far the maximum is: the curve is
    that of greatest likelihood to rounding, which self-consistency alone misses by .01 after thousands of steps.
    lifelines takes intervals as closed, so that (0, 1] and (1, 2] would share an event at 1.

    References
    ----------
    Turnbull (1976), The empirical distribution function with arbitrarily grouped, censored and truncated data.
    Wellner and Zhan (1997), A hybrid algorithm for computation of the nonparametric maximum likelihood estimator from
    censored data.
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
    share = _most_likely(kinds, np.bincount(row.ravel(), weights=weight_).astype(float), left.size)
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


def _most_likely(
    span: IntArray,  # (N, 2) innermost intervals of each kind of row
    weight: FloatArray,  # (N,)
    n: int,
) -> FloatArray:  # (n,)
    """Shares of the innermost intervals."""
    first, end = span.T
    share, whole = np.full(n, 1.0 / n), weight.sum()
    for _ in range(TURNBULL_STEPS):
        below = _sums(share)
        own = weight / _within(below, first, end, weight)
        slope = np.cumsum(np.bincount(first, own, n + 1) - np.bincount(end, own, n + 1))[:n]
        if slope.max() <= whole * (1.0 + TURNBULL_TOLERANCE):
            break
        share = share * np.maximum(slope, 0.0)  # rounding of the difference
        share = _convex_minorant_step(first, end, weight, share / share.sum())
    return share


def _sums(share: FloatArray) -> FloatArray:
    """Sums (n + 1,) of the first 0, 1, ... shares (n,)."""
    below = np.append(0.0, np.cumsum(share))
    below[-1] = 1.0
    return below


def _within(below: FloatArray, first: IntArray, end: IntArray, weight: FloatArray) -> FloatArray:
    """Mass (N,) within the interval of each kind of row; one that is lost in the difference is that of its rows."""
    mass = below[end] - below[first]
    return np.where(mass > 0, mass, weight / weight.sum())


def _convex_minorant_step(first: IntArray, end: IntArray, weight: FloatArray, share: FloatArray) -> FloatArray:
    """A Newton step of the sums by the diagonal of the Hessian, kept ascending, as far as the likelihood rises."""
    n, below = share.size, _sums(share)
    own = _within(below, first, end, weight)
    score, curvature = weight / own, weight / own**2
    gradient = (np.bincount(end, score, n + 1) - np.bincount(first, score, n + 1))[1:n]
    diagonal = (np.bincount(end, curvature, n + 1) + np.bincount(first, curvature, n + 1))[1:n]
    aim = isotonic_regression(below[1:n] + gradient / diagonal, weights=diagonal).x
    move, likelihood = np.clip(aim, 0.0, 1.0) - below[1:n], weight @ np.log(own)
    for k in range(TURNBULL_HALVINGS):
        sums = np.concatenate([[0.0], below[1:n] + move / 2**k, [1.0]])
        own = sums[end] - sums[first]
        if own.min() > 0 and weight @ np.log(own) >= likelihood:
            return np.diff(sums)
    return share
