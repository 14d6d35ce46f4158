"""The number columns of a table as one block: read once, looked at together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.in_time import look_at_numbers

if TYPE_CHECKING:
    import pandas as pd

BLOCK_CELLS = 1 << 20
"""Values that are looked at together: eight megabytes."""

Name = TypeVar("Name")


@dataclass(frozen=True)
class NumberBlock:
    """Columns of plain numbers or booleans, those that numpy holds as they are.

    Attributes
    ----------
    place : dict of str to int
        Row of ``values`` of each column.
    values : ndarray (Q, N)
        NaN where missing.
    flags : frozenset of str
        Columns of booleans.
    """

    place: dict[str, int]
    values: FloatArray
    flags: frozenset[str] = frozenset()

    @classmethod
    def of(cls, frame: pd.DataFrame) -> NumberBlock:
        """The block of a frame with unique text names; it may be empty."""
        look_at_numbers(*frame.shape)
        dtypes, names = frame.dtypes.tolist(), frame.columns.tolist()
        kind_of = {dtype: dtype.kind if isinstance(dtype, np.dtype) else "" for dtype in set(dtypes)}
        kinds = [kind_of[dtype] for dtype in dtypes]
        plain = [name for name, kind in zip(names, kinds, strict=True) if kind and kind in "biuf"]
        some = frame if len(plain) == len(names) else frame[plain]
        values = np.ascontiguousarray(some.to_numpy(dtype=np.float64).T)
        flags = frozenset(name for name, kind in zip(names, kinds, strict=True) if kind == "b")
        return cls({name: k for k, name in enumerate(plain)}, values, flags)

    def take(self, rows: NDArray[np.integer]) -> NumberBlock:
        """The given rows of all columns."""
        return NumberBlock(self.place, self.values.take(rows, axis=1), self.flags)

    def rows_of(self, names: Sequence[str]) -> FloatArray:
        """Values of some columns in the order given, (len(names), N); not to be written to."""
        places = [self.place[name] for name in names]
        return self.values if places == list(range(len(self.values))) else self.values[places]

    def column(self, name: str) -> FloatArray:
        """Values of a column, (N,)."""
        return np.asarray(self.values[self.place[name]])

    def are_yes_no(self) -> BoolArray:
        """Which columns hold zeros and ones alone, (Q,)."""
        return yes_no(self.values)

    def ranges(self) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """How many values of each column are known, and their mean, least and largest, all (Q,); nan where none is."""
        known = self.values.shape[1] - np.count_nonzero(np.isnan(self.values), axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            mean, low, high = self.values.mean(axis=1), self.values.min(axis=1), self.values.max(axis=1)
            for k in np.flatnonzero((known > 0) & (known < self.values.shape[1])):
                some = self.values[k][~np.isnan(self.values[k])]
                mean[k], low[k], high[k] = some.mean(), some.min(), some.max()
        return known, mean, low, high


def yes_no(values: FloatArray) -> BoolArray:
    """Which columns (Q, N) hold zeros and ones alone, (Q,)."""
    return np.asarray(((values == 0.0) | (values == 1.0)).all(axis=1))


def stacked(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Columns of one length as the rows of a matrix: `np.stack` takes a microsecond a column."""
    return np.concatenate(columns).reshape(len(columns), -1)


def in_blocks(columns: Sequence[Name], n: int) -> Iterator[Sequence[Name]]:
    """The columns, as many at a time as make a block of n rows."""
    size = max(1, BLOCK_CELLS // max(n, 1))
    for first in range(0, len(columns), size):
        yield columns[first : first + size]
