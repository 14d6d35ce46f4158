"""Checks of what a `Binarizer` is asked for."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from softsurv.errors import InvalidParameterError

MISSING = ("impute", "route")
"""What may happen to missing values."""


def check_binarizer(thresholds: Any, max_levels: Any, min_share: Any, missing: Any) -> None:
    """Check the arguments; the sentence names the argument, what it must be and what it got."""
    chosen = thresholds.values() if isinstance(thresholds, Mapping) else [thresholds]
    if not all(_is_choice(value) for value in chosen):
        raise InvalidParameterError(
            f'thresholds must be an integer >= 1, "all", a list of numbers, or a mapping from column to one of these, '
            f"got {thresholds!r}"
        )
    if max_levels is not None and (not _is_whole(max_levels) or max_levels < 2):
        raise InvalidParameterError(f"max_levels must be an integer >= 2 or None, got {max_levels!r}")
    if not isinstance(min_share, int | float | np.number) or not 0 <= min_share < 0.5:
        raise InvalidParameterError(f"min_share must be a share of the rows in [0, 0.5), got {min_share!r}")
    if missing not in MISSING:
        raise InvalidParameterError(f'missing must be "impute" or "route", got {missing!r}')


def _is_choice(value: Any) -> bool:
    if isinstance(value, list | tuple | np.ndarray):
        return all(isinstance(cut, numbers.Real) and math.isfinite(cut) for cut in value)
    return value == "all" if isinstance(value, str) else _is_whole(value) and value >= 1


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
