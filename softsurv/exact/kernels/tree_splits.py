"""The best split of a part of a whole tree, beside the leaves that stay (`tree_changes.py`)."""

from __future__ import annotations

import numpy as np

from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.tree_rows import AREA, EPSILON, WIDTH, error_of, loss_of, rank_leaves


@shared_kernel
def divide(rows, n, total, sums, t):
    """Put both sides of split t of a part behind n leaves; return whether they are large enough."""
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
        if divide(rows, n, total, sums, t):
            loss = loss_of(rows.goal, rows.leaf, n + 2, rows.order)
            if loss < best - EPSILON:
                best, chosen = loss, t
    return best, chosen


@shared_kernel
def _best_labels(rows, n, total, sums):
    """As `_best_split`, for a measure of labels: a good split, not always the best.

    One side of the part is called positive. As many of the other leaves are called positive as is best while the part
    is not divided, or one more, or one fewer. ``error`` holds the least loss over these choices.
    """
    goal, leaf, order, error = rows.goal, rows.leaf, rows.order, rows.error
    rank_leaves(leaf, n, order)
    middle, best, tp, fp = 0, np.inf, 0.0, 0.0
    for i in range(n + 1):
        loss = min(error_of(goal, tp, fp), error_of(goal, tp + total[1], fp + total[0]))
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
                left = error_of(goal, tp + sums[1, t], fp + sums[0, t])
                right = error_of(goal, tp + total[1] - sums[1, t], fp + total[0] - sums[0, t])
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
    divide(rows, n, total, sums, chosen)
    return loss_of(goal, leaf, n + 2, order), chosen


@shared_kernel
def _best_area(rows, n, total, sums):
    """As `_best_split`, for the whole area, by vectors of splits.

    The area is the weight of pairs in which a negative ranks above a positive, ties counted half: n0 p0 / 2 within a
    leaf, and min(n0 p1, n1 p0) between two leaves, as the one with the larger share of positives ranks above.
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
    """The weight of such pairs in n leaves."""
    area = 0.0
    for i in range(n):
        area += 0.5 * leaf[i, 0] * leaf[i, 1]
        for j in range(i):
            area += min(leaf[i, 0] * leaf[j, 1], leaf[j, 0] * leaf[i, 1])
    return area


@shared_kernel
def put(rows, n, total, sums, t):
    """Put a part behind n leaves, divided by split t unless t is -1; return the number of leaves."""
    if t >= 0:
        divide(rows, n, total, sums, t)
        return n + 2
    for k in range(WIDTH):
        rows.leaf[n, k] = total[k]
    return n + 1


@shared_kernel
def _least_loss(rows, n, total):
    """Lower bound of the loss if n leaves stay and the leaves of a part become pure."""
    for k in range(2):
        rows.leaf[n, k], rows.leaf[n + 1, k] = 0.0, 0.0
        rows.leaf[n + k, k] = total[k]
    return loss_of(rows.goal, rows.leaf, n + 2, rows.order) - rows.goal.price


@shared_kernel
def split_sides(rows, n, best):
    """The least loss where a node is divided as ``whole`` says and either side may be split, and the splits of both."""
    left, right = -1, -1
    put(rows, n, rows.whole[1], rows.both, -1)
    put(rows, n + 1, rows.whole[2], rows.rest, -1)
    loss = loss_of(rows.goal, rows.leaf, n + 2, rows.order)
    for turn in range(3):
        if turn == 2 and loss >= best:
            break
        if turn == 1 and _least_loss(rows, put(rows, n, rows.whole[1], rows.both, left), rows.whole[2]) >= best:
            break
        if turn == 1:
            value, t = _best_split(rows, put(rows, n, rows.whole[1], rows.both, left), rows.whole[2], rows.rest)
            right = t if value < loss else right
        else:
            value, t = _best_split(rows, put(rows, n, rows.whole[2], rows.rest, right), rows.whole[1], rows.both)
            left = t if value < loss else left
        loss = min(loss, value)
    return loss, left, right
