"""What times, entries, weights and upper bounds must hold; each fault is one sentence with its row."""

from __future__ import annotations

from typing import Any

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.data.columns import require
from softsurv.errors import InvalidSurvivalDataError

LARGEST_WEIGHT = 1e100
"""Weights lie between one over this and this: the squares of others overflow or vanish."""


def check_lengths(columns: dict[str, Any], fields: tuple[str, ...]) -> None:
    """Every column has one value for each row of ``X``."""
    n = len(columns["X"])
    for field in fields:
        if columns[field] is not None and len(columns[field]) != n:
            raise InvalidSurvivalDataError(f"{field} must have one value per row of X, {n}, got {len(columns[field])}")


def check_size_of_weights(weight: FloatArray, argument: str) -> None:
    """Refuse weights (N,) whose products with other numbers would leave the doubles: searches square their sums."""
    good = (weight == 0) | ((weight >= 1 / LARGEST_WEIGHT) & (weight <= LARGEST_WEIGHT))
    require(good, weight, argument, f"0 or from {1 / LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}", "take another unit")


def check_values(columns: dict[str, Any]) -> None:
    """Every rule about times, entries, upper bounds and weights."""
    time, event, entry = columns["time"], columns["event"], columns["entry"]
    upper, weight = columns["upper"], columns["weight"]
    good = np.isfinite(time) & (time >= 0)
    require(good, time, "time", "finite and >= 0", "drop the row or shift the time origin")
    if not time.any() and (upper is None or np.isinf(upper).all()):
        raise InvalidSurvivalDataError("time must be > 0 in at least one row, got only zeros; check the column")
    if entry is not None:
        require(np.isfinite(entry) & (entry >= 0), entry, "entry", "finite and >= 0", "use 0 for no truncation")
        early = (entry < time) | (entry == 0)
        if upper is not None:  # it entered whole, and had failed at the next visit
            early |= (entry == time) & ~event & np.isfinite(upper)
        require(early, entry, "entry", "below time", "a subject must be observed after it enters; drop the row")
    if weight is not None:
        require(np.isfinite(weight) & (weight >= 0), weight, "weight", "finite and >= 0", "fix the weight")
        with np.errstate(over="ignore"):
            total = weight.sum()
        if not np.isfinite(total):
            raise InvalidSurvivalDataError(f"weight must have a finite sum, got up to {weight.max():g}; rescale it")
        if not weight.any():
            raise InvalidSurvivalDataError("weight must be > 0 in at least one row, got only zeros")
        check_size_of_weights(weight, "weight")
    if upper is not None:
        require(~np.isnan(upper), upper, "upper", "known", "use inf for right censoring")
        require(event | (upper > time), upper, "upper", "above time where event is False", "swap or drop the row")
        exact = ~event | np.isinf(upper) | (upper == time)
        require(
            exact,
            upper,
            "upper",
            "inf or equal to time where event is True",
            "set event False for an interval",
        )
