"""Checks of what a `Binarizer` is asked for."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softsurv.data.encoding import Source
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


def check_named(thresholds: Any, columns: Sequence[str], sources: Sequence[Source]) -> None:
    """Refuse a mapping of thresholds that names a column which is not there, or holds categories."""
    if not isinstance(thresholds, Mapping):
        return
    categories = {source.name for source in sources if source.levels is not None}
    for name in thresholds:
        if name not in columns:
            shown = ", ".join(map(repr, columns[:8]))
            raise InvalidParameterError(f"thresholds must name columns of X, got {name!r}; X has {shown}")
        if name in categories:
            raise InvalidParameterError(
                f"thresholds must name columns of numbers, got {name!r}, which holds categories; leave it out"
            )
