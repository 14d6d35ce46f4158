"""The search by cuts: best first over intervals of cuts.

A node keeps intervals of neighbouring cuts of its columns, each with lower bounds of the left sides and of the right
sides of all its cuts (`bounds.py`: interval, similar support). The interval with the least bound comes first. One of
its cuts is solved, and what is left of it is one or two intervals with higher bounds. The node is solved when no bound
is below its best tree, and until then the least bound is what has been proven.

Base cases are solved cut by cut (`sweep.py`). Above them a side is sought below an upper bound that closes the whole
interval, not the cut alone. With similar support this is the limit of the cut plus the most that the rows of the
interval can change. Otherwise it is the limit minus the bound of the other side at the far end of the interval.
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.cuts.intervals import clear_intervals, pop_interval, push_interval
from softsurv.exact.cuts.scratch import Cuts
from softsurv.exact.cuts.sides import solve_sides
from softsurv.exact.cuts.sweep import (
    best_cut,
    leaf_sides,
    open_columns,
    stump_sides,
)
from softsurv.exact.entries import LONG, entry
from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.cache import MAX_LEAVES
from softsurv.exact.kernels.nodes import LEAF, UNKNOWN, leaf_shares
from softsurv.exact.kernels.subsets import CALLS, STOP
from softsurv.exact.kernels.words import higher, lower
from softsurv.exact.problem import SearchArrays


@shared_kernel
def narrow(cuts, level, f, first, last, left, right, near_left, near_right, limit):
    """Drop the cuts at both ends that similar support excludes: (first, last, left, right)."""
    row, width = level * cuts.code.shape[0] + f, cuts.batch.shape[0]
    start = cuts.start[row]
    floor, worst = cuts.run[row * (width + 2) + width], cuts.run[row * (width + 2) + width + 1]
    before, after = start[first + 1], start[last + 1]
    low, high = first, last + 1
    while low < high:
        middle = (low + high) >> 1
        if left + near_right - worst[start[middle + 1]] >= limit:
            low = middle + 1
        else:
            high = middle
    first = low
    low, high = first, last + 1
    while low < high:
        middle = (low + high) >> 1
        if near_left + worst[start[middle + 1]] + right >= limit:
            high = middle
        else:
            low = middle + 1
    last = low - 1
    if first > last:
        return first, last, left, right
    at, end = start[first + 1], start[last + 1]
    left = higher(left + floor[at] - floor[before], near_left + worst[at])
    right = higher(right + floor[after] - floor[end], near_right - worst[end])
    return first, last, left, right


@shared_kernel
def add_interval(cuts, level, f, first, last, left, right, near_left, near_right, limit):
    """Let an interval wait, if it has cuts and its bound is below a limit. Returns a bound that is not, else inf."""
    if first > last:
        return np.inf
    row, width = level * cuts.code.shape[0] + f, cuts.batch.shape[0]
    floor, start = cuts.run[row * (width + 2) + width], cuts.start[row]
    between = floor[start[last + 1]] - floor[start[first + 1]]
    bound = higher(left + right + between, near_left + near_right)
    if bound >= limit:
        return bound
    push_interval(cuts, level, bound, f, first, last, left, right, near_left, near_right)
    return np.inf


@shared_kernel
def split_at(cuts, level, f, cut, first, last, left, right, near_left, near_right, value_left, value_right, limit):
    """Put back the rest of an interval once the sides of one of its cuts are bounded; least bound of closed cuts."""
    row, width = level * cuts.code.shape[0] + f, cuts.batch.shape[0]
    start = cuts.start[row]
    floor, worst = cuts.run[row * (width + 2) + width], cuts.run[row * (width + 2) + width + 1]
    at, near_above, near_below = start[cut + 1], near_right, near_left
    if cuts.similar:
        near_below, near_above = value_left - worst[at], value_right + worst[at]
    one = two = np.inf
    if cut > first:
        own, end = start[cut], start[last + 1]
        more = higher(right + floor[end] - floor[own], value_right + floor[at] - floor[own])
        one = add_interval(cuts, level, f, first, cut - 1, left, more, near_below, near_right, limit)
    if cut < last:
        own, end = start[cut + 2], start[first + 1]
        more = higher(left + floor[own] - floor[end], value_left + floor[own] - floor[at])
        two = add_interval(cuts, level, f, cut + 1, last, more, right, near_left, near_above, limit)
    return lower(one, two)


@shared_kernel
def solve_cut(problem, cuts, level, n, f, cut, left_leaves, right_leaves, limit):
    """Base case, one or two leaves on either side: lower bounds of both sides of a cut, and its value.

    Under a least size of leaves it may be any value that is not below the limit, where the true one is not.
    """
    cuts.control[CALLS] += 1
    stump_sides(problem, cuts, level, f, cut, n, limit)
    leaf, stump, one = cuts.leaf, cuts.stump, cuts.complexity
    for side in range(4):
        leaf[side] += one
        stump[side] = lower(leaf[side], stump[side] + 2.0 * one)
    left, right = leaf if left_leaves == 1 else stump, leaf if right_leaves == 1 else stump
    return left[2], right[3], left[0] + right[1]


@shared_kernel
def start_intervals(cuts, level, n):
    """All cuts of every feature, in one interval each; the first bounds of their sides are equivalent points."""
    n_features, width, one = cuts.code.shape[0], cuts.batch.shape[0], cuts.complexity
    clear_intervals(cuts, level)
    for f in range(n_features):
        row = level * n_features + f
        last = np.int64(cuts.n_codes[row]) - 2
        floor = cuts.run[row * (width + 2) + width]
        if last >= 0:
            left, right = one + floor[cuts.start[row, 1]], one + floor[n] - floor[cuts.start[row, last + 1]]
            add_interval(cuts, level, f, np.int64(0), last, left, right, -np.inf, -np.inf, np.inf)


@shared_kernel
def base_cut(problem, cuts, level, n, f, cut, left_leaves, right_leaves, limit):
    """Bounds of both sides of a cut, and its cost. A cost below the limit makes the cut's tree that of the level."""
    left, right, value = solve_cut(problem, cuts, level, n, f, cut, left_leaves, right_leaves, limit)
    if value < limit:
        row = level * cuts.code.shape[0] + f
        code = cuts.code[f, cuts.order[row, cuts.start[row, cut + 1] - 1]]
        cuts.tree[level, 1] = np.int64(cuts.split[f] + code) * MAX_LEAVES + left_leaves
    return left, right, value


@shared_kernel
def refine(problem, cuts, level, n, depth, slot, left_leaves, right_leaves, limit):
    """Work on one interval: (cost of a tree, inf if none is below the limit; least bound of what is closed)."""
    span, sides = cuts.span, cuts.side_bound
    f, first, last = np.int64(span[3 * level, slot]), np.int64(span[3 * level + 1, slot]), span[3 * level + 2, slot]
    last = np.int64(last)
    left, right = sides[4 * level, slot], sides[4 * level + 1, slot]
    near_left, near_right = sides[4 * level + 2, slot], sides[4 * level + 3, slot]
    if cuts.similar:
        before = last - first
        first, last, left, right = narrow(cuts, level, f, first, last, left, right, near_left, near_right, limit)
        if last - first < before:
            closed = add_interval(cuts, level, f, first, last, left, right, near_left, near_right, limit)
            return np.inf, lower(limit, closed)
    cut = (first + last) >> 1
    if first <= cuts.first[level, f] <= last:
        cut = np.int64(cuts.first[level, f])
    if depth == 2:
        own_left, own_right, value = base_cut(problem, cuts, level, n, f, cut, left_leaves, right_leaves, limit)
    else:
        own_left, own_right, value = solve_sides(
            problem, cuts, level, n, depth, f, cut, first, last, left, right, left_leaves, right_leaves, limit
        )
    if cuts.control[STOP] != 0:
        return np.inf, -np.inf
    value = value if value < limit else np.inf
    limit = lower(limit, value - problem.tolerance)
    closed = split_at(
        cuts, level, f, cut, first, last, left, right, near_left, near_right, own_left, own_right, limit
    )  # fmt: skip
    return value, lower(closed, own_left + own_right)


@shared_kernel
def search_intervals(problem, cuts, level, n, depth, left_leaves, right_leaves, best, least):
    """Best tree with so many leaves on either side: (best, least bound of what was closed); fills ``tree``."""
    tolerance = problem.tolerance
    start_intervals(cuts, level, n)
    while cuts.waiting[level, 0] > 0 and cuts.control[STOP] == 0:
        limit, bound = best - tolerance, cuts.key[level, 0]
        if level == 0:
            cuts.state[0], cuts.state[1] = best, lower(lower(lower(least, bound), best), cuts.state[2])
        if bound >= limit:
            return best, lower(least, bound)
        slot = pop_interval(cuts, level)
        value, closed = refine(problem, cuts, level, n, depth, slot, left_leaves, right_leaves, limit)
        best, least = lower(best, value), lower(least, closed)
    return best, least


@entry(SearchArrays, Cuts, LONG, LONG, LONG, LONG, float, returns=float)
def search_cuts(problem, cuts, level, n, depth, leaves, upper):
    """The search by cuts. Optimum of a node where it lies below ``upper``, else a bound that does not.

    The node's rows are in the columns of its level. ``cuts.free`` tells a lower bound of the optimum without a least
    size of leaves, ``cuts.tree`` the tree without its last splits, which are found when it is read.
    """
    n_features, tolerance, one = cuts.code.shape[0], problem.tolerance, cuts.complexity
    open_columns(problem, cuts, level, n, depth == 2, n_features if leaves > 1 else 1)
    leaf_sides(problem, cuts, level, np.int64(0), n, n)
    best, least, tree = upper, cuts.leaf[2] + one, cuts.tree[level]
    tree[1] = UNKNOWN
    if cuts.leaf[0] + one < best:
        best = cuts.leaf[0] + one
        tree[1] = np.int64(LEAF)
    for f in range(n_features if leaves > 1 else 0):
        if cuts.control[STOP] != 0:  # not all columns are open
            break
        value, cut, free = best_cut(problem, cuts, level, f, n)
        if level > 0 or cuts.first[level, f] < 0:
            cuts.first[level, f] = cut
        least = lower(least, free + 2.0 * one)
        if value + 2.0 * one < best - tolerance:
            best = value + 2.0 * one
            row = level * n_features + f
            code = cuts.code[f, cuts.order[row, cuts.start[row, cut + 1] - 1]]
            tree[1] = np.int64(cuts.split[f] + code) * MAX_LEAVES + 1
            tree[2] = tree[3] = np.int64(LEAF)
    for turn in range(leaves if leaves > 2 else 0):
        left_leaves, right_leaves = leaf_shares(turn, leaves, np.int64(1) << (depth - 1))
        if level == 0:  # other shares of the leaves may follow, of which nothing is known
            cuts.state[2] = np.inf if leaves == np.int64(1) << depth or turn == leaves - 1 else -np.inf
        if left_leaves > 0 and cuts.control[STOP] == 0:
            best, least = search_intervals(problem, cuts, level, n, depth, left_leaves, right_leaves, best, least)
    cuts.free[level] = least
    return best if tree[1] != UNKNOWN else higher(upper, least)
