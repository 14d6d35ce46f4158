"""A simple depth-two base case: it partitions the rows at every split, where `sums.py` adds up pairs of splits.

The interface is that of `sums.py`. The ablation and the tests compare with it.
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.base_cases.leaf_prices import leaf_batch, price_sides
from softsurv.exact.entries import ADDRESS, LONG, entry
from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.subsets import Local, localise, sum_sides
from softsurv.exact.kernels.views import call, ints_at
from softsurv.exact.kernels.words import lower
from softsurv.exact.problem import SearchArrays


@shared_kernel
def test_cost(problem, local, split, first):
    """What the subset at hand pays for a split, under the first test of the path (-1: there is none)."""
    if not problem.branching:
        return 0.0
    test = problem.prices.test_of[problem.feature_of[split]]
    due = local.due[test] if first < 0 else local.after[first, test]
    return local.total[problem.prices.column] * due


@shared_kernel
def best_stump(problem, rows, n, local, first):
    """(cost as a leaf, cost with at most one split, that split or -1) of a subset; leaves its table in ``local``."""
    localise(problem, rows, n, local)
    sum_sides(local)
    price_sides(problem, local)
    for k in range(local.total.shape[0]):
        local.batch[k, 0] = local.total[k]
    call(problem.calls.price, leaf_batch(problem, local.batch, np.int64(1), local.cost))
    leaf = best = local.cost[0]
    root = -1
    for s in range(local.size[2]):
        both = local.leaf[0, s] + local.leaf[1, s] + test_cost(problem, local, local.split_code[s], first)
        if both < best:
            best, root = both, s
    return leaf, best, root


@entry(SearchArrays, ADDRESS, LONG, LONG, Local)
def solve_two(problem, at, n, depth, local):
    """Trees of depth two, by rows. As `sums.solve_two`."""
    rows = ints_at(at, (n,))
    value, root = local.value, local.root
    one, two, first_split = best_stump(problem, rows, n, local, -1)
    value[:] = one
    root[:] = -1
    if depth < 2:
        value[2], root[2] = two, first_split
        return
    n_splits = local.size[2]
    splits, scores, side_rows = local.plain_splits, local.plain_scores, local.plain_rows
    prices = local.plain_prices
    for s in range(n_splits):
        splits[s] = local.split_code[s]
        prices[s] = test_cost(problem, local, splits[s], -1)
    for s in range(n_splits):
        f = problem.feature_of[splits[s]]
        n_left, n_right = 0, 0
        for i in range(n):
            g = problem.gcode[rows[i], f]
            if g == splits[s] if problem.nominal[f] else g <= splits[s]:
                side_rows[0, n_left] = rows[i]
                n_left += 1
            else:
                side_rows[1, n_right] = rows[i]
                n_right += 1
        first = problem.prices.test_of[f]
        left, left_stump, _ = best_stump(problem, side_rows[0], n_left, local, first)
        right, right_stump, _ = best_stump(problem, side_rows[1], n_right, local, first)
        two = left + right + prices[s]
        three = lower(left + right_stump, left_stump + right) + prices[s]
        four = left_stump + right_stump + prices[s]
        scores[0, s], scores[1, s] = left_stump, right_stump
        if two < value[2]:
            value[2], root[2] = two, s
        if three < value[3]:
            value[3], root[3] = three, s
        if four < value[4]:
            value[4], root[4] = four, s
    localise(problem, rows, n, local)
    sum_sides(local)
    price_sides(problem, local)
    for s in range(n_splits):
        first_side = np.int64(local.flipped[s])  # where the left side stands, as in `sums.py`
        local.stump[first_side, s], local.stump[1 - first_side, s] = scores[0, s], scores[1, s]
