"""The compiled recursion: branch and bound over splits, with the cache and the bounds.

The task's leaf cost and the base case are called through their addresses (`SearchArrays.calls`): one recursion serves
all tasks.

A subproblem is a subset of rows, a depth d and a limit on leaves l (paper `surtree`, eq. 10, counts branch nodes:
n = l - 1). `solve` returns its optimum where that lies below the upper bound it was given, and otherwise a lower bound
at or above that upper bound. `solve_three` does so for depth three, where the children are base cases solved many at a
time.

Threads share the root: each takes the next split of `Shared.order`, and they share the incumbent, the bounds and the
cache. Everything below the root belongs to one thread, and so does a root of depth three that goes into the lanes.
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.base_cases.lanes import clear_lanes, enter_lane
from softsurv.exact.base_cases.leaf_prices import leaf_batch, price_sides
from softsurv.exact.entries import ADDRESS, LONG, entry
from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.cache import MAX_LEAVES, Cache, fetch_add, insert, tag_of
from softsurv.exact.kernels.nodes import (
    LEAF,
    UNKNOWN,
    best_leaf_shares,
    keep,
    keep_shared,
    leaf_shares,
    limits,
    look_ahead,
    look_up,
    offer_solution,
    open_three,
    raise_bounds,
    raise_similar,
    rank_splits,
    reset_bounds,
    scan,
    show_bounds,
    store_two,
)
from softsurv.exact.kernels.simd import LANES
from softsurv.exact.kernels.subsets import (
    BLOCKS,
    CALLS,
    STOP,
    Lanes,
    Local,
    localise,
    order_by_bin,
    partition,
    sum_pairs,
    sum_sides,
)
from softsurv.exact.kernels.views import address_of, call, call_float, ints_at
from softsurv.exact.kernels.words import higher, lower
from softsurv.exact.problem import Nodes, SearchArrays, Shared
from softsurv.exact.split_costs import context_of, open_contexts, pay, set_prices

SUBSET = SearchArrays, ADDRESS, LONG, np.uint64, np.uint64
"""A problem, rows of it, their number and their key."""

SCRATCH = Nodes, Local, Lanes, Cache, Shared
"""Scratch of a thread, and what threads share."""


@shared_kernel
def leaf_value(problem, rows, n, local):
    """Cost of a subset as one leaf."""
    for k in range(problem.stats.shape[1]):
        total = 0.0
        for i in range(n):
            total += problem.stats[rows[i], k]
        local.batch[k, 0] = total
    call(problem.calls.price, leaf_batch(problem, local.batch, np.int64(1), local.cost))
    return local.cost[0]


@shared_kernel
def flush_lanes(low, high, level, filled, passes, lane_split, lane_side, nodes, local, lanes, cache, shared, problem):
    """Run the base case over the filled lanes and keep the values."""
    shared.control[CALLS] += filled * passes
    shared.control[BLOCKS] += 1
    call(problem.calls.solve_lanes, (problem, local, lanes, passes))
    reserve = cache.tags.shape[0] >> 3
    key = nodes.key[level]
    for lane in range(filled):
        g = lane_split[lane]
        for turn in range(passes):
            side = (lane_side[lane] + turn) % 2
            at = turn * 5 * LANES + lane
            two, three, four = (
                lanes.value[at + 2 * LANES],
                lanes.value[at + 3 * LANES],
                lanes.value[at + 4 * LANES],
            )
            nodes.known[side, g] = 1
            nodes.two[side, 2, g], nodes.two[side, 3, g], nodes.two[side, 4, g] = two, three, four
            side_low = key[g, 0] if side == 0 else low - key[g, 0]
            side_high = key[g, 1] if side == 0 else high - key[g, 1]
            if problem.use_cache:
                insert(cache, side_low, side_high, tag_of(2, 0), two, three, four, reserve)


@entry(*SUBSET, LONG, float, LONG, *SCRATCH, returns=float)
def solve_three(problem, at, n, low, high, leaves, upper, level, nodes, local, lanes, cache, shared):
    """Trees of depth three. Optimum of a subset where it lies below ``upper``, see `solve`.

    Splits go into the lanes coarse to fine: the interval bound closes what lies between two evaluated thresholds of a
    feature. Splits of which both sides are unknown go first, so that both passes over the lanes are full.
    """
    rows = ints_at(at, (n,))
    localise(problem, rows, n, local)
    order_by_bin(problem, rows, local)
    sum_sides(local)
    price_sides(problem, local)
    sum_pairs(local)
    scan(problem, rows, n, level, nodes)
    open_three(problem, n, low, high, level, nodes, local, cache)
    bound, two, floor = nodes.bound[level], nodes.two, nodes.floor[level]
    for s in range(local.size[2]):
        nodes.order[level, s] = local.split_code[s]
    look_ahead(problem, level, nodes, local, local.leaf, np.int64(2))
    reset_bounds(level, nodes, bound, local.size[2])
    tolerance, n_splits, most = problem.tolerance, local.size[2], lower(4, leaves - 1)
    best, choice = upper, UNKNOWN
    for k in range(local.total.shape[0]):
        local.batch[k, 0] = local.total[k]
    call(problem.calls.price, leaf_batch(problem, local.batch, np.int64(1), local.cost))
    if local.cost[0] < best:
        best, choice = local.cost[0], LEAF
    lane_split, lane_side = lanes.split, lanes.first_side
    coarsest = 1
    while coarsest * 128 <= n_splits:
        coarsest *= 2
    stride = coarsest
    filled = np.int64(0)
    while stride >= 1:
        for unknown in (2, 1, 0):
            for s in range(n_splits + 1):
                last = s == n_splits
                if not last and s % stride == 0 and (stride == coarsest or s % (2 * stride) != 0):
                    g = local.split_code[s]
                    missing = 2 - nodes.known[0, g] - nodes.known[1, g]
                    if missing == 0 and unknown == 0:
                        raise_bounds(problem, bound, floor, g, two[0, most, g], two[1, most, g])
                        value, left_leaves = best_leaf_shares(two, g, leaves)
                        if value < best - tolerance:
                            best = value
                            choice = np.float64(g) * MAX_LEAVES + left_leaves
                    elif missing == unknown and bound[0, g] + bound[1, g] < best - tolerance:
                        if filled == 0:
                            clear_lanes(lanes, n)
                        lane_split[filled] = g
                        lane_side[filled] = 1 if missing == 1 and nodes.known[0, g] else 0
                        enter_lane(problem, rows, n, g, nodes.fewer[s] == 1, lane_side[filled], lanes, filled)
                        filled += 1
                if filled == LANES or (last and filled > 0):
                    flush_lanes(
                        low, high, level, filled, unknown, lane_split, lane_side,
                        nodes, local, lanes, cache, shared, problem,
                    )  # fmt: skip
                    filled = np.int64(0)
                    if shared.control[STOP] != 0:
                        nodes.choice[level] = choice
                        return best
        stride //= 2
    nodes.choice[level] = choice
    return best


@shared_kernel
def share_three(problem, rows, n, low, high, leaves, upper, level, nodes, local, lanes, cache, shared):
    """Optimum of a subset of depth three, see `solve`: kept in the cache or, at the root, shown to all threads."""
    if level == 0 and fetch_add(shared.next, 0, np.int64(1)) > 0:
        return upper  # another thread does it all
    best = call_float(
        problem.calls.solve_three,
        (problem, address_of(rows), n, low, high, leaves, upper, level, nodes, local, lanes, cache, shared),
    )
    choice = nodes.choice[level]
    if level == 0:
        offer_solution(shared, best, choice, np.int64(0), problem.tolerance)
        show_bounds(shared, nodes.bound[0], local)
    elif shared.control[STOP] == 0:
        keep(problem.use_cache, low, high, np.int64(3), leaves, best, choice, cache)
    return best


@shared_kernel
def open_node(problem, rows, n, low, high, level, nodes, local, cache, shared):
    """Open a node above the base case: find its best trees of depth two, and put its splits in order.

    Fills ``local``, and the level's slice of ``nodes`` except ``bound``. This includes what the similarity bound needs.
    """
    shared.control[CALLS] += 1
    local.bits.wanted[0] = 1 if problem.use_similar else 0
    call(problem.calls.solve_two, (problem, address_of(rows), n, 2, local))
    local.bits.wanted[0] = 0
    if shared.control[STOP] == 0:
        store_two(problem.use_cache, low, high, local.value, cache)
        if problem.branching:
            open_contexts(problem.prices, level, nodes)
        rank_splits(problem, level, nodes, local, local.total[problem.prices.column] if problem.branching else 0.0)
        if problem.use_similar:
            keep_shared(level, nodes, local)
        scan(problem, rows, n, level, nodes)
        look_ahead(problem, level, nodes, local, local.stump, np.int64(3))


@entry(*SUBSET, LONG, LONG, float, LONG, *SCRATCH, returns=float)
def solve(problem, at, n, low, high, depth, leaves, upper, level, nodes, local, lanes, cache, shared):
    """Recursion. Optimum of a subset under limits on depth and leaves where it lies below ``upper``, else a bound.

    A bound is not below ``upper``. ``nodes.choice[level]`` tells the split chosen, packed with the leaves of its left
    side.
    """
    rows = ints_at(at, (n,))
    nodes.choice[level] = LEAF
    if leaves == 1:
        return leaf_value(problem, rows, n, local)
    own_low, own_high = low, high
    if problem.branching:
        more_low, more_high = context_of(problem.prices, nodes.due[level])
        own_low, own_high = low + more_low, high + more_high
        set_prices(problem.prices, nodes.due[level], local)
    found, value, choice = look_up(problem.use_cache, cache, own_low, own_high, depth, leaves, upper)
    if found and level > 0:
        nodes.choice[level] = choice
        return value
    tolerance = problem.tolerance
    if depth == 2:
        shared.control[CALLS] += 1
        call(problem.calls.solve_two, (problem, address_of(rows), n, 2, local))
        if shared.control[STOP] == 0:
            store_two(problem.use_cache, own_low, own_high, local.value, cache)
        return local.value[leaves]
    if depth == 3 and problem.use_lanes:
        return share_three(problem, rows, n, low, high, leaves, upper, level, nodes, local, lanes, cache, shared)
    open_node(problem, rows, n, own_low, own_high, level, nodes, local, cache, shared)
    if shared.control[STOP] != 0:
        return upper
    n_splits = local.size[2]
    weight = local.total[problem.prices.column] if problem.branching else 0.0
    best, choice = upper, UNKNOWN
    if local.value[1] < best:
        best, choice = local.value[1], LEAF
    if local.value[4] < best - tolerance:
        best = local.value[4]
        choice = np.float64(local.split_code[local.root[4]]) * MAX_LEAVES + 2
    key, floor, here = nodes.key[level], nodes.floor[level], nodes.rows[level]
    for turn in range(leaves):
        left_leaves, right_leaves = leaf_shares(turn, leaves, 1 << (depth - 1))
        if left_leaves == 0:
            continue
        left_depth, left_most = limits(depth - 1, left_leaves)
        right_depth, right_most = limits(depth - 1, right_leaves)
        bound = nodes.bound[level]
        if level == 0:
            bound = shared.bound[turn]
        else:
            reset_bounds(level, nodes, bound, n_splits)
        i, rank = np.int64(-1), np.int64(-1)
        while True:
            i += 1
            if level == 0:
                i = fetch_add(shared.next, turn, np.int64(1))
                best, choice, rank = offer_solution(shared, best, choice, rank, tolerance)
            if i >= n_splits:
                break
            split = shared.order[i] if level == 0 else nodes.order[level, i]
            limit = best - tolerance
            if level == 0 and turn * n_splits + i < rank:
                limit = best + tolerance  # an equally good split that comes earlier is preferred
            test_cost, test = 0.0, 0
            if problem.branching:
                test = problem.prices.test_of[problem.feature_of[split]]
                test_cost = weight * nodes.due[level, test]
                limit -= test_cost
            left, right = bound[0, split], bound[1, split]
            if left + right >= limit:
                continue
            left_low, left_high = key[split, 0], key[split, 1]
            right_low, right_high = low - left_low, high - left_high
            more_low, more_high = np.uint64(0), np.uint64(0)
            if problem.branching:
                more_low, more_high = nodes.context[level, test, 0], nodes.context[level, test, 1]
            left_known, value, _ = look_up(
                problem.use_cache, cache, left_low + more_low, left_high + more_high, left_depth, left_most, np.inf
            )
            left = higher(left, value)
            right_known, value, _ = look_up(
                problem.use_cache, cache, right_low + more_low, right_high + more_high, right_depth, right_most, np.inf
            )
            right = higher(right, value)
            abandoned = False
            if not (left_known and right_known) and left + right < limit:
                n_left = partition(problem, rows, n, split, problem.feature_of[split], here, 0)
                nodes.choice[level + 1] = LEAF
                if problem.branching:
                    pay(problem.prices, nodes.due[level], test, nodes.due[level + 1])
                for turned in range(2):
                    side = turned ^ nodes.harder[level, split]
                    if left + right >= limit or nodes.choice[level + 1] == UNKNOWN:
                        break
                    if left_known if side == 0 else right_known:
                        continue
                    begin, end, part_low, part_high, part_depth, part_most, other = (
                        np.int64(0), n_left, left_low, left_high, left_depth, left_most, right,
                    )  # fmt: skip
                    if side == 1:
                        begin, end, part_low, part_high, part_depth, part_most, other = (
                            n_left, n, right_low, right_high, right_depth, right_most, left,
                        )  # fmt: skip
                    value = call_float(
                        problem.calls.solve,
                        (problem, address_of(here[begin:end]), end - begin, part_low, part_high, part_depth, part_most,
                         limit - other, level + 1, nodes, local, lanes, cache, shared),
                    )  # fmt: skip
                    if side == 0:
                        left = value
                    else:
                        right = value
                    if shared.control[STOP] != 0:
                        if level == 0:
                            offer_solution(shared, best, choice, rank, tolerance)
                        return best
                if problem.use_similar:
                    raise_similar(level, bound, split, left, right, left_most, right_most, n_splits, nodes)
                # an abandoned side costs at least its upper bound; rounding must not make this look like less
                abandoned = nodes.choice[level + 1] == UNKNOWN
            raise_bounds(problem, bound, floor, split, left, right)
            if left + right < limit and not abandoned:
                best = left + right + test_cost
                choice = np.float64(split) * MAX_LEAVES + left_leaves
                rank = turn * n_splits + i
    if level > 0:
        keep(problem.use_cache, own_low, own_high, depth, leaves, best, choice, cache)
    nodes.choice[level] = choice
    return best
