"""Cut-offs of conformal lower bounds under right censoring: numpy arrays in, one number out.

A score U_i = F(min(T_i, c) | x_i) says how early row i failed by the model. If the rows whose censoring time is at
least c are exchangeable with a new row, the k-th smallest score of n such rows, k = floor(alpha (n + 1)), is exceeded
or met by the new row's score with probability at least 1 - alpha, whatever the model (Candes, Lei and Ren 2023).
Whether an event before c would have been followed until c is not known where times are right censored: Sesia and
Svetnik (2024, arXiv 2412.09729) draw its censoring time. Here the row counts with the probability G(c-) / G(T_i-) of
that draw instead, so that the cut-off has no chance in it. G(t-) is the chance of a censoring time of t or later: of a
study that ends at c for all, everybody is followed until c.
"""

from __future__ import annotations

import numpy as np

from softsurv.arrays import BoolArray, FloatArray
from softsurv.nonparametric import censoring_survival


def followed_weight(time: FloatArray, event: BoolArray, cutoff: float) -> FloatArray:
    """Probability that each row was, or would have been, followed until the cut-off, (N,).

    Parameters
    ----------
    time, event : (N,)
        Right-censored times; the censoring is independent of the event time among these rows.
    cutoff : float
        c, in the unit of the times.

    Returns
    -------
    ndarray (N,)
        1 for rows seen at c, G(c-) / G(T-) for events before it, 0 for rows censored before it.
    """
    censoring = censoring_survival(time, event)
    share = censoring.left_limit(cutoff) / censoring.left_limit(time)  # G(T-) > 0: the row itself was followed to T
    return np.where(time >= cutoff, 1.0, np.where(event, np.minimum(share, 1.0), 0.0))


def lower_cutoff(score: FloatArray, weight: FloatArray, alpha: float) -> float:
    """Score that a new row falls below with probability at most alpha; 0 where there are too few rows to say.

    Parameters
    ----------
    score : (N,)
        U_i in [0, 1].
    weight : (N,)
        From `followed_weight`; a new row has weight 1.
    alpha : float
        In (0, 1).

    Notes
    -----
    The largest score with sum of the weights of smaller scores + 1 <= alpha (sum of all weights + 1). Equal scores
    count together.
    """
    order = np.argsort(score, kind="stable")
    values, first = np.unique(score[order], return_index=True)
    below = np.concatenate([[0.0], np.cumsum(weight[order])])[first]
    good = below + 1.0 <= alpha * (weight.sum() + 1.0) + 1e-9
    return float(values[good][-1]) if good.any() else 0.0
