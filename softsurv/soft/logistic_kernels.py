"""Compiled rounds of the logistic regressions on a CPU: `softsurv.soft.logistic` node by node.

A round reads each node's own rows alone, skips the zeros of encoded categories, and leaves out the nodes that have
ended. Operators of torch form the products of all columns for all rows, and take every node along to the last round.
"""

from __future__ import annotations

import numpy as np

from softsurv.kernel_cache import njit
from softsurv.soft.step_kernels import inner
from softsurv.soft.vector_math import exponential, log_one_plus


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def newton(design, mass, labels, penalty, weights, value, size, moving, limits):
    """Take a step of Newton's method at every moving node, or halve the next one, in place.

    ``design`` (G, N, Q), ``mass`` and ``labels`` (K, N), ``penalty`` and ``weights`` (K, Q), the others (K,).
    ``limits``: largest entry of the gradient at the end, least share of a step, curvature added.
    """
    tolerance, least_step, least_curvature = limits
    nodes, columns, per_group = len(mass), design.shape[2], len(mass) // len(design)
    gradient, step, curvature = np.empty(columns), np.empty(columns), np.empty((columns, columns))
    for k in range(nodes):
        if not moving[k]:
            continue
        x = design[k // per_group]
        slopes(x, mass[k], labels[k], penalty[k], weights[k], gradient, curvature)
        moving[k] = np.abs(gradient).max() > tolerance and size[k] > least_step
        if not moving[k]:
            continue
        for i in range(columns):
            curvature[i, i] += least_curvature
        solve_positive(curvature, gradient, step)
        for i in range(columns):
            step[i] = weights[k, i] - size[k] * step[i]
        reached = loss(x, mass[k], labels[k], penalty[k], step)
        if reached <= value[k]:  # false for NaN
            value[k], size[k] = reached, 1.0
            for i in range(columns):
                weights[k, i] = step[i]
        else:
            size[k] *= 0.5


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def loss(x, mass, labels, penalty, weights):
    """Penalised loss of a node's rows (N, Q)."""
    total = 0.0
    for row in range(mass.size):
        if mass[row] > 0.0:
            v = inner(x[row], weights)
            total += mass[row] * ((v if v > 0.0 else 0.0) + log_one_plus(exponential(-abs(v))) - labels[row] * v)
    for i in range(weights.size):
        total += 0.5 * penalty[i] * weights[i] * weights[i]
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def slopes(x, mass, labels, penalty, weights, gradient, curvature):
    """Fill the gradient (Q,) of `loss` and the lower half of its second derivatives (Q, Q)."""
    for i in range(weights.size):
        gradient[i] = penalty[i] * weights[i]
        for j in range(i):
            curvature[i, j] = 0.0
        curvature[i, i] = penalty[i]
    for row in range(mass.size):
        if mass[row] > 0.0:
            v = inner(x[row], weights)
            e = exponential(-abs(v))
            p = (1.0 if v > 0.0 else e) / (1.0 + e)
            push, bend = mass[row] * (p - labels[row]), mass[row] * e / ((1.0 + e) * (1.0 + e))
            for i in range(weights.size):
                value = x[row, i]
                if value != 0.0:
                    gradient[i] += push * value
                    scaled = bend * value
                    for j in range(i + 1):
                        curvature[i, j] += scaled * x[row, j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def solve_positive(matrix, target, found):
    """Solve a positive definite system (D, D), its lower half given, which becomes its Cholesky factor."""
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
