"""Sweeps over the rows of a subset in the order of a feature: leaf costs, and the best next split, of sides of a cut.

Sums of the first rows of a side follow from one pass over the rows, so that the best split of both sides of a cut takes
one pass over every feature; the histograms of pairs of features that `base_cases/sums.py` adds up have more cells than
the subset has rows once there are many codes.
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.cuts.labels import few_labels, fill_lane, mark_members, total_labels, two_labels, two_labels_of_size
from softsurv.exact.cuts.scratch import CELLS, RUN
from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.kernels.views import address_of, call
from softsurv.exact.kernels.words import lower


@shared_kernel
def price_cells(problem, cuts, at, n):
    """Cost of n cells of the batch from ``at`` on."""
    batch = cuts.batch
    sums, out = address_of(batch) + 8 * at, address_of(cuts.cost) + 8 * at
    call(problem.calls.price, (problem, sums, batch.shape[1], np.int64(n), out))


@shared_kernel
def too_small(problem, cuts, at):
    """Whether the cell ``at`` of the batch is smaller than a leaf may be."""
    return cuts.limited and cuts.batch[cuts.batch.shape[0] - 1, at] < problem.min_leaf


@shared_kernel
def open_columns(problem, cuts, level, n, base_case, some):
    """Codes, cuts and running sums of some columns of a node with n rows; a base case knows each place's code.

    After the first column it ends where the search is stopped.
    """
    n_features, width = cuts.code.shape[0], problem.stats.shape[1]
    for f in range(some):
        if f > 0 and cuts.control[STOP] != 0:
            return
        row = level * n_features + f
        order, start, code = cuts.order[row], cuts.start[row], cuts.code[f]
        codes, last = np.int64(0), np.int32(-1)
        group = cuts.group[f]
        for p in range(n):
            here = code[order[p]]
            if here != last:
                start[codes] = p
                codes += 1
                last = here
            if base_case:
                group[p] = codes
        start[codes] = n
        cuts.n_codes[row] = codes
        for k in range(width):
            run, total = cuts.run[row * (width + 2) + k], 0.0
            run[0] = 0.0
            for p in range(n):
                total += problem.stats[order[p], k]
                run[p + 1] = total
        floor, worst = cuts.run[row * (width + 2) + width], cuts.run[row * (width + 2) + width + 1]
        own, most = 0.0, 0.0
        floor[0] = worst[0] = 0.0
        for p in range(n):
            own += problem.floor[order[p]]
            most += cuts.worst[order[p]]
            floor[p + 1], worst[p + 1] = own, most
        if base_case and cuts.two_labels:
            fill_lane(problem, cuts, row, f, n)


@shared_kernel
def best_cut(problem, cuts, level, f, n):
    """Best single cut of a column: (cost, cut), cost without a least size of leaves; cost inf where there is no cut."""
    width = problem.stats.shape[1]
    row = level * cuts.code.shape[0] + f
    start, n_cuts, base = cuts.start[row], cuts.n_codes[row] - 1, row * (width + 2)
    best, chosen, free = np.inf, np.int64(n_cuts // 2), np.inf
    for begin in range(0, n_cuts, RUN):
        m = lower(RUN, n_cuts - begin)
        for k in range(width):
            run, cells = cuts.run[base + k], cuts.batch[k]
            total = run[n]
            for i in range(m):
                cells[i] = run[start[begin + i + 1]]
            for i in range(m):
                cells[m + i] = total - cells[i]
        price_cells(problem, cuts, 0, 2 * m)
        for i in range(m):
            both = cuts.cost[i] + cuts.cost[m + i]
            free = lower(free, both)
            if both < best and not (too_small(problem, cuts, i) or too_small(problem, cuts, m + i)):
                best, chosen = both, np.int64(begin + i)
    return best, chosen, free


@shared_kernel
def mark_sides(cuts, level, f, begin, end, n):
    """Rows at the places ``begin`` to ``end`` of a column are on the left, the others on the right."""
    order, side = cuts.order[level * cuts.code.shape[0] + f], cuts.side
    for p in range(n):
        side[order[p]] = 0
    for p in range(begin, end):
        side[order[p]] = 1


@shared_kernel
def leaf_sides(problem, cuts, level, f, at, n):
    """Sums and leaf costs of both sides of a cut with ``at`` rows on its left, into ``total`` and ``leaf``."""
    width = problem.stats.shape[1]
    base = (level * cuts.code.shape[0] + f) * (width + 2)
    for k in range(width):
        left, whole = cuts.run[base + k, at], cuts.run[base + k, n]
        cuts.total[0, k] = cuts.batch[k, 0] = left
        cuts.total[1, k] = cuts.batch[k, 1] = whole - left
    price_cells(problem, cuts, 0, 2)
    for side in range(2):
        cuts.leaf[side] = np.inf if too_small(problem, cuts, side) else cuts.cost[side]
        cuts.leaf[2 + side] = cuts.cost[side]


@shared_kernel
def stump_sides(problem, cuts, level, f, cut, n, limit):
    """Best cost of both sides of a cut with at most one more split, into ``stump``.

    Sums of labels have fast ways that know of no least size of leaves: they tell first whether the sides are below the
    limit without it. Where they are not, the costs under a least size are left at inf.
    """
    n_features, width = cuts.code.shape[0], problem.stats.shape[1]
    at = np.int64(cuts.start[level * n_features + f, cut + 1])
    if cuts.two_labels:
        mark_members(cuts, level * n_features + f, at, n)
    else:
        mark_sides(cuts, level, f, np.int64(0), at, n)
    leaf_sides(problem, cuts, level, f, at, n)
    for side in range(4):
        cuts.stump[side] = np.inf
    if cuts.two_labels:
        two_labels(cuts, n)
    elif cuts.few_labels:
        total_labels(cuts)
        for other in range(n_features):
            few_labels(cuts, level * n_features + other, other, n)
    if cuts.two_labels or cuts.few_labels:
        if not cuts.limited:
            return
        cuts.stump[0] = cuts.stump[1] = np.inf
        if _free_cost(cuts) >= limit:
            return
        if cuts.two_labels:
            two_labels_of_size(cuts, n, problem.min_leaf)
            return
    for other in range(n_features):
        row = level * n_features + other
        if cuts.n_codes[row] < 2:
            continue
        begin, group = np.int64(0), cuts.group[other]
        cuts.carry[:] = 0.0
        while begin < n:
            end = lower(begin + RUN, n)
            while end < n and group[end] == group[end - 1]:
                end += 1
            if width == 2:
                n_left, n_right = _two_columns(cuts, row, other, begin, end)
            else:
                n_left, n_right = _columns(cuts, row, other, begin, end, width)
            _price_side(problem, cuts, 0, n_left)
            _price_side(problem, cuts, 1, n_right)
            begin = end


@shared_kernel
def _free_cost(cuts):
    """Cost of both sides as leaves or stumps of any size, the cost per leaf included."""
    leaf, stump, one = cuts.leaf, cuts.stump, cuts.complexity
    return lower(leaf[2], stump[2] + one) + lower(leaf[3], stump[3] + one) + 2.0 * one


@shared_kernel
def _two_columns(cuts, row, f, begin, end):
    """Sums of the first rows of either side at each of their codes, from place ``begin`` to ``end``: how many."""
    order, group, side = cuts.order[row], cuts.group[f], cuts.side
    run_0, run_1 = cuts.run[4 * row], cuts.run[4 * row + 1]
    batch_0, batch_1 = cuts.batch[0], cuts.batch[1]
    left_0, left_1 = cuts.carry[0], cuts.carry[1]
    before_0, before_1 = run_0[begin], run_1[begin]
    at, other = np.int64(0), np.int64(2 * CELLS)
    batch_0[at], batch_1[at] = left_0, left_1
    batch_0[other], batch_1[other] = before_0 - left_0, before_1 - left_1
    last = last_other = np.int32(-1)
    for p in range(begin, end):
        here, code = side[order[p]], group[p]
        now_0, now_1 = run_0[p + 1], run_1[p + 1]
        if here == 1:
            left_0 += now_0 - before_0
            left_1 += now_1 - before_1
            at += np.int64(code != last)
            last = code
            batch_0[at], batch_1[at] = left_0, left_1
        else:
            other += np.int64(code != last_other)
            last_other = code
            batch_0[other], batch_1[other] = now_0 - left_0, now_1 - left_1
        before_0, before_1 = now_0, now_1
    cuts.carry[0], cuts.carry[1] = left_0, left_1
    return at + 1, other + 1 - 2 * CELLS


@shared_kernel
def _columns(cuts, row, f, begin, end, width):
    """As `_two_columns`, for any number of statistics."""
    order, group, side, base = cuts.order[row], cuts.group[f], cuts.side, row * (width + 2)
    left, batch, run = cuts.carry, cuts.batch, cuts.run
    at, other = np.int64(0), np.int64(2 * CELLS)
    for k in range(width):
        batch[k, at], batch[k, other] = left[k], run[base + k, begin] - left[k]
    last = last_other = np.int32(-1)
    for p in range(begin, end):
        code = group[p]
        if side[order[p]] == 1:
            at += np.int64(code != last)
            last = code
            for k in range(width):
                left[k] += run[base + k, p + 1] - run[base + k, p]
                batch[k, at] = left[k]
        else:
            other += np.int64(code != last_other)
            last_other = code
            for k in range(width):
                batch[k, other] = run[base + k, p + 1] - left[k]
    return at + 1, other + 1 - 2 * CELLS


@shared_kernel
def _price_side(problem, cuts, side, n):
    """Price the cells of one side and the rest of the side: its best cost with one more split."""
    width, base, cost = problem.stats.shape[1], 2 * side * CELLS, cuts.cost
    for k in range(width):
        cells, total = cuts.batch[k], cuts.total[side, k]
        for i in range(base, base + n):
            cells[n + i] = total - cells[i]
    price_cells(problem, cuts, base, 2 * n)
    best = cuts.stump[2 + side]
    for i in range(base, base + n):
        best = lower(best, cost[i] + cost[n + i])
    cuts.stump[2 + side] = best
    if cuts.limited:
        size, least, best = cuts.batch[width - 1], problem.min_leaf, cuts.stump[side]
        for i in range(base, base + n):
            if size[i] >= least and size[n + i] >= least:
                best = lower(best, cost[i] + cost[n + i])
        cuts.stump[side] = best
    else:
        cuts.stump[side] = best
