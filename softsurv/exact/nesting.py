"""Yes/no columns that belong together as one feature: nested ones are ordered, exclusive ones nominal.

A table of 0/1 columns often holds cuts of one number (``age <= 40``, ``age <= 50``) or the levels of one category. Cuts
of one number are nested: whoever answers yes to one answers yes to the next. Levels exclude each other. The base case
costs p^2 / 2 additions a row for p features, whatever their number of cuts, so a search is several times faster once
such columns are one feature. The splits stay the same, hence the optimum too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, IntArray
from softsurv.exact.entries import make_ready
from softsurv.exact.kernels.grouping import columns_of, group
from softsurv.exact.kernels.views import Packed
from softsurv.stopping import StopSignal

MOST_WORK = 1e10
"""Pairs of columns times rows up to which columns are compared: a part of a second."""

Codes = NDArray[np.integer]


@dataclass(frozen=True)
class Splits:
    """Which split of the given features each code of the search's features stands for.

    Attributes
    ----------
    feature, code : (G,) int
        The given feature and code.
    swapped : (G,) bool
        Rows that go left in the search go right in the given feature.
    """

    feature: IntArray
    code: IntArray
    swapped: BoolArray


@dataclass(frozen=True)
class Grouped:
    """Features of the search, (U, P') codes, with the number of codes and kind of each, and their splits."""

    codes: Codes
    n_codes: IntArray
    nominal: BoolArray
    splits: Splits


def as_given(codes: Codes, n_codes: NDArray[np.integer], nominal: BoolArray) -> Grouped:
    """Every feature by itself."""
    feature = np.repeat(np.arange(len(n_codes)), n_codes)
    start = np.cumsum(n_codes) - n_codes
    code = np.arange(len(feature)) - start[feature]
    splits = Splits(feature, code, np.zeros(len(feature), np.bool_))
    return Grouped(codes.astype(np.int32), np.asarray(n_codes, np.int64), nominal, splits)


def ready_to_group(stop: StopSignal | None = None) -> None:
    """Compile what `group_columns` calls, or read it from disk; the clock of ``stop`` does not count it."""
    make_ready([group], "the grouping of columns", stop)


def group_columns(codes: Codes, n_codes: NDArray[np.integer], nominal: BoolArray) -> Grouped:
    """Put nested and exclusive columns of two codes together.

    Parameters
    ----------
    codes : (U, P) int
        No two columns are equal.
    n_codes, nominal : (P,)
    """
    binary = np.flatnonzero(np.asarray(n_codes) == 2)
    if len(binary) < 2 or len(binary) ** 2 * len(codes) > MOST_WORK:
        return as_given(codes, n_codes, nominal)
    columns = columns_of((codes if len(binary) == len(n_codes) else codes[:, binary]).T)
    ready_to_group()
    group(Packed(columns))
    n_levels, n_groups = columns.found.tolist()
    if not n_levels and n_groups == len(binary):
        return as_given(codes, n_codes, nominal)
    sizes, of_level = columns.size[:n_groups].astype(np.int64), np.arange(n_groups) < n_levels
    feature = binary[columns.place[: sizes.sum()]]  # the last code of a chain names no split: that of the code before
    splits = Splits(feature, np.zeros(len(feature), np.int64), np.repeat(of_level, sizes))
    new_codes = columns.codes[:n_groups].T
    if len(binary) == len(n_codes):
        return Grouped(new_codes, sizes, of_level, splits)
    others = np.flatnonzero(np.asarray(n_codes) != 2)
    rest = as_given(codes[:, others], np.asarray(n_codes)[others], nominal[others])
    return Grouped(
        np.concatenate([rest.codes, new_codes], axis=1),
        np.concatenate([rest.n_codes, sizes]),
        np.concatenate([rest.nominal, of_level]),
        Splits(
            np.concatenate([others[rest.splits.feature], splits.feature]),
            np.concatenate([rest.splits.code, splits.code]),
            np.concatenate([rest.splits.swapped, splits.swapped]),
        ),
    )
