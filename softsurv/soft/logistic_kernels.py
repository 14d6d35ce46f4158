"""Compiled rounds of the logistic regressions on a CPU: `softsurv.soft.logistic` node by node.

The rows of a node are copied once into contiguous memory, column by column, so that every loop over rows gets vector
instructions. Nodes that have converged are skipped. Torch's operators form the products of all columns for all rows,
and compute every node until the last round.
"""

from __future__ import annotations

import numpy as np

from softsurv.loops import FLOAT, INT, flags, floats, together
from softsurv.soft.jit import FUSED, REORDERED, loop, loop_part
from softsurv.soft.packed_rows import add_linear, add_products, packed
from softsurv.soft.row_kernels import BLOCK
from softsurv.soft.step_kernels import inner, largest
from softsurv.soft.vector_math import exponential, log_one_plus


@loop(*floats(3, 2, 2, 2, 2, 1, 1), *flags(1), together(FLOAT, FLOAT, FLOAT), INT, **FUSED)
def newton(design, mass, labels, penalty, weights, value, size, moving, limits, rounds):
    """Logistic regressions at the splits.

    Take up to so many steps of Newton's method at every moving node, or halve the next one, in place.
    ``design`` (G, N, Q), ``mass`` and ``labels`` (K, N), ``penalty`` and ``weights`` (K, Q), the others (K,).
    ``limits``: largest entry of the gradient at the end, least share of a step, curvature added.
    """
    tolerance, least_step, least_curvature = limits
    (nodes, rows), columns, per_group = mass.shape, design.shape[2], len(mass) // len(design)
    gradient, step, curvature = np.empty(columns), np.empty(columns), np.empty((columns, columns))
    order, x, share, wanted = np.empty(rows, np.int64), np.empty((columns, rows)), np.empty(rows), np.empty(rows)
    scratch = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for k in range(nodes):
        if not moving[k]:
            continue
        count = 0
        for row in range(rows):
            if mass[k, row] > 0.0:
                order[count], share[count], wanted[count] = row, mass[k, row], labels[k, row]
                count += 1
        packed(design[k // per_group], order, count, x)
        for _ in range(rounds):
            slopes(x, share[:count], wanted[:count], penalty[k], weights[k], gradient, curvature, scratch)
            moving[k] = largest(gradient) > tolerance and size[k] > least_step
            if not moving[k]:
                break
            for i in range(columns):
                curvature[i, i] += least_curvature
            solve_positive(curvature, gradient, step)
            for i in range(columns):
                step[i] = weights[k, i] - size[k] * step[i]
            reached = loss(x, share[:count], wanted[:count], penalty[k], step, scratch[0])
            if reached <= value[k]:  # false for NaN
                value[k], size[k] = reached, 1.0
                for i in range(columns):
                    weights[k, i] = step[i]
            else:
                size[k] *= 0.5


@loop_part(**REORDERED)
def loss(x, mass, labels, penalty, weights, room):
    """Penalised loss of a node's rows (Q, N); ``room`` is for the splits of a block."""
    total = 0.0
    for first in range(0, mass.size, BLOCK):
        share, wanted = mass[first : first + BLOCK], labels[first : first + BLOCK]
        v = room[: share.size]
        v[:] = 0.0
        add_linear(weights, x, first, first + v.size, v)
        for i in range(v.size):
            total += share[i] * (max(v[i], 0.0) + log_one_plus(exponential(-abs(v[i]))) - wanted[i] * v[i])
    for i in range(weights.size):
        total += 0.5 * penalty[i] * weights[i] * weights[i]
    return total


@loop_part(**FUSED)
def slopes(x, mass, labels, penalty, weights, gradient, curvature, scratch):
    """Fill the gradient (Q,) of `loss` and the lower half of its second derivatives (Q, Q)."""
    for i in range(weights.size):
        gradient[i] = penalty[i] * weights[i]
        for j in range(i):
            curvature[i, j] = 0.0
        curvature[i, i] = penalty[i]
    for first in range(0, mass.size, BLOCK):
        share, wanted = mass[first : first + BLOCK], labels[first : first + BLOCK]
        n = share.size
        v, bend, scaled = scratch[0][:n], scratch[1][:n], scratch[2][:n]
        v[:] = 0.0
        add_linear(weights, x, first, first + n, v)
        for i in range(n):
            e = exponential(-abs(v[i]))
            p = (1.0 if v[i] > 0.0 else e) / (1.0 + e)
            v[i] = share[i] * (p - wanted[i])  # from here on the slope
            bend[i] = share[i] * e / ((1.0 + e) * (1.0 + e))
        add_products(x, first, first + n, v, gradient)
        for q in range(weights.size):
            column = x[q, first : first + n]
            for i in range(n):
                scaled[i] = bend[i] * column[i]
            add_products(x, first, first + n, scaled, curvature[q, : q + 1])


@loop_part(**FUSED)
def solve_positive(matrix, target, found):
    """Solve a positive definite system (D, D). Only its lower half is read, and overwritten by its Cholesky factor."""
    size = target.size
    for i in range(size):
        for j in range(i):
            matrix[i, j] = (matrix[i, j] - inner(matrix[i, :j], matrix[j, :j])) / matrix[j, j]
        matrix[i, i] = np.sqrt(matrix[i, i] - inner(matrix[i, :i], matrix[i, :i]))
        found[i] = (target[i] - inner(matrix[i, :i], found[:i])) / matrix[i, i]
    for i in range(size - 1, -1, -1):
        found[i] /= matrix[i, i]
        for j in range(i):
            found[j] -= matrix[i, j] * found[i]
