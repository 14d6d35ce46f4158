"""Numbers of few digits for coefficients and thresholds."""

from __future__ import annotations

import math

import numpy as np

from softsurv.arrays import FloatArray

CLOSE = 1e-9
"""Neighbouring scores closer than this share of their size count as equal."""


def short_number(value: float, digits: int = 2) -> float:
    """The value with so many significant digits."""
    return float(f"{value:.{digits - 1}e}")


def shortest(scores: FloatArray, near: float, avoid: bool, clearance: float = 0.0) -> float:
    """The number of fewest digits between the first and the last score; of several the nearest to ``near``.

    The first score is allowed, the last one is not. The scores (n,) are sorted, and ``near`` lies between the two. With
    ``avoid`` the number equals no score, unless the scores lie too close for the digits of a float. No score exceeds it
    by ``clearance`` or less: the tree's arithmetic would not tell the two apart.
    """
    low, high = float(scores[0]), float(scores[-1])
    if not low < near < high:
        return low
    margin = CLOSE * max(abs(low), abs(high))
    for exponent in range(math.floor(math.log10(high - low)) + 1, -320, -1):
        step = 10.0**exponent
        nearest = math.floor(near / step + 0.5)
        for away in (0, 1, -1, 2, -2, 3, -3):
            found = float(f"{(nearest + away) * step:.{max(-exponent, 0)}f}") + 0.0  # no negative zero
            if not low <= found < high or (avoid and np.abs(scores - found).min() <= margin):
                continue
            if scores[np.searchsorted(scores, found, side="right")] - found > clearance:
                return found
        if exponent < -17 + math.floor(math.log10(max(abs(low), abs(high)))):
            break
    above = scores[np.searchsorted(scores, near, side="right")]
    return near if above - near > clearance or avoid else float(scores[np.searchsorted(scores, near) - 1])


def short_between(low: float, high: float, clearance: float = 0.0) -> float:
    """A number of few digits near the middle of [low, high), with as much room above it as `shortest` leaves."""
    return shortest(np.array([low, high]), 0.5 * low + 0.5 * high, avoid=False, clearance=clearance)
