"""Compiled rounds of L-BFGS over leaf models: every tree to its end in one loop that does not hold Python's lock.

`softsurv.soft.optimisers` computes the value of a whole stack in every round, by calls that take longer than the rows
of a small table do. Here the rows of a tree are sorted by leaf once. The function is `LeafObjective` of
`softsurv.sparse.leaf_fit` with the metric of `softsurv.sparse.leaf_metric`, the oracle of the tests.
"""

from __future__ import annotations

import numpy as np

from softsurv.loops import FLOAT, INT, flags, floats, ints, together
from softsurv.soft.jit import FUSED, loop, loop_part
from softsurv.soft.node_kernels import leaf_block
from softsurv.soft.packed_rows import add_few_products, fill_few, packed, packed_columns
from softsurv.soft.row_kernels import BLOCK
from softsurv.soft.step_kernels import advance_tree, inner

STATE = together(*floats(3), *ints(2), *floats(1, 2, 1, 1, 1), *ints(1), *flags(1))
LIMITS_OF_ROUNDS = together(FLOAT, FLOAT, FLOAT, FLOAT, INT)
FEW = together(*ints(1, 2, 1), *floats(1))
PENALTIES = together(*floats(2), *flags(2), *floats(1))
METRIC = together(*floats(3, 2, 2, 3, 4), *ints(1), *flags(2), *floats(4))


@loop(STATE, LIMITS_OF_ROUNDS, INT, INT, INT, FEW, *floats(3, 3, 2, 2), *ints(2), PENALTIES, METRIC, **FUSED)
def fit_rounds(state, limits, rounds, link, baseline, few, design, time, event, mass, leaf, penalties, metric):
    """Fit the models of all leaves together.

    Up to so many rounds of every moving tree over its common model and the leaves' deviations, in place.
    ``state`` and ``limits``: those of `step_kernels.advance_tree`. ``few``: the columns (Q,), of which the first D are
    in ``design`` (G, N, D) and the others are mostly 0; where the numbers of a row other than 0 begin (G, N + 1), their
    columns and values (E,). ``time`` (G, F, N), ``event`` (G, N), ``mass`` and ``leaf`` (M, N). ``penalties``: strength
    (M, Q + K), which deviations are free (M, Q + K), and the ridge (M,). ``metric``: as in `next_step`.
    """
    table, direction, step, moving = state[0], state[3], state[5], state[8]
    strength, free, ridge = penalties
    place, starts, column, number = few
    (trees, rows), columns, dense, size = mass.shape, place.size, design.shape[2], strength.shape[1]
    leaves, per_group = table.shape[2] // size - 1, trees // len(design)
    at_x, pairs = table.shape[1] // 3 * 2 - 1, table.shape[1] // 3 - 1
    order, begin = np.empty(rows, np.int64), np.empty(leaves + 1, np.int64)
    x, times = np.empty((dense, rows)), np.empty((time.shape[1], rows))
    own = np.empty((2, rows))  # events and weights
    point, slopes = np.empty(size), np.empty(size)
    near, by_near = np.empty(dense + size - columns), np.empty(dense + size - columns)  # of the design and the shapes
    at_near = np.append(place[:dense], np.arange(columns, size))
    trial, gradient, scaled = np.empty(table.shape[2]), np.empty(table.shape[2]), np.empty(table.shape[2])
    scratch = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(size)
    room = np.empty((4, pairs)), np.empty((2, pairs, pairs))
    for m in range(trees):
        if not moving[m]:
            continue
        g = m // per_group
        rows_by_leaf(mass[m], leaf[m], order, begin)
        packed(design[g], order, begin[leaves], x)
        packed_columns(time[g], order, begin[leaves], times)
        for at in range(begin[leaves]):
            own[0, at], own[1, at] = event[g, order[at]], mass[m, order[at]]
        for _ in range(rounds):
            for i in range(trial.size):
                trial[i] = table[m, at_x, i] + step[m] * direction[m, i]
            value = 0.0
            gradient[:] = 0.0
            for k in range(leaves):
                off = (k + 1) * size
                for i in range(size):
                    point[i], slopes[i] = trial[i] + trial[off + i], 0.0
                for i in range(near.size):
                    near[i], by_near[i] = point[at_near[i]], 0.0
                for first in range(begin[k], begin[k + 1], BLOCK):
                    last = min(first + BLOCK, begin[k + 1])
                    scratch[0][: last - first] = 0.0
                    if number.size > 0:
                        fill_few(point, order, starts[g], column, number, first, last, scratch[0])
                    value += leaf_block(
                        link, baseline, near, x, times, own[0], own[1], first, last, by_near, scratch
                    )  # fmt: skip
                    if number.size > 0:
                        add_few_products(order, starts[g], column, number, first, last, scratch[3], slopes)
                for i in range(near.size):
                    slopes[at_near[i]] += by_near[i]
                for i in range(size):
                    gradient[i] += slopes[i]
                    if free[m, i]:
                        away = trial[off + i]
                        value += 0.5 * strength[m, i] * away * away
                        gradient[off + i] = slopes[i] + strength[m, i] * away
            for i in range(1, columns):
                value += 0.5 * ridge[m] * trial[i] * trial[i]
                gradient[i] += ridge[m] * trial[i]
            next_step(m, m // (trees // len(metric[0])), columns, gradient, metric, scaled, point)
            advance_tree(state, m, trial, value, gradient, scaled, limits, room)
            if not moving[m]:
                break


@loop_part(error_model="numpy")
def rows_by_leaf(mass, leaf, order, begin):
    """Fill ``order`` with the rows that have weight, leaf by leaf; those of a leaf begin at ``begin`` (L + 1,)."""
    begin[:] = 0
    for i in range(mass.size):
        if mass[i] > 0.0:
            begin[leaf[i] + 1] += 1
    for k in range(1, begin.size):
        begin[k] += begin[k - 1]
    for i in range(mass.size):
        if mass[i] > 0.0:
            order[begin[leaf[i]]] = i
            begin[leaf[i]] += 1
    for k in range(begin.size - 1, 0, -1):
        begin[k] = begin[k - 1]
    begin[0] = 0


@loop_part(**FUSED)
def next_step(m, g, columns, gradient, metric, out, room):
    """Fill the metric's step (D,) of a gradient (D,); ``room`` (Q + K,) is for scratch.

    ``metric``: the inverse curvature of the common model of tree or group ``g``, as a matrix (M or G, R, R), R of 0, Q
    or Q + K, and as a diagonal (M or G, Q or 0); units of its shapes (M, K); for deviations a scale (M, L, Q + K), and
    matrices (M, L, A, A) of the parameters ``at`` (A,), of which those in ``free`` (M, A) may differ from 0; and the
    coupling (M, L, R, R) of deviations and common model where slopes are the leaves' own, L of 0 elsewhere. With a
    coupling all parameters are in ``at``, and units are 1.
    """
    matrix, diagonal, unit, scale, of_leaf, at, free, coupling = metric
    size, reach = room.size, matrix.shape[1]
    for i in range(size):
        room[i] = gradient[i] * (unit[m, i - columns] if i >= columns else 1.0)
    for k in range(coupling.shape[1]):
        own = gradient[(k + 1) * size : (k + 2) * size]
        for i in range(size):
            room[i] -= inner(coupling[m, k, i], own)
    for i in range(size):
        out[i] = room[i]
        if i < reach:
            out[i] = inner(matrix[g, i], room[:reach])
        elif i < diagonal.shape[1]:
            out[i] = room[i] * diagonal[g, i]
        if i >= columns:
            out[i] *= unit[m, i - columns]
    for k in range(scale.shape[1]):
        off = (k + 1) * size
        for i in range(size):
            out[off + i] = scale[m, k, i] * gradient[off + i]
        for a in range(at.size):
            total = 0.0
            for b in range(at.size):
                total += of_leaf[m, k, a, b] * gradient[off + at[b]]
            out[off + at[a]] = total if free[m, a] else 0.0
    for k in range(coupling.shape[1]):
        own = out[(k + 1) * size : (k + 2) * size]
        for i in range(size):
            for a in range(size):
                own[a] -= coupling[m, k, i, a] * out[i]
