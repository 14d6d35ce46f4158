"""Compiled loop of BFGS with whole matrices on a CPU: `softsurv.soft.bfgs` tree by tree.

The matrix of a tree is small. Torch's operators read and write all matrices of a stack several times in each round.
"""

from __future__ import annotations

import numpy as np

from softsurv.loops import floats
from softsurv.soft.jit import LIMITS, POINTS, REORDERED, loop, loop_part
from softsurv.soft.step_kernels import inner


@loop(POINTS, *floats(2, 1, 2), LIMITS, **REORDERED)
def advance(state, trial, value, gradient, limits):
    """A step of BFGS.

    Take the trial (D,) of every moving tree, or shorten its step, in place.
    ``state``: the tables of ``_Points``; ``value`` (m,) and ``gradient`` (m, D) are those of the trials. ``limits``:
    sufficient decrease, least curvature, accuracy, iterations, halvings.
    """
    size = trial.shape[1]
    room = np.empty(size), np.empty(size), np.empty(size)
    for m in range(len(trial)):
        if state[8][m]:
            advance_tree(state, m, trial[m], value[m], gradient[m], limits, room)


@loop_part(**REORDERED)
def advance_tree(state, m, trial, value, gradient, limits, room):
    """The same for one tree; ``room`` is for three vectors (D,)."""
    x, f, g, inverse, direction, step, tries, taken, moving = state
    decrease, least, accuracy, max_iterations, max_halvings = limits
    s, y, turned = room
    promised = step[m] * inner(g[m], direction[m])
    if not (np.isfinite(value) and value <= f[m] + decrease * promised):
        step[m] *= shortened(value - f[m], promised)
        tries[m] += 1
        moving[m] = tries[m] <= max_halvings
        return
    small = abs(f[m] - value) < accuracy or step[m] * np.sqrt(inner(direction[m], direction[m])) < accuracy
    for i in range(trial.size):
        s[i], y[i] = trial[i] - x[m, i], gradient[i] - g[m, i]
        x[m, i], g[m, i] = trial[i], gradient[i]
    learn(inverse[m], s, y, turned, least)
    for i in range(trial.size):
        direction[m, i] = -inner(inverse[m, i], g[m])
    f[m], step[m], tries[m] = value, 1.0, 0
    taken[m] += 1
    flat = abs(inner(g[m], direction[m])) < accuracy
    moving[m] = not (small or flat or taken[m] >= max_iterations)


@loop_part(error_model="numpy")  # no fastmath: NaN and infinity occur
def shortened(rise, promised):
    """Minimum of the parabola through the value, its slope and the failed trial, within [0.1, 0.5] of the step."""
    if not np.isfinite(rise):
        return 0.1
    return min(max(-0.5 * promised / max(rise - promised, 1e-300), 0.1), 0.5)


@loop_part(**REORDERED)
def learn(inverse, s, y, turned, least):
    """Update an inverse Hessian (D, D) by a step and its change of gradient, where its curvature is positive."""
    curvature = inner(s, y)
    if not (np.isfinite(curvature) and curvature > least * inner(y, y)):
        return
    for i in range(s.size):
        turned[i] = inner(inverse[i], y)
    half = 0.5 * (1.0 + inner(y, turned) / curvature)
    for i in range(s.size):  # from here on `turned` is w of the update w s' + s w'
        turned[i] = (half * s[i] - turned[i]) / curvature
    for i in range(s.size):
        for j in range(s.size):
            inverse[i, j] += turned[i] * s[j] + s[i] * turned[j]
