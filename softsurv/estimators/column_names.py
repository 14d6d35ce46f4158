"""Names of columns: those that readers know by another name than ``fit``, and those of predictions at some times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError, did_you_mean


def reader_columns(caller: Callable[..., Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns as ``fit`` names them, by the names of the reader: ``sample_weight`` is its ``weight``.

    Parameters
    ----------
    caller : function
        Whose ``**`` argument took them.
    columns : mapping

    Raises
    ------
    InvalidParameterError
        If both are given.
    TypeError
        If neither the reader nor the caller has such an argument.
    """
    known = [*signature(survival_data).parameters, "sample_weight"]
    for name in columns:
        if name not in known:
            own = [*signature(caller).parameters][:-1]
            raise TypeError(f"{caller.__name__} has no argument {name!r}{did_you_mean(name, own + known)}")
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
