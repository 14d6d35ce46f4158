"""Compiled rounds of BFGS over the leaves or the branch nodes of one level, each working set on its own rows.

`softsurv.soft.bfgs` computes the value of a whole stack in every round: each row goes through each leaf, and for small
trees the calls take longer than the work. Here the rows of a tree are sorted once by the node of the level that they
pass, and its rounds run in one loop. The functions are those of `OverLeaves` and `OverBranches` in
`softsurv.soft.restricted`, the oracle of the tests.
"""

from __future__ import annotations

import numpy as np

from softsurv.clamps import LOG_SHAPE_LIMIT
from softsurv.loops import INT, flags, floats, together
from softsurv.soft.dense_kernels import advance_tree
from softsurv.soft.jit import FUSED, LIMITS, POINTS, loop, loop_part
from softsurv.soft.packed_rows import add_linear, add_products, packed, packed_columns
from softsurv.soft.row_kernels import BLOCK, HAZARDS, fill_hazards, fill_odds, route_block
from softsurv.soft.step_kernels import inner
from softsurv.soft.vector_math import logarithm

GIVEN, LOG_LINEAR, SUMS = 0, 1, 2
"""Baselines: without a parameter; exp(shape) y; sums of increasing functions of time."""


@loop_part(**FUSED)
def rows_by_node(weight, order, begin):
    """Fill ``order`` with the rows that have weight (S, w, N), node by node; those of a node start at ``begin``."""
    filled = 0
    for node in range(weight.shape[0]):
        begin[node] = filled
        for i in range(weight.shape[2]):
            total = 0.0
            for part in range(weight.shape[1]):
                total += weight[node, part, i]
            if total > 0.0:
                order[filled] = i
                filled += 1
    begin[weight.shape[0]] = filled


@loop_part(**FUSED)
def leaf_block(link, baseline, point, x, time, event, mass, first, last, gradient, scratch):
    """Loss of a block of rows in a leaf with the parameters ``point`` (Q + K,); its gradient is added.

    ``x`` (Q, N), ``time`` (F, N), ``event`` and ``mass`` (N,). The first of ``scratch`` holds what else is in the
    predictors, usually 0; the fourth gets the derivatives by them.
    """
    n, columns = last - first, x.shape[0]
    z, up, loss, slope, steep = scratch[0][:n], scratch[1][:n], scratch[2][:n], scratch[3][:n], scratch[4][:n]
    weight = scratch[5]
    events, share, kinds = event[first:last], mass[first:last], point.size - columns
    add_linear(point[:columns], x, first, last, z)
    if baseline == GIVEN:
        rise, log_slope = time[0, first:last], time[1, first:last]
        for i in range(n):
            z[i] += rise[i]
            up[i] = log_slope[i]
    else:
        for k in range(kinds):
            weight[k] = np.exp(min(max(point[columns + k], -LOG_SHAPE_LIMIT), LOG_SHAPE_LIMIT))
        add_linear(weight[:kinds], time, first, last, z)
        if baseline == LOG_LINEAR:
            up[:] = min(max(point[columns], -LOG_SHAPE_LIMIT), LOG_SHAPE_LIMIT)
        else:
            steep[:] = 0.0
            add_linear(weight[:kinds], time[kinds:], first, last, steep)
            for i in range(n):
                up[i] = logarithm(steep[i]) if events[i] != 0.0 else 0.0  # censored rows do not need it
    if link == HAZARDS:
        fill_hazards(z, up, events, loss, slope)
    else:
        fill_odds(z, up, events, loss, slope)
    value = inner(share, loss)
    for i in range(n):
        slope[i] *= share[i]
    add_products(x, first, last, slope, gradient[:columns])
    if baseline != GIVEN:
        for i in range(n):  # from here on `up` is the derivative by the baseline's slope, of LOG_LINEAR by its log
            of_log = -share[i] * events[i]
            up[i] = of_log if baseline == LOG_LINEAR or of_log == 0.0 else of_log / steep[i]
        for k in range(kinds):
            if abs(point[columns + k]) < LOG_SHAPE_LIMIT:
                by_value = weight[k] * inner(time[k, first:last], slope)
                if baseline == LOG_LINEAR:
                    total = 0.0
                    for i in range(n):
                        total += up[i]
                    gradient[columns] += by_value + total
                else:
                    gradient[columns + k] += by_value + weight[k] * inner(time[kinds + k, first:last], up)
    return value


@loop(POINTS, LIMITS, INT, INT, INT, *floats(3, 3, 2, 4), together(*floats(2, 2, 1)), **FUSED)
def leaf_rounds(state, limits, rounds, link, baseline, design, time, event, reach, well):
    """Training of the leaves, with the splits given.

    Up to so many rounds of every moving tree over its leaves, in place.
    ``state`` and ``limits`` are those of `dense_kernels.advance`. ``design`` (G, N, Q), ``time`` (G, F, N), ``event``
    (G, N), ``reach`` (M, S, L / S, N), ``well``: the penalties' curvature and centre (M, Q + K) and floor (M,).
    """
    x, moving = state[0], state[8]
    curvature, centre, floor = well
    trees, tops, width, rows = reach.shape
    per_group, size = trees // len(design), x.shape[1] // (tops * width)
    order, begin = np.empty(rows, np.int64), np.empty(tops + 1, np.int64)
    features, times = np.empty((design.shape[2], rows)), np.empty((time.shape[1], rows))
    events, mass = np.empty((1, rows)), np.empty((width, rows))
    trial, gradient = np.empty(x.shape[1]), np.empty(x.shape[1])
    room = np.empty(x.shape[1]), np.empty(x.shape[1]), np.empty(x.shape[1])
    scratch = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(size)
    for m in range(trees):
        if not moving[m]:
            continue
        group = m // per_group
        rows_by_node(reach[m], order, begin)
        packed(design[group], order, begin[tops], features)
        packed_columns(time[group], order, begin[tops], times)
        packed_columns(event[group : group + 1], order, begin[tops], events)
        for node in range(tops):
            here = slice(begin[node], begin[node + 1])
            packed_columns(reach[m, node], order[here], begin[node + 1] - begin[node], mass[:, here])
        for _ in range(rounds):
            next_trial(state, m, trial)
            value = floor[m] * tops * width
            gradient[:] = 0.0
            for node in range(tops):
                for part in range(width):
                    leaf = slice((node * width + part) * size, (node * width + part + 1) * size)
                    for first in range(begin[node], begin[node + 1], BLOCK):
                        last = min(first + BLOCK, begin[node + 1])
                        scratch[0][: last - first] = 0.0
                        value += leaf_block(
                            link, baseline, trial[leaf], features, times, events[0], mass[part], first, last,
                            gradient[leaf], scratch,
                        )  # fmt: skip
                    value += add_penalty(trial[leaf], curvature[m], centre[m], gradient[leaf])
            advance_tree(state, m, trial, value, gradient, limits, room)
            if not moving[m]:
                break


@loop_part(**FUSED)
def next_trial(state, m, trial):
    """Fill the point (D,) that a tree tries next."""
    x, direction, step = state[0], state[4], state[5]
    for i in range(trial.size):
        trial[i] = x[m, i] + step[m] * direction[m, i]


@loop_part(**FUSED)
def add_penalty(point, curvature, centre, gradient):
    """Quadratic penalty of some parameters; its gradient is added."""
    value = 0.0
    for i in range(point.size):
        away = point[i] - centre[i]
        value += 0.5 * curvature[i] * away * away
        gradient[i] += curvature[i] * away
    return value


@loop_part(**FUSED)
def subtree_value(point, numbers, x, leaf_loss, mass, begin, end, gradient, scratch):
    """Expected loss of the rows of a subtree, whose branch nodes have these numbers; the gradient is added.

    ``point`` and ``gradient`` (B, Q), ``x`` (Q, N), ``leaf_loss`` (w, N), ``mass`` (N,).
    """
    split, entering, reach, cost, go_left, product, slopes = scratch
    nodes, leaves, value = len(numbers), len(leaf_loss), 0.0
    for first in range(begin, end, BLOCK):
        n = min(BLOCK, end - first)
        for k in range(nodes):
            split[k, :n] = 0.0
            add_linear(point[numbers[k]], x, first, first + n, split[k])
        for leaf in range(leaves):
            for i in range(n):
                cost[nodes + leaf, i] = leaf_loss[leaf, first + i]
        for i in range(n):
            entering[0, i] = mass[first + i]
        value += route_block(split, entering, 0, n, reach, cost, go_left, product, slopes)
        for k in range(nodes):
            add_products(x, first, first + n, slopes[k, :n], gradient[numbers[k]])
    return value


@loop(POINTS, LIMITS, INT, *floats(3, 4, 4), *flags(2), *floats(2), **FUSED)
def branch_rounds(state, limits, rounds, design, leaf_loss, mass, free, curvature):
    """Training of the splits, with the leaves given.

    Up to so many rounds of every moving tree over its free branch nodes from a level on, in place.
    ``leaf_loss`` (M, S, L / S, N), ``mass`` (M, S, 1, N), ``free`` (M, S) of each subtree, ``curvature`` (M, Q); the
    others as in `leaf_rounds`.
    """
    x, moving = state[0], state[8]
    trees, tops, width, rows = leaf_loss.shape
    nodes, columns, per_group = width - 1, design.shape[2], trees // len(design)
    order, begin, numbers = np.empty(rows, np.int64), np.empty(tops + 1, np.int64), np.empty(nodes, np.int64)
    features, loss, weight = np.empty((columns, rows)), np.empty((width, rows)), np.empty((1, rows))
    trial, gradient = np.empty((tops * nodes, columns)), np.empty((tops * nodes, columns))
    room, origin = (np.empty(x.shape[1]), np.empty(x.shape[1]), np.empty(x.shape[1])), np.empty(columns)
    origin[:] = 0.0
    scratch = (
        np.empty((nodes, BLOCK)), np.empty((1, BLOCK)), np.empty((nodes + width, BLOCK)),
        np.empty((nodes + width, BLOCK)), np.empty((nodes, BLOCK)), np.empty((nodes, BLOCK)), np.empty((nodes, BLOCK)),
    )  # fmt: skip
    for m in range(trees):
        if not moving[m]:
            continue
        rows_by_node(mass[m], order, begin)
        packed(design[m // per_group], order, begin[tops], features)
        for node in range(tops):
            here, count = slice(begin[node], begin[node + 1]), begin[node + 1] - begin[node]
            packed_columns(leaf_loss[m, node], order[here], count, loss[:, here])
            packed_columns(mass[m, node], order[here], count, weight[:, here])
        fixed = 0.0
        flat = trial.ravel()
        for i in range(flat.size):
            flat[i] = x[m, i]
        for node in range(tops):
            if not free[m, node]:
                number_below(node, tops, numbers)
                fixed += subtree_value(
                    trial, numbers, features, loss, weight[0], begin[node], begin[node + 1], gradient, scratch
                )
                for k in range(nodes):
                    fixed += add_penalty(trial[numbers[k]], curvature[m], origin, gradient[numbers[k]])
        for _ in range(rounds):
            next_trial(state, m, flat)
            value = fixed
            gradient[:] = 0.0
            for node in range(tops):
                if free[m, node]:
                    number_below(node, tops, numbers)
                    value += subtree_value(
                        trial, numbers, features, loss, weight[0], begin[node], begin[node + 1], gradient, scratch
                    )
                    for k in range(nodes):
                        value += add_penalty(trial[numbers[k]], curvature[m], origin, gradient[numbers[k]])
            advance_tree(state, m, flat, value, gradient.ravel(), limits, room)
            if not moving[m]:
                break


@loop_part(error_model="numpy")
def number_below(node, tops, numbers):
    """Fill the numbers of the branch nodes of a subtree, in its own heap order, among all of its level and below."""
    for k in range(numbers.size):
        level_start = 1
        while 2 * level_start <= k + 1:
            level_start *= 2
        numbers[k] = tops * (level_start - 1) + node * level_start + k - (level_start - 1)
