"""From cumulative hazards of several causes to the probability that each has happened.

The cumulative incidence of cause k is F_k(t), the integral of S dH_k, where S = exp(-sum of all H). Over a step of the
grid the share of cause k in the rise of all hazards is taken as constant. Then F_k rises by S (1 - exp(-dH)) dH_k / dH,
and S + sum of all F_k is one to rounding, whatever the grid. For hazards that jump, where H is minus the log of a
product-limit curve, this is the Aalen-Johansen estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from softsurv.arrays import FloatArray, IntArray

Hazards = Callable[[FloatArray], FloatArray]
"""Cumulative hazards (n, T, K) at times (T,)."""

POINTS_PER_DECADE, DECADES_BELOW = 200, 6
"""Grid of a smooth hazard: steps of 1.2 % in time, from a millionth of the horizon on. The error in F is below 1e-5.
Where events fill less than a decade below the horizon, there are times about them beside."""

STEPS_OF_EVENTS = 400
"""Equal steps over the times of events that lie far from 0, and steps beside them while the distance grows tenfold."""

LARGEST_HAZARD = 1e300
"""Stands for an infinite hazard, so that differences and shares stay numbers; exp(-1e300) is 0."""

LARGEST_LOG_HAZARD = 700.0
"""Log H beyond which nobody is left; its exponential can be held, as an infinite one cannot be drawn through."""


MOST_HALVINGS = 20
"""Curves of those who have less than a millionth of the time left are drawn by the times of that millionth."""


def log_lattice(horizon: float, last: float, first: float = 0.0) -> FloatArray:
    """Times (G,) at fixed ratios about ``horizon``, up to the first at or above ``last``.

    Where ``first``, the time of the first event in training, lies far from 0 beside the horizon, such as an age or a
    calendar year of rows that enter late, times in equal steps from there to the horizon are among them, and others
    around these, as the curve of a row may rise before or after: at fixed ratios all of it may lie within a step.

    The points do not depend on the times that are asked for, so that a prediction does not depend on its neighbours.
    """
    end = int(np.ceil(POINTS_PER_DECADE * np.log10(max(last / horizon, 10.0**-DECADES_BELOW))))
    steps = np.arange(-POINTS_PER_DECADE * DECADES_BELOW, end + 1)
    with np.errstate(over="ignore"):
        grid = horizon * 10.0 ** (steps / POINTS_PER_DECADE)
    grid = grid[np.isfinite(grid)]
    if 10.0 * first <= horizon:
        return grid
    near = _about_events(first, horizon)
    return np.union1d(grid, near[near <= grid[-1]])


def _about_events(first: float, horizon: float) -> FloatArray:
    """Times (G,) in equal steps from the first event to the horizon, on both sides in steps that grow with distance.

    They begin at a third of the horizon, before which steps of a fixed ratio are shorter, and end at twice the horizon.
    """
    span = max(horizon - first, 10.0**-DECADES_BELOW * horizon)
    steps = np.arange(1, int(np.ceil(STEPS_OF_EVENTS * np.log10(1.0 + horizon / span))))
    away = span * np.expm1(steps * np.log(10.0) / STEPS_OF_EVENTS)
    even = np.linspace(first, horizon, STEPS_OF_EVENTS + 1)
    below, above = first - away, horizon + away
    return np.concatenate([below[below > horizon / 3][::-1], even, above])


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


def log_time_simpson(end: float, n: int = 2001, decades: int = 12) -> tuple[FloatArray, FloatArray]:
    """Times (n,) over so many decades up to ``end``, and the weights that integrate a curve over them.

    Simpson's rule in log time, in which curves are smooth on every scale. What lies before the first time is left out.
    """
    log_grid = np.linspace(np.log(end) - decades * np.log(10), np.log(end), n)
    grid = np.exp(log_grid)
    width = grid * (log_grid[1] - log_grid[0]) / 3 * np.where(np.arange(n) % 2, 4, 2)
    width[[0, -1]] *= 0.5
    return grid, width


def simpson_from_both_ends(end: float) -> tuple[FloatArray, FloatArray]:
    """Times (3001,) up to ``end``, and the weights that integrate a curve over them.

    :func:`log_time_simpson` up to the middle, from there Simpson's rule in the log of the time left: a curve over
    calendar years falls within one step of log time. What lies before the first time is left out.
    """
    grid, width = log_time_simpson(0.5 * end)
    left, own = log_time_simpson(0.5 * end, 1001, 6)
    own[0] += left[0]  # what lies after the last time
    width[-1] += own[-1]
    return np.append(grid, end - left[-2::-1]), np.append(width, own[-2::-1])


def by_time_left(begin: FloatArray, end: float) -> Iterator[tuple[IntArray, FloatArray]]:
    """Rows that have about equally much of the time to ``end`` before them, and times (2001,) to draw their curves by.

    The times are at fixed ratios, as those of :func:`log_time_simpson`. Where at most a part of 1/2**k is left, all lie
    in it: of a curve over calendar years the last twenty are one hundredth, less than a step of the other grid.

    Parameters
    ----------
    begin : ndarray (n,)
        A row's times depend on its own alone, not on those of the other rows.
    end : float
    """
    left = np.maximum(1 - np.minimum(begin, end) / end, 0.5**MOST_HALVINGS)
    halvings = np.floor(-np.log2(left)).astype(np.int64)
    whole, _ = log_time_simpson(end)
    for k in np.unique(halvings):
        grid = np.geomspace(end * (1 - 0.5**k), end, len(whole)) if k else whole
        yield np.flatnonzero(halvings == k), grid


def area_from(begin: FloatArray, now: FloatArray, log_hazards: FloatArray, grid: FloatArray) -> FloatArray:
    """Area under the survival of those left at a time of each curve's own, to the end of the grid, (n,); 0 from there.

    Simpson's rule in the log of the time since then: those who are left may all go within one step of the grid.

    Parameters
    ----------
    begin : ndarray (n,)
    now : ndarray (n,)
        Log H at these times; 0 is the area where H is infinite.
    log_hazards : ndarray (n, G)
        Log H at the grid.
    grid : ndarray (G,)
        At fixed ratios, the last one the end.
    """
    since, width = log_time_simpson(1.0)
    span = np.maximum(grid[-1] - begin, 0.0)[:, None]
    then = np.exp(_between(begin[:, None] + span * since, log_hazards, grid))
    with np.errstate(over="ignore"):
        rise = np.maximum(then - np.exp(now)[:, None], 0.0)
    return np.where(now < LARGEST_LOG_HAZARD, span[:, 0] * (since[0] + np.exp(-rise) @ width), 0.0)


def _between(times: FloatArray, values: FloatArray, grid: FloatArray) -> FloatArray:
    """Rising values (n, G) at times of each row (n, T): cubics in log time through four points of the grid."""
    values = np.clip(values, -LARGEST_LOG_HAZARD, LARGEST_LOG_HAZARD)
    step, last = np.log(grid[-1] / grid[0]) / (len(grid) - 1), len(grid) - 1
    with np.errstate(divide="ignore"):
        place = np.clip(np.log(times / grid[0]) / step, 0.0, last)
    cell = np.minimum(place.astype(np.int64), last - 1)
    k = np.clip(cell, 1, last - 2)
    u = place - k
    inner, outer = (u - 1) * (u - 2), (u + 1) * u
    weights = {-1: -u * inner / 6, 0: (u + 1) * inner / 2, 1: -outer * (u - 2) / 2, 2: outer * (u - 1) / 6}
    found = sum(weight * np.take_along_axis(values, k + j, 1) for j, weight in weights.items())
    return np.clip(found, np.take_along_axis(values, cell, 1), np.take_along_axis(values, cell + 1, 1))
