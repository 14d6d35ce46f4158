"""Rows and leaves of whole trees as compiled code has them, and the loss of leaves (`tree_changes.py`).

A tree is an array of splits in heap order, (2**depth - 1,), -1 where there is none. Sums of rows and of leaves are
(negatives, positives, size).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
def error_of(goal, tp, fp):
    """One minus the measure with so many true and false positives."""
    if goal.kind == F1:
        return 1.0 - 2.0 * tp / (tp + goal.positives + fp)
    called = (tp + fp) * (goal.negatives + goal.positives - tp - fp)
    if called <= 0.0:  # with one label for all, nothing is found
        return 1.0
    found = tp * (goal.negatives - fp) - fp * (goal.positives - tp)
    return 1.0 - found / (np.sqrt(called) * np.sqrt(goal.positives * goal.negatives))


@shared_kernel
def rank_leaves(leaf, n, order):
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
    rank_leaves(leaf, n, order)
    area, best, fp, tp = 0.0, 1.0, 0.0, 0.0
    for i in range(n):
        n0, p0 = leaf[order[i], 0], leaf[order[i], 1]
        if goal.kind == AREA:
            part = 1.0 if n0 <= 0.0 else max(min((goal.share * goal.negatives - fp) / n0, 1.0), 0.0)
            area += part * n0 * (goal.positives - tp - 0.5 * part * p0)
        fp, tp = fp + n0, tp + p0
        if goal.kind != AREA:
            best = min(best, error_of(goal, tp, fp))
    loss = area / (goal.share * goal.negatives * goal.positives) if goal.kind == AREA else best
    return loss + goal.price * n


@shared_kernel
def _goes_left(rows, row, g):
    f = rows.feature_of[g]
    code = rows.gcode[row, f]
    return code == g or (code < g and not rows.nominal[f])


@shared_kernel
def end_of(rows, row, split, node):
    """The leaf of a row below a node, in heap order."""
    while node < split.shape[0] and split[node] >= 0:
        node = 2 * node + (1 if _goes_left(rows, row, split[node]) else 2)
    return node


@shared_kernel
def add(total, at, more, row, sign):
    """Add the sums of a row, or take them away where the sign is -1."""
    for k in range(WIDTH):
        total[at, k] += sign * more[row, k]


@shared_kernel
def clear(total, begin, end):
    """Set sums to 0."""
    for at in range(begin, end):
        for k in range(WIDTH):
            total[at, k] = 0.0


@shared_kernel
def gather(rows, split, node):
    """Collect the members of a node, and in ``leaf`` the sums of the leaves outside it: (how many members, leaves)."""
    n, n_leaves = 0, 0
    for end in range(rows.place.shape[0]):
        rows.place[end] = -1
    for row in range(rows.sums.shape[0]):
        end = end_of(rows, row, split, 0)
        top = end
        while top > node:
            top = (top - 1) // 2
        if top == node:
            rows.members[n] = row
            n += 1
            continue
        if rows.place[end] < 0:
            rows.place[end] = n_leaves
            clear(rows.leaf, n_leaves, n_leaves + 1)
            n_leaves += 1
        add(rows.leaf, rows.place[end], rows.sums, row, 1.0)
    return n, n_leaves


@shared_kernel
def order_by_code(rows, n, f):
    """Sort the members by their code of a feature (a counting sort); return the number of codes."""
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
def add_codes(rows, begin, end, listed):
    """Add some of the listed rows to the sums of their codes."""
    for i in range(begin, end):
        for f in range(rows.nominal.shape[0]):
            add(rows.added, rows.gcode[listed[i], f], rows.sums, listed[i], 1.0)


@shared_kernel
def left_sums(rows, out):
    """From sums per code to sums left of each split."""
    for f in range(rows.nominal.shape[0]):
        for g in range(rows.code_start[f], rows.code_start[f + 1]):
            for k in range(WIDTH):
                before = 0.0 if rows.nominal[f] or g == rows.code_start[f] else out[k, g - 1]
                out[k, g] = rows.added[g, k] + before
