"""What `Preprocessor` knows of a column: how raw values are read and where encoded ones come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from itertools import repeat
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.data.blocks import Labels, NumberBlock, arrays_of, column_types, in_blocks
from softsurv.data.columns import float_column, require
from softsurv.data.in_time import read_in_time
from softsurv.data.kinds import as_float, is_text, level_text, look_over, text_columns
from softsurv.data.kinds import is_number as is_number
from softsurv.data.threads import LONG_COLUMN, cell_parts, in_threads, threads_for
from softsurv.errors import InvalidSurvivalDataError

PLAIN_CATEGORIES = {str, int, float, bool}
"""Types of categories whose text is known without a look at the rows."""


class OutputColumn(NamedTuple):
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


class Source(NamedTuple):
    """What fitting learned of one raw column: ``levels`` is None for a number."""

    name: str
    levels: tuple[str, ...] | None
    fill: float | str | None  # mean or most frequent level; None where nothing is imputed


Record = TypeVar("Record", bound=tuple[Any, ...])


def records(kind: type[Record], *fields: Iterable[Any]) -> list[Record]:
    """Named tuples of a kind from columns of their fields: a quarter of the time that its constructor takes."""
    return list(map(tuple.__new__, repeat(kind), zip(*fields)))  # noqa: B905


class NumbersLearned(NamedTuple):
    """What fitting learns of the Q columns of a block of numbers.

    Attributes
    ----------
    plain : list of bool
        Which columns are complete and vary; the next two fields hold for these.
    sources, columns : list
    ranges : four lists
        How many values are known, and their mean, least and largest.
    """

    plain: list[bool]
    sources: list[Source]
    columns: list[OutputColumn]
    ranges: tuple[list[Any], ...]

    @classmethod
    def of(cls, block: NumberBlock, *, impute: bool, scale: bool) -> NumbersLearned:
        """Learn the columns of a block together."""
        known, low, high = block.ranges()
        mean, names = block.means(), list(block.place)
        with np.errstate(over="ignore", invalid="ignore"):
            span = high - low
            plain = (known == block.values.shape[1]) & np.isfinite(mean) & np.isfinite(span) & (span > 0)
        ranges = known.tolist(), mean.tolist(), low.tolist(), high.tolist()
        units = (ranges[2], span.tolist()) if scale else (repeat(0.0), repeat(1.0))
        sources = records(Source, names, repeat(None), ranges[1] if impute else repeat(None))
        columns = records(OutputColumn, names, names, repeat("number"), repeat(None), *units)
        return cls(plain.tolist(), sources, columns, ranges)


def raw_values(column: pd.Series, source: Source) -> NDArray[Any]:
    """A raw column (N,) as its source says: float64, or text with None where missing."""
    return numbers(column, source.name) if source.levels is None else labels(column, source.name)


def numbers(column: pd.Series, name: str) -> FloatArray:
    """A number column (N,) as float64, NaN where missing; booleans become 0 and 1, text its number."""
    argument = f"column {name!r}"
    if pd.api.types.is_bool_dtype(column.dtype):
        column = column.astype("Float64")
    elif is_text(column):
        column = column.map(as_float, na_action="ignore").astype(object)
        if all(isinstance(value, float) for value in column.dropna()):
            column = column.where(column.notna(), np.nan).astype(float)
            require(~np.isinf(column.to_numpy()), column, argument, "finite or missing", "replace it")
    return float_column(column, argument)


def labels(column: pd.Series, name: str) -> NDArray[np.object_]:
    """A category column (N,) as text, None where missing; 1, 1.0 and "1" are one label."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return _texts(column, name)
    codes, known = column.cat.codes.to_numpy(), column.cat.categories.tolist()
    if set(map(type, known)) <= PLAIN_CATEGORIES:
        of_code = [one if isinstance(one, str) else level_text(one) for one in known]
        return np.asarray(np.array([*of_code, None], dtype=object)[codes])  # the last one is of code -1, missing
    used = np.unique(codes[codes >= 0])  # a category that no row has may be anything
    text = np.full(len(column.cat.categories) + 1, None, dtype=object)  # the last one is of code -1, missing
    text[used] = _texts(pd.Series(np.asarray(column.cat.categories, dtype=object)[used]), name, column.dtype)
    return text[codes]


def is_level(values: NDArray[Any], levels: Sequence[str]) -> BoolArray:
    """Which texts (n,) are one of the levels.

    Not by arrays of numpy's texts: each of these is as long as the longest, and zeros at their ends are lost.
    """
    return np.asarray(pd.Index(values, dtype=object).isin(list(levels)))


def _texts(column: pd.Series, name: str, dtype: Any = None) -> NDArray[np.object_]:
    """Cells (n,) as text, None where missing; ``dtype`` is that of the column they are from, its own by default."""
    values, dtype = column.astype(object).to_numpy(), column.dtype if dtype is None else dtype
    gone = pd.isna(values)
    known = values[~gone].tolist()
    out = np.full(len(values), None, dtype=object)
    if set(map(type, known)) <= {str}:
        out[~gone] = known
        return out
    neither = (date, timedelta, complex, pd.Period, bytes)
    for value in values:
        if isinstance(value, neither) or not pd.api.types.is_scalar(value):
            kind = type(value).__name__ if str(dtype) == "object" else dtype
            remedy = _remedy(value, f"X[{name!r}]")
            raise InvalidSurvivalDataError(f"column {name!r} must hold numbers or categories, got {kind}; {remedy}")
    out[~gone] = [level_text(value) for value in known]
    return out


def _remedy(value: Any, column: str) -> str:
    """How to make numbers or text of a column that holds such a value."""
    zone = getattr(value, "tzinfo", None)
    utc, tz = (", utc=True", ", tz='UTC'") if zone else ("", "")  # a date with a time zone less one without is an error
    since = f"pass days since one date: ({{}} - pd.Timestamp('2000-01-01'{tz})).dt.days"
    if isinstance(value, bytes):
        return f"decode it first: {column}.str.decode('utf-8')"
    if isinstance(value, pd.Period):
        return since.format(f"{column}.dt.to_timestamp()")
    if isinstance(value, timedelta):
        return f"pass its length as a number: pd.to_timedelta({column}).dt.total_seconds()"
    if isinstance(value, date):
        return since.format(f"pd.to_datetime({column}{utc})")
    return "pass a number or a text a row"


def read_columns(X: pd.DataFrame, types: list[Any] | None = None) -> NumberBlock:
    """The columns of plain numbers as one block, those of categorical type beside it; ``types`` where known."""
    types = column_types(X) if types is None else types
    return NumberBlock.of(X, types).beside(_declared_labels(X, types))


def _declared_labels(X: pd.DataFrame, types: Sequence[Any]) -> dict[str, Labels]:
    """The columns of categorical type, of plain categories, as codes; ``types`` are those of X."""
    held = [isinstance(dtype, pd.CategoricalDtype) for dtype in types]
    if not any(held):
        return {}
    names = [name for name, is_held in zip(X.columns.tolist(), held, strict=True) if is_held]
    in_time = read_in_time(names, "columns of text or categories")
    found = {name: _declared(column) for name, column in zip(in_time, arrays_of(X, names), strict=True)}
    return {name: labels for name, labels in found.items() if labels is not None}


def _declared(values: pd.Categorical) -> Labels | None:
    """A column of categorical type as codes; None where its categories are no plain values."""
    known = values.categories.tolist()
    if not set(map(type, known)) <= PLAIN_CATEGORIES:
        return None
    texts = [one if isinstance(one, str) else level_text(one) for one in known]
    distinct_texts = tuple(dict.fromkeys(texts))
    code = values.codes.astype(np.int64)
    if len(distinct_texts) < len(texts):  # 1 and "1" are one label
        code = np.array([*map(distinct_texts.index, texts), -1])[code]
    return Labels(code, distinct_texts)


def plain_numbers(X: pd.DataFrame, types: list[Any] | None) -> pd.DataFrame:
    """The features, of these types where known, with numbers that are objects or text as float64.

    Warns where a column's meaning is in doubt.
    """
    if not text_columns(X, types):
        return X
    found = {name: numbers(X[name], name) for name in look_over(X)}
    return X.assign(**found) if found else X


def level_counts(source: Source, table: Mapping[str, NDArray[Any]], block: NumberBlock) -> dict[str, int]:
    """How many rows have each level of a category, missing values filled, of a table that its block may hold."""
    assert source.levels is not None
    read = block.labels.get(source.name)
    if read is None:
        return {level: int(np.count_nonzero(table[source.name] == level)) for level in source.levels}
    if source.fill is None or (n_missing := len(read.code) - sum(read.counts.values())) == 0:
        return read.counts
    filled = str(source.fill)
    return read.counts | {filled: read.counts[filled] + n_missing}


def observed_levels(column: pd.Series, labels: NDArray[np.object_]) -> tuple[str, ...]:
    """Labels that occur, in the order of the categorical type, else sorted."""
    found = {label for label in labels if label is not None}
    if isinstance(column.dtype, pd.CategoricalDtype):
        return tuple(dict.fromkeys(label for c in column.cat.categories if (label := level_text(c)) in found))
    return tuple(sorted(found))


def scaled(columns: Sequence[OutputColumn], block: NumberBlock, fills: Mapping[str, Any]) -> FloatArray:
    """Encoded numbers (Q, N) of columns that the block holds."""
    places = [block.place[column.source] for column in columns]
    values = block.values[places]
    for k in np.flatnonzero(block.gaps[places]).tolist():
        fill = fills[columns[k].source]
        if fill is not None:
            values[k, np.isnan(values[k])] = fill
    values -= np.array([[column.offset] for column in columns])
    values /= np.array([[column.scale] for column in columns])
    return values


def write_scaled(
    encoded: FloatArray,
    plain: Sequence[int],
    columns: Sequence[OutputColumn],
    block: NumberBlock,
    fills: Mapping[str, Any],
) -> None:
    """Write the numbers among the columns, at the places ``plain``, into their rows of a table (Q, N)."""
    n = encoded.shape[1]
    if n < LONG_COLUMN:
        for some in in_blocks(plain, n):
            encoded[some] = scaled([columns[k] for k in some], block, fills)
        return
    gaps = block.gaps

    def write(part: tuple[int, slice]) -> None:
        """Encode some rows of one column."""
        column, rows = columns[plain[part[0]]], part[1]
        place, out = block.place[column.source], encoded[plain[part[0]], rows]
        values, fill = block.values[place, rows], fills[column.source]
        if gaps[place] and fill is not None:
            values = np.where(np.isnan(values), fill, values)
        np.subtract(values, column.offset, out=out)
        np.divide(out, column.scale, out=out)

    in_threads(write, cell_parts(len(plain), n), threads_for(len(plain) * n))


def write_coded(
    encoded: FloatArray,
    places: Sequence[int],
    columns: Sequence[OutputColumn],
    block: NumberBlock,
    sources: Sequence[Source],
) -> list[int]:
    """As `write_scaled`, of the categories that the block holds as codes of known levels; the places that are left."""
    fills, left = {source.name: source.fill for source in sources if _has_levels(source, block)}, []
    for k in places:
        column = columns[k]
        if column.source not in fills:
            left.append(k)
            continue
        read, fill = block.labels[column.source], fills[column.source]
        if column.kind == "missing":
            encoded[k] = read.code < 0
        else:
            of_missing = np.nan if fill is None else float(fill == column.level)
            encoded[k] = read.of_each([float(text == column.level) for text in read.texts], of_missing)
    return left


def _has_levels(source: Source, block: NumberBlock) -> bool:
    """Whether the block holds a column as codes, all of levels that training showed."""
    if source.levels is None or source.name not in block.labels:
        return False
    return set(block.labels[source.name].counts) <= set(source.levels)


def encoded_column(
    column: OutputColumn, raw: Mapping[str, NDArray[Any]], missing: Mapping[str, BoolArray]
) -> NDArray[Any]:
    """One encoded column (N,) of the raw ones."""
    values = raw[column.source]
    if column.kind == "missing":
        return missing[column.source]
    if column.kind == "number":
        return np.asarray((values.astype(np.float64) - column.offset) / column.scale)
    return np.where(pd.isna(values), np.nan, values == column.level)
