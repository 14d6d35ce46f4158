"""The base case: the best trees of depth at most two over one subset, for every limit on leaves from 1 to 4.

Template module: `softsurv.exact.compile` executes it once per task with the global ``leaf_costs`` set.

For splits s and t of different features, the sums of the four cells (s and t, s and not t, ...) follow from one
two-dimensional histogram per pair of original features, cumulated (DESIGN 6; paper `surtree`, Algorithm 1, has one
column per split instead). Every cell's cost is computed once and serves both the tree with root s and that with root t.
Two splits of one ordered feature bound an interval; its sums are a difference of one-dimensional ones.

What `recursion.py` calls: `localise` (from `kernels.py`), `price` and `solve_two`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from softsurv.exact.kernels import FAST, add_pairs, add_singles, cumulate_pairs, cumulate_singles, localise

leaf_costs: Callable[..., None]  # set by `compile.specialise`
n_statistics: int  # set by `compile.specialise`: columns that the task itself declared


@njit(**FAST)
def price(problem, batch, n, cost):
    """Cost of a batch of leaves, the cost per leaf included; ``inf`` below the limit on rows per leaf."""
    leaf_costs(batch, n, cost)
    if batch.shape[0] > n_statistics:
        for i in range(n):
            enough = batch[n_statistics, i] >= problem.min_leaf
            cost[i] = cost[i] + problem.complexity if enough else np.inf
    elif problem.complexity > 0.0:
        for i in range(n):
            cost[i] += problem.complexity


@njit(**FAST)
def _price_sides(problem, local):
    """Cost of either side of every split as a leaf, into ``leaf``; the start of ``stump``."""
    n = local.size[2]
    for k in range(local.total.shape[0]):
        for s in range(n):
            local.batch[k, s] = local.side[k, s]
            local.batch[k, n + s] = local.total[k] - local.side[k, s]
    price(problem, local.batch, 2 * n, local.cost)
    for s in range(n):
        local.leaf[0, s] = local.cost[s]
        local.leaf[1, s] = local.cost[n + s]
        local.stump[0, s] = local.cost[s]
        local.stump[1, s] = local.cost[n + s]


@njit(**FAST)
def _same_feature(problem, local, f):
    """Second splits on the feature of the first: intervals of an ordered feature, pairs of levels of a nominal one."""
    s0, s1 = local.split_start[f], local.split_start[f + 1]
    side, leaf, stump = local.side, local.leaf, local.stump
    for s in range(s0 + 1, s1):
        n = s - s0
        for k in range(local.total.shape[0]):
            if local.chained[f]:
                for i in range(n):
                    local.batch[k, i] = side[k, s] - side[k, s0 + i]
            else:
                rest = local.total[k] - side[k, s]
                for i in range(n):
                    local.batch[k, i] = rest - side[k, s0 + i]
        price(problem, local.batch, n, local.cost)
        here = stump[0, s] if local.chained[f] else stump[1, s]
        for i in range(n):
            middle = local.cost[i]
            here = min(here, leaf[0, s0 + i] + middle)
            beyond = leaf[1, s] if local.chained[f] else leaf[0, s]
            stump[1, s0 + i] = min(stump[1, s0 + i], middle + beyond)
        stump[0 if local.chained[f] else 1, s] = here


@njit(**FAST)
def _other_features(problem, local, f):
    """Second splits on later features, and first splits there with second ones here."""
    s0, s1 = local.split_start[f], local.split_start[f + 1]
    n = local.size[2]
    w = n - s1
    side, stump, cost, batch = local.side, local.stump, local.cost, local.batch
    for s in range(s0, s1):
        for k in range(local.total.shape[0]):
            row = (k * n + s) * n + s1
            here = side[k, s]
            rest = local.total[k] - here
            for t in range(w):
                both = local.cells[row + t]
                other = side[k, s1 + t] - both
                batch[k, t] = both
                batch[k, w + t] = here - both
                batch[k, 2 * w + t] = other
                batch[k, 3 * w + t] = rest - other
        price(problem, batch, 4 * w, cost)
        best_left, best_right = stump[0, s], stump[1, s]
        for t in range(w):
            best_left = min(best_left, cost[t] + cost[w + t])
            best_right = min(best_right, cost[2 * w + t] + cost[3 * w + t])
            stump[0, s1 + t] = min(stump[0, s1 + t], cost[t] + cost[2 * w + t])
            stump[1, s1 + t] = min(stump[1, s1 + t], cost[w + t] + cost[3 * w + t])
        stump[0, s], stump[1, s] = best_left, best_right


@njit(cache=True)
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


@njit(cache=True)
def solve_two(problem, rows, n, local):
    """Best trees of depth at most two over ``rows[:n]``: ``local.value[1:5]``, first splits ``local.root[2:5]``."""
    localise(problem, rows, n, local)
    width = local.total.shape[0]
    n_bins, n_splits = local.size[1], local.size[2]
    local.single[: n_bins * width] = 0.0
    add_singles(local, 0, n)
    cumulate_singles(local)
    _price_sides(problem, local)
    local.pairs[: n_bins * n_bins * width] = 0.0
    add_pairs(local, 0, n)
    cumulate_pairs(local)
    for f in range(local.size[0]):
        _same_feature(problem, local, f)
        if local.split_start[f + 1] < n_splits:
            _other_features(problem, local, f)
    _best_roots(problem, local)
