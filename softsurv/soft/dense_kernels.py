"""Compiled loop of BFGS with whole matrices on a CPU: `softsurv.soft.bfgs` tree by tree.

A tree's matrix is small; operators of torch read and write the whole stack of matrices several times for a round.
"""

from __future__ import annotations

import numpy as np

from softsurv.kernel_cache import njit
from softsurv.soft.step_kernels import inner


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def advance(x, f, g, inverse, direction, step, tries, taken, moving, trial, value, gradient, limits):
    """Take the trial (D,) of every moving tree, or shorten its step, in place.

    ``limits``: sufficient decrease, least curvature, accuracy, iterations, halvings. The first nine arguments are those
    of ``_State``; ``value`` (m,) and ``gradient`` (m, D) are those of the trials.
    """
    decrease, least, accuracy, max_iterations, max_halvings = limits
    size = x.shape[1]
    s, y, turned = np.empty(size), np.empty(size), np.empty(size)
    for m in range(len(x)):
        if not moving[m]:
            continue
        promised = step[m] * inner(g[m], direction[m])
        if not (np.isfinite(value[m]) and value[m] <= f[m] + decrease * promised):
            step[m] *= shortened(value[m] - f[m], promised)
            tries[m] += 1
            moving[m] = tries[m] <= max_halvings
            continue
        small = abs(f[m] - value[m]) < accuracy or step[m] * np.sqrt(inner(direction[m], direction[m])) < accuracy
        for i in range(size):
            s[i], y[i] = trial[m, i] - x[m, i], gradient[m, i] - g[m, i]
            x[m, i], g[m, i] = trial[m, i], gradient[m, i]
        learn(inverse[m], s, y, turned, least)
        for i in range(size):
            direction[m, i] = -inner(inverse[m, i], g[m])
        f[m], step[m], tries[m] = value[m], 1.0, 0
        taken[m] += 1
        flat = abs(inner(g[m], direction[m])) < accuracy
        moving[m] = not (small or flat or taken[m] >= max_iterations)


@njit(cache=True, nogil=True, error_model="numpy")  # NaN and infinity count
def shortened(rise, promised):
    """Minimum of the parabola through the value, its slope and the failed trial, within [0.1, 0.5] of the step."""
    if not np.isfinite(rise):
        return 0.1
    return min(max(-0.5 * promised / max(rise - promised, 1e-300), 0.1), 0.5)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def learn(inverse, s, y, turned, least):
    """Update an inverse Hessian (D, D) by a step and its change of gradient, where its curvature is positive."""
    curvature = inner(s, y)
    if not (np.isfinite(curvature) and curvature > least * inner(y, y)):
        return
    for i in range(s.size):
        turned[i] = inner(inverse[i], y)
    half = 0.5 * (1.0 + inner(y, turned) / curvature)
    for i in range(s.size):  # from here on `turned` is what goes along with the step
        turned[i] = (half * s[i] - turned[i]) / curvature
    for i in range(s.size):
        for j in range(s.size):
            inverse[i, j] += turned[i] * s[j] + s[i] * turned[j]
