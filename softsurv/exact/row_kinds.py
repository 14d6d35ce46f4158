"""Rows by kind: whether they are of few kinds, whether counting bits pays, and the arrays for `kernels/bit_columns.py`.

Two rows are of one kind if they have the same statistics.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from softsurv.exact.kernels.bit_columns import RowKinds
from softsurv.exact.kernels.simd import LANES
from softsurv.exact.kernels.small_counts import NOTHING, SHORT, WIDE
from softsurv.exact.layout import Space, Spaces

WORD = 64
MAX_KINDS = 16
"""Most kinds: with more there are too few rows in a word."""

BIT_PAIR, BIT_COLUMN, ERROR_PAIR, KIND_PAIR = 0.0018, 0.25, 0.03, 0.05
ADDITION, LANE_PAIR, SUM_PAIR = 0.135, 0.27, 3.2
"""Work of a base case in nanoseconds, as whole searches took it on an AMD EPYC: by bits for a row and a pair of splits,
for a row and a split, for a pair and a kind where errors are counted, and for a pair, a kind and a statistic else; by
histograms for a row, a pair of features and a statistic, and for a pair of splits and a statistic, in lanes or not."""

SOME_ROWS = 2048
"""Rows whose splits are packed together."""


def no_row_kinds(width: int) -> RowKinds:
    """The empty form."""
    return RowKinds(
        np.zeros((0, width)),
        np.zeros((0, 0), np.int64),
        0,
        0.0,
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
        "members": Space((kinds,), zero=True),
        "block": Space((WORD,)),
        "wide": Space((words, wide)),
        "columns": Space((words * (wide + LANES),), zero=True),
        "passing": Space((kinds, wide)),
        "shorts": Space((WORD // SHORT * words * (splits + WIDE),), zero=True),
        "short_start": Space((kinds + 1,), zero=True),
        "passed": Space((kinds, splits + WIDE), zero=True),
        "errors": Space((2, splits + WIDE), zero=True),
        "shared": Space((pairs, pairs)),
        "wanted": Space((1,), zero=True),
        "then": Space((splits + LANES,), zero=True),
        "before": Space((splits + LANES,), zero=True),
        "total_worst": Space((1,), zero=True),
    }


def row_kinds_of(
    columns: Any,
    group: Any,
    codes: Any,
    code_start: Any,
    nominal: Any,
    cancel: bool,
    worst: Any,
    *,
    linear: bool = False,
    least: float = 0.0,
    in_lanes: bool = True,
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
    linear : bool
        Whether a leaf costs the least of its sums, and splits cost nothing.
    least : float
        Least size of a leaf; above 0 the last statistic is the size.
    in_lanes : bool
        Whether base cases by histograms would be solved eight at a time.
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
    unit, fewest = errors_of(kinds, least) if linear else (0.0, 0)
    sizes_of_work = int(splits.sum()), codes.shape[1], columns.shape[1]
    if not bits_pay(count, *sizes_of_work, errors=unit > 0.0, in_lanes=in_lanes):
        return None
    feature_of = np.repeat(np.arange(len(splits)), splits)
    code_of = np.arange(len(feature_of)) - np.repeat(np.cumsum(splits) - splits, splits)
    bits = packed_splits(codes, feature_of, code_of, nominal)
    return RowKinds(
        kinds,
        count,
        fewest,
        unit,
        np.ascontiguousarray(worst(kinds)),
        bits,
        (code_of + code_start[feature_of]).astype(np.int32),
        (~nominal[feature_of] & (code_of > 0)).astype(np.int8),
    )


def errors_of(kinds: Any, least: float) -> tuple[float, int]:
    """`unit_of` the kinds (C, W), and how many members a leaf of some size has; (0, 0) where members differ in size."""
    if least <= 0.0:
        return unit_of(kinds), 0
    size = kinds[:, -1]
    if (size != size[0]).any() or size[0] <= 0.0:
        return 0.0, 0
    return unit_of(kinds[:, :-1]), min(math.ceil(least / size[0]), NOTHING)


def unit_of(kinds: Any) -> float:
    """What a row of any kind (C, W) costs under each label but its own, a different one for every kind; or 0."""
    unit = float(kinds.max(initial=0.0))
    own = kinds == 0.0
    errors = (own | (kinds == unit)).all() and (own.sum(axis=1) == 1).all() and (own.sum(axis=0) <= 1).all()
    return unit if errors else 0.0


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


def look_of_few_kinds(columns: Any) -> bool:
    """Whether the first rows of the statistics (N, W) are of few kinds, so that all may be."""
    some = np.ascontiguousarray(columns[:WORD])
    return len(set(some.view(np.dtype((np.void, some.shape[1] * some.itemsize))).ravel().tolist())) <= MAX_KINDS


def kinds_of(columns: Any) -> tuple[Any, Any] | None:
    """Different rows (C, W) of the statistics (N, W), sorted, and which of them each row is; None where too many."""
    if not look_of_few_kinds(columns):
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


def bits_pay(kind_count: Any, n_splits: int, n_features: int, width: int, *, errors: bool, in_lanes: bool) -> bool:
    """Whether counting bits takes less work than adding up histograms, over a quarter of the rows.

    Parameters
    ----------
    kind_count : (U, C)
    n_splits, n_features, width : int
    errors : bool
        Whether a leaf costs its errors.
    in_lanes : bool
        Whether histograms of eight subsets would be added up at once.
    """
    n_kinds, pairs = kind_count.shape[1], float(n_splits) ** 2
    members, distinct = float(kind_count.sum()) / 4, len(kind_count) / 4
    of_pair = ERROR_PAIR * n_kinds if errors else KIND_PAIR * n_kinds * width
    bits = members * (BIT_PAIR * pairs + BIT_COLUMN * n_splits) + of_pair * pairs
    histograms = distinct * ADDITION * float(n_features) ** 2 * width
    return bits < histograms + (LANE_PAIR if in_lanes else SUM_PAIR) * width * pairs
