"""Measures of one cause among competing risks: concordance, and Brier score, AUC and calibration of its incidence.

Brier score and AUC weigh by the inverse probability of censoring as riskRegression's ``Score`` does: an event at s by
1 / G(s-), a row still free of events at t by 1 / G(t). A row with an event of another cause is never a case.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softsurv.aalen_johansen import aalen_johansen
from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.errors import InvalidParameterError, NoComparablePairsError
from softsurv.metrics.brier import Scale, axis_of, mean_of_known
from softsurv.metrics.calibration import CalibrationCurve, curve_of_groups
from softsurv.metrics.concordance import Risk, TiedTimes, count_pairs
from softsurv.metrics.ranges import checked_horizon, checked_matrix, checked_probabilities, checked_tau, checked_times
from softsurv.metrics.seen_weights import SeenWeights
from softsurv.nonparametric import StepFunction, checked_columns


def cause_specific_concordance(
    time: ArrayLike,
    cause: ArrayLike,
    risk: Risk,
    code: int = 1,
    *,
    times: ArrayLike | None = None,
    tau: float | None = None,
    tied_event_times: TiedTimes = "ignore",
    tied_censoring: TiedTimes = "ignore",
    entry: ArrayLike | None = None,
) -> float:
    """Concordance of one cause among competing risks.

    Parameters
    ----------
    time, cause : array_like (N,)
        Test fold; ``cause`` is 0 where censored, else the code 1..K of what happened.
    risk : callable, or array_like (N,) or (N, T)
        What ranks the rows, such as the cumulative incidence of the cause; forms as in `harrell_c`.
    code : int
        The cause of interest.
    times, tau, tied_event_times, tied_censoring, entry
        As in `harrell_c`. An event of another cause at the time of a case forms a pair with it.

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
    Over pairs (i, j) where i has the event at t_i, and j is observed beyond t_i or had another event at any time:
    the share with higher risk of i, ties by one half. Another event is an event of interest that never comes. With late
    entry, j counts where it was under observation at t_i, or had left by another event before it.

    References
    ----------
    Wolbers, Koller, Witteman, Steyerberg, Epidemiology 20 (2009), eq. 1; the form without censoring weights.

    Examples
    --------
    >>> cause_specific_concordance([1.0, 2.0, 3.0], [2, 1, 0], [0.1, 0.3, 0.2])
    1.0
    """
    time_, codes = _checked(time, cause, code)
    pairs = count_pairs(
        without_other_causes(time_, codes, code),
        codes == code,
        risk,
        times,
        tied_event_times,
        tied_censoring,
        entry,
    )
    return pairs.concordance(1.0 if tau is None else pairs.time < checked_tau(tau))


def without_other_causes(time: FloatArray, codes: IntArray, code: int) -> FloatArray:
    """Times (N,) in which rows with an event of another cause stay beyond all others: their event never comes."""
    return np.where((codes > 0) & (codes != code), 2.0 * time.max() + 1.0, time)


def brier_score_incidence(
    time: ArrayLike,
    cause: ArrayLike,
    incidence: ArrayLike,
    times: ArrayLike,
    censoring: StepFunction,
    code: int = 1,
    weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
) -> FloatArray:
    """Brier score of a predicted cumulative incidence at every time of a grid.

    Parameters
    ----------
    time, cause : array_like (N,)
        Test fold; ``cause`` is 0 where censored, else the code 1..K of what happened.
    incidence : array_like (N, T)
        Predicted probability of an event of the cause up to each time.
    times : array_like (T,)
        Grid of the columns, strictly increasing, within the support of ``censoring``.
    censoring : StepFunction
        G, from `softsurv.nonparametric.censoring_survival` of all events, usually of the training fold.
    code : int
        The cause of interest.
    weight, entry : array_like (N,), optional
        Sample weights, and times of late entry, as in `brier_score`.

    Returns
    -------
    ndarray (T,)

    Raises
    ------
    InvalidTimesError
        If the grid is not increasing, or G is unknown or 0 somewhere on it.
    InvalidParameterError
        If ``incidence`` has the wrong shape or is not a probability.

    Notes
    -----
    BS(t) = 1/N sum_i w_i(t) (1[t_i <= t, cause_i = k] - F_k(t | x_i))^2, w_i(t) = 1 / G(t_i-) for an event of any
    cause up to t, 1 / G(t) where t_i > t, 0 for rows censored up to t. `brier_score` takes G(t_i) for G(t_i-), as
    scikit-survival; the two differ only where an event and a censoring share a time.

    References
    ----------
    Gerds, Schumacher, Biometrical Journal 48 (2006). Equals ``Score`` of R's riskRegression.
    """
    time_, codes = _checked(time, cause, code)
    grid = checked_times(times)
    predicted = checked_probabilities("incidence", incidence, time_.size, grid.size)
    weights = SeenWeights.of(time_, codes, grid, censoring, weight, entry)
    mass = weights.table(time_, grid)  # (N, T)
    case = (codes == code)[:, None] & (time_[:, None] <= grid)
    total = weights.total(mass)
    squares = (mass * (case - predicted) ** 2).sum(0)
    return np.divide(squares, total, out=np.full(grid.size, np.nan), where=total > 0.0)


def integrated_brier_score_incidence(
    time: ArrayLike,
    cause: ArrayLike,
    incidence: ArrayLike,
    times: ArrayLike,
    censoring: StepFunction,
    code: int = 1,
    scale: Scale = "time",
    weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
) -> float:
    """Mean of `brier_score_incidence` over the range of the grid, by the trapezoidal rule.

    Arguments and errors as there and in `integrated_brier_score`.
    """
    axis = axis_of(checked_times(times), scale)
    scores = brier_score_incidence(time, cause, incidence, times, censoring, code, weight, entry)
    return mean_of_known(axis, scores)


def auc_incidence(
    time: ArrayLike,
    cause: ArrayLike,
    risk: ArrayLike,
    times: ArrayLike,
    censoring: StepFunction,
    code: int = 1,
    weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
) -> tuple[FloatArray, float]:
    """How well risk separates rows with an event of one cause by t from all others.

    Parameters
    ----------
    time, cause, times, censoring, code, weight, entry
        As in `brier_score_incidence`.
    risk : array_like (N,) or (N, T)
        Risk score, or one per time such as the cumulative incidence; higher = earlier event.

    Returns
    -------
    auc : ndarray (T,)
        AUC(t); NaN where there is no case or no control.
    mean : float
        Mean AUC weighted by the rise of the fold's Aalen-Johansen incidence of the cause since the previous time.

    Raises
    ------
    NoComparablePairsError
        If AUC(t) is undefined at all times.
    InvalidTimesError
        If the grid is not increasing, or G is unknown or 0 on it.

    Notes
    -----
    Cases i had an event of the cause by t. Controls j are free of events at t, or had an event of another cause by t.
    AUC(t) is the sum over pairs of w_i w_j (1[r_i > r_j] + 0.5 1[r_i = r_j]) divided by that of w_i w_j, with the
    weights of `brier_score_incidence`.

    References
    ----------
    Blanche, Dartigues, Jacqmin-Gadda, Statistics in Medicine 32 (2013), definition (ii). Equals ``Score`` of R's
    riskRegression.
    """
    time_, codes = _checked(time, cause, code)
    grid = checked_times(times)
    scores = np.asarray(risk, dtype=float)
    if scores.ndim == 1:
        scores = np.broadcast_to(scores[:, None], (scores.size, grid.size))
    scores = checked_matrix("risk", scores, time_.size, grid.size)
    mass = SeenWeights.of(time_, codes, grid, censoring, weight, entry).table(time_, grid)
    case = (codes == code)[:, None] & (time_[:, None] <= grid)
    auc = np.array([_weighted_auc(scores[:, k], case[:, k], mass[:, k]) for k in range(grid.size)])
    rise = counted_rises(time_, codes, grid, code, np.isfinite(auc), weight, entry)
    seen = rise > 0.0
    return auc, float(auc[seen] @ rise[seen] / rise[seen].sum())


def counted_rises(
    time: FloatArray,
    codes: IntArray,
    grid: FloatArray,
    code: int,
    known: BoolArray,
    weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
) -> FloatArray:
    """How much the fold's incidence of a cause rises to each grid time (T,): 0 where it falls, or no AUC is known.

    Raises NoComparablePairsError where it is 0 everywhere.
    """
    incidence = aalen_johansen(time, codes, weight, entry, n_causes=max(int(codes.max()), code)).of_cause(code)
    rise = np.where(known, np.maximum(np.diff(incidence(grid), prepend=0.0), 0.0), 0.0)
    if not rise.any():
        raise NoComparablePairsError(
            f"the AUC is undefined: cause {code} has no event up to {grid[-1]:g} with a control beside it; extend times"
        )
    return rise


def calibration_curve_incidence(
    time: ArrayLike,
    cause: ArrayLike,
    incidence: ArrayLike,
    horizon: float,
    code: int = 1,
    n_bins: int = 10,
    level: float = 0.95,
) -> CalibrationCurve:
    """Group rows by predicted cumulative incidence at a horizon and compare with Aalen-Johansen.

    Parameters
    ----------
    time, cause : array_like (N,)
        Test fold; ``cause`` is 0 where censored, else the code 1..K of what happened.
    incidence : array_like (N,)
        Predicted probability of an event of the cause up to ``horizon``.
    horizon : float
        In the unit of time.
    code : int
        The cause of interest.
    n_bins, level
        As in `calibration_curve`.

    Returns
    -------
    CalibrationCurve
        Groups by rising prediction; ``predicted`` and ``observed`` are cumulative incidences.

    Raises
    ------
    InvalidTimesError
        If nobody is observed up to the horizon.
    """
    time_, codes = _checked(time, cause, code)
    predicted = checked_probabilities("incidence", np.atleast_2d(incidence).T, time_.size, 1)[:, 0]
    horizon = checked_horizon(horizon, float(time_.max()))

    def observed(chosen: BoolArray) -> tuple[StepFunction, StepFunction, StepFunction, StepFunction]:
        """Aalen-Johansen of a group: the incidence with its limits, and survival free of all events."""
        curve = aalen_johansen(time_[chosen], codes[chosen], n_causes=max(int(codes.max()), code))
        free = StepFunction(curve.times, curve.survival, 1.0)
        return curve.of_cause(code), *curve.interval(code, level), free

    return curve_of_groups(predicted, horizon, n_bins, observed)


def _checked(time: ArrayLike, cause: ArrayLike, code: int) -> tuple[FloatArray, IntArray]:
    """Times and codes (N,) of a fold."""
    codes = np.asarray(cause)
    if codes.dtype.kind not in "biuf" or not np.array_equal(codes, codes.astype(np.int64)) or (codes < 0).any():
        raise InvalidParameterError(
            f"cause must hold 0 for censored rows and codes 1, 2, ..., got {np.unique(codes)[:6].tolist()}"
        )
    if isinstance(code, bool) or not isinstance(code, int | np.integer) or code < 1:
        raise InvalidParameterError(f"code must be a cause 1, 2, ..., got {code!r}")
    time_, _, _, _ = checked_columns(time, codes > 0)
    return time_, codes.astype(np.int64)


def _weighted_auc(risk: FloatArray, case: BoolArray, weight: FloatArray) -> float:
    """Share of the weight of pairs in which the case has the higher risk; all (N,)."""
    control = ~case & (weight > 0.0)
    order = np.argsort(risk[control])
    others, mass = risk[control][order], np.concatenate([[0.0], np.cumsum(weight[control][order])])
    total = weight[case].sum() * mass[-1]
    if total <= 0.0:
        return float("nan")
    below = mass[np.searchsorted(others, risk[case], side="left")]
    not_above = mass[np.searchsorted(others, risk[case], side="right")]
    return float(weight[case] @ (below + not_above) / (2.0 * total))
