"""Leaves that correct a common regression: their own level and shape, to second order.

One model is fitted to all rows. A leaf moves its level and shape by d = (d_0, d_1), which costs ``lambda |d|^2 / 2``.
To second order its penalised log-likelihood rises by

    max over d of  g'd - d'(H + lambda I) d / 2  =  g'(H + lambda I)^-1 g / 2,

with the summed slopes g and curvatures H of its rows' losses: five sums a row, so that minus this is a leaf cost of the
engine. Slopes and curvatures are divided by sqrt(lambda) and lambda, so that one compiled cost serves every lambda:
``g'(H + I)^-1 g / 2``. With several causes the costs add.

The cost is not superadditive: each leaf pays for its own correction. What the engine needs instead is a number for each
row whose sum no leaf falls below (`offset`). q(g, H) = g'H^-1 g is convex and homogeneous, hence subadditive, and falls
in H. So for a leaf of some of N rows, each of which is given a share I / N of the penalty,

    q(sum g_i, sum H_i + I)  <=  q(sum g_i, sum (H_i + I / N))  <=  sum of q(g_i, H_i + I / N).
"""

from __future__ import annotations

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.exact.jit import FAST
from softsurv.exact.task import Task
from softsurv.kernel_cache import njit

N_SUMS = 5
"""Sums of each cause: slopes of level and shape; curvatures level-level, level-shape, shape-shape."""


@njit(**FAST)
def leaf_costs(sums, n, out):
    """Minus what a leaf's correction gains, under a penalty of one."""
    for i in range(n):
        out[i] = 0.0
    for k in range(0, sums.shape[0], 5):
        for i in range(n):
            g, h, b = sums[k, i], sums[k + 1, i], sums[k + 3, i]
            a, c = sums[k + 2, i] + 1.0, sums[k + 4, i] + 1.0
            out[i] -= 0.5 * (c * g * g - 2.0 * b * g * h + a * h * h) / (a * c - b * b)


TASK = Task("corrections", None, leaf_costs, superadditive=False)
"""Five columns for each cause."""


def statistics(table: FloatArray, penalty: float) -> FloatArray:
    """Slopes and curvatures (N, 5 K) of the rows' losses in the unit of a penalty > 0.

    Where a row's curvatures are no positive semidefinite matrix, they are made one: negative ones become 0, and the
    level-shape curvature smaller.
    """
    scaled = np.empty_like(table)
    for k in range(0, table.shape[1], N_SUMS):
        g, h = table[:, k : k + 2], table[:, k + 2 : k + 5]
        level, shape = np.maximum(h[:, 0], 0.0), np.maximum(h[:, 2], 0.0)
        most = np.sqrt(level * shape)
        scaled[:, k : k + 2] = g / np.sqrt(penalty)
        scaled[:, k + 2 : k + 5] = np.column_stack([level, np.clip(h[:, 1], -most, most), shape]) / penalty
    return scaled


def offset(scaled: FloatArray) -> FloatArray:
    """For each row (N,) the number that makes the summed cost of any leaf >= 0 when it is added; from `statistics`."""
    share = 1.0 / len(scaled)
    bound = np.zeros(len(scaled))
    for k in range(0, scaled.shape[1], N_SUMS):
        g, h, a, b, c = scaled[:, k : k + N_SUMS].T
        a, c = a + share, c + share
        bound += 0.5 * (c * g * g - 2.0 * b * g * h + a * h * h) / (a * c - b * b)
    return bound
