"""Compiled loop of the curvatures of leaves on a CPU: `softsurv.sparse.leaf_grams` row by row.

Torch's operators go through all rows once for each leaf. Here each row is added to its own leaf alone.
"""

from __future__ import annotations

import numpy as np

from softsurv.loops import FLOAT, floats, ints
from softsurv.soft.jit import REORDERED, loop


@loop(*floats(3, 3, 3, 2, 2), *ints(2), *floats(2), FLOAT, *floats(4), **REORDERED)
def add_leaf_grams(design, rise, slope, event, mass, leaf, weights, curvature, out):
    """Curvature of the loss in each leaf.

    That of every row is added to that of its leaf, ``out`` (M, L, R, R).
    ``design`` (G, N, Q), the baseline's functions ``rise`` and their slopes ``slope`` (G, K, N), ``event`` (G, N),
    ``mass`` and ``leaf`` (M, N), ``weights`` (M, K) of the functions, and the ``curvature`` of a row by its level.
    """
    (trees, rows), columns, n_shape, size = mass.shape, design.shape[2], rise.shape[1], out.shape[2]
    per_group = trees // len(design)
    row, share = np.empty(size), np.empty(n_shape)
    row[:] = 0.0
    for m in range(trees):
        g = m // per_group
        for i in range(rows):
            weight = mass[m, i]
            if weight <= 0.0:
                continue
            table = out[m, leaf[m, i]]
            for j in range(columns):  # a slice of an array would take a second to compile
                row[j] = design[g, i, j]
            steep = 0.0
            for j in range(n_shape):
                row[columns + j] = weights[m, j] * rise[g, j, i]
                share[j] = weights[m, j] * slope[g, j, i]
                steep += share[j]
            for a in range(size):
                scaled = weight * curvature * row[a]
                for b in range(a + 1):
                    table[a, b] += scaled * row[b]
            if event[g, i] > 0.0 and steep > 0.0:
                for a in range(n_shape):
                    for b in range(a + 1):
                        table[columns + a, columns + b] += weight * share[a] * share[b] / (steep * steep)
        for k in range(out.shape[1]):
            for a in range(size):
                for b in range(a):
                    out[m, k, b, a] = out[m, k, a, b]
