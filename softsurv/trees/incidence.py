"""From cumulative hazards of several causes to the probability that each has happened.

The cumulative incidence of cause k is F_k(t), the integral of S dH_k, where S = exp(-sum of all H). Over a step of the
grid the share of cause k in the rise of all hazards is taken as constant. Then F_k rises by S (1 - exp(-dH)) dH_k / dH,
and S + sum of all F_k is one to rounding, whatever the grid. For hazards that jump, where H is minus the log of a
product-limit curve, this is the Aalen-Johansen estimate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import cumulative_simpson

from softsurv.arrays import FloatArray

Hazards = Callable[[FloatArray], FloatArray]
"""Cumulative hazards (n, T, K) at times (T,)."""

POINTS_PER_DECADE, DECADES_BELOW = 200, 6
"""Grid of a smooth hazard: steps of 1.2 % in time, from a millionth of the horizon on. The error in F is below 1e-5."""

LARGEST_HAZARD = 1e300
"""Stands for an infinite hazard, so that differences and shares stay numbers; exp(-1e300) is 0."""


def log_lattice(horizon: float, last: float) -> FloatArray:
    """Times (G,) at fixed ratios about ``horizon``, up to the first at or above ``last``.

    The points do not depend on the times that are asked for, so that a prediction does not depend on its neighbours.
    """
    end = int(np.ceil(POINTS_PER_DECADE * np.log10(max(last / horizon, 10.0**-DECADES_BELOW))))
    steps = np.arange(-POINTS_PER_DECADE * DECADES_BELOW, end + 1)
    with np.errstate(over="ignore"):
        grid = horizon * 10.0 ** (steps / POINTS_PER_DECADE)
    return grid[np.isfinite(grid)]


def incidences(hazards: Hazards, grid: FloatArray, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Survival (n, T) and cumulative incidences (n, T, K) at any times >= 0.

    Parameters
    ----------
    hazards : callable
    grid : ndarray (G,)
        Increasing. A time between two points is reached by a shorter step from the point before it.
    times : ndarray (T,)
    """
    at_grid, at_times = (np.minimum(hazards(t), LARGEST_HAZARD) for t in (grid, times))
    nothing = np.zeros_like(at_grid[:, :1])
    before = np.concatenate([nothing, at_grid], 1)  # (n, 1 + G, K)
    _, risen = accumulated(np.diff(before, axis=1))
    risen = np.concatenate([nothing, risen], 1)
    place = np.searchsorted(grid, times, side="right")
    total = before[:, place].sum(-1)
    rise = np.maximum(at_times - before[:, place], 0.0)
    return np.exp(-(total + rise.sum(-1))), np.minimum(risen[:, place] + step(total, rise), 1.0)


def accumulated(rises: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Survival (n, G) and cumulative incidences (n, G, K) at the ends of steps, from the rises (n, G, K) of hazards."""
    total = np.cumsum(rises.sum(-1), 1)
    start = np.concatenate([np.zeros_like(total[:, :1]), total[:, :-1]], 1)
    return np.exp(-total), np.minimum(np.cumsum(step(start, rises), 1), 1.0)  # a sum may pass 1 by rounding


def step(
    total: FloatArray,  # (...) all hazards before the step
    rise: FloatArray,  # (..., K)
) -> FloatArray:  # (..., K)
    """Rise of each cumulative incidence over a step."""
    whole = rise.sum(-1, keepdims=True)
    share = np.divide(rise, whole, out=np.zeros_like(rise), where=whole > 0)
    return np.exp(-total)[..., None] * -np.expm1(-whole) * share


def log_time_simpson(end: float) -> tuple[FloatArray, FloatArray]:
    """Times (2001,) over twelve decades up to ``end``, and the weights that integrate a curve over them.

    Simpson's rule in log time, in which curves are smooth on every scale. What lies before the first time is left out.
    """
    n, decades = 2001, 12
    log_grid = np.linspace(np.log(end) - decades * np.log(10), np.log(end), n)
    grid = np.exp(log_grid)
    width = grid * (log_grid[1] - log_grid[0]) / 3 * np.where(np.arange(n) % 2, 4, 2)
    width[[0, -1]] *= 0.5
    return grid, width


def area_from(begin: FloatArray, curves: FloatArray, grid: FloatArray) -> FloatArray:
    """Area under each curve from a time of its own to the end of the grid, (n,); 0 from there on.

    Simpson's rule in log time up to the points of the grid, a cubic between them.

    Parameters
    ----------
    begin : ndarray (n,)
    curves : ndarray (n, G)
        Survival at the grid; 1 before it.
    grid : ndarray (G,)
        Equally spaced in log time, as :func:`log_time_simpson` makes it.
    """
    step = np.log(grid[-1] / grid[0]) / (len(grid) - 1)
    slope = curves * grid * step  # of the area, for each step
    area = cumulative_simpson(slope, initial=0.0)
    with np.errstate(divide="ignore"):
        place = np.clip(np.log(begin / grid[0]) / step, 0.0, len(grid) - 1.0)
    k = np.minimum(place.astype(np.int64), len(grid) - 2)
    u, rows = place - k, np.arange(len(begin))
    rise, first, last = area[rows, k + 1] - area[rows, k], slope[rows, k], slope[rows, k + 1]
    passed = area[rows, k] + u * (first + u * (3 * rise - 2 * first - last + u * (first + last - 2 * rise)))
    return area[:, -1] - passed + np.maximum(grid[0] - begin, 0.0)
