"""Brier score of survival curves under censoring, and its integral."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import BoolArray, FloatArray
from softsurv.errors import InvalidParameterError, InvalidTimesError
from softsurv.metrics.entering import CheckedRows, some_late, under_observation
from softsurv.metrics.ranges import checked_probabilities, checked_times, column_parts, refuse_unknown_censoring
from softsurv.nonparametric import StepFunction, checked_columns

Scale = Literal["time", "log"]


def brier_score(
    time: ArrayLike,
    event: ArrayLike,
    survival: ArrayLike,
    times: ArrayLike,
    censoring: StepFunction,
    weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
) -> FloatArray:
    """Brier score at every time of a grid, weighted by the inverse probability of censoring.

    Parameters
    ----------
    time, event : array_like, shape (N,)
        Test fold.
    survival : array_like, shape (N, T)
        Predicted survival probabilities.
    times : array_like, shape (T,)
        Grid of the columns, strictly increasing, within the support of ``censoring``.
    censoring : StepFunction
        G of the training fold, from `softsurv.nonparametric.censoring_survival`.
    weight, entry : array_like, shape (N,), optional
        Sample weights, and times of late entry.

    Returns
    -------
    ndarray, shape (T,)
        NaN at times before anybody was under observation, which there are where all enter late.

    Raises
    ------
    InvalidTimesError
        If the grid is not increasing, or G is unknown or 0 somewhere on it.
    InvalidParameterError
        If ``survival`` has the wrong shape or is not a probability.

    Notes
    -----
    BS(t) = 1/N sum_i (S_i(t)^2 c_i 1[t_i <= t] / G(t_i) + (1 - S_i(t))^2 1[t_i > t] / G(t)).
    Equal to scikit-survival's ``brier_score`` where that accepts the input; it also refuses test
    subjects observed longer than the training fold, who count here as event-free on the grid. Sample weights multiply
    each term and stand for N. With late entry G(t_i) becomes A(t_i-) G(t_i) and G(t) becomes A(t) G(t), A being
    `entry_distribution` of the fold; those event-free at t are counted once they have entered, and the sum of all these
    weights stands for N, which the sample does not show.

    References
    ----------
    Graf, Schmoor, Sauerbrei, Schumacher, Statistics in Medicine 18 (1999); paper `sst`, eq. 6.
    """
    rows = CheckedRows.of(time, event, weight, entry)
    grid = checked_times(times)
    curves = checked_probabilities("survival", survival, rows.time.size, grid.size)
    refuse_unknown_censoring(censoring, grid)
    case_weight, control_weight = rows.case_weights(grid[-1], censoring), control_weights(rows, grid, censoring)
    scores = np.empty(grid.size)
    for part in column_parts(rows.time.size, grid.size):
        at = grid[part, None]
        case = np.where(rows.time > at, 0.0, case_weight)  # (C, N); later events are still event-free
        free = control_weight[part, None] * np.where(under_observation(rows.entry, rows.time, at), rows.mass, 0.0)
        curve = curves[:, part].T
        total = total_weight(rows, case, free)
        squares = (case * curve**2 + free * (1.0 - curve) ** 2).sum(1)
        scores[part] = np.divide(squares, total, out=np.full(len(at), np.nan), where=total > 0.0)
    return scores


def control_weights(rows: CheckedRows, grid: FloatArray, censoring: StepFunction) -> FloatArray:
    """1 / (A(t) G(t)) at each grid time, (T,)."""
    return np.asarray(1.0 / (censoring(grid) * rows.entering(grid)))


def total_weight(rows: CheckedRows, case: FloatArray, free: FloatArray) -> FloatArray:
    """What stands for N at some times (C,), from the weights of cases and of those event-free, (C, N)."""
    return (case + free).sum(1) if some_late(rows.entry) else np.full(len(case), rows.mass.sum())


def integrated_brier_score(
    time: ArrayLike,
    event: ArrayLike,
    survival: ArrayLike,
    times: ArrayLike,
    censoring: StepFunction,
    scale: Scale = "time",
    weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
) -> float:
    """Mean Brier score over the range of a grid, by the trapezoidal rule.

    Parameters
    ----------
    time, event, survival, times, censoring, weight, entry
        As in `brier_score`; at least two times.
    scale : {"time", "log"}
        Average over time, or over log time (then all times must be > 0). The figures printed in
        paper `sst` for its spline leaves match the average over log time.

    Raises
    ------
    InvalidTimesError, InvalidParameterError
        As in `brier_score`, or for fewer than two times, or a time <= 0 on the log scale.

    Notes
    -----
    1 / (b - a) int_a^b BS(t) dt, a and b the first and last grid time. `evaluation_range` chooses a
    grid that a test fold supports.
    """
    axis = axis_of(checked_times(times), scale)
    scores = brier_score(time, event, survival, times, censoring, weight, entry)
    return mean_of_known(axis, scores)


def relative_integrated_brier_score(
    time: ArrayLike,
    event: ArrayLike,
    survival: ArrayLike,
    times: ArrayLike,
    censoring: StepFunction,
    reference: StepFunction,
    scale: Scale = "time",
) -> float:
    """Share of the integrated Brier score of one common curve that the predictions remove.

    Parameters
    ----------
    time, event, survival, times, censoring, scale
        As in `integrated_brier_score`.
    reference : StepFunction
        The common curve, usually the Kaplan-Meier estimate of the training fold.

    Returns
    -------
    float
        1 - IBS / IBS(reference): 1 is perfect, 0 no better than the common curve.

    References
    ----------
    Papers `surtree` (normalised relative score) and `osst` (eq. 14, IBS ratio).
    """
    time_, _, _, _ = checked_columns(time, event)
    grid = checked_times(times)
    common = np.broadcast_to(reference(grid), (time_.size, grid.size))
    baseline = integrated_brier_score(time, event, common, grid, censoring, scale)
    if baseline <= 0.0:
        raise InvalidTimesError(
            "the reference curve has a Brier score of 0 on these times, nothing to compare with; extend "
            "times to where events happen"
        )
    return 1.0 - integrated_brier_score(time, event, survival, grid, censoring, scale) / baseline


def axis_of(grid: FloatArray, scale: Scale) -> FloatArray:
    """The variable of integration at the grid times, (T,)."""
    if scale not in ("time", "log"):
        raise InvalidParameterError(f"scale must be 'time' or 'log', got {scale!r}")
    if grid.size < 2:
        raise InvalidTimesError("times must hold at least two values to integrate over, got one")
    if scale == "time":
        return grid
    if grid[0] <= 0.0:
        raise InvalidTimesError(f"times must be > 0 to integrate over log time, got {grid[0]:g}; start later")
    return np.asarray(np.log(grid))


def mean_of_known(axis: FloatArray, scores: FloatArray) -> float:
    """Trapezoidal mean over the axis (T,) of those scores (T,) that are known; an error where fewer than two are."""
    known = known_times(np.isfinite(scores))
    axis, scores = axis[known], scores[known]
    return float(np.trapezoid(scores, axis) / (axis[-1] - axis[0]))


def trapezoid_weights(axis: FloatArray, known: BoolArray) -> FloatArray:
    """Weight (T,) of each score in `mean_of_known`, 0 where it is not known."""
    weights, step = np.zeros(axis.size), np.diff(axis[known_times(known)])
    weights[known] = 0.5 * (np.append(step, 0.0) + np.append(0.0, step)) / step.sum()
    return weights


def known_times(known: BoolArray) -> BoolArray:
    """The times (T,) with a score, at least two of them, or InvalidTimesError."""
    if known.sum() < 2:
        raise InvalidTimesError("nobody is under observation at two of the times; give times that more rows span")
    return known
