"""Doubly robust scores of treatments by restricted mean survival, from censored observations.

For treatment a, horizon L and features x, the value wanted is mu_a(x) = E[min(T, L) | x, a]. Observed are the time U,
cut at L, whether it is complete (the event was seen or the row was followed to L), and the treatment given A. With

- S_a(t | x), survival under a, and m_a(s | x) = E[min(T, L) | T > s, x, a] = s + int_s^L S_a du / S_a(s),
- G_a(t), survival of the censoring time under a, with hazard dLambda_C and martingale
  dM_C = dN_C - 1(at risk) dLambda_C,
- e_a(x), the probability of being given a,

the censoring-weighted outcome with augmentation, and the score, are

    psi   = complete U / G_A(U-) + int_0^U m_A(s | x) / G_A(s) dM_C(s)
    score = mu_a(x) + 1(A = a) / e_a(x) (psi - mu_a(x)).

E[score | x] = mu_a(x) if S is right, or if e and G are (Robins, Rotnitzky & Zhao 1994; Zhang & Schaubel 2012 for
restricted means; used with policy trees by Cui et al. 2023). With m constant the weights sum to one in every row, since
1/G telescopes; `tests/estimators/test_survival_policy.py` checks that and the double robustness by simulation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.errors import DataWarning, InvalidParameterError, warn
from softsurv.nonparametric import StepFunction, censoring_survival

LEAST_CENSORING_SURVIVAL = 0.05
"""Below this share still followed, single rows get weights above 20."""

CHUNK = 4_000_000
"""Numbers in a table of rows by times: what is larger is worked through in parts."""


@dataclass(frozen=True)
class Curves:
    """Survival of every row under one treatment: ``values[:, k]`` from ``times[k]`` on, 1 before; times rise."""

    times: FloatArray  # (T,)
    values: FloatArray  # (N, T)


def remaining_means(curves: Curves, horizon: float, at: FloatArray) -> FloatArray:
    """m(s | x) = E[min(T, L) | T > s, x] of every row at times ``at`` (M,) <= horizon, as (N, M).

    Where S(s) is 0 nothing remains: m(s) = s.
    """
    inside = curves.times < horizon
    edges = np.concatenate([[0.0], curves.times[inside], [horizon]])
    level = np.column_stack([np.ones(len(curves.values)), curves.values[:, inside]])
    area = np.column_stack([np.zeros(len(level)), np.cumsum(level * np.diff(edges), axis=1)])  # int_0^edge S
    piece = np.minimum(np.searchsorted(edges, at, side="right") - 1, level.shape[1] - 1)
    to_here = area[:, piece] + level[:, piece] * (at - edges[piece])
    here = level[:, piece]
    rest = area[:, -1:] - to_here
    return np.asarray(at + np.divide(rest, here, out=np.zeros_like(rest), where=here > 0))


def weighted_outcome(
    time: FloatArray, event: BoolArray, horizon: float, censoring: StepFunction, curves: Curves | None
) -> FloatArray:
    """psi of rows (N,) under the treatment that they were given; without ``curves`` the censoring-weighted outcome."""
    end = np.minimum(time, horizon)
    complete = event | (time >= horizon)
    weight = censoring.left_limit(end)
    psi = np.where(complete, end / np.where(weight > 0, weight, 1.0), 0.0)
    if curves is None:
        return psi
    jumps = censoring.times[censoring.times < horizon]
    after, before = censoring(jumps), censoring.left_limit(jumps)
    real = (after < before) & (after > 0)
    jumps, after, before = jumps[real], after[real], before[real]
    hazard = 1 - after / before
    rows = max(1, CHUNK // (len(jumps) + curves.values.shape[1] + 1))
    for begin in range(0, len(time), rows):
        part = slice(begin, begin + rows)
        means = remaining_means(Curves(curves.times, curves.values[part]), horizon, jumps)  # (rows, J)
        censored_here = ~complete[part, None] & (end[part, None] == jumps)
        at_risk = (end[part, None] > jumps) | censored_here
        psi[part] += ((censored_here - at_risk * hazard) * means / after).sum(axis=1)
    return psi


def restricted_mean_scores(
    method: str,
    time: FloatArray,
    event: BoolArray,
    treatment: NDArray[np.integer],
    horizon: float,
    propensity: FloatArray | None,
    curves: list[Curves] | None,
    weight: FloatArray | None = None,
) -> FloatArray:
    """Score of every treatment for every row, (N, K): expected time without event up to the horizon.

    Parameters
    ----------
    method : {"doubly_robust", "direct", "ips"}
        As in the module's formula; its mu alone; or 1(A = a) / e_a complete U / G_A(U-).
    time, event : (N,)
    treatment : (N,) int
        The treatment given, 0 .. K-1.
    horizon : float
    propensity : (N, K), optional
        Probability of every treatment; not needed for "direct".
    curves : list of K Curves, optional
        Predicted survival of every row under each treatment; not needed for "ips".
    weight : (N,), optional
        Case weights of the censoring curves.

    Raises
    ------
    InvalidParameterError
        If nobody under some treatment is followed to the horizon.
    """
    k = int(treatment.max()) + 1
    mean = np.zeros((len(time), k))
    if curves is not None and method != "ips":
        mean = np.column_stack([remaining_means(curves[a], horizon, np.zeros(1))[:, 0] for a in range(k)])
    if method == "direct":
        return mean
    assert propensity is not None
    scores = mean.copy()
    for a in range(k):
        here = treatment == a
        own = None if weight is None else weight[here]
        censoring = censoring_survival(time[here], event[here], own)
        check_follow_up(censoring, horizon, a)
        mine = None if curves is None or method == "ips" else Curves(curves[a].times, curves[a].values[here])
        psi = weighted_outcome(time[here], event[here], horizon, censoring, mine)
        scores[here, a] += (psi - mean[here, a]) / propensity[here, a]
    return scores


def check_follow_up(censoring: StepFunction, horizon: float, treatment: int) -> None:
    """Refuse a horizon that nobody is followed to, warn of one that few are."""
    left = float(censoring.left_limit(horizon))
    if left <= 0:
        raise InvalidParameterError(
            f"horizon must be a time to which some rows of every treatment are followed, got {horizon:g}, when all of "
            f"treatment {treatment} are censored; choose an earlier one"
        )
    if left < LEAST_CENSORING_SURVIVAL:
        warn(
            f"only {left:.1%} of the rows of treatment {treatment} are followed to the horizon {horizon:g}, so single "
            "rows get large weights; choose an earlier one",
            DataWarning,
        )
