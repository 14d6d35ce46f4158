"""Survival as other libraries predict it, in the one form that the measures take: log H at any times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import FloatArray
from softsurv.errors import EvaluationWarning, InvalidParameterError, warn
from softsurv.metrics.ranges import checked_probabilities, checked_times

if TYPE_CHECKING:
    import pandas as pd

Curves = Callable[[FloatArray], FloatArray]

LONG_STEP = 0.1
"""Share of the training event times in one step of given curves above which the steps are told to be long."""


def log_hazard_of(survival: Any, times: ArrayLike | None = None) -> Curves:
    """Log H of some subjects at any times, from their predicted survival.

    Parameters
    ----------
    survival : callable, matrix, frame or sequence of N step functions
        Survival probabilities of N subjects. A callable takes times (T,) and returns (N, T). A matrix (N, T) needs
        ``times``. A frame holds one subject a column and its index the times, as lifelines predicts. Step functions
        have the fields ``x`` and ``y``, as scikit-survival predicts.
    times : array_like (T,), optional
        Times of the columns of a matrix, increasing.

    Returns
    -------
    callable
        Takes times (T,), returns log H (N, T): -inf where S is 1, inf where S is 0.

    Raises
    ------
    InvalidParameterError
        If the values are no probabilities, or ``times`` does not fit.

    Notes
    -----
    A curve on a grid is a step function: 1 before the first time, constant between two times and after the last.

    Examples
    --------
    >>> curves = log_hazard_of([[0.9, 0.5]], times=[1.0, 2.0])
    >>> np.exp(-np.exp(curves(np.array([0.5, 1.0, 3.0])))).round(3)
    array([[1. , 0.9, 0.5]])
    """
    if callable(survival):
        of = survival
    elif hasattr(survival, "columns"):
        of = _of_frame(survival, times)
    elif len(survival) and hasattr(survival[0], "x") and hasattr(survival[0], "y"):
        of = _of_steps(survival, times)
    else:
        of = _of_matrix(survival, times)

    def curves(at: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(-np.log(np.asarray(of(np.asarray(at, dtype=float)), dtype=float)))

    return curves


def warn_of_long_steps(survival: Any, times: ArrayLike | None, event_times: FloatArray) -> None:
    """Warn where curves are given at so few times, or so short, that many training event times lie in one step.

    Parameters
    ----------
    survival, times
        As `log_hazard_of` takes them; a callable has no steps.
    event_times : ndarray (E,)
        Distinct event times of the training fold. A step that begins at one of them loses nothing by it.
    """
    if callable(survival):
        return
    if times is None:
        times = survival.index if hasattr(survival, "columns") else survival[0].x
    grid = np.atleast_1d(np.asarray(times, dtype=float))
    step = np.searchsorted(grid, event_times[~np.isin(event_times, grid)])
    most = np.bincount(step, minlength=1).max()
    if most > LONG_STEP * event_times.size:
        warn(
            f"survival is given at {grid.size} time(s), {grid[0]:g} to {grid[-1]:g}, and counts as constant between "
            f"and after them: {most} of {event_times.size} training event times lie in one step; give it at more "
            f"times up to {event_times[-1]:g}",
            EvaluationWarning,
        )


def _of_frame(survival: pd.DataFrame, times: ArrayLike | None) -> Curves:
    if times is not None:
        raise InvalidParameterError("times must be left out beside a frame, whose index holds them; drop one")
    return _of_matrix(survival.to_numpy().T, survival.index.to_numpy())


def _of_matrix(survival: ArrayLike, times: ArrayLike | None) -> Curves:
    values = np.asarray(survival, dtype=float)
    if times is None or values.ndim != 2:
        raise InvalidParameterError(
            "survival must be a callable, a frame, step functions, or a matrix (subjects, times) with its times, "
            f"got shape {values.shape} {'without' if times is None else 'with'} times"
        )
    grid = checked_times(times)
    levels = np.column_stack([np.ones(len(values)), checked_probabilities("survival", values, len(values), grid.size)])
    return lambda at: levels[:, np.searchsorted(grid, at, side="right")]


def _of_steps(survival: Sequence[Any], times: ArrayLike | None) -> Curves:
    if times is not None:
        raise InvalidParameterError("times must be left out beside step functions, which hold their own; drop one")
    rows = [_of_matrix(_heights(one)[None, :], one.x) for one in survival]
    return lambda at: np.concatenate([row(at) for row in rows])


def _heights(step: Any) -> FloatArray:
    """Values of a step function of scikit-survival, which keeps them as a * y + b."""
    return np.clip(getattr(step, "a", 1.0) * np.asarray(step.y, dtype=float) + getattr(step, "b", 0.0), 0.0, 1.0)
