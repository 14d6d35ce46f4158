"""Whether a raw column holds numbers or categories, and what to say where that is not clear."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd

from softsurv.data.blocks import column_types, distinct
from softsurv.data.columns import series
from softsurv.data.in_time import read_in_time
from softsurv.errors import DataWarning, InvalidSurvivalDataError, unsaid, warn

MAX_CODES = 10
"""Text that shows more different numbers than this is a measurement, not a code."""

LARGEST_CODE = 20
"""Text such as "1", "2", "3" may be a code; larger numbers are not."""

MIN_IDENTIFIERS = 20
"""A text column of at least so many rows, all different, names the rows."""

MAX_LISTED = 4
"""A sentence names so many columns, and counts the others."""

_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A number as text. A leading zero, as in "007", marks a code."""

_LIKE = re.compile(
    r"[+-]?[$€£]?\s?[0-9][0-9.,' \u00a0_]*(?:[eE][+-]?[0-9]+)?\s?[%$€£]?"  # 83,1  5%  1 200  $7
    r"|0[xX][0-9a-fA-F]+"  # 0x1F
    r"|[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}(?:[T ].*)?"  # 2020-01-31 12:00
)
"""Text that means a number or a date and is not written as a number."""

_DATE = re.compile(r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}(?:[T ].*)?")

_REMEDIES = {
    re.compile(r"[+-]?[0-9]+,[0-9]+"): "write decimal points (pandas.read_csv(..., decimal=','))",
    _DATE: "count the days since an origin",
}
"""What to do about cells of a form; others are to be converted somehow."""


def is_text(column: pd.Series) -> bool:
    """Whether a column may hold text: objects and strings. A categorical column was declared as such."""
    return _of_text(column.dtype)


def text_columns(X: pd.DataFrame, types: list[Any] | None = None) -> list[Any]:
    """Names of the columns that may hold text; ``types`` are those of the columns, where known."""
    held = column_types(X) if types is None else types
    of_text = {id(dtype): _of_text(dtype) for dtype in distinct(held)}
    if not any(of_text.values()):
        return []
    return [name for name, dtype in zip(X.columns.tolist(), held, strict=True) if of_text[id(dtype)]]


def _of_text(dtype: Any) -> bool:
    if isinstance(dtype, np.dtype | pd.CategoricalDtype):
        return bool(dtype.kind == "O" and isinstance(dtype, np.dtype))
    return pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)


def is_real(value: Any) -> bool:
    """Whether a cell is a real number of Python or numpy; booleans are."""
    return isinstance(value, int | float | np.number | np.bool_ | Decimal | Fraction) and not isinstance(
        value, np.complexfloating
    )


def as_float(value: Any) -> Any:
    """A number, or text that is one, as float; any other value as it is."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return value


@dataclass
class _Cells:
    """Different cells of a column with their counts, by what they are."""

    real: dict[Any, int] = field(default_factory=dict)
    number: dict[Any, int] = field(default_factory=dict)
    like: dict[Any, int] = field(default_factory=dict)
    other: dict[Any, int] = field(default_factory=dict)

    @property
    def dirty(self) -> dict[Any, int]:
        return self.like | self.other

    def are_codes(self) -> bool:
        """Whether the numbers could be codes: few small whole ones."""
        values = [as_float(value) for value in (*self.real, *self.number)]
        few = len(values) + len(self.like) <= MAX_CODES
        return few and all(value.is_integer() and 0 <= value <= LARGEST_CODE for value in values)

    def mostly_numbers(self) -> bool:
        """More than half of the cells, or many numbers beside a few words."""
        numbers = sum(map(sum, (part.values() for part in (self.real, self.number, self.like))))
        many = len(self.real) + len(self.number) > MAX_CODES and len(self.other) <= MAX_CODES
        return many or 2 * numbers > numbers + sum(self.other.values())


def is_number(column: pd.Series) -> bool:
    """Whether a column holds numbers or booleans, possibly as objects or text; dates are neither.

    Raises
    ------
    InvalidSurvivalDataError
        If most cells are numbers and some are not.
    """
    if not is_text(column):
        dtype = column.dtype  # booleans of pyarrow are of kind b, and not numeric
        return dtype.kind == "b" or (pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype))
    return _are_numbers(column, _sorted_out(column))


def _are_numbers(column: pd.Series, cells: _Cells | None) -> bool:
    """Whether a column of text holds numbers; raises where most cells are numbers and some are not."""
    if cells is None:
        return False
    if not cells.dirty:
        return not cells.number or not cells.are_codes()
    if cells.mostly_numbers() and not cells.are_codes():
        raise InvalidSurvivalDataError(_mixed(column, cells))
    return False


def look_over(X: pd.DataFrame) -> list[str]:
    """The columns of text that hold numbers; warns of those in doubt: numbers beside words, and names of rows.

    Raises
    ------
    InvalidSurvivalDataError
        If most cells of a column are numbers and some are not.
    """
    found: list[str] = []
    doubtful: dict[str, dict[Any, int]] = {}
    for name in read_in_time(text_columns(X), "columns of text"):
        column = X[name]
        cells = _sorted_out(column)
        if _are_numbers(column, cells):
            found.append(name)
        elif cells is not None and cells.dirty and cells.mostly_numbers():
            doubtful[str(name)] = cells.dirty
        elif is_identifier(column):
            warn_of_identifier(str(name), int(column.notna().sum()))
    if doubtful:
        _warn(_taken_as_categories(doubtful))
    return found


def as_the_tree_knows() -> AbstractContextManager[None]:
    """Silence warnings of kinds of columns and times of 0: the fit of the tree that reads the table has given them."""
    return unsaid(r"(column .*|\d+ columns) (is|are) (taken as categories|left out: each)|time is 0 in ")


def _taken_as_categories(doubtful: dict[str, dict[Any, int]]) -> str:
    """The sentence on columns of few numbers with other cells in them; of many columns the first ones."""
    listed = [f"{name!r} because of {_shown(dirty)}" for name, dirty in doubtful.items()]
    first = next(iter(next(iter(doubtful.values()))))
    remedy = (
        f"clean these cells or name what means missing (survival_data(..., missing_values=[{first!r}]), "
        f"--missing-values {quote(str(first))})"
    )
    if len(doubtful) == 1:
        name, _, cells = listed[0].partition(" because of ")
        return f"column {name} is taken as categories because of {cells}; if it holds numbers, {remedy}"
    more = f", and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
    shown = ", ".join(listed[:MAX_LISTED]) + more
    return f"{len(listed)} columns are taken as categories, {shown}; if they hold numbers, {remedy}"


def warn_of_identifier(name: str, count: int) -> None:
    """Say that a column is left out because it names the rows."""
    _warn(f"column {name!r} is left out: each of its {count} values occurs once, as in a list of names; drop it")


def is_identifier(column: pd.Series) -> bool:
    """Whether a column of text names the rows: every value occurs once, and there are many."""
    if not is_text(column):
        return False
    values = column.to_numpy(dtype=object)
    present = values[~pd.isna(values)].tolist()
    try:
        return len(present) >= MIN_IDENTIFIERS and len(set(present)) == len(present)
    except TypeError:
        return False


def declared(X: pd.DataFrame, categorical: Iterable[str] = (), missing_values: Iterable[Any] = ()) -> pd.DataFrame:
    """The table with some columns as categories, and some values as missing ones.

    Parameters
    ----------
    X : DataFrame
    categorical : iterable of str
        Columns.
    missing_values : iterable
        Values; "-9" and -9 are the same.
    """
    markers = _markers(missing_values)
    if markers:
        is_marker: Callable[[Any], bool] = lambda cell: _marker_text(cell) in markers  # noqa: E731
        X = X.assign(**{str(name): X[name].mask(X[name].map(is_marker).astype(bool)) for name in X.columns})
    for name in categorical:
        if name not in X.columns:
            shown = ", ".join(map(repr, list(X.columns)[:12]))
            raise InvalidSurvivalDataError(f"categorical must name features, got {name!r}; the features are {shown}")
        X = X.assign(**{name: X[name].map(level_text, na_action="ignore").astype("category")})
    return X


def warn_of_kept_outcomes(columns: Mapping[str, Any], missing_values: Iterable[Any], called: Mapping[str, str]) -> None:
    """Say where times or causes hold one of the missing values, which are those of features alone.

    ``called`` maps names of ``columns`` to those of the user's arguments. A 0 is a start or means censored.
    """
    markers = _markers(missing_values) - {"0.0"}
    for name in ("time", "entry", "upper", "cause"):
        if name not in columns:
            continue
        count = int(series(columns[name], name).map(lambda cell: _marker_text(cell) in markers).sum())
        if count:
            _warn(
                f"{called.get(name, name)} is one of missing_values in {count} row(s) and is taken as it stands: these "
                "are missing values of features alone; drop the rows if it is not known there"
            )


def level_text(value: Any) -> str:
    """The text of a level, whole floats as integers: missing values turn integer columns into floats."""
    is_whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if is_whole else str(value)


def _markers(values: Iterable[Any]) -> set[str]:
    """Texts of missing values; "-9" and -9 are one."""
    return {str(as_float(value)) if is_real(as_float(value)) else str(value).strip() for value in values}


def _marker_text(cell: Any) -> str:
    value = as_float(cell) if isinstance(cell, str) or is_real(cell) else cell
    return str(value).strip()


def _sorted_out(column: pd.Series) -> _Cells | None:
    """The column's cells by kind; None where a cell is neither a number nor text."""
    found = _Cells()
    try:
        values = column.to_numpy(dtype=object)
        counts = Counter(values[~pd.isna(values)].tolist())
    except TypeError:  # a cell that cannot be compared, such as a list
        return None
    for value, count in counts.items():
        text = value.strip() if isinstance(value, str) else None
        if is_real(value):
            kind = found.real
        elif text is None:
            kind = found.other
        elif _NUMBER.fullmatch(text):
            kind = found.number
        else:
            code = text.isdigit() and len(text) > 1
            kind = found.like if not code and len(text) < 40 and _LIKE.fullmatch(text) else found.other
        kind[value] = count
    return found


def _mixed(column: pd.Series, cells: _Cells) -> str:
    """The sentence on a column of numbers with other cells in it."""
    name, dirty = column.name, cells.dirty
    row = int(np.argmax(column.isin(list(dirty)).to_numpy(dtype=bool)))
    first = column.iloc[row]
    where = f"{_shown(dirty)}, first {first!r} at row {row}"
    category = f"declare categories (categorical=[{name!r}], --categorical {quote(str(name))})"
    if not cells.other:
        if all(_DATE.fullmatch(str(cell).strip()) for cell in dirty):
            category = f"leave the column out (--drop {quote(str(name))}), or {category}"
        text = str(first).strip()
        remedy = next((advice for form, advice in _REMEDIES.items() if form.fullmatch(text)), "convert it")
        return f"column {name!r} must hold plain numbers such as 83.1, got {where}; {remedy}, or {category}"
    return (
        f"column {name!r} must hold numbers or categories, got numbers and {where}; correct the cells, name what means "
        f"missing (missing_values=[{first!r}], --missing-values {quote(str(first))}), or {category}"
    )


def _shown(dirty: dict[Any, int]) -> str:
    """The first few cells, and how many there are."""
    count = sum(dirty.values())
    cells = ", ".join(map(repr, list(dirty)[:3])) + (", ..." if len(dirty) > 3 else "")
    return f"{cells} in {count} cell{'s' if count > 1 else ''}"


def _warn(text: str) -> None:
    warn(text, DataWarning)
