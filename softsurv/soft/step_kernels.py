"""Compiled loops of the quasi-Newton memory on a CPU: `softsurv.soft.quasi_newton` tree by tree.

A tree takes some thousand multiplications a round, less time than a call of torch's operators takes. The rows of a
tree's table are those of `Memory`: S, P Y, P g, x, g, Y.
"""

from __future__ import annotations

import numpy as np

from softsurv.loops import FLOAT, flags, floats, ints
from softsurv.soft.jit import REORDERED, loop, loop_part


@loop_part(**REORDERED)
def inner(a, b):
    """Inner product of two vectors."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@loop_part(error_model="numpy")  # NaN may occur
def largest(values):
    """The largest absolute value; NaN if one is NaN. numpy's functions would take half a second to compile."""
    most = 0.0
    for i in range(values.size):
        size = abs(values[i])
        if size > most or size != size:
            most = size
    return most


@loop(*floats(3), *ints(2, 1), *floats(2, 2, 2), *flags(1), FLOAT, **REORDERED)
def move(table, slot, place, x, gradient, scaled, accepted, curvature):
    """A step of the quasi-Newton method.

    Go to the points x (m, D) of the trees that accept them, and keep the pair where its curvature is positive.
    The tables of the trees are those at ``place`` (m,).
    """
    for m in range(len(place)):
        if accepted[m]:
            at = place[m]
            slot[at, 0] = move_tree(table[at], slot[at, 0], x[m], gradient[m], scaled[m], curvature)


@loop_part(**REORDERED)
def move_tree(rows, at, x, gradient, scaled, curvature):
    """The same for the table and the next slot of one tree; returns the new next slot."""
    k = (len(rows) - 3) // 3
    sy, yy = 0.0, 0.0
    for i in range(x.size):
        y = gradient[i] - rows[2 * k + 2, i]
        sy += (x[i] - rows[2 * k + 1, i]) * y
        yy += y * y
    kept = sy > curvature * yy
    for i in range(x.size):
        if kept:
            rows[k + at, i] = scaled[i] - rows[2 * k, i]
            rows[at, i] = x[i] - rows[2 * k + 1, i]
            rows[2 * k + 3 + at, i] = gradient[i] - rows[2 * k + 2, i]
        rows[2 * k, i], rows[2 * k + 1, i], rows[2 * k + 2, i] = scaled[i], x[i], gradient[i]
    return (at + 1) % k if kept else at


@loop(*floats(3), *ints(2, 1), *floats(2, 1), **REORDERED)
def descend(table, slot, place, direction, slope):
    """Direction of the next step of the quasi-Newton method.

    It is -H g (m, D) of every tree, with its slope (m,); -P g where rounding makes -H g go uphill.
    """
    k = (table.shape[1] - 3) // 3
    room = np.empty((4, k)), np.empty((2, k, k))
    for m in range(len(place)):
        slope[m] = descend_tree(table[place[m]], slot[place[m], 0], direction[m], room)


@loop_part(**REORDERED)
def descend_tree(rows, first, direction, room):
    """The same for one tree's rows, whose oldest pair lies in slot ``first``; ``room`` is of (4, k) and (2, k, k)."""
    (u, v, steps, scaled), (lower, curved), k = room[0], room[1], (len(rows) - 3) // 3
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
        if lower[a, a] <= 0.0:  # an empty slot has zeros for products: with ones here it has no effect
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
    slope = inner(steps, v) + gamma * (inner(scaled, u) - flat)
    downhill = slope < 0.0
    if not downhill:  # or NaN
        gamma, slope = 1.0, -flat
    for i in range(direction.size):
        direction[i] = -gamma * pg[i]
    if downhill:
        for a in range(k):
            one = (first + a) % k
            for i in range(direction.size):
                direction[i] += v[a] * rows[one, i] + gamma * u[a] * rows[k + one, i]
    return slope


@loop_part(error_model="numpy")  # no fastmath: NaN and infinity occur
def advance_tree(state, m, trial, value, gradient, scaled, limits, room):
    """Take a tree's trial (D,) or shorten its step, in place: `softsurv.soft.optimisers` for one tree.

    ``state``: the tables of its ``_State``, the memory's table and slot first. ``limits``: sufficient decrease, least
    curvature, ftol, gtol, iterations.
    """
    table, slot, f, direction, slope, step, least, taken, moving = state
    decrease, curvature, ftol, gtol, max_iterations = limits
    found = value if np.isfinite(value) else np.inf  # without a value the step was too long
    gained, expected = f[m] - found, step[m] * slope[m]
    if not gained + decrease * expected >= 0.0:
        # minimum of the parabola through f, its slope and the failed trial, kept within [0.1, 0.5] of the step
        step[m] *= min(max(0.5 * expected / (gained + expected), 0.1), 0.5)
        moving[m] = step[m] >= least[m]
        return
    # the length of the first step is a guess: a small gain then says nothing about the minimum
    flat = gained <= ftol * max(abs(f[m]), 1.0) and taken[m] > 0
    small = largest(gradient) <= gtol
    taken[m] += 1
    f[m], step[m] = found, 1.0
    moving[m] = not (flat or small or taken[m] >= max_iterations or step[m] < least[m])
    slot[m, 0] = move_tree(table[m], slot[m, 0], trial, gradient, scaled, curvature)
    slope[m] = descend_tree(table[m], slot[m, 0], direction[m], room)
