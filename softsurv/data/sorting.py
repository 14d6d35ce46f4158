"""Orders of the rows of a table by one field after another; equal rows keep the order given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.blocks import rows_taken
from softsurv.data.threads import MOST_THREADS, in_threads, threads_for

MANY_ROWS = 1 << 17
"""Rows that are sorted in ranges of their values, in threads."""

RUN_ROWS = 1 << 14
"""Tied rows that are sorted together, which fit in the cache; whole runs of them, fewer than `RADIX`."""

SAMPLE = 1 << 12
"""So many values tell where to cut the range of all into parts of about one size."""

SORT_CELLS = 32
"""To sort a row takes the time of so many cells that are read."""

RADIX = 1 << 16
"""Whole numbers of a range up to this one are sorted by their digits, ten times as fast."""


def stable_order(values: FloatArray) -> IntArray:
    """Places (n,) of finite values by size; equal ones keep their order."""
    n = len(values)
    if n < MANY_ROWS:
        return np.argsort(values, kind="stable")
    low, high = values.min(), values.max()
    if high < low + RADIX and all((part == np.rint(part)).all() for part in (values[:100], values)):
        return np.argsort((values - low).astype(np.uint16), kind="stable")
    sample = np.sort(values[:: n // SAMPLE + 1])
    ends = sample[np.linspace(0, len(sample), MOST_THREADS + 1, dtype=np.int64)[1:-1]]

    def ordered(k: int) -> IntArray:
        """Places of the values from one end to the next."""
        inside = np.ones(n, dtype=bool) if k == 0 else values >= ends[k - 1]
        if k < len(ends):
            inside &= values < ends[k]
        rows = np.flatnonzero(inside)
        some = values[rows]
        order = np.argsort(some)  # faster than a stable one, and as good where no values are equal
        sizes = some[order]
        return rows[np.argsort(some, kind="stable") if (sizes[1:] == sizes[:-1]).any() else order]

    return np.concatenate(in_threads(ordered, range(len(ends) + 1), threads_for(SORT_CELLS * n)))


def fields_order(fields: Sequence[FloatArray]) -> tuple[IntArray, BoolArray]:
    """Order (N,) of rows by one field after another, and which rows equal the row before them in that order, (N + 1,).

    The first and the last entry are False. The first field is finite.
    """
    n = len(fields[0])
    same = np.zeros(n + 1, dtype=bool)
    if n < MANY_ROWS:
        order = np.lexsort(fields[::-1])
        same[1:-1] = True
        for values in fields:
            ordered = values[order]
            same[1:-1] &= ordered[1:] == ordered[:-1]
        return order, same
    order = stable_order(fields[0])
    ordered = rows_taken([fields[0]], order)[0]
    same[1:-1] = ordered[1:] == ordered[:-1]
    for values in fields[1:]:
        tied = tied_places(same)
        if not tied.size:
            break
        break_ties(order, same, tied, [values[order[tied]]])
    return order, same


def tied_places(same: BoolArray) -> IntArray:
    """Places in an order that share all fields with the place before or after; ``same`` is that of `fields_order`."""
    return np.flatnonzero(same[1:] | same[:-1])


def break_ties(order: IntArray, same: BoolArray, tied: IntArray, keys: Sequence[NDArray[Any]]) -> IntArray:
    """Order the rows at tied places by keys (len(tied),), in place; returns where in ``tied`` each was before."""
    within = order_in_runs(np.cumsum(~same[tied]), keys)
    order[tied] = order[tied][within]
    new = np.zeros(max(len(tied) - 1, 0), dtype=bool)
    for key in keys:
        values = key[within]
        new |= values[1:] != values[:-1]
    same[tied[1:][new]] = False
    return within


def order_in_runs(run: IntArray, keys: Sequence[NDArray[Any]]) -> IntArray:
    """Places (n,) by keys (n,) within runs; equal ones keep their order. ``run`` (n,) is ascending."""
    n = len(run)
    starts = np.searchsorted(run, run[RUN_ROWS::RUN_ROWS]).tolist()  # no run is cut
    ends = sorted({0, *starts, n})

    def ordered(part: tuple[int, int]) -> IntArray:
        """Places of some runs."""
        rows = slice(*part)
        order = np.lexsort([key[rows] for key in reversed(keys)])
        by_run = np.argsort((run[rows] - run[rows.start]).astype(np.uint16)[order], kind="stable")  # by their digits
        return part[0] + order[by_run]

    return np.concatenate(in_threads(ordered, pairwise(ends), threads_for(SORT_CELLS * n)))
