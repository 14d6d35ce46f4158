"""Both sides of a cut above the base case: their rows column by column, their best trees, and the tree of both."""

from __future__ import annotations

import numpy as np

from softsurv.exact.cuts.sweep import mark_sides
from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.cache import MAX_LEAVES
from softsurv.exact.kernels.nodes import UNKNOWN, limits
from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.kernels.views import call_float
from softsurv.exact.kernels.words import higher


@shared_kernel
def take_side(cuts, level, n, side):
    """The rows of one side, column by column, as the next level: how many."""
    n_features, member = cuts.code.shape[0], cuts.side
    taken = np.int64(0)
    for f in range(n_features):
        order, out = cuts.order[level * n_features + f], cuts.order[(level + 1) * n_features + f]
        taken = np.int64(0)
        for p in range(n):
            row = order[p]
            if member[row] == side:
                out[taken] = row
                taken += 1
    return taken


@shared_kernel
def copy_tree(source, target, shift, size):
    """Put a tree under a node: heap place i moves to i + shift * 2**(level of i)."""
    top = 1
    for i in range(1, size):
        if i == 2 * top:
            top *= 2
        target[i + shift * top] = source[i]


@shared_kernel
def _bounds_at(cuts, row, at, begin, end, left, right):
    """Bounds of the sides of a cut in an interval, and the most by which another cut of the interval differs."""
    width = cuts.batch.shape[0]
    floor, worst = cuts.run[row * (width + 2) + width], cuts.run[row * (width + 2) + width + 1]
    slack = higher(worst[at] - worst[begin], worst[end] - worst[at])
    return left + floor[at] - floor[begin], right + floor[end] - floor[at], slack


@shared_kernel
def solve_sides(problem, cuts, level, n, depth, f, cut, begin, end, left, right, left_leaves, right_leaves, limit):
    """Best trees of both sides of a cut: (bounds of left and right, cost of both if below the limit, else inf).

    ``left`` and ``right`` bound the sides of all cuts from ``begin`` to ``end`` from below. The larger side is solved
    first, and the smaller one only below what the larger one leaves of the limit (`node.py` says what is added to the
    limit). Fills ``tree`` of the level where the cost is below the limit.
    """
    row, size, first_value = level * cuts.code.shape[0] + f, np.int64(1) << (depth - 1), 0.0
    at, far_left, far_right = np.int64(cuts.start[row, cut + 1]), left, right
    left, right, slack = _bounds_at(cuts, row, at, cuts.start[row, begin + 1], cuts.start[row, end + 1], left, right)
    first = np.int64(2 * at <= n)
    for turn in range(2):
        side = turn ^ first
        mark_sides(cuts, level, f, np.int64(0), at, n)
        m = take_side(cuts, level, n, 1 - side)
        part_depth, most = limits(depth - 1, left_leaves if side == 0 else right_leaves)
        other = first_value if turn == 1 else right if side == 0 else left
        upper = limit - other + slack
        if not cuts.similar:
            upper = higher(upper, limit - (far_right if side == 0 else far_left))
        value = call_float(problem.calls.search_cuts, (problem, cuts, level + 1, m, part_depth, most, upper))
        if cuts.control[STOP] != 0:
            return left, right, np.inf
        if side == 0:
            left = higher(left, cuts.free[level + 1])
        else:
            right = higher(right, cuts.free[level + 1])
        if cuts.tree[level + 1, 1] == UNKNOWN:
            return left, right, np.inf
        if turn == 0:
            first_value = value
            copy_tree(cuts.tree[level + 1], cuts.kept[level], np.int64(0), size)
    if first_value + value >= limit:
        return left, right, np.inf
    tree, code = cuts.tree[level], cuts.code[f, cuts.order[row, at - 1]]
    tree[1] = np.int64(cuts.split[f] + code) * MAX_LEAVES + left_leaves
    copy_tree(cuts.kept[level], tree, 1 + first, size)
    copy_tree(cuts.tree[level + 1], tree, 2 - first, size)
    return left, right, first_value + value
