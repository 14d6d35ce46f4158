"""Doubly robust scores of treatments by restricted mean survival, from censored observations.

For treatment a, horizon L and features x, the value wanted is mu_a(x) = E[min(T, L) | x, a]. Observed are the time U
(cut at L), whether it is complete (the event was seen or the row was followed to L), and the treatment given, A. With

- S_a(t | x), survival under a, and m_a(s | x) = E[min(T, L) | T > s, x, a] = s + int_s^L S_a du / S_a(s),
- G_a(t), survival of the censoring time under a, with hazard dLambda_C and martingale
  dM_C = dN_C - 1(at risk) dLambda_C,
- e_a(x), the probability of being given a,

the censoring-weighted outcome with augmentation, and the score, are

    psi   = complete U / G_A(U-) + int_0^U m_A(s | x) / G_A(s) dM_C(s)
    score = mu_a(x) + 1(A = a) / e_a(x) (psi - mu_a(x)).

E[score | x] = mu_a(x) if S is right, or if e and G are (Robins, Rotnitzky & Zhao 1994; Zhang & Schaubel 2012 for
restricted means; used with policy trees by Cui et al. 2023). With m constant the weights sum to one in every row, since
1/G telescopes; `tests/estimators/survival/test_policy_scores.py` checks that and the double robustness by simulation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.errors import DataWarning, InvalidParameterError, warn
from softsurv.metrics.ranges import LARGEST_EXPONENT
from softsurv.nonparametric import StepFunction, censoring_survival

LEAST_CENSORING_SURVIVAL = 0.05
"""If less than this share is still followed, single rows get weights above 20."""

CHUNK = 400_000
"""Cells of a table of rows by times that are held at once; larger tables are processed in parts."""

SomeRows = slice | BoolArray


@dataclass(frozen=True)
class Curves:
    """Survival of every row under one treatment: ``values[:, k]`` from ``times[k]`` on, 1 before; times increase."""

    times: FloatArray  # (T,)
    values: FloatArray  # (N, T)

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: SomeRows) -> Curves:
        """Some rows."""
        return Curves(self.times, self.values[rows])

    def distinct(self) -> tuple[Curves, IntArray]:
        """The curves, and the number of each row's curve: here every row has its own."""
        return self, np.arange(len(self))

    def worked_out(self) -> Curves:
        """The curves with their table of values."""
        return self


@dataclass(frozen=True)
class CoxCurves:
    """Survival of every row under one treatment by Cox models of several folds; the table is made when it is used."""

    times: FloatArray  # (T,)
    hazard: FloatArray  # (F, T) cumulative baseline hazard of each fold's model
    fold: NDArray[np.integer]  # (N,)
    log_risk: FloatArray  # (N,)

    def __len__(self) -> int:
        return len(self.log_risk)

    def take(self, rows: SomeRows) -> CoxCurves:
        """Some rows."""
        return CoxCurves(self.times, self.hazard, self.fold[rows], self.log_risk[rows])

    def distinct(self) -> tuple[CoxCurves, IntArray]:
        """The distinct curves, and the number of each row's curve. Models without features have one for each fold."""
        _, first, which = np.unique(self.fold + 1j * self.log_risk, return_index=True, return_inverse=True)
        return CoxCurves(self.times, self.hazard, self.fold[first], self.log_risk[first]), which

    def worked_out(self) -> Curves:
        """The curves with their table of values (N, T)."""
        risk = np.exp(np.minimum(self.log_risk, LARGEST_EXPONENT))  # an infinite one times a hazard of 0 is no number
        with np.errstate(over="ignore"):  # an infinite hazard gives survival 0
            return Curves(self.times, np.exp(-self.hazard[self.fold] * risk[:, None]))


class RemainingMeans:
    """m(s | x) = E[min(T, L) | T > s, x] of every row, constant between the times of its curve: t_k + rest_k / S_k.

    Where S is 0 (not ``alive``) nothing remains, and m is the time itself.
    """

    def __init__(self, curves: Curves, horizon: float) -> None:
        inside = curves.times < horizon
        self.edges = np.concatenate([[0.0], curves.times[inside], [horizon]])
        level = np.column_stack([np.ones(len(curves)), curves.values[:, inside]])
        rest = np.cumsum((level * np.diff(self.edges))[:, ::-1], axis=1)[:, ::-1]  # int_edge^L S
        self.alive = level > 0
        self.pieces = self.edges[:-1] + np.divide(rest, level, out=np.zeros_like(rest), where=self.alive)  # (N, pieces)

    def piece_of(self, at: FloatArray) -> IntArray:
        """Which piece each time <= horizon lies on."""
        return np.asarray(np.searchsorted(self.edges[:-1], at, side="right") - 1)


def mean_to(curves: Curves | CoxCurves, horizon: float) -> FloatArray:
    """E[min(T, horizon) | x] of every row, (N,)."""
    inside = curves.times < horizon
    width = np.diff(np.concatenate([[0.0], curves.times[inside], [horizon]]))
    distinct, which = curves.distinct()
    out = np.full(len(distinct), width[0])
    for part in _parts(len(distinct), len(curves.times)):
        out[part] += distinct.take(part).worked_out().values[:, inside] @ width[1:]
    return np.asarray(out[which])


def _parts(n: int, columns: int) -> Iterator[slice]:
    rows = max(1, CHUNK // (columns + 1))
    return (slice(begin, begin + rows) for begin in range(0, n, rows))


def weighted_outcome(
    time: FloatArray, event: BoolArray, horizon: float, censoring: StepFunction, curves: Curves | CoxCurves | None
) -> FloatArray:
    """psi (N,) of rows under the treatment given to them; without ``curves`` only the censoring-weighted outcome."""
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
    weight = (1 - after / before) / after  # dLambda_C / G
    met = np.where(complete, np.searchsorted(jumps, end, side="left"), np.searchsorted(jumps, end, side="right"))
    censored = ~complete & (met > 0) & np.isin(end, jumps)
    distinct, which = curves.distinct()
    order = np.argsort(which, kind="stable")
    for part in _parts(len(distinct), len(curves.times)):
        means = RemainingMeans(distinct.take(part).worked_out(), horizon)
        rows = order[slice(*np.searchsorted(which[order], (part.start, part.stop)))]
        psi[rows] += _augmented(means, which[rows] - part.start, jumps, after, weight, met[rows], censored[rows])
    return psi


def _augmented(
    means: RemainingMeans, row: IntArray, jumps: FloatArray, after: FloatArray, weight: FloatArray, met: IntArray,
    censored: BoolArray,
) -> FloatArray:  # fmt: skip
    """int m / G dM_C of rows with these curves. A row passes ``met`` jumps of G; a censored row ends at one."""
    if not len(jumps):
        return np.zeros(len(met))
    spent, spent_time = (np.append(0.0, np.cumsum(rise)) for rise in (weight, weight * jumps))
    first = np.searchsorted(jumps, means.edges, side="left")  # jump from which each piece counts
    on_piece = np.where(means.alive, means.pieces * np.diff(spent[first]), np.diff(spent_time[first]))
    whole = np.cumsum(on_piece, axis=1)
    last = np.maximum(met - 1, 0)
    piece = means.piece_of(jumps[last])
    here, alive = means.pieces[row, piece], means.alive[row, piece]
    begun = np.where(
        alive, here * (spent[met] - spent[first[piece]]), spent_time[met] - spent_time[first[piece]]
    )  # of the piece that the row ends on
    compensator = np.where(met > 0, np.where(piece > 0, whole[row, piece - 1], 0.0) + begun, 0.0)
    return np.asarray(np.where(censored, np.where(alive, here, jumps[last]) / after[last], 0.0) - compensator)


def restricted_mean_scores(
    method: str,
    time: FloatArray,
    event: BoolArray,
    treatment: NDArray[np.integer],
    horizon: float,
    propensity: FloatArray | None,
    curves: Sequence[Curves | CoxCurves] | None,
    weight: FloatArray | None = None,
    names: Sequence[Any] | None = None,
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
    curves : K Curves or CoxCurves, optional
        Predicted survival of every row under each treatment; not needed for "ips".
    weight : (N,), optional
        Case weights of the censoring curves.
    names : sequence (K,), optional
        What errors and warnings call the treatments; their numbers by default.

    Raises
    ------
    InvalidParameterError
        If nobody under some treatment is followed to the horizon.
    """
    k = int(treatment.max()) + 1
    mean = np.zeros((len(time), k))
    if curves is not None and method != "ips":
        mean = np.column_stack([mean_to(curves[a], horizon) for a in range(k)])
    if method == "direct":
        return mean
    assert propensity is not None
    scores = mean.copy()
    for a in range(k):
        here = treatment == a
        own = None if weight is None else weight[here]
        censoring = censoring_survival(time[here], event[here], own)
        check_follow_up(censoring, horizon, a if names is None else names[a])
        mine = None if curves is None or method == "ips" else curves[a].take(here)
        psi = weighted_outcome(time[here], event[here], horizon, censoring, mine)
        scores[here, a] += (psi - mean[here, a]) / propensity[here, a]
    return scores


def check_follow_up(censoring: StepFunction, horizon: float, treatment: Any) -> None:
    """Refuse a horizon to which no row is followed; warn of one to which few are."""
    left = float(censoring.left_limit(horizon))
    if left <= 0:
        raise InvalidParameterError(
            f"horizon must be a time to which some rows of every treatment are followed, got {horizon:g}, when all of "
            f"treatment {treatment!r} are censored; choose an earlier one"
        )
    if left < LEAST_CENSORING_SURVIVAL:
        warn(
            f"only {left:.1%} of the rows of treatment {treatment!r} are followed to the horizon {horizon:g}, so "
            "single rows get large weights; choose an earlier one",
            DataWarning,
        )
