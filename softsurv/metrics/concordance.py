"""Time-dependent concordance: Harrell's and Uno's C without an n x n array.

A pair (i, j) with an event of i before the time of j is concordant where S_i(t_i) < S_j(t_i).
Rankings use the log cumulative hazard, which keeps its order where S has long reached 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidParameterError, InvalidTimesError, NoComparablePairsError
from softsurv.metrics.entering import entry_distribution
from softsurv.metrics.ranges import (
    checked_matrix,
    checked_tau,
    checked_times,
    column_parts,
    refuse_nan,
    refuse_unknown_censoring,
)
from softsurv.metrics.shared_curves import SharedCurves
from softsurv.metrics.shifted_curves import ShiftedCurves, count_shifted, mass_compared, those_above
from softsurv.nonparametric import StepFunction, checked_columns

Risk: TypeAlias = Callable[[FloatArray], ArrayLike] | ArrayLike
TiedTimes = Literal["ignore", "count"]


@runtime_checkable
class CountedCurves(Protocol):
    """Curves that count the comparisons of subjects by themselves, without a table of subjects and times."""

    def __call__(self, times: FloatArray) -> FloatArray:
        """What ranks each subject, (N, T)."""
        ...

    def count(
        self, rows: IntArray, time: FloatArray, first: IntArray, last: IntArray, mass: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Masses of the subjects with lower and with equal risk at the time of each event, (E,) each.

        Events have ``rows`` and ``time`` (E,), rising. Each subject is compared with those from the ``first`` (N,) to
        before the ``last`` (N,), and counts as its ``mass`` (N,). None: to be compared by the table.
        """
        ...


@dataclass(frozen=True)
class PairCounts:
    """Comparable pairs, counted by the event that comes first; all arrays (E,).

    Attributes
    ----------
    rows : ndarray of int
        Row of each event in the fold, in order of time.
    time : ndarray
        Times of these events.
    comparable : ndarray
        Subjects known to have their event later; with late entry those already under observation. With sample weights
        each pair counts as the product of its two.
    lower_risk, equal_risk : ndarray
        How many of them have lower risk at the event's time (concordant), and how many the same.
    tied_events : ndarray
        Pairs of two events at this event's time, shared equally among these events; 0 unless counted.
    """

    rows: IntArray
    time: FloatArray
    comparable: IntArray | FloatArray
    lower_risk: IntArray | FloatArray
    equal_risk: IntArray | FloatArray
    tied_events: FloatArray

    def concordance(self, weight: ArrayLike = 1.0) -> float:
        """Share of concordant pairs, each weighing as its event does; weight scalar or (E,)."""
        weights = np.broadcast_to(np.asarray(weight, dtype=float), self.rows.shape)
        comparable = float(weights @ (self.comparable + self.tied_events))
        if comparable <= 0.0:
            raise NoComparablePairsError(
                "no pair of subjects can be ordered: concordance needs an event before the observed time of "
                "another subject; use a fold with events"
            )
        concordant = self.lower_risk + 0.5 * (self.equal_risk + self.tied_events)
        return float(weights @ concordant) / comparable

    def uno_weight(
        self, censoring: StepFunction, tau: float | None = None, entering: StepFunction | None = None
    ) -> FloatArray:
        """G(t)^-2 of each event before tau that opens a pair, else 0, (E,); (A(t-) G(t))^-2 with late entry.

        Raises InvalidTimesError where such an event needs G at a time where it is unknown or 0.
        """
        counted = (self.comparable + self.tied_events > 0) & (tau is None or self.time < checked_tau(tau))
        refuse_unknown_censoring(censoring, self.time[counted])
        weight = np.zeros(self.time.shape)
        observed = censoring(self.time[counted])
        if entering is not None:
            observed = entering.left_limit(self.time[counted]) * observed
        weight[counted] = observed**-2.0
        return weight


def harrell_c(
    time: ArrayLike,
    event: ArrayLike,
    risk: Risk,
    *,
    times: ArrayLike | None = None,
    tau: float | None = None,
    tied_event_times: TiedTimes = "ignore",
    tied_censoring: TiedTimes = "ignore",
    entry: ArrayLike | None = None,
    weight: ArrayLike | None = None,
) -> float:
    """Time-dependent form of Harrell's concordance.

    Parameters
    ----------
    time, event : array_like, shape (N,)
        Test fold.
    risk : callable, or array_like of shape (N,) or (N, T)
        What ranks the subjects, higher = earlier event. A callable takes times (T,) and returns the
        log cumulative hazards (N, T); it is asked for a few of the event times at once. Of
        `SharedCurves` only the G curves that differ are compared; of `ShiftedCurves` the order within
        each of the G curves is found once. An array (N,) is a risk score that is the same at all times;
        these paths are O(N log N). An array
        (N, T) holds the columns of the grid ``times``. Infinite values are allowed, NaN is not.
    times : array_like, shape (T,), optional
        Rank each event at the last of these times at or before it, instead of at its own time.
    tau : float, optional
        Count only events before ``tau``.
    tied_event_times : {"ignore", "count"}
        Whether two events at one time form a pair. "count" adds one half to the numerator and one
        to the denominator, the mean of the two orders in which a program may take them; the figures
        printed in papers `sst` and `osst` count such pairs.
    tied_censoring : {"ignore", "count"}
        Whether an event and a censoring at one time form a pair. The formula of paper `sst` has
        t_i < t_j and ignores them; scikit-survival and lifelines count them.
    entry : array_like, shape (N,), optional
        Late entry, below ``time``: an event is compared only with subjects that were under observation at its
        time, entry_j < t_i, as ``concordance(Surv(start, stop, event) ~ ...)`` of R does.
    weight : array_like, shape (N,), optional
        Sample weights >= 0: a pair counts as the product of its two.

    Returns
    -------
    float
        Between 0 and 1; 0.5 for a constant risk.

    Raises
    ------
    NoComparablePairsError
        If no pair can be ordered.
    InvalidParameterError, InvalidTimesError, InvalidSurvivalDataError
        If an argument is not usable.

    Notes
    -----
    C = sum over pairs of (1[S_i(t_i) < S_j(t_i)] + 0.5 1[S_i(t_i) = S_j(t_i)]) / number of pairs, over
    all pairs (i, j) with c_i = 1, t_i < t_j. Antolini et al. (2005) define it; for a risk constant in
    time it is Harrell's C. With a callable the cost is N evaluations per event time and N E / 2
    comparisons.

    References
    ----------
    Paper `sst`, appendix B.0.1. Antolini, Boracchi, Biganzoli, Statistics in Medicine 24 (2005).

    Examples
    --------
    >>> harrell_c([1.0, 2.0, 3.0], [True, True, False], [3.0, 1.0, 2.0])
    0.6666666666666666
    """
    pairs = count_pairs(time, event, risk, times, tied_event_times, tied_censoring, entry, weight)
    return pairs.concordance(1.0 if tau is None else pairs.time < checked_tau(tau))


def uno_c(
    time: ArrayLike,
    event: ArrayLike,
    risk: Risk,
    censoring: StepFunction,
    *,
    times: ArrayLike | None = None,
    tau: float | None = None,
    tied_event_times: TiedTimes = "ignore",
    tied_censoring: TiedTimes = "ignore",
    entry: ArrayLike | None = None,
    weight: ArrayLike | None = None,
) -> float:
    """Time-dependent concordance with Uno's censoring weights.

    Parameters
    ----------
    time, event, risk, times, tau, tied_event_times, tied_censoring, entry, weight
        As in `harrell_c`.
    censoring : StepFunction
        G of the training fold, from `softsurv.nonparametric.censoring_survival`.

    Raises
    ------
    InvalidTimesError
        If an event counts at a time where G is unknown or 0; pass a smaller ``tau``.
    NoComparablePairsError, InvalidParameterError, InvalidSurvivalDataError
        As in `harrell_c`.

    Notes
    -----
    Each event i weighs its pairs by G(t_i)^-2, G at the time itself, as printed by Uno et al. and in
    paper `sst`, and as in scikit-survival. P(C >= t_i) = G(t_i-) would be the exact chance of seeing
    the event; the two differ only where an event and a censoring share a time. With late entry a pair is seen with the
    chance (A(t_i-) G(t_i))^2, A being `entry_distribution` of the fold that is scored: its weight is the inverse.

    References
    ----------
    Paper `sst`, appendix B.0.1. Uno, Cai, Pencina, D'Agostino, Wei, Statistics in Medicine 30 (2011).
    """
    pairs = count_pairs(time, event, risk, times, tied_event_times, tied_censoring, entry, weight)
    entering = None if entry is None else entry_distribution(time, entry, weight)
    return pairs.concordance(pairs.uno_weight(censoring, tau, entering))


def count_pairs(
    time: ArrayLike,
    event: ArrayLike,
    risk: Risk,
    times: ArrayLike | None = None,
    tied_event_times: TiedTimes = "ignore",
    tied_censoring: TiedTimes = "ignore",
    entry: ArrayLike | None = None,
    weight: ArrayLike | None = None,
) -> PairCounts:
    """Count, for every event, the later subjects by how their risk compares; arguments as in `harrell_c`.

    One count serves several weightings, so that a model is evaluated once for Harrell's and Uno's C.
    """
    time_, event_, mass, entry_ = checked_columns(time, event, weight, entry)
    for name, value in (("tied_event_times", tied_event_times), ("tied_censoring", tied_censoring)):
        if value not in ("ignore", "count"):
            raise InvalidParameterError(f"{name} must be 'ignore' or 'count', got {value!r}")
    _, rank = np.unique(time_, return_inverse=True)
    position = 2 * rank + ~event_ if tied_censoring == "count" else 2 * rank  # (N,), j follows i where larger
    rows = np.flatnonzero(event_)
    rows = rows[np.argsort(time_[rows], kind="stable")]
    n_missed = np.zeros(time_.size, dtype=np.int64)  # (N,) events before each subject came under observation
    if entry_ is not None:
        n_missed = np.searchsorted(time_[rows], entry_, side="right")
    masses, own = (None, np.ones(rows.size)) if weight is None else (mass, mass[rows])
    above = [those_above(position, position[rows])]
    above += [] if entry_ is None else [those_above(entry_, time_[rows], itself=True)]
    each = np.ones(time_.size, dtype=np.int64) if masses is None else masses
    comparable = mass_compared(above, each)
    tied_events = np.zeros(rows.size)
    if tied_event_times == "count":
        _, group = np.unique(time_[rows], return_inverse=True)
        tied_events = own * (np.bincount(group, weights=own)[group] - own) / 2.0
    constant = not callable(risk) and np.ndim(risk) != 2
    if constant or isinstance(risk, SharedCurves | ShiftedCurves):
        lower, equal = count_shifted(*shifts(time_, rows, risk, times), rows, above, each)
    else:
        n_earlier = np.searchsorted(position[rows], position, side="left")  # (N,) events that precede each subject
        spans, counted = (n_missed, n_earlier), None
        if times is None and isinstance(risk, CountedCurves):
            counted = risk.count(rows, time_[rows], *spans, each)
        lower, equal = counted or _count_varying(rows, *spans, _chunks(time_, rows, risk, times, time_.size), masses)
    if weight is None:
        return PairCounts(rows, time_[rows], comparable, lower, equal, tied_events)
    return PairCounts(rows, time_[rows], own * comparable, own * lower, own * equal, tied_events)


def _checked_scores(risk: ArrayLike, n_rows: int) -> FloatArray:
    scores = np.asarray(risk, dtype=float)
    if scores.shape != (n_rows,):
        raise InvalidParameterError(
            f"risk must be a function of times, or hold one score per subject ({n_rows},), or one row per "
            f"subject and one column per time; got shape {scores.shape}"
        )
    refuse_nan("risk", scores)
    return scores


def shifts(
    time: FloatArray, rows: IntArray, risk: Any, times: ArrayLike | None
) -> tuple[FloatArray, IntArray, int, Iterator[tuple[int, FloatArray, IntArray]]]:
    """Offsets (N,), members (N,), number and chunks of the curves; scores are the offsets of one level curve."""
    if isinstance(risk, ShiftedCurves | SharedCurves):
        risk.check(time.size)
        offset = risk.offset if isinstance(risk, ShiftedCurves) else np.zeros(time.size)
        return offset, risk.member, risk.n_curves, _chunks(time, rows, risk.curves, times, risk.n_curves)
    level = (0, np.zeros((1, 1)), np.zeros(rows.size, dtype=np.int64))
    return _checked_scores(risk, time.size), np.zeros(time.size, dtype=np.int64), 1, iter([level])


def _count_varying(
    rows: IntArray,
    n_missed: IntArray,
    n_earlier: IntArray,
    chunks: Iterator[tuple[int, FloatArray, IntArray]],
    mass: FloatArray | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Later subjects, or their mass, with lower and with equal risk at every event's time, each (E,)."""
    from softsurv.metrics.pair_kernels import compare_block, weigh_block

    lower = np.zeros(rows.size, dtype=np.int64 if mass is None else float)
    equal = np.zeros_like(lower)
    for start, block, column in chunks:
        block = np.ascontiguousarray(block)  # one compiled kernel for every memory layout
        here = slice(start, start + column.size)
        own = block[rows[here], column]
        spans = n_missed - start, n_earlier - start
        if mass is None:
            compare_block(block, column, own, *spans, lower[here], equal[here])
        else:
            weigh_block(block, column, own, *spans, mass, lower[here], equal[here])
    return lower, equal


def _chunks(
    time: FloatArray, rows: IntArray, risk: Risk, times: ArrayLike | None, n_curves: int
) -> Iterator[tuple[int, FloatArray, IntArray]]:
    """Risk (n_curves, C) at a few grid times, with the first event it serves and each event's column in it."""
    if times is None and not callable(risk):
        raise InvalidParameterError("risk with one column per time needs times, the grid of its columns")
    grid = np.unique(time[rows]) if times is None else checked_times(times)
    if rows.size == 0:
        return
    if time[rows[0]] < grid[0]:
        raise InvalidTimesError(
            f"times must begin at or before the first event at {time[rows[0]]:g}, got {grid[0]:g}; add an earlier time"
        )
    if not callable(risk):
        risk = checked_matrix("risk", risk, n_curves, grid.size)
    column = np.searchsorted(grid, time[rows], side="right") - 1  # (E,), rising
    needed = np.unique(column)
    for part in column_parts(n_curves, needed.size):
        chosen = needed[part]
        start, stop = np.searchsorted(column, [chosen[0], chosen[-1] + 1])
        block = checked_matrix("risk", risk(grid[chosen]), n_curves, chosen.size) if callable(risk) else risk[:, chosen]
        yield int(start), block, np.searchsorted(chosen, column[start:stop])
