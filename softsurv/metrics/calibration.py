"""Do predicted probabilities agree with what happened?"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from softsurv.arrays import BoolArray, FloatArray
from softsurv.cox import efron_steps
from softsurv.errors import (
    InvalidParameterError,
    InvalidSurvivalDataError,
    InvalidTimesError,
    NumericalError,
    need_docstrings,
)
from softsurv.metrics.ranges import checked_horizon, checked_probabilities
from softsurv.nonparametric import StepFunction, checked_columns, kaplan_meier, survival_interval

SMALLEST_PROBABILITY = 1e-7
"""log(-log S) is infinite at S = 0 and 1; the smoother takes predictions nearer to them as this far away."""

KNOT_LEVELS = (0.05, 0.35, 0.65, 0.95)
"""Harrell's quantiles for a restricted cubic spline with four knots."""


@dataclass(frozen=True)
class CalibrationCurve:
    """Predicted against observed survival at a horizon, by groups of similar prediction; all (B,).

    Attributes
    ----------
    horizon : float
        In the unit of time.
    predicted : ndarray
        Mean predicted survival probability in the group.
    observed, lower, upper : ndarray
        Kaplan-Meier estimate of the group at the horizon with its log-log interval; NaN where the
        group was not followed that long.
    n : ndarray of int
        Subjects in the group.
    """

    horizon: float
    predicted: FloatArray
    observed: FloatArray
    lower: FloatArray
    upper: FloatArray
    n: np.ndarray


class DCalibration(NamedTuple):
    """Result of `d_calibration`: ``statistic`` is chi-squared, a small ``p_value`` says that predictions are off.

    ``shares`` (B,) are those of the subjects in each bin from S = 0 to S = 1, 1 / B if calibrated.
    """

    statistic: float
    p_value: float
    shares: FloatArray


class CalibrationErrors(NamedTuple):
    """Absolute differences between predicted and smoothed observed survival over the subjects.

    ``mean`` is the integrated calibration index, ``median`` E50, ``centile_90`` E90; ``largest`` is of one subject.
    """

    mean: float
    median: float
    centile_90: float
    largest: float


def calibration_curve(
    time: ArrayLike,
    event: ArrayLike,
    survival: ArrayLike,
    horizon: float,
    n_bins: int = 10,
    level: float = 0.95,
    weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
) -> CalibrationCurve:
    """Group subjects by predicted survival at a horizon and compare with Kaplan-Meier.

    Parameters
    ----------
    time, event : array_like, shape (N,)
        Test fold.
    survival : array_like, shape (N,)
        Predicted survival probability at ``horizon``.
    horizon : float
        In the unit of time.
    n_bins : int
        Number of groups of equal size. Equal predictions are never parted, so a tree with few leaves
        gives fewer groups.
    level : float
        Coverage of the interval.
    weight, entry : array_like, shape (N,), optional
        Case weights, as numbers of subjects, and times of late entry, as in `kaplan_meier`. Rows of weight 0 do not
        count.

    Returns
    -------
    CalibrationCurve
        Groups by rising prediction.

    Raises
    ------
    InvalidTimesError
        If nobody is observed up to the horizon.
    """
    time_, event_, predicted = _checked(time, event, survival)
    horizon = checked_horizon(horizon, float(time_.max()))
    _, _, mass, entry_ = checked_columns(time_, event_, weight, entry)
    _refuse_no_mass(mass)
    if not mass.all():
        kept = mass > 0
        time_, event_, predicted, mass = time_[kept], event_[kept], predicted[kept], mass[kept]
        entry_ = None if entry_ is None else entry_[kept]

    def observed(chosen: BoolArray) -> tuple[StepFunction, StepFunction, StepFunction, StepFunction]:
        """Kaplan-Meier of a group, twice: what is compared, with its limits, and what says how far it is known."""
        late = None if entry_ is None else np.maximum(entry_[chosen], 0.0)
        rows = time_[chosen], event_[chosen], mass[chosen], late
        curve = kaplan_meier(*rows)
        return curve, *survival_interval(*rows, level=level), curve

    return curve_of_groups(predicted, horizon, n_bins, observed, mass)


def curve_of_groups(
    predicted: FloatArray,  # (N,)
    horizon: float,
    n_bins: int,
    observed: Callable[[BoolArray], tuple[StepFunction, StepFunction, StepFunction, StepFunction]],
    mass: FloatArray | None = None,  # (N,)
) -> CalibrationCurve:
    """Mean prediction, weighted by the mass, against what was observed, in groups of rising prediction.

    ``observed`` gives of the rows of a group the curve to compare with, its lower and upper limit, and the survival
    curve that says up to when they are known.
    """
    _refuse_few("n_bins", n_bins, 1)
    group = equal_groups(predicted, n_bins)
    labels, size = np.unique(group, return_counts=True)
    rows = []
    for label in labels:
        chosen = group == label
        *curves, free = observed(chosen)
        mean = np.average(predicted[chosen], weights=None if mass is None else mass[chosen])
        rows.append([mean, *(value_at_horizon(curve, free, horizon) for curve in curves)])
    mean, seen, low, high = np.array(rows).T
    return CalibrationCurve(float(horizon), mean, seen, low, high, size)


def d_calibration(
    time: ArrayLike, event: ArrayLike, survival: ArrayLike, n_bins: int = 10, weight: ArrayLike | None = None
) -> DCalibration:
    """Test whether the survival probabilities at the subjects' own times are uniform.

    Parameters
    ----------
    time, event : array_like, shape (N,)
        Test fold.
    survival : array_like, shape (N,)
        S_i(t_i), each subject's predicted survival probability at its own observed time; of one that entered late, at
        e_i, S_i(t_i) / S_i(e_i).
    n_bins : int
        Number of equal bins of [0, 1], >= 2.
    weight : array_like, shape (N,), optional
        Case weights, as numbers of subjects.

    Returns
    -------
    DCalibration
        Pearson's chi-squared statistic, its p-value with ``n_bins - 1`` degrees of freedom, and the
        share of subjects in every bin.

    Notes
    -----
    An event counts in the bin of its probability; a subject censored at S spreads evenly over [0, S],
    where its event will fall. The spreading makes the test conservative under censoring. Times are taken to be exact:
    where many subjects share one, as in whole months, true probabilities are not uniform and the p-value is too small.

    References
    ----------
    Haider, Hoehn, Davis, Greiner, Journal of Machine Learning Research 21 (2020).
    """
    time_, event_, own = _checked(time, event, survival)
    _, _, mass, _ = checked_columns(time_, event_, weight)
    _refuse_no_mass(mass)
    _refuse_few("n_bins", n_bins, 2)
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    bin_of = np.minimum((own * n_bins).astype(int), n_bins - 1)
    spread = ~event_ & (own > 0.0)  # censored at S = 0 stays in the lowest bin
    counts = np.bincount(bin_of[~spread], mass[~spread], minlength=n_bins).astype(float)  # of no rows: whole numbers
    ends, total = own[spread], float(mass.sum())
    counts += [np.sum(mass[spread] * np.clip(ends - low, 0.0, 1.0 / n_bins) / ends) for low in edges[:-1]]
    expected = total / n_bins
    statistic = float(np.sum((counts - expected) ** 2) / expected)
    return DCalibration(statistic, float(chdtrc(n_bins - 1, statistic)), counts / total)


def smoothed_observed_survival(time: ArrayLike, event: ArrayLike, survival: ArrayLike, horizon: float) -> FloatArray:
    """Observed survival at a horizon as a smooth function of the predicted one.

    Parameters
    ----------
    time, event, survival, horizon
        As in `calibration_curve`.

    Returns
    -------
    ndarray, shape (N,)
        For every subject, what is observed among subjects with its prediction; 1 where nobody had an event.

    Raises
    ------
    NumericalError
        If the model has no finite coefficients: the events are few, or the predictions tell their order without error.

    Notes
    -----
    A Cox model on a restricted cubic spline, with four knots, of log(-log S(horizon)); ties are Efron's, in the
    coefficients and in the baseline hazard. With up to ten different predictions, as from a tree with one curve per
    leaf, the Kaplan-Meier estimate of each group instead, NaN where a group was not followed that long.

    References
    ----------
    Austin, Harrell, van Klaveren, Statistics in Medicine 39 (2020).
    """
    time_, event_, predicted = _checked(time, event, survival)
    horizon = checked_horizon(horizon, float(time_.max()))
    predicted = np.clip(predicted, SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY)
    values, group = np.unique(predicted, return_inverse=True)
    if values.size <= 10:
        return calibration_curve(time_, event_, predicted, horizon, n_bins=values.size).observed[group]
    if not event_.any():
        return np.ones_like(predicted)
    need_docstrings()
    from sksurv.linear_model import CoxPHSurvivalAnalysis  # slow to import, needed here alone
    from sksurv.util import Surv

    basis = _spline_basis(np.log(-np.log(predicted)))
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # coefficients without bounds
            model = CoxPHSurvivalAnalysis(ties="efron").fit(basis, Surv.from_arrays(event_, time_))
    except ValueError as error:
        raise NumericalError(
            f"the smoother has no finite coefficients for {int(event_.sum())} events ({error}): there are few, or the "
            "predictions tell their order without error; compare groups, by calibration_curve"
        ) from None
    risk = np.exp(model.predict(basis))
    baseline = efron_steps(time_, event_, risk)[np.unique(time_) <= horizon].sum()
    return np.asarray(np.exp(-baseline * risk))


def calibration_errors(time: ArrayLike, event: ArrayLike, survival: ArrayLike, horizon: float) -> CalibrationErrors:
    """Integrated calibration index (the mean) with E50, E90 and the largest error.

    Parameters
    ----------
    time, event, survival, horizon
        As in `calibration_curve`.

    Raises
    ------
    InvalidTimesError
        If a group of equal predictions was not followed up to the horizon.

    References
    ----------
    Austin, Harrell, van Klaveren, Statistics in Medicine 39 (2020).
    """
    observed = smoothed_observed_survival(time, event, survival, horizon)
    if np.isnan(observed).any():
        raise InvalidTimesError(
            f"some group of equal predictions has no follow-up at {float(horizon):g}; choose a smaller horizon"
        )
    error = np.abs(observed - np.asarray(survival, dtype=float))
    return CalibrationErrors(
        float(error.mean()), float(np.median(error)), float(np.quantile(error, 0.9)), float(error.max())
    )


def _checked(time: ArrayLike, event: ArrayLike, survival: ArrayLike) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Checked time, event and probabilities, each (N,)."""
    time_, event_, _, _ = checked_columns(time, event)
    column = np.asarray(survival, dtype=float)
    if column.shape != time_.shape:
        raise InvalidParameterError(
            f"survival must hold one probability per subject, shape {time_.shape}, got {column.shape}"
        )
    checked_probabilities("survival", column[:, None], time_.size, 1)
    return time_, event_, column


def _refuse_no_mass(mass: FloatArray) -> None:
    if not mass.any():
        raise InvalidSurvivalDataError("weight must be > 0 in at least one row, got only zeros")


def _refuse_few(name: str, value: int, least: int) -> None:
    if not isinstance(value, numbers.Integral) or value < least:
        raise InvalidParameterError(f"{name} must be an integer >= {least}, got {value!r}")


def equal_groups(predicted: FloatArray, n_bins: int) -> np.ndarray:
    """Group labels (N,) by rising prediction: equal sizes, equal predictions together."""
    values = np.unique(predicted)
    if values.size <= n_bins:
        return np.searchsorted(values, predicted)
    edges = np.unique(np.quantile(predicted, np.linspace(0.0, 1.0, n_bins + 1)[1:-1]))
    return np.searchsorted(edges, predicted, side="right")


def value_at_horizon(curve: StepFunction, survival: StepFunction, horizon: float) -> float:
    """Value of the curve at the horizon, NaN where the Kaplan-Meier estimate is undefined there."""
    known = horizon <= survival.times[-1] or survival.values[-1] == 0.0
    return float(curve(horizon)) if known else float("nan")


def _spline_basis(x: FloatArray) -> FloatArray:
    """Restricted cubic spline, linear beyond its outer knots, columns of unit scale, (N, up to 3)."""
    x = (x - x.mean()) / x.std()
    knots = np.unique(np.quantile(x, KNOT_LEVELS))
    if knots.size < 3:
        return x[:, None]
    first, before_last, last = knots[0], knots[-2], knots[-1]

    def cube(knot: float) -> FloatArray:
        return np.asarray(np.maximum(x - knot, 0.0) ** 3)

    def column(knot: float) -> FloatArray:
        share = (last - knot) / (last - before_last)
        return (cube(knot) - share * cube(before_last) + (share - 1.0) * cube(last)) / (last - first) ** 2

    return np.column_stack([x, *(column(knot) for knot in knots[:-2])])
