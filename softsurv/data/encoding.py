"""What `Preprocessor` knows of a column: how raw values are read and where encoded ones come from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsurv.data.columns import float_column, require
from softsurv.errors import InvalidSurvivalDataError


@dataclass(frozen=True)
class OutputColumn:
    """Where one encoded column comes from, so that a rule can be said in the data's own units.

    Attributes
    ----------
    name : str
        Name of the encoded column: ``age``, ``sex=M`` or ``age is missing``.
    source : str
        Column of the raw table.
    kind : {"number", "level", "missing"}
        A scaled number, the indicator of a level, or the indicator of a missing value.
    level : str or None
        The level where ``kind`` is "level".
    offset, scale : float
        encoded = (raw - offset) / scale; 0 and 1 for indicators.
    """

    name: str
    source: str
    kind: Literal["number", "level", "missing"]
    level: str | None = None
    offset: float = 0.0
    scale: float = 1.0

    def to_units(self, encoded: float) -> float:
        """An encoded value, such as a threshold, in the units of the source column."""
        return encoded * self.scale + self.offset


@dataclass(frozen=True)
class Source:
    """What fitting learned of one raw column: ``levels`` is None for a number."""

    name: str
    levels: tuple[str, ...] | None
    fill: float | str | None  # mean or most frequent level; None where nothing is imputed


def raw_values(column: pd.Series, source: Source) -> NDArray[Any]:
    """A raw column (N,) as its source says: float64, or text with None where missing."""
    return numbers(column, source.name) if source.levels is None else labels(column, source.name)


def is_number(column: pd.Series) -> bool:
    """Whether a column holds numbers or booleans, possibly as objects; dates are neither and refused."""
    if pd.api.types.is_object_dtype(column.dtype):
        return all(isinstance(v, (int, float, np.number, np.bool_)) for v in column.dropna())
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_complex_dtype(column.dtype)


def numbers(column: pd.Series, name: str) -> NDArray[np.float64]:
    """A number column (N,) as float64, NaN where missing; booleans become 0 and 1."""
    argument = f"column {name!r}"
    if pd.api.types.is_bool_dtype(column.dtype):
        column = column.astype("Float64")
    elif pd.api.types.is_object_dtype(column.dtype) and is_number(column):
        column = column.where(column.notna(), np.nan).astype(float)
        require(~np.isinf(column.to_numpy()), column, argument, "finite or missing", "replace it")
    return float_column(column, argument)


def labels(column: pd.Series, name: str) -> NDArray[np.object_]:
    """A category column (N,) as text, None where missing; 1, 1.0 and "1" are one label."""
    values = column.astype(object)
    neither = (date, timedelta, complex, pd.Period)
    for value in values:
        if isinstance(value, neither) or not pd.api.types.is_scalar(value):
            kind = type(value).__name__ if column.dtype == object else column.dtype
            raise InvalidSurvivalDataError(
                f"column {name!r} must hold numbers or categories, got {kind}; convert it first"
            )
    return np.array([None if gone else _label(v) for v, gone in zip(values, column.isna(), strict=True)], object)


def _label(value: Any) -> str:
    """The text of a level, whole floats as integers: missing values turn integer columns into floats."""
    is_whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if is_whole else str(value)


def observed_levels(column: pd.Series, labels: NDArray[np.object_]) -> tuple[str, ...]:
    """Labels that occur, in the order of the categorical type, else sorted."""
    found = {label for label in labels if label is not None}
    if isinstance(column.dtype, pd.CategoricalDtype):
        return tuple(dict.fromkeys(label for c in column.cat.categories if (label := _label(c)) in found))
    return tuple(sorted(found))
