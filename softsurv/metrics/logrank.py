"""Do groups share one survival curve? The log-rank test, and the numbers at risk that belong under curves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.nonparametric import SUM_ROUNDING, AtRiskTable, at_risk_table, checked_columns, ratio

VARIANCE_ROUNDING = 1e-8
"""Rounding of a sum over many times grows: a variance below this share of its size without other groups is none."""


class LogRankTest(NamedTuple):
    """Result of `logrank_test`; ``p_value`` is the probability of so large a statistic where the curves are equal."""

    statistic: float
    degrees_of_freedom: int
    p_value: float


def logrank_test(
    time: ArrayLike,
    event: ArrayLike,
    group: ArrayLike,
    weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
    subject: ArrayLike | None = None,
) -> LogRankTest:
    """Log-rank test that several groups share one survival curve, or one rate of events that recur.

    Parameters
    ----------
    time, event, weight, entry
        As in `softsurv.nonparametric.at_risk_table`.
    group : array_like, shape (N,)
        The group of each subject, or of each row.
    subject : array_like, shape (N,), optional
        Subject of each row, where events recur: those of one subject may depend on one another.

    Notes
    -----
    With d events among n at risk at a time, group g with n_g at risk expects n_g d / n events; the covariance of its
    events with those of group h is (n_g / n) ([g = h] - n_h / n) d (n - d) / (n - 1). The statistic is the squared
    distance of observed from expected events under the summed covariance. A group that is never at risk beside
    another has no variance and costs its degree of freedom. Weights enter as case counts.

    With ``subject`` the covariance is the robust one: the sum over subjects of the squares of their weighted parts of
    observed minus expected events. The part of a row of group h is the integral of [g = h] - n_g / n over its own
    events minus d / n while it is at risk. This is the robust score test of R's ``coxph(..., cluster = id)`` with
    Breslow's ties.

    A tree has chosen its leaves to differ, so on its training rows the p-value between its leaves is too small.

    References
    ----------
    Mantel (1966), Evaluation of survival data and two new rank order statistics arising in its consideration.
    Lin and Wei (1989), The robust inference for the Cox proportional hazards model.
    """
    rows = time_, event_, weight_, entry_ = checked_columns(time, event, weight, entry)
    names, place = np.unique(np.asarray(group), return_inverse=True)
    pooled = at_risk_table(time_, event_, weight_, entry)
    at_risk = np.zeros((pooled.times.size, names.size))
    for g in range(names.size):
        begin = None if entry_ is None else entry_[place == g]
        at_risk[:, g] = _at_risk(pooled.times, time_[place == g], weight_[place == g], begin)
    n, d = pooled.at_risk, pooled.events
    share = ratio(at_risk, n[:, None])
    observed = np.bincount(place, weight_ * event_, names.size)
    if subject is None:
        spread = ratio(d * (n - d), n - 1.0)
        alone = spread @ share
        covariance = np.diag(alone) - share.T @ (spread[:, None] * share)
    else:
        covariance, alone = _robust(pooled, share, rows, place, np.asarray(subject))
    statistic, free = _squared_distance(observed - d @ share, covariance, alone)
    return LogRankTest(statistic, free, float(chdtrc(free, statistic)) if free else 1.0)


def _robust(
    pooled: AtRiskTable,
    share: FloatArray,  # (K, G) of those at risk
    rows: tuple[FloatArray, BoolArray, FloatArray, FloatArray | None],
    place: IntArray,  # (N,)
    subject: NDArray[Any],
) -> tuple[FloatArray, FloatArray]:
    """Covariance by subject (G, G), and what its diagonal would be without other groups; rows: `checked_columns`."""
    time, event, weight, entry = rows
    hazard = ratio(pooled.events, pooled.at_risk)[:, None]
    sums = np.cumsum(np.hstack([hazard, hazard * share]), axis=0)  # (K, 1 + G)
    until = np.searchsorted(pooled.times, time)
    expected = sums[until]
    if entry is not None:
        expected = expected - np.vstack([0.0 * sums[:1], sums])[np.searchsorted(pooled.times, entry, side="right")]
    own = place[:, None] == np.arange(share.shape[1])
    parts = event[:, None] * (own - share[until]) - (own * expected[:, :1] - expected[:, 1:])
    alone = np.bincount(place, (weight * (event + expected[:, 0])) ** 2, share.shape[1]).astype(float)
    who = np.unique(subject, return_inverse=True)[1]
    of_subject = np.zeros((int(who.max()) + 1, share.shape[1]))
    np.add.at(of_subject, who, weight[:, None] * parts)
    return of_subject.T @ of_subject, alone


def _squared_distance(distance: FloatArray, covariance: FloatArray, alone: FloatArray) -> tuple[float, int]:
    """Squared distance (G,) under a covariance, and its rank; ``alone`` are the variances without other groups.

    Groups are put on one scale first, so that a small group is not taken for rounding of a large one.
    """
    own = np.diagonal(covariance)
    varies = own > VARIANCE_ROUNDING * alone
    deviation = np.sqrt(own[varies])
    values, vectors = np.linalg.eigh(covariance[np.ix_(varies, varies)] / np.outer(deviation, deviation))
    kept = values > VARIANCE_ROUNDING
    parts = vectors.T[kept] @ (distance[varies] / deviation)
    return float(np.sum(parts**2 / values[kept])), int(kept.sum())


def numbers_at_risk(
    times: ArrayLike, time: ArrayLike, weight: ArrayLike | None = None, entry: ArrayLike | None = None
) -> FloatArray:
    """How many are at risk at each of some times, (T,); columns as in `at_risk_table`."""
    time_, _, weight_, entry_ = checked_columns(time, np.zeros(np.shape(time), dtype=bool), weight, entry)
    return _at_risk(np.asarray(times, dtype=float), time_, weight_, entry_)


def _at_risk(at: FloatArray, time: FloatArray, weight: FloatArray, entry: FloatArray | None) -> FloatArray:
    """Weight of the rows with entry < at <= time, (T,)."""
    order = np.argsort(time)
    left = np.concatenate([[0.0], np.cumsum(weight[order])])[np.searchsorted(time[order], at, side="left")]
    entered, total = np.full(left.shape, weight.sum()), weight.sum()
    if entry is not None:
        order = np.argsort(entry)
        entered = np.concatenate([[0.0], np.cumsum(weight[order])])[np.searchsorted(entry[order], at, side="left")]
    return np.where(entered - left > SUM_ROUNDING * total, entered - left, 0.0)
