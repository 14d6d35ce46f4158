"""Rows by kind: whether they are of few kinds, whether counting bits pays, and the arrays for `kernels/bit_columns.py`.

Two rows are of one kind if they have the same statistics.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from softsurv.exact.kernels.bit_columns import RowKinds
from softsurv.exact.kernels.simd import LANES
from softsurv.exact.layout import Space, Spaces

WORD = 64
MAX_KINDS = 16
"""Most kinds: with more there are too few rows in a word."""

BITS_WORK = 3 / 1024
"""Work of the base case by bits for a row and a pair of splits, where one addition to a histogram is 1."""

SOME_ROWS = 2048
"""Rows whose splits are packed together."""


def no_row_kinds(width: int) -> RowKinds:
    """The empty form."""
    return RowKinds(
        np.zeros((0, width)),
        np.zeros((0, 0), np.int64),
        np.zeros(0),
        np.zeros((0, 0), np.uint64),
        np.zeros(0, np.int32),
        np.zeros(0, np.int8),
    )


def bit_sizes(row_kinds: RowKinds) -> tuple[int, int, int, int]:
    """Kinds, splits, columns of bits, and words that all rows take."""
    count = row_kinds.kind_count
    words = int(((count.sum(axis=0) + WORD - 1) // WORD).sum()) if len(count) else 0
    return len(row_kinds.kind_stats), len(row_kinds.split_code), row_kinds.row_bits.shape[1] * WORD, words


def bit_spaces(sizes: tuple[int, int, int, int], shares: bool) -> Spaces:
    """Scratch (`BitColumns`) large enough for every subset; ``shares``: also for what pairs of splits share."""
    kinds, splits, wide, words = sizes
    pairs = splits + LANES if shares else 0
    return {
        "member_row": Space((words * WORD,)),
        "kind_start": Space((kinds + 1,), zero=True),
        "block": Space((WORD,)),
        "wide": Space((words, wide)),
        "columns": Space((words * (wide + LANES),), zero=True),
        "passing": Space((kinds, wide)),
        "shared": Space((pairs, pairs)),
        "wanted": Space((1,), zero=True),
        "then": Space((splits + LANES,), zero=True),
        "before": Space((splits + LANES,), zero=True),
        "total_worst": Space((1,), zero=True),
    }


def row_kinds_of(
    columns: Any, group: Any, codes: Any, code_start: Any, nominal: Any, cancel: bool, worst: Any
) -> RowKinds | None:
    """The distinct rows (U, P) by kind, or None where counting bits would be slower than sums.

    Parameters
    ----------
    columns : (N, W)
        Statistics of each row.
    group : (N,)
        Distinct row of each row.
    codes : (U, P)
    code_start, nominal
        As in `SearchArrays`.
    cancel : bool
        Whether one row of every kind, taken together, changes nothing. As many such sets as possible are then taken
        out of each distinct row.
    worst : callable
        Most that a row with given statistics (C, W) can cost under any label, (C,).
    """
    found = kinds_of(columns)
    if found is None:
        return None
    kinds, kind = found
    count = np.bincount(group * len(kinds) + kind, minlength=len(codes) * len(kinds)).reshape(-1, len(kinds))
    count = count.astype(np.int64)
    if cancel and len(kinds) > 1 and np.ptp(kinds.sum(axis=0)) == 0:
        count -= count.min(axis=1, keepdims=True)
    sizes = np.diff(code_start)
    splits = np.where(nominal & (sizes > 2), sizes, sizes - 1)
    if not bits_pay(count, int(splits.sum()), codes.shape[1], columns.shape[1]):
        return None
    feature_of = np.repeat(np.arange(len(splits)), splits)
    code_of = np.arange(len(feature_of)) - np.repeat(np.cumsum(splits) - splits, splits)
    bits = packed_splits(codes, feature_of, code_of, nominal)
    return RowKinds(
        kinds,
        count,
        np.ascontiguousarray(worst(kinds)),
        bits,
        (code_of + code_start[feature_of]).astype(np.int32),
        (~nominal[feature_of] & (code_of > 0)).astype(np.int8),
    )


def packed_splits(codes: Any, feature_of: Any, code_of: Any, nominal: Any) -> Any:
    """Words (U, B / 64) with a bit for every split: 1 where the row (U, P) goes left. A few rows at a time."""
    alone, wide = np.flatnonzero(nominal[feature_of]), max(1, -(-len(feature_of) // WORD)) * WORD
    bits = np.empty((len(codes), wide // WORD), np.uint64)
    for begin in range(0, len(codes), SOME_ROWS):
        value = codes[begin : begin + SOME_ROWS].T.take(feature_of, axis=0)  # whole columns: copied as they lie
        code = code_of.astype(value.dtype)[:, None]
        goes_left = value <= code
        goes_left[alone] = value[alone] == code[alone]
        full = np.zeros((value.shape[1], wide), np.bool_)
        full[:, : len(feature_of)] = goes_left.T
        bits[begin : begin + SOME_ROWS] = np.packbits(full, axis=1, bitorder="little").view(np.uint64)
    return bits


def kinds_of(columns: Any) -> tuple[Any, Any] | None:
    """Different rows (C, W) of the statistics (N, W), sorted, and which of them each row is; None where too many."""
    some = np.ascontiguousarray(columns[:WORD])
    if len(set(some.view(np.dtype((np.void, some.shape[1] * some.itemsize))).ravel().tolist())) > MAX_KINDS:
        return None
    kind, left, found = np.empty(len(columns), np.int64), np.ones(len(columns), np.bool_), list[Any]()
    by_column = np.ascontiguousarray(columns.T)
    while left.any():
        if len(found) == MAX_KINDS:
            return None
        row = columns[left.argmax()]
        same = reduce(np.logical_and, (column == one for column, one in zip(by_column, row, strict=True)))
        kind[same] = len(found)
        found.append(row)
        left &= ~same
    kinds = np.array(found).reshape(-1, columns.shape[1])
    order = np.lexsort(kinds.T[::-1])
    return np.ascontiguousarray(kinds[order]), np.argsort(order)[kind]


def bits_pay(kind_count: Any, n_splits: int, n_features: int, width: int) -> bool:
    """Whether counting bits takes less work than adding up histograms, by rough counts of instructions."""
    bits = float(kind_count.sum()) * n_splits**2 * BITS_WORK
    histogram = len(kind_count) * n_features**2 * width / 8
    return bits < histogram
