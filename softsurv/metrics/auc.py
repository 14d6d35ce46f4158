"""Cumulative/dynamic area under the ROC curve and its mean over time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import FloatArray
from softsurv.errors import InvalidTimesError, NoComparablePairsError
from softsurv.metrics.ranges import checked_matrix, checked_times, refuse_unknown_censoring
from softsurv.nonparametric import StepFunction, checked_columns, ipcw_weights, kaplan_meier


def cumulative_dynamic_auc(
    time: ArrayLike, event: ArrayLike, risk: ArrayLike, times: ArrayLike, censoring: StepFunction
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

    Returns
    -------
    auc : ndarray, shape (T,)
        AUC(t); NaN before the first event, where there is no case.
    mean : float
        Mean AUC weighted by the drop of the test fold's Kaplan-Meier curve since the previous time;
        the first time carries the whole drop up to it.

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
    scikit-survival's ``cumulative_dynamic_auc`` where that accepts the input.

    References
    ----------
    Lambert, Chevret, Statistical Methods in Medical Research 25 (2016); paper `sst`, appendix B.0.2.
    """
    time_, event_, _, _ = checked_columns(time, event)
    grid = checked_times(times)
    scores = np.asarray(risk, dtype=float)
    if scores.ndim == 1:
        scores = np.broadcast_to(scores[:, None], (scores.size, grid.size))
    scores = checked_matrix("risk", scores, time_.size, grid.size)
    refuse_unknown_censoring(censoring, grid)
    if grid[-1] >= time_.max():
        raise InvalidTimesError(
            f"times must stay below the largest test time {time_.max():g}, where nobody is left as a "
            f"control; got {grid[-1]:g}"
        )
    weight = ipcw_weights(time_, event_ & (time_ <= grid[-1]), censoring)
    auc = np.array([_auc(time_, weight, scores[:, k], t) for k, t in enumerate(grid)])
    curve = kaplan_meier(time_, event_)(grid)
    drop = -np.diff(np.concatenate([[1.0], curve]))
    if drop.sum() <= 0.0:
        raise NoComparablePairsError(f"the AUC is undefined: no event up to the last time {grid[-1]:g}; extend times")
    seen = drop > 0.0
    return auc, float(auc[seen] @ drop[seen] / drop.sum())


def _auc(time: FloatArray, weight: FloatArray, risk: FloatArray, t: float) -> float:
    """AUC at one time; weight (N,) is 0 for those censored."""
    cases = (time <= t) & (weight > 0.0)
    if not cases.any():
        return float("nan")
    controls = np.sort(risk[time > t])
    below = np.searchsorted(controls, risk[cases], side="left")
    not_above = np.searchsorted(controls, risk[cases], side="right")
    return float(weight[cases] @ (below + not_above) / (2.0 * weight[cases].sum() * controls.size))
