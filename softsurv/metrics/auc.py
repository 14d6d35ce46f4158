"""Cumulative/dynamic area under the ROC curve and its mean over time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import BoolArray, FloatArray
from softsurv.errors import InvalidTimesError, NoComparablePairsError
from softsurv.metrics.entering import CheckedRows, some_late, under_observation
from softsurv.metrics.ranges import checked_matrix, checked_times, column_parts, refuse_unknown_censoring
from softsurv.nonparametric import StepFunction, kaplan_meier

LONG_RUN = 64
"""Subjects of a rising run above which merging the runs is faster than sorting."""


def cumulative_dynamic_auc(
    time: ArrayLike,
    event: ArrayLike,
    risk: ArrayLike,
    times: ArrayLike,
    censoring: StepFunction,
    weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
) -> tuple[FloatArray, float]:
    """How well risk separates those with an event by t from those free of it at t.

    Parameters
    ----------
    time, event : array_like, shape (N,)
        Test fold.
    risk : array_like, shape (N,) or (N, T)
        Risk score, or one per time such as the log cumulative hazard; higher = earlier event.
    times : array_like, shape (T,)
        Grid of the columns, strictly increasing, below the largest test time and within the
        support of ``censoring``.
    censoring : StepFunction
        G of the training fold, from `softsurv.nonparametric.censoring_survival`.
    weight, entry : array_like, shape (N,), optional
        Sample weights, and times of late entry.

    Returns
    -------
    auc : ndarray, shape (T,)
        AUC(t); NaN before the first event, where there is no case, and where nobody is under observation.
    mean : float
        Mean AUC weighted by the drop of the test fold's Kaplan-Meier curve since the previous time;
        the first time carries the whole drop up to it. With late entry by the weight of the cases since then.

    Raises
    ------
    NoComparablePairsError
        If no event lies on or before the last time.
    InvalidTimesError
        If a time has no subject left after it, or G is unknown or 0 on the grid.

    Notes
    -----
    With cases i (c_i = 1, t_i <= t), controls j (t_j > t) and w_i = 1 / G(t_i), AUC(t) is the sum over
    pairs of w_i (1[r_i > r_j] + 0.5 1[r_i = r_j]) divided by (sum of w_i) (number of controls). Paper
    `sst` prints no term for ties; one half for each is the area under the ROC curve. Both results equal
    scikit-survival's ``cumulative_dynamic_auc`` where that accepts the input. Sample weights multiply those of cases
    and controls. With late entry controls are those who have entered by t, and w_i = 1 / (A(t_i-) G(t_i)), A being
    `entry_distribution` of the fold.

    References
    ----------
    Lambert, Chevret, Statistical Methods in Medical Research 25 (2016); paper `sst`, appendix B.0.2.
    """
    rows = CheckedRows.of(time, event, weight, entry)
    grid = checked_times(times)
    scores = np.asarray(risk, dtype=float)
    if scores.ndim == 1:
        scores = np.broadcast_to(scores[:, None], (scores.size, grid.size))
    scores = checked_matrix("risk", scores, rows.time.size, grid.size)
    refuse_unknown_censoring(censoring, grid)
    if grid[-1] >= rows.time.max():
        raise InvalidTimesError(
            f"times must stay below the largest test time {rows.time.max():g}, where nobody is left as a "
            f"control; got {grid[-1]:g}"
        )
    case = rows.case_weights(grid[-1], censoring)
    auc = np.empty(grid.size)
    for part in column_parts(rows.time.size, grid.size):
        at = grid[part, None]
        cases = np.where(rows.time <= at, case, 0.0)
        controls = np.where(under_observation(rows.entry, rows.time, at), rows.mass, 0.0)
        auc[part] = _auc(cases, controls, np.ascontiguousarray(scores[:, part].T))
    drop = drop_of_survival(rows, case, grid)
    seen = counted_times(drop, np.isfinite(auc), grid)
    return auc, float(auc[seen] @ drop[seen] / drop[seen].sum())


def drop_of_survival(rows: CheckedRows, case: FloatArray, grid: FloatArray) -> FloatArray:
    """How much each grid time (T,) weighs in the mean AUC; ``case`` (N,) are the weights of the cases."""
    if some_late(rows.entry):  # a Kaplan-Meier curve of few who entered early would hold all of the drop
        return np.diff([case[rows.time <= t].sum() for t in grid], prepend=0.0)
    return -np.diff(kaplan_meier(rows.time, rows.event, rows.mass)(grid), prepend=1.0)


def counted_times(drop: FloatArray, known: BoolArray, grid: FloatArray) -> BoolArray:
    """The grid times (T,) whose AUC counts in the mean, or NoComparablePairsError where none does."""
    seen = (drop > 0.0) & known
    if not seen.any():
        raise NoComparablePairsError(
            f"the AUC is undefined: no event up to the last time {grid[-1]:g} with a control beside it; extend times"
        )
    return np.asarray(seen)


def _auc(case: FloatArray, control: FloatArray, risk: FloatArray) -> FloatArray:
    """AUC at some times (C,) from the weights of cases and controls, all (C, N); NaN where there are none of either."""
    times, n = risk.shape
    few_runs = (risk[0, 1:] < risk[0, :-1]).sum() < n / LONG_RUN
    order = np.argsort(risk, axis=1, kind="stable" if few_runs else None)  # timsort merges runs
    case, control, risk = (np.take_along_axis(table, order, 1) for table in (case, control, risk))
    mass = np.zeros((times, n + 1))  # of controls at lower places
    np.cumsum(control, axis=1, out=mass[:, 1:])
    below, not_above = mass[:, :-1], mass[:, 1:]
    rises = risk[:, 1:] != risk[:, :-1]
    if not rises.all():  # places of equal risk share the mass below the first and up to the last of them
        place, first, last = np.arange(n), np.zeros((times, n), dtype=np.intp), np.full((times, n), n - 1)
        np.maximum.accumulate(np.where(rises, place[1:], 0), axis=1, out=first[:, 1:])
        np.minimum.accumulate(np.where(rises, place[:-1], n - 1)[:, ::-1], axis=1, out=last[:, -2::-1])
        below, not_above = np.take_along_axis(below, first, 1), np.take_along_axis(not_above, last, 1)
    won, pairs = (case * (below + not_above)).sum(1), 2.0 * case.sum(1) * mass[:, -1]
    return np.divide(won, pairs, out=np.full(times, np.nan), where=pairs > 0.0)
