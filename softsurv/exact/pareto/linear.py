"""The leaf of a linear Pareto task: every objective of every label is a weighted sum of the leaf's statistics."""

from __future__ import annotations

from numba import njit

from softsurv.exact.jit import INNER

OPTIONS = INNER | {"cache": False}


@njit(**OPTIONS)
def leaf_points(sums, params, out):
    """Objectives of each label (L, D): params[l, d, :K] . sums + params[l, d, K]."""
    k = sums.shape[0]
    for label in range(params.shape[0]):
        for d in range(params.shape[1]):
            total = params[label, d, k]
            for i in range(k):
                total += params[label, d, i] * sums[i]
            out[label, d] = total


@njit(**OPTIONS)
def leaf_cost(sums, label, point, weights):
    """Reduced cost of one label."""
    k = sums.shape[0]
    total = weights.label_cost[label, k]
    for i in range(k):
        total += weights.label_cost[label, i] * sums[i]
    return total


@njit(**OPTIONS)
def price(problem, weights, scratch, sums, n, work, out):
    """Least reduced cost over the labels of n leaves, one per column of ``sums`` (K, >= n)."""
    k = sums.shape[0]
    for label in range(weights.label_cost.shape[0]):
        target = out if label == 0 else work
        for i in range(n):
            target[i] = weights.label_cost[label, k]
        for j in range(k):
            slope = weights.label_cost[label, j]
            if slope != 0.0:
                for i in range(n):
                    target[i] += slope * sums[j, i]
        if label > 0:
            for i in range(n):
                out[i] = min(out[i], work[i])
