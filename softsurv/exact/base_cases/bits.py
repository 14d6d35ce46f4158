"""The depth-two base case where rows are of few kinds: pairs of splits by population counts.

The bits are those of `kernels/bit_columns.py`.

The interface is that of `sums.py`. Every loop over second splits runs eight at a time. Columns beyond the
last split are empty, and what is found there is not read.
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.base_cases.leaf_prices import best_roots, leaf_batch, price_sides
from softsurv.exact.entries import ADDRESS, LONG, entry
from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.bit_columns import counts_errors, hits, pack, shared_hits
from softsurv.exact.kernels.simd import LANES, least, load, smaller, spread, store
from softsurv.exact.kernels.small_counts import (
    NOTHING,
    WIDE,
    allowed,
    fewer,
    least_small,
    load_small,
    more,
    spread_small,
    store_small,
)
from softsurv.exact.kernels.subsets import STOP, Local
from softsurv.exact.kernels.views import call, ints_at
from softsurv.exact.kernels.words import lower
from softsurv.exact.problem import SearchArrays


@shared_kernel
def _count_cells(problem, local, s, begin, stride):
    """Sums of the four cells of split s and every split from ``begin`` on, into the batch: (both, s, t, neither)."""
    kind_stats = problem.row_kinds.kind_stats
    n_kinds, width = kind_stats.shape
    w = stride - begin
    for k in range(width):
        both, side = local.batch[k], local.side[k]
        here, rest = spread(side[s]), spread(local.total[k] - side[s])
        for t in range(0, w, LANES):
            value = spread(0.0)
            for c in range(n_kinds):
                if kind_stats[c, k] != 0.0:
                    value = value + spread(kind_stats[c, k]) * hits(local.bits, c, s, begin + t, stride)
            other = load(side, begin + t) - value
            store(both, t, value)
            store(both, w + t, here - value)
            store(both, 2 * w + t, other)
            store(both, 3 * w + t, rest - other)


@shared_kernel
def _price_linear(problem, local, s, begin, stride):
    """`_count_cells`, the prices and `_lower_stumps` in one, for a cost that is the least of its sums.

    Nothing but the stumps goes through memory. Two kinds and two labels are written out: a loop of two rounds costs
    more than its body.
    """
    kind_stats, side, total = problem.row_kinds.kind_stats, local.side, local.total
    n_kinds, width = kind_stats.shape
    left, right, leaf = local.stump[0], local.stump[1], spread(problem.complexity)
    best_left, best_right = spread(left[s]), spread(right[s])
    if n_kinds == 2 and width == 2:
        first_0, first_1 = spread(kind_stats[0, 0]), spread(kind_stats[0, 1])
        second_0, second_1 = spread(kind_stats[1, 0]), spread(kind_stats[1, 1])
        in_0, in_1 = spread(side[0, s]), spread(side[1, s])
        out_0, out_1 = spread(total[0] - side[0, s]), spread(total[1] - side[1, s])
        side_0, side_1 = side[0], side[1]
        for t in range(begin, stride, LANES):
            first, second = hits(local.bits, 0, s, t, stride), hits(local.bits, 1, s, t, stride)
            value_0, value_1 = first * first_0 + second * second_0, first * first_1 + second * second_1
            other_0, other_1 = load(side_0, t) - value_0, load(side_1, t) - value_1
            both = smaller(value_0, value_1) + leaf
            here = smaller(in_0 - value_0, in_1 - value_1) + leaf
            there = smaller(other_0, other_1) + leaf
            neither = smaller(out_0 - other_0, out_1 - other_1) + leaf
            best_left, best_right = smaller(both + here, best_left), smaller(there + neither, best_right)
            store(left, t, smaller(both + there, load(left, t)))
            store(right, t, smaller(here + neither, load(right, t)))
    else:
        for t in range(begin, stride, LANES):
            both = here = there = neither = spread(np.inf)
            for c in range(n_kinds):
                store(local.cost, c * LANES, hits(local.bits, c, s, t, stride))
            for k in range(width):
                value = spread(0.0)
                for c in range(n_kinds):
                    value = value + spread(kind_stats[c, k]) * load(local.cost, c * LANES)
                other = load(side[k], t) - value
                both, here = smaller(value, both), smaller(spread(side[k, s]) - value, here)
                there, neither = smaller(other, there), smaller(spread(total[k] - side[k, s]) - other, neither)
            both, here, there, neither = both + leaf, here + leaf, there + leaf, neither + leaf
            best_left, best_right = smaller(both + here, best_left), smaller(there + neither, best_right)
            store(left, t, smaller(both + there, load(left, t)))
            store(right, t, smaller(here + neither, load(right, t)))
    left[s], right[s] = lower(left[s], least(best_left)), lower(right[s], least(best_right))


@shared_kernel
def _count_two(bits, s, begin, stride):
    """Errors of the cells of split s and every split from ``begin`` on, into the stumps, 32 at a time: two kinds."""
    left, right = bits.errors[0], bits.errors[1]
    first_in, second_in = spread_small(np.int64(bits.passed[0, s])), spread_small(np.int64(bits.passed[1, s]))
    first_out = spread_small(bits.members[0]) - first_in
    second_out = spread_small(bits.members[1]) - second_in
    best_left, best_right = spread_small(np.int64(left[s])), spread_small(np.int64(right[s]))
    for t in range(begin, stride, WIDE):
        first, second = shared_hits(bits, 0, s, t, stride), shared_hits(bits, 1, s, t, stride)
        first_other, second_other = load_small(bits.passed[0], t) - first, load_small(bits.passed[1], t) - second
        both, here = fewer(first, second), fewer(first_in - first, second_in - second)
        there, neither = fewer(first_other, second_other), fewer(first_out - first_other, second_out - second_other)
        best_left, best_right = fewer(both + here, best_left), fewer(there + neither, best_right)
        store_small(left, t, fewer(both + there, load_small(left, t)))
        store_small(right, t, fewer(here + neither, load_small(right, t)))
    left[s], right[s] = min(left[s], least_small(best_left)), min(right[s], least_small(best_right))


@shared_kernel
def _count_kinds(bits, s, begin, stride, fewest):
    """As `_count_two`, for any number of kinds and a least number of members.

    All members of a cell are errors but those of its most frequent kind.
    """
    left, right, n_kinds = bits.errors[0], bits.errors[1], bits.members.shape[0]
    least = spread_small(fewest)
    best_left, best_right = spread_small(np.int64(left[s])), spread_small(np.int64(right[s]))
    for t in range(begin, stride, WIDE):
        none = spread_small(np.int64(0))
        both = here = there = neither = all_both = all_here = all_there = all_neither = none
        for c in range(n_kinds):
            inside = np.int64(bits.passed[c, s])
            found = shared_hits(bits, c, s, t, stride)
            rest, other = spread_small(inside) - found, load_small(bits.passed[c], t) - found
            out = spread_small(bits.members[c] - inside) - other
            both, here, there, neither = more(found, both), more(rest, here), more(other, there), more(out, neither)
            all_both, all_here, all_there, all_neither = (
                all_both + found, all_here + rest, all_there + other, all_neither + out,
            )  # fmt: skip
        both, here = allowed(all_both - both, all_both, least), allowed(all_here - here, all_here, least)
        there = allowed(all_there - there, all_there, least)
        neither = allowed(all_neither - neither, all_neither, least)
        best_left, best_right = fewer(both + here, best_left), fewer(there + neither, best_right)
        store_small(left, t, fewer(both + there, load_small(left, t)))
        store_small(right, t, fewer(here + neither, load_small(right, t)))
    left[s], right[s] = min(left[s], least_small(best_left)), min(right[s], least_small(best_right))


@shared_kernel
def _count_stumps(problem, local, active):
    """The stumps of all splits by counting errors, where a leaf costs these alone (`RowKinds.unit`)."""
    kinds, bits = problem.row_kinds, local.bits
    unit, least, leaves = kinds.unit, kinds.least, 2.0 * problem.complexity
    stride = (active + WIDE - 1) // WIDE * WIDE
    bits.errors[:, :stride] = NOTHING
    for s in range(active):
        if local.control[STOP] == 0:
            begin = s // WIDE * WIDE
            if bits.members.shape[0] == 2 and least < 2:
                _count_two(bits, s, begin, stride)
            else:
                _count_kinds(bits, s, begin, stride, least)
    for side in range(2):
        for s in range(active):
            if bits.errors[side, s] < NOTHING:
                two = unit * np.float64(bits.errors[side, s]) + leaves
                local.stump[side, s] = lower(local.stump[side, s], two)


@shared_kernel
def _lower_stumps(problem, local, s, begin, w):
    """Take the prices of the cells into the best stumps under s (second split t) and under t (second split s)."""
    cost, left, right = local.cost, local.stump[0], local.stump[1]
    best_left, best_right = spread(left[s]), spread(right[s])
    for t in range(0, w, LANES):
        left_left, left_right = load(cost, t), load(cost, w + t)
        right_left, right_right = load(cost, 2 * w + t), load(cost, 3 * w + t)
        under_left, under_right = left_left + left_right, right_left + right_right
        over_left, over_right = left_left + right_left, left_right + right_right
        if problem.branching:
            weight, total = local.side[problem.prices.column], spread(local.total[problem.prices.column])
            here, there = spread(weight[s]), load(weight, begin + t)
            then, before = load(local.bits.then, begin + t), load(local.bits.before, begin + t)
            under_left, under_right = under_left + here * then, under_right + (total - here) * then
            over_left, over_right = over_left + there * before, over_right + (total - there) * before
        best_left, best_right = smaller(under_left, best_left), smaller(under_right, best_right)
        store(left, begin + t, smaller(over_left, load(left, begin + t)))
        store(right, begin + t, smaller(over_right, load(right, begin + t)))
    left[s], right[s] = lower(left[s], least(best_left)), lower(right[s], least(best_right))


@shared_kernel
def _prices(problem, local, s, active):
    """Price of each second split after split s, and of s after each. They hold for all splits of the same test."""
    prices, bits = problem.prices, local.bits
    first = prices.test_of[problem.feature_of[local.split_code[s]]]
    if s > 0 and prices.test_of[problem.feature_of[local.split_code[s - 1]]] == first:
        return
    for t in range(active):
        second = prices.test_of[problem.feature_of[local.split_code[t]]]
        bits.then[t], bits.before[t] = local.after[first, second], local.after[second, first]


@shared_kernel
def _share(problem, local, s, begin, stride):
    """Most that the rows which pass split s and each split from ``begin`` on can cost, into ``bits.shared``."""
    worst, shared = problem.row_kinds.worst, local.bits.shared[s]
    for t in range(begin, stride, LANES):
        value = spread(0.0)
        for c in range(worst.shape[0]):
            value = value + spread(worst[c]) * hits(local.bits, c, s, t, stride)
        store(shared, t, value)


@entry(SearchArrays, ADDRESS, LONG, LONG, Local)
def solve_two(problem, at, n, depth, local):
    """Trees of depth two, by bits. As `sums.solve_two`."""
    rows = ints_at(at, (n,))
    pack(problem, rows, n, local)
    price_sides(problem, local)
    active = local.size[2] if depth > 1 else np.int64(0)
    stride = (active + LANES - 1) // LANES * LANES
    for s in range(active, stride):
        local.stump[0, s] = local.stump[1, s] = np.inf
        local.bits.then[s] = local.bits.before[s] = 0.0
    by_errors = counts_errors(problem.row_kinds, local.bits)
    if by_errors:
        _count_stumps(problem, local, active)
    for s in range(active if not by_errors or local.bits.wanted[0] == 1 else 0):
        if local.control[STOP] == 0:
            begin = s // LANES * LANES
            if by_errors:
                _share(problem, local, s, begin, stride)
                continue
            if problem.branching:
                _prices(problem, local, s, active)
            if problem.linear and not problem.branching and not problem.use_size:
                _price_linear(problem, local, s, begin, stride)
            else:
                _count_cells(problem, local, s, begin, stride)
                call(problem.calls.price, leaf_batch(problem, local.batch, 4 * (stride - begin), local.cost))
                _lower_stumps(problem, local, s, begin, stride - begin)
            if local.bits.wanted[0] == 1:
                _share(problem, local, s, begin, stride)
    best_roots(problem, local)
