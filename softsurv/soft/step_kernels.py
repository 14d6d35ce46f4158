"""Compiled loops of the quasi-Newton memory on a CPU: `softsurv.soft.quasi_newton` tree by tree.

A tree takes some thousand products, which take less time than calling torch's operators does. Rows
of a tree's table are those of `Memory`: S, P Y, P g, x, g, Y.
"""

from __future__ import annotations

import numpy as np

from softsurv.kernel_cache import njit


@njit(nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def inner(a, b):
    """Inner product of two vectors."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def move(table, slot, x, gradient, scaled, accepted, curvature):
    """Go to the points x (m, D) of the trees that accept them, and keep the pair where its curvature is positive."""
    k = (table.shape[1] - 3) // 3
    for m in range(len(table)):
        if not accepted[m]:
            continue
        rows, at, new = table[m], slot[m, 0], (scaled[m], x[m], gradient[m])
        sy, yy = 0.0, 0.0
        for i in range(x.shape[1]):
            y = gradient[m, i] - rows[2 * k + 2, i]
            sy += (x[m, i] - rows[2 * k + 1, i]) * y
            yy += y * y
        if sy > curvature * yy:
            for i in range(x.shape[1]):
                rows[k + at, i] = new[0][i] - rows[2 * k, i]
                rows[at, i] = new[1][i] - rows[2 * k + 1, i]
                rows[2 * k + 3 + at, i] = new[2][i] - rows[2 * k + 2, i]
            slot[m, 0] = (at + 1) % k
        for i in range(x.shape[1]):
            rows[2 * k, i], rows[2 * k + 1, i], rows[2 * k + 2, i] = new[0][i], new[1][i], new[2][i]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def descend(table, slot, direction, slope):
    """The direction -H g (m, D) of every tree and its slope (m,); the metric's where rounding spoils the former."""
    k = (table.shape[1] - 3) // 3
    u, v, steps, scaled = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    lower, curved = np.empty((k, k)), np.empty((k, k))
    for m in range(len(table)):
        rows, first = table[m], slot[m, 0]
        g, pg = rows[2 * k + 2], rows[2 * k]
        for a in range(k):  # the oldest pair first
            one = (first + a) % k
            y = rows[2 * k + 3 + one]
            steps[a], scaled[a] = inner(rows[one], g), inner(rows[k + one], g)
            for b in range(k):
                other = (first + b) % k
                curved[a, b] = inner(y, rows[k + other])
                if b <= a:
                    lower[a, b] = inner(y, rows[other])
            if lower[a, a] <= 0.0:  # a place without a pair has zeros for products: with ones here it changes nothing
                lower[a, a] += 1.0
                curved[a, a] += 1.0
        gamma = lower[k - 1, k - 1] / curved[k - 1, k - 1]
        for a in range(k - 1, -1, -1):
            u[a] = steps[a]
            for b in range(a + 1, k):
                u[a] -= lower[b, a] * u[b]
            u[a] /= lower[a, a]
        for a in range(k):
            v[a] = gamma * (scaled[a] - inner(curved[a], u)) - lower[a, a] * u[a]
            for b in range(a):
                v[a] -= lower[a, b] * v[b]
            v[a] /= lower[a, a]
        flat = inner(g, pg)
        slope[m] = inner(steps, v) + gamma * (inner(scaled, u) - flat)
        downhill = slope[m] < 0.0
        if not downhill:  # nor where it is NaN
            gamma, slope[m] = 1.0, -flat
        for i in range(direction.shape[1]):
            direction[m, i] = -gamma * pg[i]
        if downhill:
            for a in range(k):
                one = (first + a) % k
                for i in range(direction.shape[1]):
                    direction[m, i] += v[a] * rows[one, i] + gamma * u[a] * rows[k + one, i]
