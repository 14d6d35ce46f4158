"""From a training set to the rows of the integrated-Brier-score search, and from a plan back to leaves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.exact.brier.bounds import equivalent_points, with_reference
from softsurv.exact.brier.table import SortedRows, TimeBits
from softsurv.exact.objectives.brier import IbsScore

KEY_SEED = 20240218
"""Seed of the words that name sets of rows; the result does not depend on it."""

MERGE_FACTOR = 8
"""Rows of equal weight are merged if this many, on average, are equal (features, time, event): with fewer, bit counts
are faster than sums over merged rows."""


PACK_FACTOR = 4
"""Rows per word of features as bits from which masking words beats gathering rows."""

COARSE_BINS, COARSE_ROWS = 256, 1024
"""Least coarse bins of time, and most rows in one: more bins give closer bounds, fewer give faster ones."""


def row_groups(x: NDArray[np.uint8]) -> IntArray:
    """Group (N,) of every row: equal rows have equal numbers, from 0 on."""
    words = np.packbits(x, axis=1)  # (N, ceil(P / 8))
    padded = np.zeros((x.shape[0], -(-max(words.shape[1], 1) // 8) * 8), dtype=np.uint8)
    padded[:, : words.shape[1]] = words
    group = np.zeros(x.shape[0], dtype=np.int64)
    for column in padded.view(np.uint64).T:
        _, code = np.unique(column, return_inverse=True)
        _, group = np.unique(group * (code.max() + 1) + code, return_inverse=True)
        if group.max() + 1 == group.size:  # all differ already
            break
    return group.astype(np.int64)


def prepare_rows(
    x: NDArray[np.uint8],
    score: IbsScore,
    reference: FloatArray | None = None,
    equivalent: bool = True,
    coarse: bool = True,
) -> SortedRows:
    """Sort, scale and, where it pays, merge the rows.

    Parameters
    ----------
    x : (N, P) uint8
        Binary features.
    score : IbsScore
        Times, events and weights, with the conventions of the objective.
    reference : (N,), optional
        Loss of a reference model on every row, in units of the objective.
    equivalent : bool
        Use the equivalent-points bound; otherwise the bound is 0.
    coarse : bool
        Use bounds from coarse bins of time.
    """
    grid = score.grid()
    positive = np.where(grid.g > 0.0, grid.g, 1.0)
    t = np.concatenate([[0.0], np.cumsum(grid.dt[:-1])])
    th = np.concatenate([[0.0], np.cumsum((grid.dt / positive)[:-1])])
    time_id = np.searchsorted(grid.times, score.time)
    order = np.lexsort((~score.event, time_id))
    time_id, weight, x = time_id[order], score.weight[order], np.ascontiguousarray(x[order])
    event = score.event[order] & (grid.g[time_id] > 0.0)
    v = np.where(event, weight / positive[time_id], 0.0)
    group = row_groups(x)
    bound = equivalent_points(group, time_id, weight, v, grid.g, t) if equivalent else np.zeros(weight.size)
    if reference is not None:
        bound = with_reference(bound, group, reference[order])
    count = np.ones(weight.size)
    same = _equal_rows(group, time_id, event)
    if same.max() + 1 < weight.size and (weight.size >= MERGE_FACTOR * (same.max() + 1) or np.ptp(weight) > 0):
        weight, v, bound, count = (np.bincount(same, c).astype(float) for c in (weight, v, bound, count))
        _, first = np.unique(same, return_index=True)
        time_id, x = time_id[first], np.ascontiguousarray(x[first])
    key = np.random.default_rng(KEY_SEED).integers(0, 2**64, size=(weight.size, 2), dtype=np.uint64)
    equal = bool((count == 1.0).all() and (weight == 1.0).all())
    time_bits = bits_of_features(x, time_id, v, equal)
    bins = bits_of_features(x, coarse_times(time_id), v, equal and coarse)
    return SortedRows(x, weight, count, th[time_id], t[time_id], v, bound, key, time_id, grid.g, t, th, time_bits, bins)


def coarse_times(time_id: IntArray) -> IntArray:
    """Time index at which each row's coarse bin starts, for rows in time order; rows of one time share a bin."""
    size = max(min(time_id.size // COARSE_BINS, COARSE_ROWS), 1)
    starts = np.unique(time_id[::size])
    return np.asarray(starts[np.searchsorted(starts, time_id, side="right") - 1])


def bits_of_features(x: NDArray[np.uint8], time_id: IntArray, v: FloatArray, equal: bool) -> TimeBits:
    """Features as bits, where rows weigh the same and are many more than the segments of time.

    ``time_id`` numbers the time at which a row's bin starts.
    """
    segment_of_row = 2 * time_id + (v == 0.0)
    segments, size = np.unique(segment_of_row, return_counts=True)
    words = -(-size // 64)  # per segment
    if not equal or words.sum() * PACK_FACTOR > x.shape[0]:
        empty = np.zeros(0, dtype=np.int64)
        return TimeBits(np.zeros((0, x.shape[1]), dtype=np.uint64), empty, empty, 0)
    first = np.concatenate([[0], np.cumsum(words)])
    within = np.arange(x.shape[0]) - np.repeat(np.cumsum(size) - size, size)
    position = np.empty_like(segment_of_row)
    position[np.argsort(segment_of_row, kind="stable")] = 64 * np.repeat(first[:-1], size) + within
    bits = np.zeros((64 * first[-1], x.shape[1]), dtype=np.uint8)
    bits[position] = x
    by_word = np.packbits(bits.reshape(first[-1], 64, -1), axis=1, bitorder="little")  # (words, 8, P)
    time_bits = np.ascontiguousarray(by_word.transpose(0, 2, 1)).view("<u8")[:, :, 0]
    bins = np.unique(segments // 2).size
    return TimeBits(np.ascontiguousarray(time_bits, dtype=np.uint64), position, np.repeat(segments, words), bins)


def has_equal_rows(rows: SortedRows) -> bool:
    """True if every row counts once and weighs the same: bit counts can then stand for sums."""
    return bool((rows.multiplicity == 1.0).all() and (rows.weight == 1.0).all())


def _equal_rows(group: IntArray, time_id: IntArray, event: BoolArray) -> IntArray:
    """Number (N,) of each row's class of equal features, time and event, in the order of first appearance."""
    code = (time_id * 2 + ~event) * (group.max() + 1) + group  # sorted by time, events first
    return np.unique(code, return_inverse=True)[1].astype(np.int64)
