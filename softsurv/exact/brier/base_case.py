"""Base case of the integrated-Brier-score search: the best trees of depth one and two on a set of rows.

Every pair of splits of the local table is costed, LANES pairs at a time, by `leaf_costs.py`; the four leaves of a
pair serve both orders of the two splits.
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.brier import bounds
from softsurv.exact.brier.bit_columns import bound_sums, counts_of_bits, gather_bits, mask_words
from softsurv.exact.brier.jit import entry
from softsurv.exact.brier.leaf_costs import IPCW, KM_BINS, LANES, LEAST
from softsurv.exact.brier.table import (
    ROWS,
    RULES,
    SubsetTable,
    column_sums,
    enough_rows,
    feasible_splits,
    gather,
    permuted,
)
from softsurv.exact.brier.tiles import DONE
from softsurv.exact.jit import array_kernel
from softsurv.exact.kernels.views import address_of, call_float, pack, view_of
from softsurv.loops import FLOAT, INT, floats, ints

TABLE_WORDS = view_of(SubsetTable).n_words

IMPROVEMENT = 1e-12
"""Objectives closer than this are equal: far above rounding (1e-15), far below any printed digit."""

WITH, WITHOUT = np.int64(0), np.int64(1)
"""Sides of a split: rows with the feature, and rows without. A kernel is compiled again for every literal."""

floor_with_split, useful_depth = array_kernel(bounds.floor_with_split), array_kernel(bounds.useful_depth)


@array_kernel
def tile(local, words, rules, f, lo, work, cost, count):
    """Cost and rows of the leaves of LANES splits below split f, see `tiles.tile`.

    ``words`` are those of the local table, which must live as long.
    """
    given = np.int64(f), np.int64(lo), address_of(work), address_of(cost), address_of(count)
    if call_float(rules.tile, (address_of(words), *given)) != DONE:
        raise MemoryError("no memory for the costs of the leaves")


@array_kernel
def words_of(local):
    """The words of the local table, which `tile` reads."""
    words = np.empty(TABLE_WORDS, dtype=np.int64)
    pack(local, words)
    return words


@array_kernel
def one_split(local, rules):
    """Cost and rows of both leaves of every local split: (2, p), first row for rows with the feature.

    Infinite where ``rules.stop`` is set before a split's turn.
    """
    words, stop, p = words_of(local), rules.stop, local.feature.shape[0]
    costs, counts = np.full((2, p), np.inf), np.zeros((2, p))
    work, cost, count = np.empty(24 * LANES), np.empty(4 * LANES), np.empty(4 * LANES)
    for lo in range(0, p, LANES):
        if stop[0] != 0:
            break
        tile(local, words, rules, local.bits.shape[1] - 1, lo, work, cost, count)
        for j in range(min(LANES, p - lo)):
            for leaf in range(2):
                costs[leaf, lo + j] = cost[leaf * LANES + j]
                counts[leaf, lo + j] = count[leaf * LANES + j]
    return costs, counts


@entry(ROWS, *ints(1), RULES, FLOAT)
def expand(rows, index, rules, ceiling):
    """What the search needs to branch on a set of rows. Worth nothing once ``rules.stop`` is set.

    Returns
    -------
    feature : (p,) useful splits whose children's floors leave room below the ceiling
    node : (2, 4, p) of both children, rows with the feature first: rows, loss as a leaf, bound, useful depth
    key : (2, 2, p) keys of both children: side, word, split
    pruned : least sum of floors among the splits left out
    whole : (3,) rows, loss as a leaf and bound of all rows
    whole_key : (2,) their key
    """
    count, bound, key = column_sums(rows, index)
    feature = feasible_splits(count, key, rules.min_rows)
    p, complexity = feature.shape[0], rules.complexity
    local = gather(rows, index, feature, rules)
    cost, counts = one_split(local, rules)
    work, costs, cells = np.empty(24 * LANES), np.empty(4 * LANES), np.empty(4 * LANES)
    words = words_of(local)
    tile(local, words, rules, local.bits.shape[1] - 1, LANES * (p // LANES), work, costs, cells)  # column p is empty
    whole = np.array([count[-1], costs[LANES + p % LANES], bound[-1]])
    node, keys = np.empty((2, 4, p)), np.empty((2, 2, p), dtype=np.uint64)
    pruned, kept = np.inf, 0
    for k in range(p):
        f, floors = feature[k], 0.0
        for side in range(2):
            share = bound[f] if side == 0 else bound[-1] - bound[f]
            trusted = share if rules.splitting else -np.inf
            useful = useful_depth(cost[side, k], trusted, counts[side, k], complexity, rules.min_rows)
            leaf = cost[side, k] + complexity
            split = floor_with_split(cost[side, k], share, complexity, rules.least_leaves)
            floors += leaf if useful == 0 else split
            node[side, 0, kept], node[side, 1, kept] = counts[side, k], cost[side, k]
            node[side, 2, kept], node[side, 3, kept] = share, useful
            for word in range(2):
                keys[side, word, kept] = key[word, f] if side == 0 else key[word, -1] - key[word, f]
        if floors < ceiling:
            feature[kept] = f
            kept += 1
        else:
            pruned = min(pruned, floors)
    return feature[:kept], node[:, :, :kept], keys[:, :, :kept], pruned, whole, key[:, -1].copy()


@array_kernel
def best_pairs(local, needed, rules):
    """Best second split below each side of every split.

    Returns (2, p) least cost of the two leaves of a side, and the local split that reaches it (-1 if none). Exact
    for the first ``needed`` splits; the others are only tried below those. Worth nothing once ``rules.stop`` is set.
    """
    min_rows, words = rules.min_rows, words_of(local)
    p = local.feature.shape[0]
    best, arg = np.empty((2, p)), np.empty((2, p), dtype=np.int64)
    best[:] = np.inf
    arg[:] = -1
    work, cost, count = np.empty(24 * LANES), np.empty(4 * LANES), np.empty(4 * LANES)
    for f in range(needed):
        if rules.stop[0] != 0:
            break
        for lo in range(LANES * ((f + 1) // LANES), p, LANES):
            tile(local, words, rules, f, lo, work, cost, count)
            for g in range(max(lo, f + 1), min(lo + LANES, p)):
                j = g - lo
                ok = (
                    count[j] >= min_rows,
                    count[LANES + j] >= min_rows,
                    count[2 * LANES + j] >= min_rows,
                    count[3 * LANES + j] >= min_rows,
                )
                _improve(best, arg, WITH, f, g, ok[0] and ok[1], cost[j] + cost[LANES + j])
                _improve(best, arg, WITHOUT, f, g, ok[2] and ok[3], cost[2 * LANES + j] + cost[3 * LANES + j])
                _improve(best, arg, WITH, g, f, ok[0] and ok[2], cost[j] + cost[2 * LANES + j])
                _improve(best, arg, WITHOUT, g, f, ok[1] and ok[3], cost[LANES + j] + cost[3 * LANES + j])
    return best, arg


@array_kernel
def _improve(best, arg, side, f, g, feasible, value):
    if feasible and value < best[side, f]:
        best[side, f] = value
        arg[side, f] = g


@array_kernel
def _table(rows, index, rules):
    """Useful splits, their bounds, and the local table: from the features as bits when the set of rows is large."""
    n_words, min_rows = rows.time_bits.bits.shape[0], rules.min_rows
    if rules.mode != IPCW and 2 * index.shape[0] > n_words > 0:
        words, mask = mask_words(rows.time_bits, index)
        feature = enough_rows(counts_of_bits(rows.time_bits, words, mask), min_rows)
        return feature, bound_sums(rows, index), gather_bits(rows, rows.time_bits, words, mask, feature, KM_BINS)
    count, bound, key = column_sums(rows, index)
    feature = feasible_splits(count, key, min_rows)
    return feature, bound, gather(rows, index, feature, rules)


@entry(ROWS, *ints(1), RULES)
def coarse_floor(rows, index, rules):
    """Lower bound (P,) of the objective of trees of depth one and two by first split, from coarse bins of time.

    Infinite for splits that leave too few rows on a side. Worth nothing once ``rules.stop`` is set.
    """
    words, mask = mask_words(rows.coarse, index)
    feature = enough_rows(counts_of_bits(rows.coarse, words, mask), rules.min_rows)
    local = gather_bits(rows, rows.coarse, words, mask, feature, LEAST)
    costs, _ = one_split(local, rules)
    best, _ = best_pairs(local, feature.shape[0], rules)
    floor = np.full(rows.x.shape[1], np.inf)
    for k in range(feature.shape[0]):
        floor[feature[k]] = 0.0
        for side in range(2):
            floor[feature[k]] += min(costs[side, k] + rules.complexity, best[side, k] + 2.0 * rules.complexity)
    return floor


@entry(ROWS, *ints(1), RULES, INT, FLOAT, *floats(1))
def solve_shallow(rows, index, rules, depth, budget, floor):
    """Least loss of trees with 2, 3 and 4 leaves on the rows of an index, and the splits that reach it.

    Parameters
    ----------
    rows : SortedRows
    index : (n,) rows of the subproblem, increasing
    rules : Rules
    depth : 1 or 2
    budget : only trees with loss + complexity * leaves < budget are wanted; (0, inf) wants them all
    floor : (P,) lower bound of the objective by first split, 0 where nothing is known

    Returns
    -------
    loss : (5,) by number of leaves, inf where no tree was found
    plan : (5, 3) first split, split of its side 1, split of its side 0; -1 for a leaf
    """
    loss, plan = np.empty(5), np.empty((5, 3), dtype=np.int64)
    loss[:] = np.inf
    plan[:] = -1
    feature, bound, local = _table(rows, index, rules)
    p = feature.shape[0]
    if p == 0:
        return loss, plan
    costs, counts = one_split(local, rules)
    for f in range(p):
        if costs[0, f] + costs[1, f] < loss[2]:
            loss[2], plan[2, 0] = costs[0, f] + costs[1, f], feature[f]
    if depth == 1:
        return loss, plan
    ceiling = min(budget, loss[2] + 2 * rules.complexity - IMPROVEMENT)
    least = _least_objectives(feature, costs, counts, bound, rules, floor)
    order, needed = _needed_first(least, ceiling)
    if 0 < needed < p:
        local, costs = permuted(local, order), in_order(costs, order)
        feature = local.feature
    if needed > 0:
        best, arg = best_pairs(local, needed, rules)
        _collect(feature, costs, best, arg, needed, loss, plan)
    return loss, plan


@array_kernel
def in_order(costs, order):
    """The same (2, p) costs with the splits in another order."""
    out = np.empty_like(costs)
    for k in range(order.shape[0]):
        out[0, k], out[1, k] = costs[0, order[k]], costs[1, order[k]]
    return out


@array_kernel
def _needed_first(least, ceiling):
    """Order (p,) that puts the splits below the ceiling first and keeps the rest in place; how many there are."""
    order, needed = np.empty(least.shape[0], dtype=np.int64), 0
    for f in range(least.shape[0]):
        needed += least[f] < ceiling
    first, last = 0, needed
    for f in range(least.shape[0]):
        if least[f] < ceiling:
            order[first] = f
            first += 1
        else:
            order[last] = f
            last += 1
    return order, needed


@array_kernel
def _least_objectives(feature, costs, counts, bound, rules, floor):
    """Lower bound (p,) of the trees of depth two with each first split: per side, a leaf, or two with the bound.

    ``floor`` (P,) is another lower bound, by first split.
    """
    least = np.empty(costs.shape[1])
    for f in range(least.shape[0]):
        least[f], with_feature = 0.0, bound[feature[f]]
        for side in range(2):
            share = with_feature if side == 0 else bound[-1] - with_feature
            split = share + rules.least_leaves * rules.complexity
            leaf = costs[side, f] + rules.complexity
            least[f] += leaf if counts[side, f] < 2 * rules.min_rows or leaf <= split + IMPROVEMENT else split
        least[f] = max(least[f], floor[feature[f]])
    return least


@array_kernel
def _collect(feature, costs, best, arg, needed, loss, plan):
    """Best trees with three and four leaves from the best second splits below each first split."""
    for f in range(needed):
        for option in range(3):  # split side 1, side 0, both
            leaves = 4 if option == 2 else 3
            one = costs[0, f] if option == 1 else best[0, f]
            zero = costs[1, f] if option == 0 else best[1, f]
            if one + zero < loss[leaves]:
                loss[leaves] = one + zero
                plan[leaves, 0] = feature[f]
                plan[leaves, 1] = feature[arg[0, f]] if option != 1 else -1
                plan[leaves, 2] = feature[arg[1, f]] if option != 0 else -1
