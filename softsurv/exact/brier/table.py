"""Tables of the integrated-Brier-score search: the rows of the problem and the local table of a subproblem.

A subproblem gathers its rows into a small table: only splits that leave enough rows on both sides, one of each group
of splits that agree on all rows, with one bit per row and split, and, where few distinct times occur, with the rows
of each bin of time in words of their own.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numba import types

from softsurv.exact.brier.jit import entry
from softsurv.exact.brier.leaf_costs import IPCW, KM_BINS, KM_ROWS, LANES
from softsurv.exact.jit import array_kernel
from softsurv.exact.kernels.views import FloatMatrix, Floats, Longs, WordMatrix, structure_of
from softsurv.loops import INT, ints

FEATURES = types.Array(types.uint8, 2, "C")
Features = Annotated[np.ndarray, FEATURES]

BIN_WORD_NS, BIN_STEP_NS, ROW_NS = 1.0, 5.5, 0.85
"""Measured cost per pair of splits of a word of bits, of a bin of time, of a row: they choose the kernel only."""


class TimeBits(NamedTuple):
    """All features as bits, a word boundary before the events and before the censorings of each bin of time."""

    bits: WordMatrix  # (words, P) uint64, no words if it does not pay
    position: Longs  # (N,) bit of each row
    segment: Longs  # (words,) 2 * index of the bin's first time, + 1 for censorings
    bins: int  # of time


class SortedRows(NamedTuple):
    """Rows sorted by time, events before censorings at equal times; every float in units of the objective."""

    x: Features  # (N, P) uint8
    weight: Floats  # (N,)
    multiplicity: Floats  # (N,) original rows behind each row, for the minimum leaf size
    h: Floats  # (N,) integral of 1 / G from the first time to the row's
    y: Floats  # (N,) time since the first
    v: Floats  # (N,) weight / G(time) of events, 0 for censored rows
    bound: Floats  # (N,) share of a lower bound of the loss, additive over rows
    key: WordMatrix  # (N, 2) uint64 random words; a set of rows is known by their sum
    time_id: Longs  # (N,) index into the distinct times
    g: Floats  # (T,) G at the distinct times
    t: Floats  # (T,) distinct times since the first, in the unit of y
    th: Floats  # (T,) integral of 1 / G up to each
    time_bits: TimeBits  # the features as bits, where there are many more rows than times
    coarse: TimeBits  # the same in coarse bins of time, for lower bounds


class Rules(NamedTuple):
    """What the compiled search has to know besides the rows."""

    mode: int  # how leaves are costed: KM_ROWS or IPCW
    equal: bool  # all weights and counts are 1
    min_rows: float  # least rows per leaf
    complexity: float  # cost per leaf
    least_leaves: float  # of a node that is split: 2, or 1 without the look-ahead
    splitting: bool  # the switch of `bounds.useful_depth`
    stop: Longs  # (1,) int64, 1 when the clock has run out
    tile: int  # address of `tiles.tile`


class TakenRows(NamedTuple):
    """What the costs read of the rows of a subproblem, as in `SortedRows`; more fields would take time to compile."""

    weight: Floats
    multiplicity: Floats
    h: Floats
    y: Floats
    v: Floats
    time_id: Longs


class SubsetTable(NamedTuple):
    """The table of one subproblem. Columns: feasible splits, at least one empty one to fill the lanes, one of ones."""

    feature: Longs  # (p,) index of each split
    x: Features  # (n, width) uint8
    rows: TakenRows
    y_end: float  # end of the time range
    bits: WordMatrix  # (words, width) uint64
    first: Longs  # (2 bins + 1,) first word of each segment, or (2,) without bins
    total: FloatMatrix  # (segments + 1, width) rows per segment and split; the last line is all segments
    lanes: FloatMatrix  # (tiles, segments * LANES) the same, LANES splits at a time
    inverse_g: Floats  # (bins,) 1 / G; for the pointwise minimiser, G
    dh: Floats  # (bins,)
    dy: Floats  # (bins,)
    stop: Longs  # (bins,) rows before the end of each bin
    mode: int
    equal: bool  # all weights and counts are 1


ROWS, RULES = structure_of(SortedRows), structure_of(Rules)
"""Types of arguments."""


@array_kernel
def take(rows, index):
    """The rows of an index, without their features."""
    n = index.shape[0]
    weight, multiplicity, h, y, v = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    time_id = np.empty(n, dtype=np.int64)
    for k in range(n):
        i = index[k]
        weight[k], multiplicity[k], h[k], y[k] = rows.weight[i], rows.multiplicity[i], rows.h[i], rows.y[i]
        v[k], time_id[k] = rows.v[i], rows.time_id[i]
    return TakenRows(weight, multiplicity, h, y, v, time_id)


@array_kernel
def column_sums(rows, index):
    """Per split: rows, bound and key of the rows with the feature; and the same of all rows."""
    p = rows.x.shape[1]
    count, bound = np.zeros(p + 1), np.zeros(p + 1)
    key = np.zeros((2, p + 1), dtype=np.uint64)
    for i in index:
        lanes = rows.x[i]
        c, b, k0, k1 = rows.multiplicity[i], rows.bound[i], rows.key[i, 0], rows.key[i, 1]
        for f in range(p):
            count[f] += lanes[f] * c
            bound[f] += lanes[f] * b
            key[0, f] += np.uint64(lanes[f]) * k0
            key[1, f] += np.uint64(lanes[f]) * k1
        count[p] += c
        bound[p] += b
        key[0, p] += k0
        key[1, p] += k1
    return count, bound, key


@array_kernel
def enough_rows(count, min_rows):
    """Splits with enough rows on both sides."""
    p = count.shape[0] - 1
    kept, n_kept = np.empty(p, dtype=np.int64), 0
    for f in range(p):
        if min(count[f], count[p] - count[f]) >= min_rows:
            kept[n_kept] = f
            n_kept += 1
    return kept[:n_kept]


@array_kernel
def feasible_splits(count, key, min_rows):
    """Splits with enough rows on both sides; of splits that agree (or are opposite) on all rows, the first."""
    p = count.shape[0] - 1
    kept = np.empty(p, dtype=np.int64)
    places = 1
    while places < 2 * p:
        places *= 2
    at = np.full(places, -1)  # a hash table of the splits kept: keys are random words
    n_kept = 0
    for f in range(p):
        if count[f] < min_rows or count[p] - count[f] < min_rows:
            continue
        opposite = key[0, p] - key[0, f]
        place = np.int64(min(key[0, f], opposite) & np.uint64(places - 1))
        while at[place] >= 0 and key[0, at[place]] != key[0, f] and key[0, at[place]] != opposite:
            place = (place + 1) & (places - 1)
        if at[place] < 0:
            at[place] = f
            kept[n_kept] = f
            n_kept += 1
    return kept[:n_kept]


@array_kernel
def time_bins(rows, time_id, ipcw):
    """Bins of time of a subset, of ``time_id`` (n,): (1/G or G, growth of H, growth of t, rows before their ends).

    A bin starts where the subset has a row; for the pointwise minimiser also where G changes.
    """
    n, n_times = time_id.shape[0], rows.t.shape[0]
    start = np.empty(n_times, dtype=np.int64)
    stop = np.empty(n_times, dtype=np.int64)
    bins, row = 0, 0
    for time in range(time_id[0] if n else n_times, n_times):
        begin = row
        while row < n and time_id[row] == time:
            row += 1
        if row > begin or (ipcw and rows.g[time] != rows.g[time - 1]):
            start[bins], stop[bins] = time, row
            bins += 1
    g, dh, dy = np.empty(bins), np.zeros(bins), np.empty(bins)
    for b in range(bins):
        level = rows.g[start[b]]
        g[b] = level if ipcw else (1.0 / level if level > 0.0 else 0.0)
        end = start[b + 1] if b + 1 < bins else n_times - 1
        dy[b] = rows.t[end] - rows.t[start[b]]
        dh[b] = rows.th[end] - rows.th[start[b]]
    return g, dh, dy, stop[:bins]


@array_kernel
def pack_bits(x, v, stop):
    """Bits of all columns, a word boundary before each segment (events, then censorings, of each bin)."""
    n, width = x.shape
    bins = stop.shape[0]
    segments = max(2 * bins, 1)
    first = np.zeros(segments + 1, dtype=np.int64)
    ends = np.empty(segments, dtype=np.int64)
    row = 0
    for segment in range(segments):
        begin = row
        end = stop[segment // 2] if bins else n
        while row < end and (bins == 0 or segment % 2 == 1 or v[row] > 0.0):
            row += 1
        ends[segment] = row
        first[segment + 1] = first[segment] + (row - begin + 63) // 64
    bits = np.zeros((first[segments], width), dtype=np.uint64)
    total = np.zeros((segments + 1, width))
    row = 0
    for segment in range(segments):
        begin = row
        while row < ends[segment]:
            position = row - begin
            word, shift = first[segment] + position // 64, np.uint64(position % 64)
            for f in range(width):
                bits[word, f] |= np.uint64(x[row, f]) << shift
                total[segment, f] += x[row, f]
            row += 1
        for f in range(width):
            total[segments, f] += total[segment, f]
    return bits, first, total


@array_kernel
def by_lane(total):
    """Rows per segment and split, LANES splits at a time: (tiles, segments * LANES)."""
    segments, tiles = total.shape[0] - 1, total.shape[1] // LANES
    lanes = np.empty((tiles, segments * LANES))
    for tile in range(tiles):
        for segment in range(segments):
            for j in range(LANES):
                lanes[tile, segment * LANES + j] = total[segment, tile * LANES + j]
    return lanes


@array_kernel
def gather(rows, index, feature, rules):
    """The local table of a subproblem; a Kaplan-Meier mode becomes the faster of rows and bins."""
    n, p, mode, equal = index.shape[0], feature.shape[0], rules.mode, rules.equal
    local = take(rows, index)
    x = np.zeros((n, LANES * (p // LANES + 1) + 1), dtype=np.uint8)
    for i in range(n):
        for f in range(p):
            x[i, f] = rows.x[index[i], feature[f]]
        x[i, -1] = 1
    inverse_g, dh, dy, stop = time_bins(rows, local.time_id, mode == IPCW)
    no_bins = stop[:0]
    if mode != IPCW:
        words = n / 64 + stop.shape[0]
        binned = words * BIN_WORD_NS + stop.shape[0] * BIN_STEP_NS
        mode = KM_BINS if equal and binned < n * ROW_NS else KM_ROWS
    bits, first, total = pack_bits(x, local.v, stop if mode == KM_BINS else no_bins)
    by_bin = inverse_g, dh, dy, stop
    return SubsetTable(feature, x, local, rows.t[-1], bits, first, total, by_lane(total), *by_bin, mode, equal)


@array_kernel
def permuted(local, order):
    """The same table with its splits in another order."""
    p = order.shape[0]
    width = local.bits.shape[1]
    column = np.empty(width, dtype=np.int64)
    for f in range(width):
        column[f] = order[f] if f < p else f
    x = local.x
    if local.mode != KM_BINS:
        x = np.empty_like(local.x)
        for i in range(x.shape[0]):
            for f in range(width):
                x[i, f] = local.x[i, column[f]]
    bits = np.empty_like(local.bits)
    for word in range(bits.shape[0]):
        for f in range(width):
            bits[word, f] = local.bits[word, column[f]]
    total = np.empty_like(local.total)
    for segment in range(total.shape[0]):
        for f in range(width):
            total[segment, f] = local.total[segment, column[f]]
    feature = np.empty_like(local.feature)
    for f in range(p):
        feature[f] = local.feature[order[f]]
    by_bin = local.inverse_g, local.dh, local.dy, local.stop
    return SubsetTable(
        feature, x, local.rows, local.y_end, bits, local.first, total, by_lane(total), *by_bin, local.mode, local.equal
    )


@entry(FEATURES, *ints(1), INT)
def split_rows(x, index, f):
    """Rows of an index with the feature, and without it, in order."""
    ones, zeros = np.empty_like(index), np.empty_like(index)
    n_ones, n_zeros = 0, 0
    for i in index:
        if x[i, f]:
            ones[n_ones] = i
            n_ones += 1
        else:
            zeros[n_zeros] = i
            n_zeros += 1
    return ones[:n_ones].copy(), zeros[:n_zeros].copy()
