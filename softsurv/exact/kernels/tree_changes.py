"""Compiled parts of the local search over whole trees (`improve.py`): the best change of each node, one after another.

A tree is an array of splits in heap order, (2**depth - 1,), -1 where there is none. Sums of rows and of leaves are
(negatives, positives, size). Two changes of a node are tried:

- all below it gives way to the best tree of depth two. For each first split its left side is split best while the right
  one is a leaf, then the right side, then the left one again. (`_two_levels`)
- its split gives way to another one, and all splits below it stay. (`_other_split`)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softsurv.exact.entries import entry
from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.views import Flags, FloatMatrix, Floats, IntMatrix, Ints, Longs

AREA, F1, MATTHEWS = 0, 1, 2
"""What is made small: the area above the ROC convex hull, one minus F1, one minus the Matthews correlation."""

EPSILON = 1e-12
"""Losses closer than this are the same."""

WIDTH = 3
"""Sums of a leaf."""


class Goal(NamedTuple):
    """What is wanted of a tree."""

    kind: int  # AREA, F1 or MATTHEWS
    share: float  # largest false-positive rate of the area
    negatives: float
    positives: float
    price: float  # cost per leaf
    depth: int
    most: int  # leaves
    least: float  # size of a leaf


class TreeRows(NamedTuple):
    """U distinct rows with G codes, and scratch for them and for L leaves."""

    gcode: IntMatrix  # (U, P) int32
    code_start: Ints  # (P + 1,) int32
    nominal: Flags  # (P,)
    feature_of: Ints  # (G,) int32
    sums: FloatMatrix  # (U, 3)
    goal: Goal
    split: Ints  # (2**depth - 1,) int32 the tree
    flag: Longs  # (8,) int64 stop flag first
    work: Floats  # (1,) additions left
    members: Ints  # (U,) int32 rows of the node at hand
    ordered: Ints  # (U,) int32 the same by their code of a feature
    start: Ints  # (G + 1,) int32 where each code begins
    end: Ints  # (U,) int32 leaf of each row left of its node, in heap order
    other_end: Ints  # (U,) int32 the same on the right
    leaf: FloatMatrix  # (L + 4, 3) sums of leaves
    order: Ints  # (L + 4,) int32
    place: Ints  # (2 L,) int32 place of each leaf in ``leaf``
    single: FloatMatrix  # (3, G) sums left of each split
    both: FloatMatrix  # (3, G) sums left of it and of the first split
    rest: FloatMatrix  # (3, G) sums left of it and right of the first split
    added: FloatMatrix  # (G, 3) sums per code
    error: Floats  # (G,) what each split adds to the area, or the loss with it
    whole: FloatMatrix  # (3, 3) sums of the node, and of both sides of its first split
    found: Longs  # (3,) int64 the best first split, and the splits of its sides


@shared_kernel
def _error(goal, tp, fp):
    """One minus the measure with so many true and false positives."""
    if goal.kind == F1:
        return 1.0 - 2.0 * tp / (tp + goal.positives + fp)
    called, rest = tp + fp, goal.negatives + goal.positives - tp - fp
    found = tp * (goal.negatives - fp) - fp * (goal.positives - tp)
    scale = max(called * rest * goal.positives * goal.negatives, 1e-300)  # with one label for all, nothing is found
    return 1.0 - found / np.sqrt(scale)


@shared_kernel
def _rank(leaf, n, order):
    """Order n leaves by their share of positives, the largest first."""
    for i in range(n):
        j = i
        while j > 0 and leaf[i, 1] * leaf[order[j - 1], 0] > leaf[order[j - 1], 1] * leaf[i, 0]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i


@shared_kernel
def loss_of(goal, leaf, n, order):
    """Loss of n leaves (., 3), cost per leaf included; ``order`` is scratch, which has the leaves by rank afterwards.

    Of all labels of the leaves the best ones count: a measure is largest where some leaves with the largest shares of
    positives are called positive.
    """
    _rank(leaf, n, order)
    area, best, fp, tp = 0.0, 1.0, 0.0, 0.0
    for i in range(n):
        n0, p0 = leaf[order[i], 0], leaf[order[i], 1]
        if goal.kind == AREA:
            part = 1.0 if n0 <= 0.0 else max(min((goal.share * goal.negatives - fp) / n0, 1.0), 0.0)
            area += part * n0 * (goal.positives - tp - 0.5 * part * p0)
        fp, tp = fp + n0, tp + p0
        if goal.kind != AREA:
            best = min(best, _error(goal, tp, fp))
    loss = area / (goal.share * goal.negatives * goal.positives) if goal.kind == AREA else best
    return loss + goal.price * n


@shared_kernel
def _goes_left(rows, row, g):
    f = rows.feature_of[g]
    code = rows.gcode[row, f]
    return code == g or (code < g and not rows.nominal[f])


@shared_kernel
def _end_of(rows, row, split, node):
    """The leaf of a row below a node, in heap order."""
    while node < split.shape[0] and split[node] >= 0:
        node = 2 * node + (1 if _goes_left(rows, row, split[node]) else 2)
    return node


@shared_kernel
def _add(total, at, more, row, sign):
    for k in range(WIDTH):
        total[at, k] += sign * more[row, k]


@shared_kernel
def _clear(total, begin, end):
    for at in range(begin, end):
        for k in range(WIDTH):
            total[at, k] = 0.0


@shared_kernel
def _gather(rows, split, node):
    """Members of a node in scratch, and the leaves outside it first in ``leaf``: (members, leaves)."""
    n, n_leaves = 0, 0
    for end in range(rows.place.shape[0]):
        rows.place[end] = -1
    for row in range(rows.sums.shape[0]):
        end = _end_of(rows, row, split, 0)
        top = end
        while top > node:
            top = (top - 1) // 2
        if top == node:
            rows.members[n] = row
            n += 1
            continue
        if rows.place[end] < 0:
            rows.place[end] = n_leaves
            _clear(rows.leaf, n_leaves, n_leaves + 1)
            n_leaves += 1
        _add(rows.leaf, rows.place[end], rows.sums, row, 1.0)
    return n, n_leaves


@shared_kernel
def _order_by_code(rows, n, f):
    """Members by their code of a feature, a counting sort; the number of codes."""
    first, n_codes = rows.code_start[f], rows.code_start[f + 1] - rows.code_start[f]
    for c in range(n_codes + 1):
        rows.start[c] = 0
    for i in range(n):
        rows.start[rows.gcode[rows.members[i], f] - first + 1] += 1
    for c in range(n_codes):
        rows.start[c + 1] += rows.start[c]
    for i in range(n):
        c = rows.gcode[rows.members[i], f] - first
        rows.ordered[rows.start[c]] = rows.members[i]
        rows.start[c] += 1
    for c in range(n_codes, 0, -1):
        rows.start[c] = rows.start[c - 1]
    rows.start[0] = 0
    return n_codes


@shared_kernel
def _add_codes(rows, begin, end, listed):
    for i in range(begin, end):
        for f in range(rows.nominal.shape[0]):
            _add(rows.added, rows.gcode[listed[i], f], rows.sums, listed[i], 1.0)


@shared_kernel
def _left_sums(rows, out):
    """From sums per code to sums left of each split."""
    for f in range(rows.nominal.shape[0]):
        for g in range(rows.code_start[f], rows.code_start[f + 1]):
            for k in range(WIDTH):
                before = 0.0 if rows.nominal[f] or g == rows.code_start[f] else out[k, g - 1]
                out[k, g] = rows.added[g, k] + before


@shared_kernel
def _divide(rows, n, total, sums, t):
    """Put both sides of split t of a part behind n leaves: whether they are large enough."""
    for k in range(WIDTH):
        rows.leaf[n, k] = sums[k, t]
        rows.leaf[n + 1, k] = total[k] - sums[k, t]
    return rows.leaf[n, 2] >= rows.goal.least and rows.leaf[n + 1, 2] >= rows.goal.least


@shared_kernel
def _best_split(rows, n, total, sums):
    """The best split of a part beside n leaves: (loss, split), -1 where there is none."""
    best, chosen = np.inf, -1
    if n + 2 > rows.goal.most:
        return best, chosen
    rows.work[0] -= sums.shape[1] * n
    if rows.goal.kind == AREA and rows.goal.share >= 1.0:
        return _best_area(rows, n, total, sums)
    if rows.goal.kind != AREA:
        return _best_labels(rows, n, total, sums)
    for t in range(sums.shape[1]):
        if _divide(rows, n, total, sums, t):
            loss = loss_of(rows.goal, rows.leaf, n + 2, rows.order)
            if loss < best - EPSILON:
                best, chosen = loss, t
    return best, chosen


@shared_kernel
def _best_labels(rows, n, total, sums):
    """The same for a measure: good, not always best.

    Either side of the part is called positive, and of the other leaves as many as are best where the part is not
    divided, or one more or less; ``error`` has the least of the losses with these labels.
    """
    goal, leaf, order, error = rows.goal, rows.leaf, rows.order, rows.error
    _rank(leaf, n, order)
    middle, best, tp, fp = 0, np.inf, 0.0, 0.0
    for i in range(n + 1):
        loss = min(_error(goal, tp, fp), _error(goal, tp + total[1], fp + total[0]))
        if loss < best:
            middle, best = i, loss
        if i < n:
            fp, tp = fp + leaf[order[i], 0], tp + leaf[order[i], 1]
    for t in range(sums.shape[1]):
        error[t] = np.inf
    tp, fp = 0.0, 0.0
    for i in range(min(middle + 1, n) + 1):
        if i >= middle - 1:
            for t in range(sums.shape[1]):
                left = _error(goal, tp + sums[1, t], fp + sums[0, t])
                right = _error(goal, tp + total[1] - sums[1, t], fp + total[0] - sums[0, t])
                error[t] = min(error[t], min(left, right))
        if i < n:
            fp, tp = fp + leaf[order[i], 0], tp + leaf[order[i], 1]
    chosen = -1
    for t in range(sums.shape[1]):
        large = sums[2, t] >= goal.least and total[2] - sums[2, t] >= goal.least
        if large and (chosen < 0 or error[t] < error[chosen] - EPSILON):
            chosen = t
    if chosen < 0:
        return np.inf, chosen
    _divide(rows, n, total, sums, chosen)
    return loss_of(goal, leaf, n + 2, order), chosen


@shared_kernel
def _best_area(rows, n, total, sums):
    """The same for the whole area, by vectors of splits.

    Negatives that rank above positives, or as they do: half of n0 p0 within a leaf, and between two leaves, of which
    the one with the larger share of positives ranks above, the lesser of n0 p1 and n1 p0.
    """
    leaf, area, least = rows.leaf, rows.error, rows.goal.least
    negatives, positives = sums[0], sums[1]
    for t in range(sums.shape[1]):
        n0, p0 = negatives[t], positives[t]
        n1, p1 = total[0] - n0, total[1] - p0
        area[t] = 0.5 * (n0 * p0 + n1 * p1) + min(n0 * p1, n1 * p0)
    for j in range(n):
        nj, pj = leaf[j, 0], leaf[j, 1]
        for t in range(sums.shape[1]):
            n0, p0 = negatives[t], positives[t]
            n1, p1 = total[0] - n0, total[1] - p0
            area[t] += min(n0 * pj, nj * p0) + min(n1 * pj, nj * p1)
    best, chosen, scale = np.inf, -1, rows.goal.negatives * rows.goal.positives
    fixed = _area_of(leaf, n)
    for t in range(sums.shape[1]):
        loss = (fixed + area[t]) / scale + rows.goal.price * (n + 2)
        if sums[2, t] >= least and total[2] - sums[2, t] >= least and loss < best - EPSILON:
            best, chosen = loss, t
    return best, chosen


@shared_kernel
def _area_of(leaf, n):
    """The same of n leaves."""
    area = 0.0
    for i in range(n):
        area += 0.5 * leaf[i, 0] * leaf[i, 1]
        for j in range(i):
            area += min(leaf[i, 0] * leaf[j, 1], leaf[j, 0] * leaf[i, 1])
    return area


@shared_kernel
def _put(rows, n, total, sums, t):
    """Put a part behind n leaves, divided by split t if there is one: the leaves then."""
    if t >= 0:
        _divide(rows, n, total, sums, t)
        return n + 2
    for k in range(WIDTH):
        rows.leaf[n, k] = total[k]
    return n + 1


@shared_kernel
def _least_loss(rows, n, total):
    """What the loss is at least if n leaves stay and a part becomes pure."""
    for k in range(2):
        rows.leaf[n, k], rows.leaf[n + 1, k] = 0.0, 0.0
        rows.leaf[n + k, k] = total[k]
    return loss_of(rows.goal, rows.leaf, n + 2, rows.order) - rows.goal.price


@shared_kernel
def _split_sides(rows, n, best):
    """The least loss where a node is divided as ``whole`` says and either side may be split, and the splits of both."""
    left, right = -1, -1
    _put(rows, n, rows.whole[1], rows.both, -1)
    _put(rows, n + 1, rows.whole[2], rows.rest, -1)
    loss = loss_of(rows.goal, rows.leaf, n + 2, rows.order)
    for turn in range(3):
        if turn == 2 and loss >= best:
            break
        if turn == 1 and _least_loss(rows, _put(rows, n, rows.whole[1], rows.both, left), rows.whole[2]) >= best:
            break
        if turn == 1:
            value, t = _best_split(rows, _put(rows, n, rows.whole[1], rows.both, left), rows.whole[2], rows.rest)
            right = t if value < loss else right
        else:
            value, t = _best_split(rows, _put(rows, n, rows.whole[2], rows.rest, right), rows.whole[1], rows.both)
            left = t if value < loss else left
        loss = min(loss, value)
    return loss, left, right


@shared_kernel
def _two_levels(rows, n, n_closed, levels, best):
    """A tree of at most so many levels in the place of a node, into ``found``: the loss then, or ``best`` or more."""
    _clear(rows.added, 0, rows.added.shape[0])
    _add_codes(rows, 0, n, rows.members)
    _left_sums(rows, rows.single)
    for side in range(3):
        rows.found[side] = -1
    best = min(best, loss_of(rows.goal, rows.leaf, _put(rows, n_closed, rows.whole[0], rows.single, -1), rows.order))
    if n_closed + 2 > rows.goal.most:
        return best
    for f in range(rows.nominal.shape[0]):
        n_codes = _order_by_code(rows, n, f)
        _clear(rows.added, 0, rows.added.shape[0])
        rows.work[0] -= n * rows.nominal.shape[0]
        for c in range(n_codes):
            if rows.nominal[f]:
                _clear(rows.added, 0, rows.added.shape[0])
            g = rows.code_start[f] + c
            if levels > 1:
                _add_codes(rows, rows.start[c], rows.start[c + 1], rows.ordered)
            if rows.start[c] == rows.start[c + 1] or not _divide(rows, n_closed, rows.whole[0], rows.single, g):
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
        _left_sums(rows, rows.both)
        for k in range(WIDTH):
            for t in range(rows.single.shape[1]):
                rows.rest[k, t] = rows.single[k, t] - rows.both[k, t]
        return _split_sides(rows, n_closed, best)
    return loss_of(rows.goal, rows.leaf, n_closed + 2, rows.order), -1, -1


@shared_kernel
def _give_place(rows, end, n_leaves):
    """A place in ``leaf`` for a leaf that has none; the leaves then."""
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
        rows.end[row] = _end_of(rows, row, split, 2 * node + 1)
        rows.other_end[row] = _end_of(rows, row, split, 2 * node + 2)
        n_leaves = _give_place(rows, rows.end[row], n_leaves)
        n_leaves = _give_place(rows, rows.other_end[row], n_leaves)
    best, chosen = np.inf, -1
    for f in range(rows.nominal.shape[0]):
        n_codes = _order_by_code(rows, n, f)
        _all_right(rows, n, n_closed, n_leaves)
        for c in range(n_codes):
            if rows.start[c] == rows.start[c + 1]:
                continue
            if rows.nominal[f]:
                _all_right(rows, n, n_closed, n_leaves)
            for i in range(rows.start[c], rows.start[c + 1]):
                row = rows.ordered[i]
                _add(rows.leaf, rows.place[rows.other_end[row]], rows.sums, row, -1.0)
                _add(rows.leaf, rows.place[rows.end[row]], rows.sums, row, 1.0)
            loss = _loss_if_large(rows, n_closed, n_leaves)
            if loss < best - EPSILON:
                best, chosen = loss, rows.code_start[f] + c
        rows.work[0] -= n + n_codes * n_leaves
        if rows.flag[0] != 0 or rows.work[0] < 0.0:
            break
    return best, chosen


@shared_kernel
def _all_right(rows, n, n_closed, n_leaves):
    _clear(rows.leaf, n_closed, n_leaves)
    for i in range(n):
        row = rows.members[i]
        _add(rows.leaf, rows.place[rows.other_end[row]], rows.sums, row, 1.0)


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
    _clear(rows.whole, 0, 1)
    for i in range(n):
        _add(rows.whole, 0, rows.sums, rows.members[i], 1.0)


@shared_kernel
def _try_node(rows, split, node, levels, loss):
    """The loss of a tree once its best change at a node with so many levels below is made, if that lowers it."""
    n, n_closed = _gather(rows, split, node)
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
        n, n_closed = _gather(rows, split, node)
        value, g = _other_split(rows, split, node, n, n_closed)
        if value < loss - EPSILON:
            split[node], loss = g, value
    return loss


@entry(TreeRows, returns=float)
def improve(rows):
    """Changes of whole trees. The tree in ``split`` is changed node by node while its loss falls; that loss."""
    split = rows.split
    n_splits = split.shape[0]
    _, n_leaves = _gather(rows, split, 2 * n_splits + 1)
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
