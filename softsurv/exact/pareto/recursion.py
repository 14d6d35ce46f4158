"""Template: the recursion of the Pareto search, costs first, then every tree below an upper bound.

Executed once per task by `compile.specialise`, which sets ``price_two`` and ``list_two``.

`optimum` is branch and bound on one scalarisation. `front` lists the trees of a subset with a reduced cost below an
upper bound, as points of the objectives: a split is opened only where the optima of its two sides add up to less, and
each side is listed only up to what the other side's optimum leaves of the bound. So the work grows with the number of
near-optimal subtrees, not with the number of trees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softsurv.exact.cache import find, insert
from softsurv.exact.jit import entry, kernel
from softsurv.exact.pareto.arrays import EPOCH, STOP
from softsurv.exact.pareto.kernels import add_floors, key_of, remember, similar_bound
from softsurv.exact.pareto.lists import file_front, push

if TYPE_CHECKING:
    from softsurv.exact.pareto.injected import list_two, price_two


@kernel
def tag_of(control, depth, listed):
    """Cache tag of a subproblem of the current scalarisation."""
    return np.int32(control[EPOCH] * 64 + depth * 2 + listed)


@kernel
def rank(problem, weights, scratch, level):
    """Active splits by the best tree of depth two under each; bounds of their sides from single rows."""
    add_floors(problem, weights, scratch, level)
    m, order, score = scratch.size[0], scratch.order[level], scratch.score[level]
    lower = scratch.lower[level]
    for s in range(m):
        mine = scratch.stump[0, s] + scratch.stump[1, s]
        at = s
        while at > 0 and score[at - 1] > mine:
            score[at], order[at] = score[at - 1], order[at - 1]
            at -= 1
        score[at], order[at] = mine, s
    for i in range(m):
        # from here on a split is known by its number; its bounds wait in ``score`` order
        s = order[i]
        scratch.leaf[0, i], scratch.leaf[1, i] = lower[0, s], lower[1, s]
        order[i] = scratch.active[s]
    for i in range(m):
        lower[0, i], lower[1, i] = scratch.leaf[0, i], scratch.leaf[1, i]
    return m


@kernel
def descend(problem, scratch, level, split, side):
    """Write a side of a split to the mask of the next level; returns its key."""
    mask, out, bits = scratch.mask[level], scratch.mask[level + 1], problem.bits[split]
    if side == 0:
        for w in range(mask.shape[0]):
            out[w] = mask[w] & bits[w]
    else:
        for w in range(mask.shape[0]):
            out[w] = mask[w] & ~bits[w]
    return key_of(problem, out)


@kernel
def known(cache, control, depth, low, high):
    """(lower bound, whether it is the optimum) of a subset, as far as the cache knows."""
    at = find(cache, low, high, tag_of(control, depth, 0))
    if at < 0:
        return -np.inf, False
    return cache.values[at, 0], cache.values[at, 1] > 0.0


@kernel
def keep(cache, control, depth, low, high, value, exact):
    """Keep an optimum or a lower bound."""
    tag = tag_of(control, depth, 0)
    at = find(cache, low, high, tag)
    if at < 0:
        insert(cache, low, high, tag, value, 1.0 if exact else 0.0, 0.0, 0)
    elif exact or value > cache.values[at, 0]:
        cache.values[at, 0] = value
        cache.values[at, 1] = 1.0 if exact else 0.0


@kernel
def bound_of_side(problem, weights, scratch, cache, control, level, depth, low, high, bound):
    """Best known lower bound of the side in the mask of the next level, and whether it is the optimum."""
    value, exact = known(cache, control, depth, low, high)
    bound = max(bound, value)
    if not exact and problem.similar:
        bound = similar_bound(problem, weights, scratch, level, scratch.mask[level + 1], bound)
    return bound, exact


@entry
def optimum(problem, weights, scratch, cache, control, level, depth, low, high, upper):
    """Least reduced cost of a tree over the subset of a level where it is below ``upper``, else a bound that is not."""
    value, exact = known(cache, control, depth, low, high)
    if exact or value >= upper or control[STOP] != 0:
        return value
    price_two(problem, weights, scratch, control, level, depth)
    best = scratch.value[min(depth, 2)]
    if depth <= 2:
        keep(cache, control, depth, low, high, best, True)
        return best
    keep(cache, control, 2, low, high, best, True)
    n_splits = rank(problem, weights, scratch, level)
    order, lower = scratch.order[level], scratch.lower[level]
    scratch.n_solved[level] = 0
    for i in range(n_splits):
        limit = min(best, upper) - problem.tolerance
        left, right, split = lower[0, i], lower[1, i], order[i]
        if left + right >= limit:
            continue
        right_low, right_high = descend(problem, scratch, level, split, 1)
        right, right_exact = bound_of_side(
            problem, weights, scratch, cache, control, level, depth - 1, right_low, right_high, right
        )
        left_low, left_high = descend(problem, scratch, level, split, 0)
        left, left_exact = bound_of_side(
            problem, weights, scratch, cache, control, level, depth - 1, left_low, left_high, left
        )
        if left + right >= limit:
            continue
        if not left_exact:
            asked = limit - right
            left = optimum(problem, weights, scratch, cache, control, level + 1, depth - 1, left_low, left_high, asked)
            remember(scratch, level, scratch.mask[level + 1], left)
            left_exact = left < asked
        if left_exact and not right_exact:
            descend(problem, scratch, level, split, 1)
            asked = limit - left
            right = optimum(
                problem, weights, scratch, cache, control, level + 1, depth - 1, right_low, right_high, asked
            )
            remember(scratch, level, scratch.mask[level + 1], right)
            right_exact = right < asked
        if control[STOP] != 0:
            return best
        if left_exact and right_exact:  # of an abandoned side only a bound is known
            best = min(best, left + right)
    if best < upper:
        keep(cache, control, depth, low, high, best, True)
        return best
    keep(cache, control, depth, low, high, upper - problem.tolerance, False)
    return upper


@kernel
def cross_fronts(problem, weights, scratch, arena, control, level, split, right_start, right_end, upper):
    """Add every pair of points, the left one from the front just filed one level down, to the level's list."""
    for a in range(scratch.span[level + 1, 0], scratch.span[level + 1, 1]):
        cost = arena.reduced[a]
        for b in range(right_start, right_end):
            reduced = cost + arena.reduced[b]
            if reduced >= upper:
                break  # fronts are filed cheapest first
            for d in range(scratch.candidate.shape[0]):
                scratch.candidate[d] = arena.point[a, d] + arena.point[b, d]
            upper = push(problem, weights, scratch, control, level, reduced, split, a, b, upper)
    return upper


@kernel
def file_and_keep(problem, scratch, cache, arena, control, level, low, high, tag, upper):
    """File the list of a level and note in the cache up to what cost it is complete."""
    file_front(problem, scratch, arena, control, level)
    if level == 0 or control[STOP] != 0:
        return
    start, end = np.float64(scratch.span[level, 0]), np.float64(scratch.span[level, 1])
    at = find(cache, low, high, tag)
    if at >= 0:
        cache.values[at, 0], cache.values[at, 1], cache.values[at, 2] = upper, start, end
    else:
        insert(cache, low, high, tag, upper, start, end, 0)


@entry
def front(problem, weights, scratch, cache, arena, control, level, depth, low, high, upper):
    """File the trees of the subset of a level with a reduced cost below ``upper``; their place goes to ``span``.

    Points that another one dominates are left out; at the root so are those that break the constraint.
    """
    tag = tag_of(control, depth, 1)
    at = find(cache, low, high, tag)
    if at >= 0 and cache.values[at, 0] >= upper:
        scratch.span[level, 0] = np.int64(cache.values[at, 1])
        scratch.span[level, 1] = np.int64(cache.values[at, 2])
        return upper
    asked = upper
    price_two(problem, weights, scratch, control, level, depth)
    scratch.n_points[level] = 0
    upper = list_two(problem, weights, scratch, control, level, min(depth, 2), upper)
    n_splits = rank(problem, weights, scratch, level) if depth > 2 else np.int64(0)
    order, lower = scratch.order[level], scratch.lower[level]
    scratch.n_solved[level] = 0
    child = depth - 1
    for i in range(n_splits):
        if control[STOP] != 0:
            return upper
        left, right, split = lower[0, i], lower[1, i], order[i]
        if left + right >= upper:
            continue
        right_low, right_high = descend(problem, scratch, level, split, 1)
        right, right_exact = bound_of_side(
            problem, weights, scratch, cache, control, level, child, right_low, right_high, right
        )
        left_low, left_high = descend(problem, scratch, level, split, 0)
        left, left_exact = bound_of_side(
            problem, weights, scratch, cache, control, level, child, left_low, left_high, left
        )
        if left + right < upper and not left_exact:
            left = optimum(
                problem, weights, scratch, cache, control, level + 1, child, left_low, left_high, upper - right
            )
            remember(scratch, level, scratch.mask[level + 1], left)
        if left + right >= upper:
            continue
        descend(problem, scratch, level, split, 1)
        if not right_exact:
            right = optimum(
                problem, weights, scratch, cache, control, level + 1, child, right_low, right_high, upper - left
            )
            remember(scratch, level, scratch.mask[level + 1], right)
        if left + right >= upper or control[STOP] != 0:
            continue
        front(problem, weights, scratch, cache, arena, control, level + 1, child, right_low, right_high, upper - left)
        right_start, right_end = scratch.span[level + 1, 0], scratch.span[level + 1, 1]
        descend(problem, scratch, level, split, 0)
        front(problem, weights, scratch, cache, arena, control, level + 1, child, left_low, left_high, upper - right)
        if control[STOP] == 0:
            upper = cross_fronts(problem, weights, scratch, arena, control, level, split, right_start, right_end, upper)
    if control[STOP] == 0:
        file_and_keep(problem, scratch, cache, arena, control, level, low, high, tag, asked)
    return upper
