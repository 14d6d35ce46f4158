"""The compiled listing: every tree below an upper bound, as points of its objectives.

A split is opened only where the optima of its two sides add up to less than the bound. Each side is listed only up to
the bound minus the optimum of the other side. So the work grows with the number of near-optimal subtrees, not with the
number of trees. The optima come from the recursion of the same task, over the same rows, and from its cache.

A tree below a first split is written as a code < 0: ``-1 - label`` for a leaf, and
``-1 - L - ((split * L + left label) * L + right label)`` for one more split, with L labels.
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.entries import LONG, entry
from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.cache import find, insert, tag_of
from softsurv.exact.kernels.lists import Listing, file_front, push, thin
from softsurv.exact.kernels.nodes import (
    keep_shared,
    look_ahead,
    look_up,
    raise_bounds,
    raise_similar,
    rank_splits,
    reset_bounds,
    scan,
)
from softsurv.exact.kernels.recursion import SCRATCH, SUBSET
from softsurv.exact.kernels.side_sums import both_sums, left_sums
from softsurv.exact.kernels.subsets import CALLS, STOP, partition
from softsurv.exact.kernels.views import address_of, call, call_float, ints_at
from softsurv.exact.kernels.words import higher, lower

NONE, FIRST, SECOND = np.int64(-1), np.int64(0), np.int64(1)
"""Written so because a kernel is compiled again for every literal, and for every kind of integer."""

LISTED = 16
"""Added to the depth in the cache tag of a front."""


@shared_kernel
def price_labels(problem, listing, which):
    """Objectives and cost of the leaf with the sums ``listing.sums[which]`` under every label."""
    sums, label, cost = listing.sums[which], listing.label[which], listing.cost[which]
    call(problem.calls.leaf_points, (listing, address_of(sums), address_of(label)))
    for one in range(cost.shape[0]):
        cost[one] = -sums[sums.shape[0] - 2]
        for d in range(listing.w.shape[0]):
            label[one, d] += listing.constant[d]
            cost[one] += listing.w[d] * label[one, d]


@shared_kernel
def too_small(problem, sums):
    """Whether a leaf with these sums has no rows, or is smaller than allowed."""
    width = sums.shape[0]
    return sums[width - 1] <= 0.0 or (problem.use_size and sums[width - 3] < problem.min_leaf)


@shared_kernel
def push_leaf(problem, listing, control, slot, other, upper, split, right):
    """Add every label of the leaf with the sums ``listing.sums[0]`` to a list."""
    if too_small(problem, listing.sums[0]):
        return upper
    price_labels(problem, listing, FIRST)
    for one in range(listing.cost.shape[1]):
        reduced = listing.cost[0, one]
        if reduced + other < upper:
            for d in range(listing.candidate.shape[0]):
                listing.candidate[d] = listing.label[0, one, d]
            upper = push(listing, control, slot, reduced, split, -1 - one, right, upper, problem.tolerance)
    return upper


@shared_kernel
def push_stumps(problem, listing, local, slot, a, side, other, upper):
    """Add every tree with one split over a side of split a (-1: over the subset itself) to a list."""
    labels, width = listing.cost.shape[1], listing.total.shape[0]
    first, second = listing.sums[0], listing.sums[1]
    for t in range(local.size[2]):
        if t == a:
            continue
        for k in range(width):
            left, whole = listing.whole[k, t], listing.total[k]
            if a >= 0:
                both, one = listing.inside[k, t], listing.whole[k, a]
                left, whole = (both, one) if side == 0 else (left - both, whole - one)
            first[k], second[k] = left, whole - left
        if too_small(problem, first) or too_small(problem, second):
            continue
        b = np.int64(local.split_code[t])
        price_labels(problem, listing, FIRST)
        price_labels(problem, listing, SECOND)
        for i in range(labels):
            for j in range(labels):
                reduced = listing.cost[0, i] + listing.cost[1, j]
                if reduced + other < upper:
                    for d in range(listing.candidate.shape[0]):
                        listing.candidate[d] = listing.label[0, i, d] + listing.label[1, j, d]
                    split, left_code, right_code = b, -1 - i, -1 - j
                    if a >= 0:
                        split, left_code, right_code = NONE, -1 - labels - ((b * labels + i) * labels + j), 0
                    upper = push(
                        listing, local.control, slot, reduced, split, left_code, right_code, upper, problem.tolerance
                    )
    return upper


@shared_kernel
def list_two(problem, rows, n, level, depth, upper, local, listing):
    """Add every tree of depth at most ``depth`` (0, 1, 2) that costs less than ``upper`` to the level's list.

    The base case must have run on the subset.
    """
    control, width = local.control, listing.total.shape[0]
    listing.total[:] = 0.0
    for i in range(n):
        for k in range(width):
            listing.total[k] += listing.stats[rows[i], k]
    for k in range(width):
        listing.sums[0, k] = listing.total[k]
    upper = push_leaf(problem, listing, control, level, 0.0, upper, NONE, FIRST)
    if depth == 0:
        return upper
    left_sums(problem, listing.stats, listing.kinds, rows, n, local, listing.whole, listing.by_code)
    if depth == 1:
        return push_stumps(problem, listing, local, level, NONE, FIRST, 0.0, upper)
    slots = listing.point.shape[0] - 2
    for s in range(local.size[2]):
        if local.stump[0, s] + local.stump[1, s] >= upper or control[STOP] != 0:
            continue
        both_sums(problem, listing.stats, listing.kinds, rows, n, local, s, 0, listing.inside, listing.by_code)
        for side in range(2):
            slot, other = slots + side, local.stump[(1 - side) ^ local.flipped[s], s]
            listing.n_points[slot] = 0
            for k in range(width):
                one = listing.whole[k, s]
                listing.sums[0, k] = one if side == 0 else listing.total[k] - one
            push_leaf(problem, listing, control, slot, other, upper, NONE, FIRST)
            push_stumps(problem, listing, local, slot, s, side, other, upper)
            thin(listing, slot)
        upper = cross_lists(problem, listing, control, level, slots, np.int64(local.split_code[s]), upper)
    return upper


@shared_kernel
def cross_lists(problem, listing, control, level, slots, split, upper):
    """Add every pair of trees, one from the list of each side, to the level's list."""
    for i in range(listing.n_points[slots]):
        cost = listing.reduced[slots, i]
        for j in range(listing.n_points[slots + 1]):
            reduced = cost + listing.reduced[slots + 1, j]
            if reduced < upper:
                for d in range(listing.candidate.shape[0]):
                    listing.candidate[d] = listing.point[slots, i, d] + listing.point[slots + 1, j, d]
                left, right = listing.origin[slots, i, 1], listing.origin[slots + 1, j, 1]
                upper = push(listing, control, level, reduced, split, left, right, upper, problem.tolerance)
    return upper


@shared_kernel
def cross_fronts(problem, listing, control, level, split, right_start, right_end, upper):
    """Add every pair of points, the left one from the front just filed one level down, to the level's list."""
    for a in range(listing.span[level + 1, 0], listing.span[level + 1, 1]):
        cost = listing.filed_reduced[a]
        for b in range(right_start, right_end):
            reduced = cost + listing.filed_reduced[b]
            if reduced >= upper:
                break  # fronts are filed cheapest first
            for d in range(listing.candidate.shape[0]):
                listing.candidate[d] = listing.filed_point[a, d] + listing.filed_point[b, d]
            upper = push(listing, control, level, reduced, split, a, b, upper, problem.tolerance)
    return upper


@shared_kernel
def file_and_keep(listing, cache, control, level, low, high, tag, upper):
    """File the list of a level and note in the cache up to what cost it is complete."""
    file_front(listing, control, level)
    if level == 0 or control[STOP] != 0:
        return
    start, end = np.float64(listing.span[level, 0]), np.float64(listing.span[level, 1])
    at = find(cache, low, high, tag)
    if at >= 0:
        cache.values[at, 0], cache.values[at, 1], cache.values[at, 2] = upper, start, end
    else:
        insert(cache, low, high, tag, upper, start, end, np.int64(0))


@shared_kernel
def open_listed(problem, rows, n, depth, level, nodes, local):
    """Base case of a node; where trees are deeper, its splits in order with lower bounds of their sides."""
    local.control[CALLS] += 1
    local.bits.wanted[0] = 1 if problem.use_similar and depth > 2 else 0
    call(problem.calls.solve_two, (problem, address_of(rows), n, 2, local))
    local.bits.wanted[0] = 0
    if depth <= 2:
        return
    rank_splits(problem, level, nodes, local, 0.0)
    if problem.use_similar:
        keep_shared(level, nodes, local)
    scan(problem, rows, n, level, nodes)
    look_ahead(problem, level, nodes, local, local.stump, np.int64(3))
    reset_bounds(level, nodes, nodes.bound[level], local.size[2])


@entry(*SUBSET, LONG, float, LONG, *SCRATCH, Listing, returns=float)
def front(problem, at, n, low, high, depth, upper, level, nodes, local, lanes, cache, shared, listing):
    """The listing of trees. File those of a subset that cost less than ``upper``; their place goes to ``span``.

    Points that another one dominates are left out; at the root so are those that break the constraint.
    """
    rows, control, tag = ints_at(at, (n,)), local.control, tag_of(depth + LISTED, 0)
    known = find(cache, low, high, tag)
    if known >= 0 and level > 0 and cache.values[known, 0] >= upper:
        listing.span[level, 0] = np.int64(cache.values[known, 1])
        listing.span[level, 1] = np.int64(cache.values[known, 2])
        return upper
    asked = upper
    open_listed(problem, rows, n, depth, level, nodes, local)
    listing.n_points[level] = 0
    if control[STOP] != 0:
        return upper
    n_splits = local.size[2] if depth > 2 else np.int64(0)
    upper = list_two(problem, rows, n, level, lower(depth, 2), upper, local, listing)
    child, most = depth - 1, np.int64(1) << (depth - 1)
    bound, here = nodes.bound[level], nodes.rows[level]
    for i in range(n_splits):
        split = nodes.order[level, i]
        left, right = bound[0, split], bound[1, split]
        if left + right >= upper:
            continue
        left_low, left_high = nodes.key[level, split, 0], nodes.key[level, split, 1]
        right_low, right_high = low - left_low, high - left_high
        left_known, value, _ = look_up(problem.use_cache, cache, left_low, left_high, child, most, np.inf)
        left = higher(left, value)
        right_known, value, _ = look_up(problem.use_cache, cache, right_low, right_high, child, most, np.inf)
        right = higher(right, value)
        if left + right >= upper:
            continue
        n_left = partition(problem, rows, n, split, problem.feature_of[split], here, 0)
        for side in range(2):
            if left + right >= upper or (left_known if side == 0 else right_known):
                continue
            begin, end, part_low, part_high, other = np.int64(0), n_left, left_low, left_high, right
            if side == 1:
                begin, end, part_low, part_high, other = n_left, n, right_low, right_high, left
            value = call_float(
                problem.calls.solve,
                (problem, address_of(here[begin:end]), end - begin, part_low, part_high, child, most, upper - other,
                 level + 1, nodes, local, lanes, cache, shared),
            )  # fmt: skip
            if side == 0:
                left = higher(left, value)
            else:
                right = higher(right, value)
            if control[STOP] != 0:
                return upper
        if problem.use_similar:
            raise_similar(level, bound, split, left, right, most, most, n_splits, nodes)
        raise_bounds(problem, bound, nodes.floor[level], split, left, right)
        if left + right >= upper:
            continue
        right_start, right_end = np.int64(0), np.int64(0)
        for side in range(2):
            begin, end, part_low, part_high, other = n_left, n, right_low, right_high, left
            if side == 1:
                begin, end, part_low, part_high, other = np.int64(0), n_left, left_low, left_high, right
            call_float(
                listing.front,
                (problem, address_of(here[begin:end]), end - begin, part_low, part_high, child, upper - other,
                 level + 1, nodes, local, lanes, cache, shared, listing),
            )  # fmt: skip
            if control[STOP] != 0:
                return upper
            if side == 0:
                right_start, right_end = listing.span[level + 1, 0], listing.span[level + 1, 1]
        upper = cross_fronts(problem, listing, control, level, np.int64(split), right_start, right_end, upper)
        if control[STOP] != 0:
            return upper
    file_and_keep(listing, cache, control, level, low, high, tag, asked)
    return upper
