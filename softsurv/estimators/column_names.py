"""Names of columns: those that readers know by another name than ``fit``, and those of predictions at some times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softsurv.errors import InvalidParameterError


def reader_columns(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns as ``fit`` names them, by the names of the reader: ``sample_weight`` is its ``weight``.

    Raises
    ------
    InvalidParameterError
        If both are given.
    """
    if {"weight", "sample_weight"} <= columns.keys():
        raise InvalidParameterError("weight and sample_weight say the same, got both; leave one out")
    return {"weight" if name == "sample_weight" else name: value for name, value in columns.items()}


def time_names(times: ArrayLike) -> list[str]:
    """Times (T,) as parts of column names: short, and with all digits where short ones are equal.

    Examples
    --------
    >>> time_names([0.5, 20.0, 1.0000001, 1.0000002])
    ['0.5', '20', '1.0000001', '1.0000002']
    """
    grid = [float(time) for time in np.atleast_1d(np.asarray(times, dtype=float))]
    shared = Counter(f"{time:g}" for time in set(grid))
    return [f"{time:g}" if shared[f"{time:g}"] == 1 else repr(time).removesuffix(".0") for time in grid]
