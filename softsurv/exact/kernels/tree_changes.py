"""Compiled parts of the local search over whole trees (`improve.py`): the best change of each node, one after another.

Two changes of a node are tried:

- all below it gives way to the best tree of depth two. For each first split its left side is split best while the right
  one is a leaf, then the right side, then the left one again. (`_two_levels`)
- its split gives way to another one, and all splits below it stay. (`_other_split`)
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.entries import entry
from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.tree_rows import (
    EPSILON,
    WIDTH,
    TreeRows,
    add,
    add_codes,
    clear,
    end_of,
    gather,
    left_sums,
    loss_of,
    order_by_code,
)
from softsurv.exact.kernels.tree_splits import divide, put, split_sides


@shared_kernel
def _two_levels(rows, n, n_closed, levels, best):
    """A tree of at most so many levels for the place of a node, into ``found``: its loss, or ``best`` if not less."""
    clear(rows.added, 0, rows.added.shape[0])
    add_codes(rows, 0, n, rows.members)
    left_sums(rows, rows.single)
    for side in range(3):
        rows.found[side] = -1
    best = min(best, loss_of(rows.goal, rows.leaf, put(rows, n_closed, rows.whole[0], rows.single, -1), rows.order))
    if n_closed + 2 > rows.goal.most:
        return best
    for f in range(rows.nominal.shape[0]):
        n_codes = order_by_code(rows, n, f)
        clear(rows.added, 0, rows.added.shape[0])
        rows.work[0] -= n * rows.nominal.shape[0]
        for c in range(n_codes):
            if rows.nominal[f]:
                clear(rows.added, 0, rows.added.shape[0])
            g = rows.code_start[f] + c
            if levels > 1:
                add_codes(rows, rows.start[c], rows.start[c + 1], rows.ordered)
            if rows.start[c] == rows.start[c + 1] or not divide(rows, n_closed, rows.whole[0], rows.single, g):
                continue
            if rows.flag[0] != 0 or rows.work[0] < 0.0:
                return best
            loss, left, right = _below(rows, n_closed, g, levels, best)
            if loss < best - EPSILON:
                best = loss
                rows.found[0], rows.found[1], rows.found[2] = g, left, right
    return best


@shared_kernel
def _below(rows, n_closed, g, levels, best):
    """The least loss with a first split g: (loss, split of the left side, of the right side)."""
    for k in range(WIDTH):
        rows.whole[1, k] = rows.single[k, g]
        rows.whole[2, k] = rows.whole[0, k] - rows.single[k, g]
    if levels > 1:
        left_sums(rows, rows.both)
        for k in range(WIDTH):
            for t in range(rows.single.shape[1]):
                rows.rest[k, t] = rows.single[k, t] - rows.both[k, t]
        return split_sides(rows, n_closed, best)
    return loss_of(rows.goal, rows.leaf, n_closed + 2, rows.order), -1, -1


@shared_kernel
def _give_place(rows, end, n_leaves):
    """Give a leaf a place in ``leaf`` if it has none; return the number of leaves with a place."""
    if rows.place[end] >= 0:
        return n_leaves
    rows.place[end] = n_leaves
    return n_leaves + 1


@shared_kernel
def _other_split(rows, split, node, n, n_closed):
    """The best split of a node if all splits below it stay: (loss, split)."""
    n_leaves = n_closed
    for i in range(n):
        row = rows.members[i]
        rows.end[row] = end_of(rows, row, split, 2 * node + 1)
        rows.other_end[row] = end_of(rows, row, split, 2 * node + 2)
        n_leaves = _give_place(rows, rows.end[row], n_leaves)
        n_leaves = _give_place(rows, rows.other_end[row], n_leaves)
    best, chosen = np.inf, -1
    for f in range(rows.nominal.shape[0]):
        n_codes = order_by_code(rows, n, f)
        _all_right(rows, n, n_closed, n_leaves)
        for c in range(n_codes):
            if rows.start[c] == rows.start[c + 1]:
                continue
            if rows.nominal[f]:
                _all_right(rows, n, n_closed, n_leaves)
            for i in range(rows.start[c], rows.start[c + 1]):
                row = rows.ordered[i]
                add(rows.leaf, rows.place[rows.other_end[row]], rows.sums, row, -1.0)
                add(rows.leaf, rows.place[rows.end[row]], rows.sums, row, 1.0)
            loss = _loss_if_large(rows, n_closed, n_leaves)
            if loss < best - EPSILON:
                best, chosen = loss, rows.code_start[f] + c
        rows.work[0] -= n + n_codes * n_leaves
        if rows.flag[0] != 0 or rows.work[0] < 0.0:
            break
    return best, chosen


@shared_kernel
def _all_right(rows, n, n_closed, n_leaves):
    clear(rows.leaf, n_closed, n_leaves)
    for i in range(n):
        row = rows.members[i]
        add(rows.leaf, rows.place[rows.other_end[row]], rows.sums, row, 1.0)


@shared_kernel
def _loss_if_large(rows, n_closed, n_leaves):
    for k in range(n_closed, n_leaves):
        if rows.leaf[k, 2] < rows.goal.least:
            return np.inf
    return loss_of(rows.goal, rows.leaf, n_leaves, rows.order)


@shared_kernel
def _take(split, node, found):
    """Put the splits found in the place of all below a node."""
    for below in range(node + 1, split.shape[0]):
        top = below
        while top > node:
            top = (top - 1) // 2
        if top == node:
            split[below] = -1
    split[node] = found[0]
    if 2 * node + 2 < split.shape[0]:
        split[2 * node + 1], split[2 * node + 2] = found[1], found[2]


@shared_kernel
def _sum_members(rows, n):
    clear(rows.whole, 0, 1)
    for i in range(n):
        add(rows.whole, 0, rows.sums, rows.members[i], 1.0)


@shared_kernel
def _try_node(rows, split, node, levels, loss):
    """The loss of a tree once its best change at a node with so many levels below is made, if that lowers it."""
    n, n_closed = gather(rows, split, node)
    rows.work[0] -= len(rows.sums) * levels
    if n < 2:
        return loss
    free = rows.goal.price > 0.0 or rows.goal.most <= split.shape[0]
    if free or levels <= 2 or split[node] < 0:
        _sum_members(rows, n)
        value = _two_levels(rows, n, n_closed, min(levels, 2), loss)
        if value < loss - EPSILON:
            _take(split, node, rows.found)
            loss = value
    if levels > 2 and split[node] >= 0:
        n, n_closed = gather(rows, split, node)
        value, g = _other_split(rows, split, node, n, n_closed)
        if value < loss - EPSILON:
            split[node], loss = g, value
    return loss


@entry(TreeRows, returns=float)
def improve(rows):
    """Changes of whole trees. The tree in ``split`` is changed node by node while its loss falls. Returns the loss."""
    split = rows.split
    n_splits = split.shape[0]
    _, n_leaves = gather(rows, split, 2 * n_splits + 1)
    loss, unchanged = loss_of(rows.goal, rows.leaf, n_leaves, rows.order), 0
    while unchanged < n_splits:
        levels, first = rows.goal.depth, 0
        while levels > 0:
            for node in range(first, 2 * first + 1):
                if unchanged == n_splits or rows.flag[0] != 0 or rows.work[0] < 0.0:
                    return loss
                before, loss = loss, _try_node(rows, split, node, levels, loss)
                unchanged = 0 if loss < before else unchanged + 1
            levels, first = levels - 1, 2 * first + 1
    return loss
