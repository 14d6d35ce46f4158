"""Template: the base case of the Pareto search, trees of depth at most two from sums over pairs of splits.

Executed once per task by `compile.specialise`, which sets ``price``, ``leaf_points`` and ``leaf_cost``.

A tree below a first split is written as a code < 0: ``-1 - label`` for a leaf, and
``-1 - L - ((split * L + left label) * L + right label)`` for one more split, with L labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softsurv.exact.jit import kernel
from softsurv.exact.pareto.arrays import CALLS
from softsurv.exact.pareto.kernels import add_pairs, count_pairs, load, refuse_small, too_small
from softsurv.exact.pareto.lists import push, thin

if TYPE_CHECKING:
    from softsurv.exact.pareto.injected import leaf_cost, leaf_points, price


@kernel
def price_two(problem, weights, scratch, control, level, depth):
    """Costs of the subset of a level: ``value`` by depth, ``leaf`` and ``stump`` of both sides of each active split."""
    control[CALLS] += 1
    load(problem, scratch, level)
    if problem.counted:
        count_pairs(problem, scratch, level, depth > 1)
    else:
        add_pairs(problem, scratch, level, depth > 1)
    _price_sides(problem, weights, scratch, depth)
    if depth > 1:
        for a in range(scratch.size[0] - 1):
            _price_pairs(problem, weights, scratch, a)
    value = scratch.value
    value[1], value[2] = value[0], value[0]
    if depth > 0:
        for a in range(scratch.size[0]):
            value[1] = min(value[1], scratch.leaf[0, a] + scratch.leaf[1, a])
            value[2] = min(value[2], scratch.stump[0, a] + scratch.stump[1, a])


@kernel
def _price_sides(problem, weights, scratch, depth):
    """Cost of the subset and of both sides of every split as leaves."""
    m, batch = scratch.size[0], scratch.batch
    for k in range(batch.shape[0]):
        batch[k, 0] = scratch.total[k]
        for a in range(m):
            batch[k, 1 + a] = scratch.single[k, a]
            batch[k, 1 + m + a] = scratch.total[k] - scratch.single[k, a]
    n = 1 + 2 * m
    price(problem, weights, scratch, batch, n, scratch.work, scratch.price)
    refuse_small(problem, batch, n, scratch.price)
    scratch.value[0] = scratch.price[0]
    for a in range(m):
        for side in range(2):
            scratch.leaf[side, a] = scratch.price[1 + side * m + a]
            scratch.stump[side, a] = scratch.leaf[side, a]


@kernel
def _price_pairs(problem, weights, scratch, a):
    """Improve the sides of split a by every later split b, and the sides of b by a."""
    m, batch, cost = scratch.size[0], scratch.batch, scratch.price
    n = m - a - 1
    for k in range(batch.shape[0]):
        one, total, base = scratch.single[k, a], scratch.total[k], a * m + a + 1
        for t in range(n):
            both, two = scratch.pair[k, base + t], scratch.single[k, a + 1 + t]
            batch[k, t] = both
            batch[k, n + t] = one - both
            batch[k, 2 * n + t] = two - both
            batch[k, 3 * n + t] = total - one - two + both
    price(problem, weights, scratch, batch, 4 * n, scratch.work, cost)
    refuse_small(problem, batch, 4 * n, cost)
    left, right = scratch.stump[0, a], scratch.stump[1, a]
    for t in range(n):
        left = min(left, cost[t] + cost[n + t])
        right = min(right, cost[2 * n + t] + cost[3 * n + t])
    scratch.stump[0, a], scratch.stump[1, a] = left, right
    for t in range(n):
        b = a + 1 + t
        scratch.stump[0, b] = min(scratch.stump[0, b], cost[t] + cost[2 * n + t])
        scratch.stump[1, b] = min(scratch.stump[1, b], cost[n + t] + cost[3 * n + t])


@kernel
def _push_labels(problem, weights, scratch, control, slot, sums, other, upper, split, right):
    """Add every label of a leaf to a list."""
    if too_small(problem, sums):
        return upper
    label = scratch.label[0]
    leaf_points(sums, problem.params, label)
    for one in range(problem.n_labels):
        reduced = leaf_cost(sums, one, label, weights)
        if reduced + other < upper:
            for d in range(scratch.candidate.shape[0]):
                scratch.candidate[d] = label[one, d]
            upper = push(problem, weights, scratch, control, slot, reduced, split, -1 - one, right, upper)
    return upper


@kernel
def _push_stumps(problem, weights, scratch, control, slot, a, side, other, upper):
    """Add every tree with one split over a side of split a (-1: the subset itself) to a list."""
    m, labels, width = scratch.size[0], problem.n_labels, scratch.total.shape[0]
    first, second = scratch.sums[0], scratch.sums[1]
    for b in range(m):
        if b == a:
            continue
        for k in range(width):
            if a < 0:
                first[k], whole = scratch.single[k, b], scratch.total[k]
            else:
                both = scratch.pair[k, min(a, b) * m + max(a, b)]
                one = scratch.single[k, a]
                first[k] = both if side == 0 else scratch.single[k, b] - both
                whole = one if side == 0 else scratch.total[k] - one
            second[k] = whole - first[k]
        if too_small(problem, first) or too_small(problem, second):
            continue
        leaf_points(first, problem.params, scratch.label[0])
        leaf_points(second, problem.params, scratch.label[1])
        for i in range(labels):
            cost = leaf_cost(first, i, scratch.label[0], weights)
            for j in range(labels):
                reduced = cost + leaf_cost(second, j, scratch.label[1], weights)
                if reduced + other < upper:
                    for d in range(scratch.candidate.shape[0]):
                        scratch.candidate[d] = scratch.label[0, i, d] + scratch.label[1, j, d]
                    if a < 0:
                        upper = push(
                            problem, weights, scratch, control, slot, reduced, scratch.active[b], -1 - i, -1 - j, upper
                        )
                    else:
                        code = -1 - labels - ((scratch.active[b] * labels + i) * labels + j)
                        push(problem, weights, scratch, control, slot, reduced, -1, code, 0, upper)
    return upper


@kernel
def list_two(problem, weights, scratch, control, level, depth, upper):
    """Add every tree of depth at most ``depth`` (0, 1, 2) with a reduced cost below ``upper`` to the level's list.

    `price_two` must have run on the subset.
    """
    upper = _push_labels(problem, weights, scratch, control, level, scratch.total, 0.0, upper, -1, 0)
    if depth == 1:
        return _push_stumps(problem, weights, scratch, control, level, -1, 0, 0.0, upper)
    if depth == 0:
        return upper
    slots = scratch.point.shape[0] - 2
    for a in range(scratch.size[0]):
        if scratch.stump[0, a] + scratch.stump[1, a] >= upper:
            continue
        for side in range(2):
            slot, other = slots + side, scratch.stump[1 - side, a]
            scratch.n_points[slot] = 0
            for k in range(scratch.total.shape[0]):
                one = scratch.single[k, a]
                scratch.sums[0, k] = one if side == 0 else scratch.total[k] - one
            _push_labels(problem, weights, scratch, control, slot, scratch.sums[0], other, upper, -1, 0)
            _push_stumps(problem, weights, scratch, control, slot, a, side, other, upper)
            thin(problem, scratch, slot)
        upper = _cross(problem, weights, scratch, control, level, slots, scratch.active[a], upper)
    return upper


@kernel
def _cross(problem, weights, scratch, control, level, slots, split, upper):
    """Add every pair of trees, one from the list of each side, to the level's list."""
    for i in range(scratch.n_points[slots]):
        cost = scratch.reduced[slots, i]
        for j in range(scratch.n_points[slots + 1]):
            reduced = cost + scratch.reduced[slots + 1, j]
            if reduced < upper:
                for d in range(scratch.candidate.shape[0]):
                    scratch.candidate[d] = scratch.point[slots, i, d] + scratch.point[slots + 1, j, d]
                left, right = scratch.origin[slots, i, 1], scratch.origin[slots + 1, j, 1]
                upper = push(problem, weights, scratch, control, level, reduced, split, left, right, upper)
    return upper
