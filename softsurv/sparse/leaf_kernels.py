"""Compiled loop of the leaf models on a CPU: every row once, in its own leaf.

Torch's operators build tables of (trees, leaves, rows) though a row is in one leaf. Here a row costs the same whatever
the number of leaves. `softsurv.sparse.leaf_fit` calls this loop; its operators are the oracle of the tests.
"""

from __future__ import annotations

import numpy as np

from softsurv.loops import INT, floats, ints
from softsurv.soft.jit import FUSED, loop, loop_part
from softsurv.soft.row_kernels import BLOCK, HAZARDS, fill_hazards, fill_odds


@loop(INT, *floats(3, 2, 3, 3, 3, 2, 2, 2), *ints(2), *floats(1, 3, 2, 3), **FUSED)
def rows_in_leaves(
    link, offset, level, shape, weights, features, rise_log, event, mass, leaf, value, total, by_level, by_weight
):
    """Loss under the models of the leaves, and its derivatives.

    The rows are right-censored, their baselines ``sum_k weights_k I_k(y)``.
    ``offset`` (M, R, N) has one row for all leaves or one for each; ``level`` (M, L) is added to it. ``shape`` and
    ``weights`` (M, L, K) are the shape parameters and their exponentials, ``features`` (G, 2 K, N) the functions I_k
    and their slopes, ``rise_log`` (G, N) the log slope of I_1, which is read where K is 1; ``event`` (G, N), ``mass``
    (M, N), ``leaf`` (M, N). To be filled: ``value`` (M,), ``total`` (M, R, N) the derivatives by the offsets,
    ``by_level`` (M, L), ``by_weight`` (M, L, K) the derivatives by the weights.
    """
    trees, several, rows = offset.shape
    n_shape, per_group = shape.shape[2], trees // event.shape[0]
    z, rise, loss, slope = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    steep = np.empty(BLOCK)
    total[:], by_level[:], by_weight[:] = 0.0, 0.0, 0.0
    for m in range(trees):
        g, loss_of_all = m // per_group, 0.0
        for first in range(0, rows, BLOCK):
            n = min(BLOCK, rows - first)
            happened, own = event[g, first : first + n], leaf[m, first : first + n]
            fill_predictors(offset[m], level[m], weights[m], features[g], own, first, z, steep)
            fill_log_slopes(shape[m], rise_log[g], own, happened, first, steep, rise)
            if link == HAZARDS:
                fill_hazards(z[:n], rise[:n], happened, loss[:n], slope[:n])
            else:
                fill_odds(z[:n], rise[:n], happened, loss[:n], slope[:n])
            for i in range(n):
                k, w = own[i], mass[m, first + i]
                loss_of_all += w * loss[i]
                pull = w * slope[i]
                total[m, k if several > 1 else 0, first + i] = pull
                by_level[m, k] += pull
                sharp = w * happened[i] / steep[i]
                for j in range(n_shape):
                    rises, slopes = features[g, j, first + i], features[g, n_shape + j, first + i]
                    by_weight[m, k, j] += pull * rises - sharp * slopes
        value[m] = loss_of_all


@loop_part(**FUSED)
def fill_predictors(offset, level, weights, features, leaf, first, z, steep):
    """Predictors of a block of rows in their leaves, and the slopes of their baselines."""
    several, n_shape = offset.shape[0] > 1, weights.shape[1]
    for i in range(leaf.size):
        k = leaf[i]
        at = offset[k if several else 0, first + i] + level[k]
        slope = 0.0
        for j in range(n_shape):
            at += weights[k, j] * features[j, first + i]
            slope += weights[k, j] * features[n_shape + j, first + i]
        z[i], steep[i] = at, slope


@loop_part(**FUSED)
def fill_log_slopes(shape, rise_log, leaf, event, first, steep, rise):
    """Logarithms of the slopes; 0 for censored rows of several shapes, which do not need them."""
    for i in range(leaf.size):
        if shape.shape[1] == 1:
            rise[i] = shape[leaf[i], 0] + rise_log[first + i]
        else:
            rise[i] = np.log(steep[i]) if event[i] != 0.0 else 0.0
