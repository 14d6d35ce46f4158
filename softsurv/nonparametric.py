"""Estimates without a model: at-risk table, Kaplan-Meier, Nelson-Aalen, censoring curve, IPCW.

One convention for ties runs through the package: at one time, events come before censorings. A subject censored at t is
still at risk for an event at t, and a subject with an event at t has left before a censoring at t (as in
scikit-survival). With delayed entry a subject is at risk on (entry, time].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from softsurv.arrays import BoolArray, FloatArray, IntArray, as_time
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError, InvalidTimesError
from softsurv.greenwood import greenwood, log_log_limits

QUANTILE_TOLERANCE = 1e-12
"""A running product of fractions misses 0.5 by rounding; a step this close to a level has reached it."""

SUM_ROUNDING = 1e-12
"""Sums of weights in different order differ by rounding: a difference below this share of all weights is none."""


@dataclass(frozen=True)
class StepFunction:
    """A right-continuous step function, constant before the first and after the last step.

    Parameters
    ----------
    times : ndarray, shape (K,)
        Step times, strictly increasing.
    values : ndarray, shape (K,)
        Value from each step on, the step itself included.
    initial : float
        Value before the first step.

    Examples
    --------
    >>> curve = StepFunction(np.array([1.0, 2.0]), np.array([0.5, 0.0]), 1.0)
    >>> curve([0.5, 1.0, 3.0]), curve.left_limit(1.0)
    (array([1. , 0.5, 0. ]), array(1.))
    """

    times: FloatArray
    values: FloatArray
    initial: float

    def __call__(self, times: ArrayLike) -> FloatArray:
        """Value at each time, any shape."""
        return self._lookup(times, side="right")

    def left_limit(self, times: ArrayLike) -> FloatArray:
        """Value just before each time, any shape."""
        return self._lookup(times, side="left")

    def _lookup(self, times: ArrayLike, side: Literal["left", "right"]) -> FloatArray:
        levels = np.concatenate([[self.initial], self.values])  # (K + 1,)
        return np.asarray(levels[np.searchsorted(self.times, np.asarray(times, dtype=float), side=side)])


class AtRiskTable(NamedTuple):
    """Weighted counts at each unique observed time, all of shape (K,)."""

    times: FloatArray
    at_risk: FloatArray
    events: FloatArray
    censored: FloatArray


def at_risk_table(
    time: ArrayLike, event: ArrayLike, weight: ArrayLike | None = None, entry: ArrayLike | None = None
) -> AtRiskTable:
    """Count who is at risk, has the event, and is censored at every unique observed time.

    Parameters
    ----------
    time : array_like, shape (N,)
        Observed times.
    event : array_like of bool, shape (N,)
        True where the event was observed.
    weight : array_like, shape (N,), optional
        Case weights >= 0; counts are sums of weights.
    entry : array_like, shape (N,), optional
        Left-truncation times, < ``time``; a subject is at risk on (entry, time], with 0 from the start. Who is
        censored at entry counts for nothing.

    Returns
    -------
    AtRiskTable
        ``times``, ``at_risk``, ``events``, ``censored``, each of shape (K,). O(N log N).

    Raises
    ------
    InvalidSurvivalDataError
        If a column has the wrong shape or holds an impossible value.
    """
    time_, event_, weight_, entry_ = checked_columns(time, event, weight, entry)
    times, index = _distinct(time_)

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(index, weights=values, minlength=times.size).astype(float)

    events, censored = total(weight_ * event_), total(weight_ * ~event_)
    removed = events + censored  # to the last bit: nobody is left after the last time
    at_risk = np.cumsum(removed[::-1])[::-1]
    if entry_ is not None:
        order = np.argsort(entry_)
        not_entered = np.concatenate([np.cumsum(weight_[order][::-1])[::-1], [0.0]])
        at_risk = at_risk - not_entered[np.searchsorted(entry_[order], times, side="left")]
        # those who leave were at risk; where they are the only ones, rounding must leave no one behind
        at_risk = np.where(at_risk - removed > SUM_ROUNDING * weight_.sum(), at_risk, removed)
    return AtRiskTable(times, at_risk, events, censored)


def kaplan_meier(
    time: ArrayLike, event: ArrayLike, weight: ArrayLike | None = None, entry: ArrayLike | None = None
) -> StepFunction:
    """Kaplan-Meier estimate of the survival function; arguments as in `at_risk_table`.

    Notes
    -----
    S(t) = prod over times s <= t of (1 - events(s) / at_risk(s)). After the last time the function
    keeps its last value; if that is not 0 the curve is undefined there.
    """
    table = at_risk_table(time, event, weight, entry)
    return StepFunction(table.times, np.cumprod(1.0 - ratio(table.events, table.at_risk), dtype=np.float64), 1.0)


def nelson_aalen(
    time: ArrayLike, event: ArrayLike, weight: ArrayLike | None = None, entry: ArrayLike | None = None
) -> StepFunction:
    """Nelson-Aalen estimate of the cumulative hazard; arguments as in `at_risk_table`.

    Notes
    -----
    Lambda(t) = sum over times s <= t of events(s) / at_risk(s).
    """
    table = at_risk_table(time, event, weight, entry)
    return StepFunction(table.times, np.cumsum(ratio(table.events, table.at_risk)), 0.0)


def censoring_survival(
    time: ArrayLike, event: ArrayLike, weight: ArrayLike | None = None, entry: ArrayLike | None = None
) -> StepFunction:
    """Kaplan-Meier estimate G of being uncensored; arguments as in `at_risk_table`.

    Notes
    -----
    G(t) = prod over times s <= t of (1 - censored(s) / (at_risk(s) - events(s))): events come before
    censorings at equal times, as in scikit-survival's ``CensoringDistributionEstimator``.
    """
    table = at_risk_table(time, event, weight, entry)
    left = table.at_risk - (table.events + table.censored)  # 0 where all have gone, whatever the rounding
    hazard = ratio(table.censored, table.censored + left)
    return StepFunction(table.times, np.cumprod(1.0 - hazard, dtype=np.float64), 1.0)


def ipcw_weights(time: ArrayLike, event: ArrayLike, censoring: StepFunction) -> FloatArray:
    """Inverse probability of censoring weights, event / G(time).

    Parameters
    ----------
    time, event : array_like, shape (N,)
        Observed times and event indicators of the subjects to weight.
    censoring : StepFunction
        G from `censoring_survival`, estimated on the training fold.

    Returns
    -------
    ndarray, shape (N,)
        1 / G(time) for events (G at the time itself, as scikit-survival), 0 for censored subjects.

    Raises
    ------
    InvalidTimesError
        If G is 0 at the time of an event: the weight would be infinite.
    """
    time_, event_, _, _ = checked_columns(time, event, None, None)
    survival = censoring(time_)
    bad = event_ & (survival <= 0.0)
    if bad.any():
        raise InvalidTimesError(
            f"the censoring survival function is 0 at {int(bad.sum())} event times (first at {time_[bad].min():g}): "
            "nobody was followed for longer in the fold that estimated it; pass a smaller tau or drop these times"
        )
    return ratio(event_.astype(float), survival)


def survival_interval(
    time: ArrayLike,
    event: ArrayLike,
    weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
    level: float = 0.95,
    kind: Literal["log-log", "plain"] = "log-log",
) -> tuple[StepFunction, StepFunction]:
    """Pointwise confidence interval of the Kaplan-Meier curve; data as in `at_risk_table`.

    Parameters
    ----------
    level : float
        Two-sided coverage, between 0 and 1.
    kind : {"log-log", "plain"}
        Scale on which the interval is symmetric. "plain" is cut to [0, 1].

    Returns
    -------
    lower, upper : StepFunction
        Both 1 while S is 1; both NaN where S is 0, where Greenwood's variance does not exist.

    Notes
    -----
    Greenwood: Var(log S(t)) = sum over s <= t of d / (n (n - d)), d = events(s), n = at_risk(s).
    Weights enter as case counts.
    """
    if not 0.0 < level < 1.0:
        raise InvalidParameterError(f"level must be between 0 and 1, got {level!r}; 0.95 is usual")
    if kind not in ("log-log", "plain"):
        raise InvalidParameterError(f"kind must be 'log-log' or 'plain', got {kind!r}")
    table = at_risk_table(time, event, weight, entry)
    survival = np.cumprod(1.0 - ratio(table.events, table.at_risk), dtype=np.float64)  # (K,)
    variance = greenwood(table.events, table.at_risk)
    if kind == "log-log":
        lower, upper = log_log_limits(survival, variance, level)
    else:
        half = survival * float(ndtri(0.5 + level / 2.0)) * np.sqrt(variance)
        lower, upper = np.maximum(survival - half, 0.0), np.minimum(survival + half, 1.0)
    lower, upper = (np.where(survival > 0.0, limit, np.nan) for limit in (lower, upper))
    return StepFunction(table.times, lower, 1.0), StepFunction(table.times, upper, 1.0)


def quantile(survival: StepFunction, probability: float) -> float:
    """Smallest time at which the share ``probability`` has had the event, ``inf`` if never reached.

    Parameters
    ----------
    survival : StepFunction
        A survival curve, or a limit of its interval: then the quantile's own limit (Brookmeyer-Crowley), nan where
        the limit ceases to exist before it is reached (R's NA).
    probability : float
        Share of subjects, in (0, 1); 0.5 is the median.
    """
    if not 0.0 < probability < 1.0:
        raise InvalidParameterError(f"probability must be between 0 and 1, got {probability!r}")
    reached = np.flatnonzero(survival.values <= 1.0 - probability + QUANTILE_TOLERANCE)
    if reached.size:
        return float(survival.times[reached[0]])
    return float("nan") if np.isnan(survival.values).any() else float("inf")


def median(survival: StepFunction) -> float:
    """Median survival time, ``inf`` where the curve stays above one half."""
    return quantile(survival, 0.5)


def restricted_mean(survival: StepFunction, horizon: float) -> float:
    """Mean time lived up to ``horizon``: the integral of the survival curve from 0 to ``horizon``.

    Parameters
    ----------
    survival : StepFunction
        A survival curve; beyond its last step it is continued at its last value.
    horizon : float
        End of the integral, > 0, in the unit of time.
    """
    if not 0.0 < (end := as_time(horizon)) < np.inf:
        raise InvalidTimesError(f"horizon must be a finite time > 0, got {horizon!r}")
    steps = survival.times[(survival.times > 0.0) & (survival.times < end)]
    edges = np.concatenate([[0.0], steps, [end]])
    return float(np.sum(survival(edges[:-1]) * np.diff(edges)))


def in_interval(event: ArrayLike, upper: ArrayLike | None) -> BoolArray:
    """Rows (N,) whose event is only known to lie in an interval (time, upper]; none where there is no ``upper``."""
    event_ = np.asarray(event, dtype=bool)
    return np.zeros_like(event_) if upper is None else ~event_ & np.isfinite(np.asarray(upper, dtype=float))


def as_exact(time: ArrayLike, event: ArrayLike, upper: ArrayLike | None, place: float) -> tuple[FloatArray, BoolArray]:
    """Time and event (N,). An event in an interval is put at one place in it: 0.5 is the middle, 1 the upper end."""
    inside, time_ = in_interval(event, upper), np.asarray(time, dtype=float)
    if upper is not None:
        time_ = np.where(inside, (1 - place) * time_ + place * np.asarray(upper, dtype=float), time_)
    return time_, np.asarray(event, dtype=bool) | inside


def checked_columns(
    time: ArrayLike, event: ArrayLike, weight: ArrayLike | None = None, entry: ArrayLike | None = None
) -> tuple[FloatArray, BoolArray, FloatArray, FloatArray | None]:
    """Checked arrays (N,): time, event, weight (ones if absent, 0 of who is censored at entry), entry (-inf for 0)."""
    time_ = _column("time", time, None)
    event_ = np.asarray(event)
    if event_.shape != time_.shape:
        raise InvalidSurvivalDataError(
            f"event must have the shape of time {time_.shape}, got {event_.shape}; pass one value per subject"
        )
    if event_.dtype != bool and not np.isin(event_, (0, 1)).all():
        raise InvalidSurvivalDataError(
            "event must hold only True/False or 1/0, got other values; recode an observed event as True"
        )
    weight_ = checked_weight(weight, time_.shape)
    entry_ = None if entry is None else _column("entry", entry, time_.shape).copy()
    if entry_ is not None:
        entry_[entry_ == 0] = -np.inf
        never = (entry_ > time_) | ((entry_ == time_) & (event_ != 0))
        if never.any():
            row = int(np.argmax(never))
            raise InvalidSurvivalDataError(
                f"entry must be < time, got entry {entry_[row]:g} and time {time_[row]:g} at row {row}; drop it"
            )
        weight_ = np.where(entry_ == time_, 0.0, weight_)  # an interval from entry on: a censoring in no risk set
    return time_, event_.astype(bool), weight_, entry_


def checked_weight(weight: ArrayLike | None, shape: tuple[int, ...]) -> FloatArray:
    """Sample weights (N,), ones if absent."""
    weight_ = np.ones(shape) if weight is None else _column("weight", weight, shape)
    if (weight_ < 0.0).any():
        raise InvalidSurvivalDataError(f"weight must be >= 0, got {weight_.min():g}; drop or fix these rows")
    return weight_


def _distinct(times: FloatArray) -> tuple[FloatArray, IntArray]:
    """The different times, ascending, and which of them each one is; faster for times in order, as those of a fit."""
    new = np.ones(times.size, dtype=bool)
    new[1:] = times[1:] > times[:-1]
    if not (new[1:] | (times[1:] == times[:-1])).all():
        return np.unique(times, return_inverse=True)
    return times[new], np.cumsum(new) - 1


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """numerator / denominator, 0 where the denominator is 0; both (K,)."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0.0)


def _column(name: str, values: ArrayLike, shape: tuple[int, ...] | None) -> FloatArray:
    """One finite float column of the given shape, or of any length >= 1."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or array.size == 0 or (shape is not None and array.shape != shape):
        expected = "one value per subject, in one dimension" if shape is None else f"shape {shape} as time"
        raise InvalidSurvivalDataError(f"{name} must have {expected}, got shape {array.shape}")
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array)))
        raise InvalidSurvivalDataError(f"{name} must be finite, got {array[row]:g} at row {row}; drop or fix this row")
    return array
