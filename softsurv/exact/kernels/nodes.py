"""Compiled steps of the recursion that do not depend on the objective: scans, bounds, the cache, the incumbent.

A *choice* is a split packed with the leaves of its left side, ``split * MAX_LEAVES + leaves``, or one of two codes.
Values of an entry of the cache: for subsets under depth two the optimum with 2, 3 and 4 leaves; above, a lower bound,
the optimum (``inf`` while unknown), and the choice.
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.cache import compare_and_swap, fetch_add, find, insert, tag_of
from softsurv.exact.kernels.words import higher, lower

ENOUGH = 1.0 - 1e-9
"""Share of several least sizes of a leaf that a side must have for so many leaves: sums are rounded."""

LEAF, UNKNOWN = -1.0, -2.0
"""Choices "no split" and "no solution yet"."""


@shared_kernel
def store_two(use_cache, low, high, value, cache):
    """Keep the values that the base case has just found."""
    if not use_cache:
        return
    reserve = cache.tags.shape[0] >> 3  # places kept for subproblems above the base case, which hold the tree
    insert(cache, low, high, tag_of(2, 0), value[2], value[3], value[4], reserve)


@shared_kernel
def scan(problem, rows, n, level, nodes):
    """One pass over a subset: keys and equivalent-points floors of the left side of every split."""
    key, floor, count = nodes.key[level], nodes.floor[level], nodes.n_left
    key[:] = 0
    floor[:] = 0.0
    count[:] = 0
    nodes.total_floor[level] = 0.0
    for i in range(n):
        r = rows[i]
        low, high, own = problem.keys[r, 0], problem.keys[r, 1], problem.floor[r]
        nodes.total_floor[level] += own
        for f in range(problem.nominal.shape[0]):
            g = problem.gcode[r, f]
            key[g, 0] += low
            key[g, 1] += high
            floor[g] += own
            count[g] += 1
    for f in range(problem.nominal.shape[0]):
        if not problem.nominal[f]:
            for g in range(problem.code_start[f] + 1, problem.code_start[f + 1]):
                key[g, 0] += key[g - 1, 0]
                key[g, 1] += key[g - 1, 1]
                floor[g] += floor[g - 1]
                count[g] += count[g - 1]


@shared_kernel
def sift(score, order, at, n):
    """Let the pair at a place sink in a heap of n pairs, the largest at the top; pairs rank by score, then split."""
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and (
            score[child + 1] > score[child] or (score[child + 1] == score[child] and order[child + 1] > order[child])
        ):
            child += 1
        if score[at] > score[child] or (score[at] == score[child] and order[at] > order[child]):
            return
        score[at], score[child] = score[child], score[at]
        order[at], order[child] = order[child], order[at]
        at = child


@shared_kernel
def sort_up(score, order, n):
    """Sort n pairs by score, then by order: a heap sort, as one of numpy would be compiled for seconds."""
    for begin in range(n // 2 - 1, -1, -1):
        sift(score, order, begin, n)
    for end in range(n - 1, 0, -1):
        score[0], score[end] = score[end], score[0]
        order[0], order[end] = order[end], order[0]
        sift(score, order, np.int64(0), end)


@shared_kernel
def rank_splits(problem, level, nodes, local, weight):
    """Splits that divide the subset, the most promising first: by the best tree of depth two under each.

    ``weight`` is what pays for the test of the split, 0 where splits cost nothing.
    """
    n_splits = local.size[2]
    score, order = nodes.score[level], nodes.order[level]
    for s in range(n_splits):
        mine = local.stump[0, s] + local.stump[1, s]
        if weight > 0.0:
            mine += weight * local.due[problem.prices.test_of[problem.feature_of[local.split_code[s]]]]
        score[s], order[s] = mine, local.split_code[s]
        harder = np.int64(local.stump[1, s] > local.stump[0, s])
        nodes.harder[level, local.split_code[s]] = harder ^ np.int64(local.flipped[s])
    sort_up(score, order, n_splits)


@shared_kernel
def keep_shared(level, nodes, local):
    """Keep what the base case has found of pairs of splits for `raise_similar`."""
    nodes.total_worst[level] = local.bits.total_worst[0]
    place, worst, shared, found = nodes.place[level], nodes.worst[level], nodes.shared[level], local.bits.shared
    for s in range(local.size[2]):
        g = local.split_code[s]
        place[g] = s
        worst[g] = found[s, s]
        for t in range(s, local.size[2]):
            shared[s, t] = shared[t, s] = found[s, t]


@shared_kernel
def raise_similar(level, bound, split, left, right, left_most, right_most, n_splits, nodes):
    """Similar support: a side costs at least what another does less the most that the other's own rows can cost.

    The left sides may have ``left_most`` leaves, the right ones ``right_most``: a side proves nothing of one with more.
    """
    from_left = left if left_most >= right_most else -np.inf
    from_right = right if right_most >= left_most else -np.inf
    worst, total = nodes.worst[level], nodes.total_worst[level]
    row = nodes.shared[level, nodes.place[level, split]]
    own_left, own_right = worst[split], total - worst[split]
    for s in range(n_splits):
        g = nodes.order[level, s]
        both = row[nodes.place[level, g]]
        left_only, right_only = own_left - both, worst[g] - both  # of the split's left; of g's left
        neither = own_right - right_only
        bound[0, g] = higher(bound[0, g], higher(left - left_only, from_right - neither))
        bound[1, g] = higher(bound[1, g], higher(from_left - both, right - right_only))


@shared_kernel
def look_ahead(problem, level, nodes, local, value, leaves):
    """Lower bounds of both sides of every split from ``value`` (2, S), their best costs with fewer ``leaves``.

    A side with that many leaves or more pays for them, and at least its equivalent points; a side that is too small
    for so many leaves has none.
    """
    floor, total, ahead = nodes.floor[level], nodes.total_floor[level], nodes.ahead[level]
    more, size = leaves * problem.complexity, local.side.shape[0] - 1
    least = leaves * problem.min_leaf * ENOUGH
    for s in range(local.size[2]):
        g, first = local.split_code[s], np.int64(local.flipped[s])
        ahead[0, g], ahead[1, g] = floor[g], total - floor[g]
        if problem.use_look_ahead:
            ahead[0, g] = lower(value[first, s], ahead[0, g] + more)
            ahead[1, g] = lower(value[1 - first, s], ahead[1, g] + more)
            if problem.use_size:
                here = local.side[size, s]
                if here < least:
                    ahead[first, g] = value[0, s]
                if local.total[size] - here < least:
                    ahead[1 - first, g] = value[1, s]


@shared_kernel
def reset_bounds(level, nodes, bound, n_splits):
    """Lower bounds of both sides of every split before any of them is solved."""
    ahead = nodes.ahead[level]
    for s in range(n_splits):
        g = nodes.order[level, s]
        bound[0, g], bound[1, g] = ahead[0, g], ahead[1, g]


@shared_kernel
def raise_bounds(problem, bound, floor, split, left, right):
    """Interval bound (`bounds.py`): a side costs at least what a side inside it costs."""
    f = problem.feature_of[split]
    bound[0, split] = higher(bound[0, split], left)
    bound[1, split] = higher(bound[1, split], right)
    if problem.nominal[f] or not problem.use_interval:
        return
    for g in range(split + 1, problem.code_start[f + 1]):
        bound[0, g] = higher(bound[0, g], left + floor[g] - floor[split])
    for g in range(problem.code_start[f], split):
        bound[1, g] = higher(bound[1, g], right + floor[split] - floor[g])


@shared_kernel
def limits(depth, leaves):
    """The same limits, lowered to what a tree can use (paper `surtree`, eq. 10); never below the base case."""
    depth = higher(lower(depth, leaves - 1), 2)
    return depth, lower(leaves, 1 << depth)


@shared_kernel
def leaf_shares(turn, leaves, most):
    """How many leaves go left and right at a turn: l/2, l/2 - 1, l/2 + 1, ...; none where a side may not have them."""
    left = leaves // 2 + (turn + 1) // 2 * (1 - 2 * (turn & 1))
    right = leaves - left
    if left < 1 or right < 1 or left > most or right > most:
        return 0, 0
    return left, right


@shared_kernel
def look_up(use_cache, cache, low, high, depth, leaves, upper):
    """What the cache knows: (is it enough, value, choice). A value at or above ``upper`` is a bound and enough."""
    if not use_cache:
        return False, -np.inf, UNKNOWN
    if depth == 2:
        at = find(cache, low, high, tag_of(2, 0))
        if at >= 0 and leaves >= 2:
            return True, cache.values[at, leaves - 2], LEAF
        return False, -np.inf, UNKNOWN
    at = find(cache, low, high, tag_of(depth, leaves))
    if at < 0:
        return False, -np.inf, UNKNOWN
    if cache.values[at, 1] < np.inf:
        return True, cache.values[at, 1], cache.values[at, 2]
    return cache.values[at, 0] >= upper, cache.values[at, 0], UNKNOWN


@shared_kernel
def keep(use_cache, low, high, depth, leaves, best, choice, cache):
    """Keep an optimum with its first split, or a lower bound where no solution was found below the upper bound."""
    if not use_cache:
        return
    tag = tag_of(depth, leaves)
    at = find(cache, low, high, tag)
    if at < 0:
        at = insert(cache, low, high, tag, best, np.inf, choice, np.int64(0))
    if at >= 0:
        cache.values[at, 0] = higher(cache.values[at, 0], best)
        if choice > UNKNOWN:
            cache.values[at, 2] = choice
            cache.values[at, 1] = best


@shared_kernel
def offer_solution(shared, value, choice, rank, tolerance):
    """Offer a solution of the whole problem to all threads; returns the best one: (value, choice, rank).

    Of equally good ones the split with the lowest rank is kept, so that the tree does not depend on the threads.
    """
    while not compare_and_swap(shared.lock, 0, np.int64(0), np.int64(1)):
        pass
    better = value < shared.best[0] - tolerance
    if choice > UNKNOWN and (better or (value <= shared.best[0] + tolerance and rank < shared.rank[0])):
        shared.best[0] = value
        shared.choice[0] = choice
        shared.rank[0] = rank
    best, chosen, ranked = shared.best[0], shared.choice[0], shared.rank[0]
    fetch_add(shared.lock, 0, np.int64(-1))
    return best, chosen, ranked


@shared_kernel
def show_bounds(shared, bound, local):
    """Share the bounds (2, G) of the root's splits; they hold however the leaves are shared between the sides."""
    for turn in range(shared.bound.shape[0]):
        for s in range(local.size[2]):
            g = local.split_code[s]
            shared.bound[turn, 0, g] = bound[0, g]
            shared.bound[turn, 1, g] = bound[1, g]


@shared_kernel
def best_leaf_shares(two, split, leaves):
    """Cheapest way to share ``leaves`` between the two sides, each of depth two: (cost, leaves of the left)."""
    best, chosen = np.inf, 0
    for left in range(higher(1, leaves - 4), lower(4, leaves - 1) + 1):
        value = two[0, left, split] + two[1, lower(leaves - left, 4), split]
        if value < best:
            best, chosen = value, left
    return best, chosen


@shared_kernel
def open_three(problem, n, low, high, level, nodes, local, cache):
    """Leaf costs of both sides of every split, and what the cache knows of them."""
    key, two = nodes.key[level], nodes.two
    for s in range(local.size[2]):
        g = local.split_code[s]
        nodes.fewer[s] = 1 if 2 * nodes.n_left[g] <= n else 0
        for side in range(2):
            nodes.known[side, g] = 0
            two[side, 1, g] = local.leaf[side ^ local.flipped[s], s]
            side_low = key[g, 0] if side == 0 else low - key[g, 0]
            side_high = key[g, 1] if side == 0 else high - key[g, 1]
            at = find(cache, side_low, side_high, tag_of(2, 0)) if problem.use_cache else np.int64(-1)
            if at >= 0:
                nodes.known[side, g] = 1
                for most in range(2, 5):
                    two[side, most, g] = cache.values[at, most - 2]
