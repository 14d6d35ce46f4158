"""Where rising functions cross zero, many of them at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

MOST_ROUNDS = 200
"""Evaluations; ten are usual, and halving alone takes a quarter of this."""


def rising_root(
    function: Callable[[Points], Points],
    low: Points,  # (M,)
    high: Points,  # (M,)
    resolution: float,
) -> tuple[Points, NDArray[np.bool_]]:
    """The least points where M rising functions are >= 0, and which functions are >= 0 at ``high``, (M,) each.

    Parameters
    ----------
    function : callable
        From a point of each function (M,) to its values (M,), all numbers.
    low, high : ndarray (M,)
    resolution : float
        How far above the crossing a point may be. Where a function stays below 0, the point is ``high``.

    Notes
    -----
    Inverse quadratic interpolation where three points allow it, else halving (Chandrupatla 1997).
    """
    below, above = low, high  # the crossing is between them
    f_below, f_above = function(below), function(above)
    reached = f_above >= 0
    above = np.where(f_below >= 0, below, above)
    a, b, c = above, below, below  # the newest point, that on the other side, and the one before
    f_a, f_b, f_c = f_above, f_below, f_below
    share = np.full(len(low), 0.5)
    for _ in range(MOST_ROUNDS):
        width = above - below
        if not (reached & (width > resolution)).any():
            break
        x = a + share * (b - a)
        f_x = function(x)
        over = f_x >= 0
        above, below = np.where(over, x, above), np.where(over, below, x)
        same = over == (f_a >= 0)
        c, f_c = np.where(same, a, b), np.where(same, f_a, f_b)
        b, f_b = np.where(same, b, a), np.where(same, f_b, f_a)
        a, f_a = x, f_x
        share = _next_share(a, b, c, f_a, f_b, f_c, resolution)
    return above, reached


def _next_share(a: Points, b: Points, c: Points, f_a: Points, f_b: Points, f_c: Points, resolution: float) -> Points:
    """How far from a to b the next points are, as shares."""
    with np.errstate(divide="ignore", invalid="ignore"):
        at, f_at = (a - b) / (c - b), (f_a - f_b) / (f_c - f_b)
        smooth = (f_at**2 < at) & ((1 - f_at) ** 2 < 1 - at)
        step = f_a / (f_b - f_a) * f_c / (f_b - f_c) + (c - a) / (b - a) * f_a / (f_c - f_a) * f_b / (f_c - f_b)
        least = np.minimum(0.5 * resolution / np.abs(b - a), 0.5)
        found: Points = np.where(smooth & np.isfinite(step), np.clip(step, least, 1 - least), 0.5)
    return found
