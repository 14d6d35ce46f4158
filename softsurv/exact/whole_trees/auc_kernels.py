"""Compiled parts of the search for the tree of largest AUC: costs in many directions at once, and areas."""

from __future__ import annotations

import numpy as np

from softsurv.exact.entries import engine_files
from softsurv.exact.jit import array_entry, array_kernel
from softsurv.exact.kernels.bit_columns import pack
from softsurv.exact.kernels.side_sums import both_sums, left_sums
from softsurv.exact.kernels.subsets import STOP, Local, localise
from softsurv.exact.kernels.views import view_of
from softsurv.exact.problem import SearchArrays
from softsurv.loops import FLAG, FLOAT, INT, INT32, flags, floats, ints

compiled = array_entry(*engine_files(), "whole_trees/auc_kernels.py")


@compiled(view_of(SearchArrays), *ints(1, of=INT32), INT, view_of(Local), *floats(2), FLAG, *floats(2, 2, 2))
def directional(problem, rows, n, local, directions, pairs, single, both, by_code):
    """Least weighted misclassification of a subset and of both sides of each split, per direction.

    Worth nothing once the stop flag is set.

    Parameters
    ----------
    directions : (G, 2)
        Cost of a false negative and of a false positive.
    pairs : bool
        Whether a further split of the sides is priced too.
    single, both : (K, S)
        ``single`` takes the sums left of each split; ``both`` is scratch.
    by_code
        Scratch.

    Returns
    -------
    leaf, stump : (2, m, G)
        Cost of the left and the right side of each split as a leaf, and with at most one more split.
    whole : (G,)
        Cost of the subset as a leaf.
    """
    kinds = problem.row_kinds.kind_stats
    if kinds.shape[0] > 0:
        pack(problem, rows, n, local)
    else:
        localise(problem, rows, n, local)
    left_sums(problem, problem.stats, kinds, rows, n, local, single, by_code)
    m, g = local.size[2], directions.shape[0]
    leaf, stump, whole = np.empty((2, m, g)), np.empty((2, m, g)), np.empty(g)
    fn, fp = directions[:, 0].copy(), directions[:, 1].copy()
    negatives, positives = local.total[0], local.total[1]
    for d in range(g):
        whole[d] = min(fn[d] * positives, fp[d] * negatives)
    for a in range(m):
        n0, p0 = single[0, a], single[1, a]
        for d in range(g):
            leaf[0, a, d] = min(fn[d] * p0, fp[d] * n0)
            leaf[1, a, d] = min(fn[d] * (positives - p0), fp[d] * (negatives - n0))
            stump[0, a, d], stump[1, a, d] = leaf[0, a, d], leaf[1, a, d]
    if not pairs:
        return leaf, stump, whole
    for a in range(m - 1):
        if local.control[STOP] != 0:
            break
        both_sums(problem, problem.stats, kinds, rows, n, local, a, a + 1, both, by_code)
        for b in range(a + 1, m):
            nn, pp = both[0, b], both[1, b]
            na, pa = single[0, a] - nn, single[1, a] - pp
            nb, pb = single[0, b] - nn, single[1, b] - pp
            n0, p0 = negatives - nn - na - nb, positives - pp - pa - pb
            for d in range(g):
                here, left = min(fn[d] * pp, fp[d] * nn), min(fn[d] * pa, fp[d] * na)
                right, none = min(fn[d] * pb, fp[d] * nb), min(fn[d] * p0, fp[d] * n0)
                stump[0, a, d] = min(stump[0, a, d], here + left)
                stump[1, a, d] = min(stump[1, a, d], right + none)
                stump[0, b, d] = min(stump[0, b, d], here + right)
                stump[1, b, d] = min(stump[1, b, d], left + none)
    return leaf, stump, whole


@compiled(*floats(2, 1), FLOAT, FLOAT, FLOAT)
def least_area(directions, cost, share, positives, negatives):
    """Least area under miss rate against false-positive rate, up to ``share``, of a tree with at least these costs.

    Every direction bounds the curve from below by the line fn FN + fp FP = cost; the area under the largest of the
    lines (and 0) is the bound. ``directions`` rise in the cost of a false positive: from flat lines to steep ones.
    """
    g = directions.shape[0]
    slope, height = np.empty(g + 1), np.empty(g + 1)
    n = 0
    for d in range(g - 1, -1, -1):
        # the line y = height - slope x in rates; steep lines first
        s = directions[d, 1] * negatives / (directions[d, 0] * positives)
        h = cost[d] / (directions[d, 0] * positives)
        while n > 0 and _hidden(slope, height, n, s, h):
            n -= 1
        slope[n], height[n] = s, h
        n += 1
    area, begin = 0.0, 0.0
    for i in range(n):
        end = share
        if i + 1 < n:
            end = min(share, (height[i] - height[i + 1]) / (slope[i] - slope[i + 1]))
        if slope[i] > 0.0:
            end = min(end, height[i] / slope[i])
        if end > begin:
            area += (end - begin) * (height[i] - 0.5 * slope[i] * (begin + end))
            begin = end
    return area


@array_kernel
def _hidden(slope, height, n, s, h):
    """Whether the last line of an envelope, steep to flat, is nowhere the largest once a flatter one is added."""
    if slope[n - 1] <= s:
        return height[n - 1] <= h
    here = (height[n - 1] - h) / (slope[n - 1] - s)
    if here <= 0.0:
        return True
    if n < 2:
        return False
    before = (height[n - 2] - height[n - 1]) / (slope[n - 2] - slope[n - 1])
    return here <= before


@compiled(*floats(2), FLOAT, FLOAT, FLOAT)
def curve_area(leaf, share, positives, negatives):
    """Area under miss rate against false-positive rate, up to ``share``, of leaves (L, 2) of (negatives, positives)."""
    return _curve_area(leaf, share, positives, negatives)


@array_kernel
def _curve_area(leaf, share, positives, negatives):
    n_leaves = leaf.shape[0]
    done = np.zeros(n_leaves, np.bool_)
    area, x, y = 0.0, 0.0, 1.0
    for _ in range(n_leaves):
        best = -1
        for k in range(n_leaves):
            # the largest share of positives first: p / n compared without dividing
            if not done[k] and (best < 0 or leaf[k, 1] * leaf[best, 0] > leaf[best, 1] * leaf[k, 0]):
                best = k
        done[best] = True
        width, drop = leaf[best, 0] / negatives, leaf[best, 1] / positives
        step = min(width, share - x)
        if step > 0.0:
            area += step * (y - 0.5 * drop * step / width)
        x, y = x + width, y - drop
        if x >= share:
            break
    return area


@compiled(*floats(2, 1, 2), FLOAT, FLOAT, FLOAT, *flags(1))
def best_last_split(single, total, closed, share, positives, negatives, allowed):
    """The split of the loaded subset that makes the smallest area with the leaves closed before: (area, split)."""
    n_closed = closed.shape[0]
    leaf = np.empty((n_closed + 2, 2))
    for k in range(n_closed):  # to assign a slice would compile its error message
        leaf[k, 0], leaf[k, 1] = closed[k, 0], closed[k, 1]
    best, chosen = np.inf, -1
    for a in range(allowed.shape[0]):
        if not allowed[a]:
            continue
        for k in range(2):
            leaf[n_closed, k] = single[k, a]
            leaf[n_closed + 1, k] = total[k] - single[k, a]
        area = _curve_area(leaf, share, positives, negatives)
        if area < best - 1e-15:
            best, chosen = area, a
    return best, chosen
