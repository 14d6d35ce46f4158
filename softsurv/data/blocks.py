"""The number columns of a table as one block: read once, looked at together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.in_time import look_at_numbers
from softsurv.data.threads import LONG_COLUMN, MANY_CELLS, PART_ROWS, cell_parts, in_threads, row_parts, threads_for

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

BLOCK_CELLS = 1 << 20
"""Values that are looked at together: eight megabytes."""

FEW_COLUMNS = 32
"""So few columns are read one by one: to select them as a frame takes longer."""

EXACT = 2.0**53
"""Whole numbers up to this one are exact as float64."""

Name = TypeVar("Name")


@dataclass(frozen=True, eq=False)
class Labels:
    """A column of categories: code of each row (N,), -1 where missing, and the text of each code.

    Texts are in the order of the categorical type; not every one need occur.
    """

    code: IntArray
    texts: tuple[str, ...]

    def of_each(self, of_texts: Sequence[Any], of_missing: Any, dtype: Any = None) -> NDArray[Any]:
        """Value of each row, (N,), from the values of the texts and that of a missing one."""
        return np.array([*of_texts, of_missing], dtype=dtype)[self.code]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many rows have each text; texts that do not occur are left out."""
        n = np.bincount(self.code + 1, minlength=len(self.texts) + 1)[1:].tolist()
        return {text: count for text, count in zip(self.texts, n, strict=True) if count}


class FilledColumns(dict[str, NDArray[Any]]):
    """Raw columns (N,) by name; the texts of categories that a block holds as codes are made when first asked for.

    Parameters
    ----------
    labels : mapping of str to Labels
        Of the training table, so that every text is a level.
    fill : mapping of str to object
        What stands for a missing value of each.
    """

    def __init__(self, labels: Mapping[str, Labels], fill: Mapping[str, Any]) -> None:
        super().__init__()
        self._labels, self._fill = labels, fill

    def __missing__(self, name: str) -> NDArray[Any]:
        read = self._labels[name]
        values = self[name] = read.of_each(read.texts, self._fill[name], object)
        return values


@dataclass(frozen=True)
class NumberBlock:
    """Columns of plain numbers or booleans, which numpy holds as they are; and columns of categories as codes.

    Attributes
    ----------
    place : dict of str to int
        Row of ``values`` of each column.
    values : ndarray (Q, N)
        NaN where missing.
    flags : frozenset of str
        Columns of booleans.
    whole : bool
        Whether no column holds fractions, by their types.
    labels : dict of str to Labels
        Columns of categories that are read already.
    """

    place: dict[str, int]
    values: FloatArray
    flags: frozenset[str] = frozenset()
    whole: bool = False
    labels: Mapping[str, Labels] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: pd.DataFrame, dtypes: list[Any] | None = None) -> NumberBlock:
        """The block of a frame with unique text names; it may be empty. ``dtypes`` are its types, where known."""
        look_at_numbers(*frame.shape)
        dtypes, names = column_types(frame) if dtypes is None else dtypes, frame.columns.tolist()
        kind_of = {id(dtype): dtype.kind if isinstance(dtype, np.dtype) else "-" for dtype in distinct(dtypes)}
        kinds, plain, flags = set(kind_of.values()), names, list[str]()
        if not kinds <= set("biuf"):
            plain = [name for name, dtype in zip(names, dtypes, strict=True) if kind_of[id(dtype)] in "biuf"]
        if "b" in kinds:
            flags = [name for name, dtype in zip(names, dtypes, strict=True) if kind_of[id(dtype)] == "b"]
        values, whole = values_of(frame, plain), "f" not in kinds
        block = cls(dict(zip(plain, range(len(plain)), strict=True)), values, frozenset(flags), whole)
        if whole and plain is names and len(kind_of) == 1 and values.size:
            given = frame.to_numpy().T  # smaller numbers are compared several times as fast
            vars(block)["extent"] = given.min(axis=1).astype(np.float64), given.max(axis=1).astype(np.float64)
        return block

    def take(self, rows: NDArray[np.integer]) -> NumberBlock:
        """The given rows of all columns."""
        labels = {name: Labels(read.code[rows], read.texts) for name, read in self.labels.items()}
        return NumberBlock(self.place, self.values.take(rows, axis=1), self.flags, self.whole, labels)

    def beside(self, labels: Mapping[str, Labels]) -> NumberBlock:
        """The same block where columns of categories are read too."""
        return replace(self, labels=labels) if labels else self

    def holds_all(self, frame: pd.DataFrame) -> bool:
        """Whether every column of a frame is read already."""
        return len(self.place) + len(self.labels) == frame.shape[1]

    def in_order(self, order: NDArray[np.integer]) -> NumberBlock:
        """The same rows in another order; what is known of the columns stays."""
        block = self.take(order)
        vars(block).update({name: vars(self)[name] for name in ("extent", "are_yes_no") if name in vars(self)})
        return block

    def rows_of(self, names: Sequence[str]) -> FloatArray:
        """Values of some columns in the order given, (len(names), N); not to be written to."""
        places = [self.place[name] for name in names]
        return self.values if places == list(range(len(self.values))) else self.values[places]

    def found(self, names: Sequence[str]) -> NumberBlock | None:
        """The block of some columns in the order given, if all of them are here and complete."""
        if list(names) == list(self.place):
            return None if self.gaps.any() else self
        places = [self.place.get(name, -1) for name in names]
        if min(places, default=0) < 0 or self.gaps[places].any():
            return None
        part = NumberBlock(dict(zip(names, range(len(names)), strict=True)), self.values[places], whole=self.whole)
        vars(part)["extent"] = self.extent[0][places], self.extent[1][places]
        if "are_yes_no" in vars(self):
            vars(part)["are_yes_no"] = self.are_yes_no[places]
        return part

    def column(self, name: str) -> FloatArray:
        """Values of a column, (N,)."""
        return np.asarray(self.values[self.place[name]])

    @cached_property
    def extent(self) -> tuple[FloatArray, FloatArray]:
        """Least and largest value of each column, both (Q,); nan where a value is missing."""
        if not self.values.shape[1]:
            return np.full(len(self.values), np.nan), np.full(len(self.values), np.nan)
        low = over_rows(lambda some: some.min(axis=1), self.values)
        return low, over_rows(lambda some: some.max(axis=1), self.values)

    @cached_property
    def gaps(self) -> BoolArray:
        """Which columns have missing values, (Q,)."""
        return np.isnan(self.extent[0])

    @cached_property
    def are_yes_no(self) -> BoolArray:
        """Which columns hold zeros and ones alone, (Q,)."""
        low, high = self.extent
        found = np.asarray((low >= 0) & (high <= 1))
        if not self.whole and found.any():
            found[found] = yes_no(self.values if found.all() else self.values[found])
        return found

    def ranges(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """How many values of each column are known, and the least and largest, all (Q,); nan where none is."""
        low, high = (ends.copy() for ends in self.extent)
        known = np.full(len(low), self.values.shape[1])
        for k in np.flatnonzero(np.isnan(low)).tolist():
            some = self.values[k][~np.isnan(self.values[k])]
            known[k] = some.size
            if some.size:
                low[k], high[k] = some.min(), some.max()
        return known, low, high

    def means(self) -> FloatArray:
        """Mean of the known values of each column, (Q,); nan where none is."""
        n = self.values.shape[1]
        if self.whole and np.abs(self.extent).max(initial=0.0) * n < EXACT:  # sums of whole numbers, in any order
            return np.asarray(self.values @ np.ones(n) / n)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = over_rows(lambda some: some.mean(axis=1), self.values) if n else np.full(len(self.values), np.nan)
            for k in np.flatnonzero(np.isnan(mean)).tolist():
                some = self.values[k][~np.isnan(self.values[k])]
                mean[k] = some.mean() if some.size else np.nan
        return np.asarray(mean)


def are_numbers(types: Sequence[Any]) -> bool:
    """Whether columns of these types are plain numbers or booleans, all of them."""
    return all(isinstance(one, np.dtype) and one.kind in "biuf" for one in distinct(types))


def distinct(types: Sequence[Any]) -> list[Any]:
    """The types that columns have, by identity: to compare two categorical types takes longer than to read a column."""
    return list({id(one): one for one in types}.values())


@lru_cache(maxsize=8)
def _places(n: int) -> pd.Index:
    """The same object in every fit: pandas checks once that its names differ."""
    import pandas as pd

    return pd.Index([f"x{k}" for k in range(n)])


def place_names(n: int) -> pd.Index:
    """Names of the columns of an array: x0, x1, ..."""
    return _places(n).view()


def column_types(frame: pd.DataFrame) -> list[Any]:
    """Type of each column. To ask pandas for them takes as long as to copy a small table."""
    types: list[Any] = frame.dtypes.tolist()
    return types


def float_columns(frame: pd.DataFrame, types: Sequence[Any]) -> list[str]:
    """Names of the columns of floats, of whatever library and precision; ``types`` are those of the frame."""
    of_floats = {id(one): one.kind == "f" for one in distinct(types)}
    return [name for name, one in zip(frame.columns.tolist(), types, strict=True) if of_floats[id(one)]]


def arrays_of(frame: pd.DataFrame, names: Sequence[str]) -> list[Any]:
    """Some columns as the frame holds them, not to be written to.

    A Series of each takes thirty times as long, half of what it takes to read a small table: it is made only where
    pandas no longer gives the array itself.
    """
    place = {name: k for k, name in enumerate(frame.columns.tolist())}
    held: Callable[[int], Any] = getattr(frame, "_get_column_array", lambda k: frame.iloc[:, k].values)
    return [held(place[name]) for name in names]


def values_of(frame: pd.DataFrame, names: Sequence[str], **how: Any) -> FloatArray:
    """Some columns of numbers as float64, (Q, N); ``how`` as `Series.to_numpy` takes it."""
    if 0 < len(names) < min(frame.shape[1], FEW_COLUMNS):
        held = arrays_of(frame, names)
        plain = [one if isinstance(one, np.ndarray) else one.to_numpy(dtype=np.float64, **how) for one in held]
        return np.array(plain, dtype=np.float64)
    some = frame if len(names) == frame.shape[1] else frame[list(names)]
    return np.ascontiguousarray(some.to_numpy(dtype=np.float64, **how).T)


def yes_no(values: FloatArray) -> BoolArray:
    """Which columns (Q, N) hold zeros and ones alone, (Q,)."""
    return np.asarray(((values == 0.0) | (values == 1.0)).all(axis=1))


def over_rows(function: Callable[[NDArray[Any]], NDArray[Any]], values: NDArray[Any]) -> NDArray[Any]:
    """A function of each row of a matrix (Q, N), as (Q,); of a large one in threads."""
    threads = threads_for(values.size)
    if threads == 1:
        return np.asarray(function(values))
    parts = [values[some[0] : some[-1] + 1] for some in in_blocks(range(len(values)), values.shape[1])]
    return np.concatenate(in_threads(function, parts, threads))


def any_missing(values: FloatArray) -> bool:
    """Whether a value of a matrix is missing."""
    rows = values.T if values.flags.f_contiguous else values
    parts = row_parts(len(rows), max(1, PART_ROWS // max(rows.shape[1], 1)))
    return any(in_threads(lambda part: bool(np.isnan(rows[part]).any()), parts, threads_for(values.size)))


def frame_rows(X: pd.DataFrame, rows: IntArray) -> pd.DataFrame:
    """The given rows of a frame, none of them negative; of a large one of plain numbers of one type in threads."""
    if len(rows) < LONG_COLUMN or len(rows) * X.shape[1] < MANY_CELLS:
        return X.iloc[rows]
    types = column_types(X)
    if len(set(types)) > 1 or not are_numbers(types):
        return X.iloc[rows]
    import pandas as pd

    out = rows_taken([X[name].to_numpy() for name in X.columns.tolist()], rows)
    return pd.DataFrame(out.T, index=X.index.take(rows), columns=X.columns, copy=False)


def rows_taken(columns: Sequence[NDArray[Any]], rows: IntArray) -> NDArray[Any]:
    """The given rows (R,), none of them negative, of columns of one type, as (Q, R); of many in threads."""
    out = np.empty((len(columns), len(rows)), dtype=columns[0].dtype)

    def write(part: tuple[int, slice]) -> None:
        """Copy some rows of one column."""
        column, some = part
        np.take(columns[column], rows[some], out=out[column, some], mode="wrap")  # twice as fast as with checks

    in_threads(write, cell_parts(*out.shape), threads_for(out.size))
    return out


def with_ones(x: Tensor) -> Tensor:  # (N, P) -> (N, P + 1)
    """Features with a leading column of ones; of a large table some rows at a time, in threads."""
    from softsurv.numerics import with_intercept

    if x.numel() < MANY_CELLS or x.device.type != "cpu":
        return with_intercept(x)
    out = x.new_empty(x.shape[0], x.shape[1] + 1)
    values, into = x.numpy(), out.numpy()

    def write(rows: slice) -> None:
        """Copy some rows."""
        into[rows, 0], into[rows, 1:] = 1.0, values[rows]

    in_threads(write, row_parts(len(values), max(1, PART_ROWS // into.shape[1])), threads_for(into.size))
    return out


def stacked(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Columns of one length as the rows of a matrix: `np.stack` takes a microsecond a column."""
    return np.concatenate(columns).reshape(len(columns), -1)


def in_blocks(columns: Sequence[Name], n: int) -> Iterator[Sequence[Name]]:
    """The columns, as many at a time as make a block of n rows."""
    size = max(1, BLOCK_CELLS // max(n, 1))
    for first in range(0, len(columns), size):
        yield columns[first : first + size]
