"""The number columns of a table as one block: read once, looked at together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class NumberBlock:
    """Columns of plain numbers or booleans, those that numpy holds as they are.

    Attributes
    ----------
    place : dict of str to int
        Row of ``values`` of each column.
    values : ndarray (Q, N)
        NaN where missing.
    """

    place: dict[str, int]
    values: FloatArray

    @classmethod
    def of(cls, frame: pd.DataFrame) -> NumberBlock:
        """The block of a frame with unique text names; it may be empty."""
        plain = [isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in frame.dtypes.tolist()]
        names = [name for name, fits in zip(frame.columns.tolist(), plain, strict=True) if fits]
        some = frame if len(names) == len(plain) else frame[names]
        values = np.ascontiguousarray(some.to_numpy(dtype=np.float64).T)
        return cls({name: k for k, name in enumerate(names)}, values)

    def column(self, name: str) -> FloatArray:
        """Values of a column, (N,)."""
        return np.asarray(self.values[self.place[name]])

    def are_yes_no(self) -> NDArray[np.bool_]:
        """Which columns hold zeros and ones alone, (Q,)."""
        return np.asarray(((self.values == 0.0) | (self.values == 1.0)).all(axis=1))

    def ranges(self) -> tuple[NDArray[np.int64], FloatArray, FloatArray, FloatArray]:
        """How many values of each column are known, and their mean, least and largest, all (Q,); nan where none is."""
        known = self.values.shape[1] - np.count_nonzero(np.isnan(self.values), axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            mean, low, high = self.values.mean(axis=1), self.values.min(axis=1), self.values.max(axis=1)
            for k in np.flatnonzero((known > 0) & (known < self.values.shape[1])):
                some = self.values[k][~np.isnan(self.values[k])]
                mean[k], low[k], high[k] = some.mean(), some.min(), some.max()
        return known, mean, low, high
