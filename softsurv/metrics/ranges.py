"""The span of time on which censoring-weighted measures are defined, and the checks they share."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import BoolArray, FloatArray, as_time
from softsurv.errors import EvaluationWarning, InvalidParameterError, InvalidTimesError, warn
from softsurv.nonparametric import StepFunction, checked_columns

CHUNK_ELEMENTS = 2**21
"""Entries of rows times times held at once: 16 MiB, small enough for temporaries to fit beside."""

LARGEST_EXPONENT = 700.0
"""exp of more overflows float64; S = exp(-exp(700)) is 0 long before."""


@dataclass(frozen=True)
class EvaluationRange:
    """Where a test fold is evaluated, and what lies outside.

    Attributes
    ----------
    times : ndarray, shape (T,)
        Evaluation grid, strictly increasing.
    n_before, n_beyond : int
        Test subjects observed before the first and after the last grid time.
    events_beyond : int
        Test events after the last grid time.
    support_end : float
        Last time at which the censoring curve of the training fold is known and positive.
    """

    times: FloatArray
    n_before: int
    n_beyond: int
    events_beyond: int
    support_end: float

    @property
    def lower(self) -> float:
        """First grid time."""
        return float(self.times[0])

    @property
    def upper(self) -> float:
        """Last grid time."""
        return float(self.times[-1])


def support_end(censoring: StepFunction) -> float:
    """Last time at which G, the Kaplan-Meier curve ``censoring``, is known and positive.

    The Kaplan-Meier estimate is undefined after the last training time, and weights 1 / G are
    infinite where it is 0. Where G drops to 0 the supremum is not attained; the next smaller number
    stands for it.
    """
    gone = np.flatnonzero(censoring.values <= 0.0)
    return float(np.nextafter(censoring.times[gone[0]], -np.inf)) if gone.size else float(censoring.times[-1])


def evaluation_range(
    time: ArrayLike,
    event: ArrayLike,
    censoring: StepFunction,
    times: ArrayLike | None = None,
    n_times: int = 100,
) -> EvaluationRange:
    """Choose, or check, the grid on which a test fold can be evaluated.

    Parameters
    ----------
    time, event : array_like, shape (N,)
        Test fold.
    censoring : StepFunction
        G of the training fold, from `softsurv.nonparametric.censoring_survival`.
    times : array_like, shape (T,), optional
        Wanted grid. Default: ``n_times`` equally spaced times from the smallest test time to the
        largest test time below the maximum at which G is known and positive.
    n_times : int
        Size of the default grid, >= 2.

    Warns
    -----
    EvaluationWarning
        If some of the wanted ``times`` are not attainable; the grid keeps the others.

    Raises
    ------
    InvalidTimesError
        If fewer than two usable times are left.

    Notes
    -----
    Attainable are min(time) <= t < max(time), t <= `support_end`: at the maximum nobody is left to
    be compared with. scikit-survival refuses the same times.
    """
    time_, event_, _, _ = checked_columns(time, event)
    end = support_end(censoring)
    inside = time_[(time_ < time_.max()) & (time_ <= end)]
    if inside.size == 0 or inside.max() <= inside.min():
        raise InvalidTimesError(
            f"the test times {time_.min():g} to {time_.max():g} leave no span of time to evaluate on: the "
            f"training fold knows its censoring up to {end:g}, and two different test times below the "
            "maximum are needed; use a larger test fold"
        )
    if times is None:
        if not isinstance(n_times, numbers.Integral) or n_times < 2:
            raise InvalidParameterError(f"n_times must be an integer >= 2, got {n_times!r}")
        grid = np.linspace(inside.min(), inside.max(), n_times)
    else:
        wanted = checked_times(times)
        grid = wanted[(wanted >= time_.min()) & (wanted < time_.max()) & (wanted <= end)]
        if grid.size < 2:
            raise InvalidTimesError(
                f"times must hold at least two values in [{time_.min():g}, {time_.max():g}) and up to "
                f"{end:g}, the end of the training fold's follow-up; got {wanted[0]:g} to {wanted[-1]:g}"
            )
        if grid.size < wanted.size:
            warn(
                f"{wanted.size - grid.size} of {wanted.size} times lie outside what the folds allow; "
                f"measures use {grid[0]:g} to {grid[-1]:g} instead of {wanted[0]:g} to {wanted[-1]:g}",
                EvaluationWarning,
            )
    beyond = time_ > grid[-1]
    return EvaluationRange(grid, int((time_ < grid[0]).sum()), int(beyond.sum()), int((beyond & event_).sum()), end)


def checked_times(times: ArrayLike) -> FloatArray:
    """An evaluation grid (T,): finite and strictly increasing, or InvalidTimesError."""
    try:
        grid = np.atleast_1d(np.asarray(times, dtype=float))
    except (TypeError, ValueError):
        raise InvalidTimesError(f"times must be numbers, got {times!r}") from None
    if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all() or (np.diff(grid) <= 0).any():
        raise InvalidTimesError(
            f"times must be a one-dimensional grid of finite, strictly increasing values, got shape "
            f"{grid.shape}; numpy.unique sorts it and drops repeated values"
        )
    return grid


def checked_horizon(horizon: float, last: float) -> float:
    """A horizon up to the last observed time, or InvalidTimesError."""
    found = as_time(horizon)
    if not 0.0 <= found <= last:
        raise InvalidTimesError(
            f"horizon must lie between 0 and the largest observed time {last:g}, got {horizon!r}; take another one"
        )
    return found


def checked_tau(tau: float) -> float:
    """A time before which events count, or InvalidTimesError."""
    found = as_time(tau)
    if np.isnan(found):
        raise InvalidTimesError(f"tau must be a number, in the unit of time, got {tau!r}")
    return found


def checked_matrix(name: str, values: ArrayLike, n_rows: int, n_times: int) -> FloatArray:
    """Predictions (N, T) without NaN, or InvalidParameterError."""
    matrix = np.asarray(values, dtype=float)
    if matrix.shape != (n_rows, n_times):
        raise InvalidParameterError(
            f"{name} must have one row per subject and one column per time, shape ({n_rows}, {n_times}); "
            f"got {matrix.shape}"
        )
    refuse_nan(name, matrix)
    return matrix


def checked_probabilities(name: str, values: ArrayLike, n_rows: int, n_times: int) -> FloatArray:
    """Survival probabilities (N, T) in [0, 1], or InvalidParameterError."""
    matrix = checked_matrix(name, values, n_rows, n_times)
    if matrix.min() < 0.0 or matrix.max() > 1.0:
        raise InvalidParameterError(
            f"{name} must hold probabilities between 0 and 1, got {matrix.min():g} to "
            f"{matrix.max():g}; risk scores do not belong here"
        )
    return matrix


def refuse_nan(name: str, values: FloatArray) -> None:
    """Raise InvalidParameterError if any value is NaN."""
    if np.isnan(values).any():
        raise InvalidParameterError(
            f"{name} must not be NaN, got {int(np.isnan(values).sum())} NaN values; check the model"
        )


def refuse_unknown_censoring(censoring: StepFunction, times: FloatArray) -> None:
    """Raise InvalidTimesError if G is unknown or 0 at the largest of ``times``."""
    end = support_end(censoring)
    if times.size and times.max() > end:
        raise InvalidTimesError(
            f"the censoring curve of the training fold is known and positive up to {end:g}, got "
            f"{times.max():g}; evaluate up to there (softsurv.metrics.evaluation_range chooses such times)"
        )


def column_parts(n_rows: int, n_times: int, cells: int | None = None) -> Iterator[slice]:
    """The times in parts, of as many as are held at once for so many rows, up to :data:`CHUNK_ELEMENTS` cells."""
    width = max(1, (CHUNK_ELEMENTS if cells is None else cells) // n_rows)
    return (slice(first, first + width) for first in range(0, n_times, width))


def survival_from_log_cumulative_hazard(log_cumulative_hazard: ArrayLike) -> FloatArray:
    """S = exp(-H) from ``log_cumulative_hazard``, log H of any size, without overflow; same shape."""
    log_hazard = np.minimum(np.asarray(log_cumulative_hazard, dtype=float), LARGEST_EXPONENT)
    return np.asarray(np.exp(-np.exp(log_hazard)))


def thinned(values: FloatArray, limit: int) -> FloatArray:
    """At most ``limit`` of the sorted values, evenly by rank, the ends kept."""
    if values.size <= limit:
        return values
    return values[np.unique(np.linspace(0, values.size - 1, limit).round().astype(int))]


MAX_UNIQUE_TIMES = 500
"""Most times of the default grid. More distinct event times are thinned to quantiles."""


def default_grid(time: FloatArray, event: BoolArray) -> FloatArray:
    """Distinct event times above 0, thinned to :data:`MAX_UNIQUE_TIMES`. Without one, the smallest time above 0."""
    positive = time > 0
    events = time[event & positive]
    return thinned(np.unique(events if events.size else time[positive].min()), MAX_UNIQUE_TIMES)
