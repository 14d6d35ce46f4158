"""The base case: the best trees of depth at most two over one subset, for every limit on leaves from 1 to 4.

Template module: `softsurv.exact.compile` executes it once per task with the global ``leaf_costs`` set.

For splits s and t of different features, the sums of the four cells (s and t, s and not t, ...) follow from one
two-dimensional histogram per pair of original features, cumulated (DESIGN 6; paper `surtree`, Algorithm 1, has one
column per split instead). Every cell's cost is computed once and serves both the tree with root s and that with root t.
Two splits of one ordered feature bound an interval; its sums are a difference of one-dimensional ones.

What `recursion.py` calls: `localise` (from `kernels.py`), `price` and `solve_two`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softsurv.exact.jit import entry, inlined, kernel
from softsurv.exact.kernels import STOP, add_singles, cumulate_singles, localise, order_by_bin

if TYPE_CHECKING:
    from softsurv.exact.injected import leaf_costs


@inlined
def price(problem, batch, n, cost):
    """Cost of a batch of leaves, the cost per leaf included; ``inf`` below the limit on rows per leaf."""
    width = problem.n_statistics
    leaf_costs(batch[:width], n, cost)
    if problem.use_size:
        finish(batch[batch.shape[0] - 1], n, cost, problem.complexity, problem.min_leaf)
    elif problem.complexity > 0.0:
        for i in range(n):
            cost[i] += problem.complexity


@inlined
def finish(size, n, cost, complexity, min_leaf):
    """Add the cost per leaf and forbid leaves that are too small."""
    for i in range(n):
        cost[i] = cost[i] + complexity if size[i] >= min_leaf else np.inf


@inlined
def _price_sides(problem, local):
    """Cost of either side of every split as a leaf, into ``leaf``; the start of ``stump``."""
    n, side, batch, cost = local.size[2], local.side, local.batch, local.cost
    for k in range(side.shape[0]):
        total = local.total[k]
        for s in range(n):
            batch[k, s] = side[k, s]
        for s in range(n):
            batch[k, n + s] = total - side[k, s]
    price(problem, batch, 2 * n, cost)
    for s in range(n):
        local.leaf[0, s] = cost[s]
        local.stump[0, s] = cost[s]
    for s in range(n):
        local.leaf[1, s] = cost[n + s]
        local.stump[1, s] = cost[n + s]


@inlined
def _same_feature(problem, local, f):
    """Second splits on the feature of the first: intervals of an ordered feature, pairs of levels of a nominal one."""
    s0, s1, chained = local.split_start[f], local.split_start[f + 1], local.chained[f]
    side, leaf, stump, batch, cost = local.side, local.leaf, local.stump, local.batch, local.cost
    begin = s0 + 1
    while begin < s1:
        end, n = begin, 0
        while end < s1 and n + end - s0 <= cost.shape[0]:
            for k in range(side.shape[0]):
                here = side[k, end] if chained else local.total[k] - side[k, end]
                for i in range(end - s0):
                    batch[k, n + i] = here - side[k, s0 + i]
            n += end - s0
            end += 1
        price(problem, batch, n, cost)
        at = 0
        for s in range(begin, end):
            one, best = (leaf[1, s], stump[0, s]) if chained else (leaf[0, s], stump[1, s])
            for i in range(s - s0):
                best = min(best, leaf[0, s0 + i] + cost[at + i])
            for i in range(s - s0):
                stump[1, s0 + i] = min(stump[1, s0 + i], cost[at + i] + one)
            stump[0 if chained else 1, s] = best
            at += s - s0
        begin = end


@inlined
def _gather_row(local, f, s):
    """Bring the sums over (left of s, bin c) of later features from the split before to split s: rows by their bin."""
    width = local.side.shape[0]
    b1 = local.bin_start[f + 1]
    b = s - local.split_start[f]
    gather, active, stats = local.gather, local.active, local.stats
    if b == 0 or not local.chained[f]:
        for c in range(b1 * width, local.size[1] * width):
            gather[c] = 0.0
    for j in range(local.bucket[f, b], local.bucket[f, b + 1]):
        i = local.by_bin[f, j]
        a = local.n_active[i] - 1
        while a >= 0 and active[i, a] >= b1:
            at = active[i, a] * width
            for k in range(width):
                gather[at + k] += stats[i, k]
            a -= 1


@inlined
def _expand_row(local, f, s, at):
    """Sums of (left of s, left of t) for all splits t of later features, into ``batch[:, at:]``."""
    width = local.side.shape[0]
    gather, batch = local.gather, local.batch
    shift = at - local.split_start[f + 1]
    for h in range(f + 1, local.size[0]):
        c0, c1 = local.bin_start[h], local.bin_start[h + 1]
        t0, t1 = local.split_start[h] + shift, local.split_start[h + 1] + shift
        for k in range(width):
            run = 0.0
            if local.chained[h]:
                for c in range(c1 - c0):
                    run += gather[(c0 + c) * width + k]
                    batch[k, t0 + c] = run
            else:
                for c in range(c1 - c0):
                    value = gather[(c0 + c) * width + k]
                    run += value
                    batch[k, t0 + c] = value
                if t1 - t0 > c1 - c0:
                    batch[k, t1 - 1] = local.side[k, s] - run


@inlined
def _other_features(problem, local, f):
    """Second splits on later features, and first splits there with second ones here."""
    s0, s1 = local.split_start[f], local.split_start[f + 1]
    side, stump, cost, batch = local.side, local.stump, local.cost, local.batch
    w = local.size[2] - s1
    chunk = max(1, min(s1 - s0, cost.shape[0] // (4 * w)))
    for begin in range(s0, s1, chunk):
        end = min(begin + chunk, s1)
        for s in range(begin, end):
            _gather_row(local, f, s)
            _expand_row(local, f, s, 4 * w * (s - begin))
        # a loop of its own: vector loads right behind the scalar stores of a running sum would wait for them
        for s in range(begin, end):
            a = 4 * w * (s - begin)
            for k in range(side.shape[0]):
                here, rest = side[k, s], local.total[k] - side[k, s]
                for t in range(w):
                    both = batch[k, a + t]
                    other = side[k, s1 + t] - both
                    batch[k, a + w + t] = here - both
                    batch[k, a + 2 * w + t] = other
                    batch[k, a + 3 * w + t] = rest - other
        price(problem, batch, 4 * w * (end - begin), cost)
        for s in range(begin, end):
            a = 4 * w * (s - begin)
            best_left, best_right = stump[0, s], stump[1, s]
            for t in range(w):
                best_left = min(best_left, cost[a + t] + cost[a + w + t])
                best_right = min(best_right, cost[a + 2 * w + t] + cost[a + 3 * w + t])
            stump[0, s], stump[1, s] = best_left, best_right
            for t in range(w):
                stump[0, s1 + t] = min(stump[0, s1 + t], cost[a + t] + cost[a + 2 * w + t])
                stump[1, s1 + t] = min(stump[1, s1 + t], cost[a + w + t] + cost[a + 3 * w + t])


@inlined
def _best_roots(problem, local):
    """Best cost with at most 1, 2, 3, 4 leaves and the first split that attains it, into ``value`` and ``root``."""
    for k in range(local.total.shape[0]):
        local.batch[k, 0] = local.total[k]
    price(problem, local.batch, 1, local.cost)
    value, root, leaf, stump = local.value, local.root, local.leaf, local.stump
    value[:] = local.cost[0]
    root[:] = -1
    for s in range(local.size[2]):
        two = leaf[0, s] + leaf[1, s]
        three = min(leaf[0, s] + stump[1, s], stump[0, s] + leaf[1, s])
        four = stump[0, s] + stump[1, s]
        if two < value[2]:
            value[2], root[2] = two, s
        if three < value[3]:
            value[3], root[3] = three, s
        if four < value[4]:
            value[4], root[4] = four, s


@kernel
def sum_sides(problem, local):
    """Sums and leaf costs of both sides of every split of the localised subset."""
    local.single[: local.size[1] * local.total.shape[0]] = 0.0
    add_singles(local)
    cumulate_singles(local)
    _price_sides(problem, local)


@entry
def solve_one(problem, rows, n, local):
    """Best tree with one split over ``rows[:n]``: as `solve_two`, up to ``local.value[2]`` and ``local.root[2]``."""
    localise(problem, rows, n, local)
    sum_sides(problem, local)
    _best_roots(problem, local)


@entry
def solve_two(problem, rows, n, local):
    """Best trees of depth at most two over ``rows[:n]``: ``local.value[1:5]``, first splits ``local.root[2:5]``."""
    localise(problem, rows, n, local)
    order_by_bin(problem, rows, local)
    sum_sides(problem, local)
    for f in range(local.size[0]):
        _same_feature(problem, local, f)
        if local.split_start[f + 1] < local.size[2] and local.control[STOP] == 0:
            _other_features(problem, local, f)
    _best_roots(problem, local)
