"""What every base case does with sums of leaves: prices, and the best trees of depth one and two from them."""

from __future__ import annotations

import numpy as np

from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.views import address_of, call
from softsurv.exact.kernels.words import lower


@shared_kernel
def leaf_batch(problem, batch, n, cost):
    """Arguments of `task_costs.price` for the first n leaves of a batch of sums, (W, stride) or more."""
    return problem, address_of(batch), batch.shape[1], n, address_of(cost)


@shared_kernel
def price_sides(problem, local):
    """Cost of either side of every split as a leaf, into ``leaf``; the start of ``stump``."""
    n, side, batch, cost = local.size[2], local.side, local.batch, local.cost
    for k in range(side.shape[0]):
        total = local.total[k]
        for s in range(n):
            batch[k, s] = side[k, s]
        for s in range(n):
            batch[k, n + s] = total - side[k, s]
    call(problem.calls.price, leaf_batch(problem, batch, 2 * n, cost))
    for s in range(n):
        local.leaf[0, s] = cost[s]
        local.stump[0, s] = cost[s]
    for s in range(n):
        local.leaf[1, s] = cost[n + s]
        local.stump[1, s] = cost[n + s]


@shared_kernel
def best_roots(problem, local):
    """Best cost with at most 1, 2, 3, 4 leaves and the first split that attains it, into ``value`` and ``root``."""
    for k in range(local.total.shape[0]):
        local.batch[k, 0] = local.total[k]
    call(problem.calls.price, leaf_batch(problem, local.batch, np.int64(1), local.cost))
    value, root, leaf, stump = local.value, local.root, local.leaf, local.stump
    value[:] = local.cost[0]
    root[:] = -1
    for s in range(local.size[2]):
        two = leaf[0, s] + leaf[1, s]
        three = lower(leaf[0, s] + stump[1, s], stump[0, s] + leaf[1, s])
        four = stump[0, s] + stump[1, s]
        if problem.branching:
            test = problem.prices.test_of[problem.feature_of[local.split_code[s]]]
            test_cost = local.total[problem.prices.column] * local.due[test]
            two, three, four = two + test_cost, three + test_cost, four + test_cost
        if two < value[2]:
            value[2], root[2] = two, s
        if three < value[3]:
            value[3], root[3] = three, s
        if four < value[4]:
            value[4], root[4] = four, s
