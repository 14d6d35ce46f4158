"""Rows as bits: where rows are of few kinds, sums over pairs of splits are population counts.

A *member* of a subset is a row as it was given; its *kind* is its vector of statistics. Class counts have one kind per
class. The sum over the members that pass two splits is then, for every kind, the population count of two ANDed columns
of bits times the kind's statistics: 64 members in one instruction, and eight columns at a time where the processor can.

A subset is packed anew: its members kind by kind, each kind in words of its own, so that columns have no gaps.
`row_kinds.py` says where the members come from, and when bits pay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softsurv.exact.jit import shared_inlined, shared_kernel
from softsurv.exact.kernels.simd import LANES, as_numbers, count_both, no_counts, transpose
from softsurv.exact.kernels.small_counts import MOST, SHORT, WIDE, count_shared, spread_small
from softsurv.exact.kernels.views import (
    Bytes,
    FloatMatrix,
    Floats,
    Ints,
    LongMatrix,
    Longs,
    ShortMatrix,
    Shorts,
    WordMatrix,
    Words,
)
from softsurv.exact.kernels.words import popcount


class RowKinds(NamedTuple):
    """Rows by kind: U distinct rows, C kinds, D splits in B = ceil(D / 64) words; all empty where not used."""

    kind_stats: FloatMatrix  # (C, W) statistics of one member of each kind
    kind_count: LongMatrix  # (U, C) int64 members of each kind in each distinct row
    least: int  # fewest members of a leaf
    unit: float  # what a member costs under all labels but one, its kind's own, which is free; 0 where it is not so
    worst: Floats  # (C,) most that a member of each kind can cost; inf where there is no such number
    row_bits: WordMatrix  # (U, B) uint64 bit d set where the row goes left at split d
    split_code: Ints  # (D,) int32 global code of each split
    follows: Bytes  # (D,) int8 1 where the split before is nested in this one: the same ordered feature


class BitColumns(NamedTuple):
    """Scratch of one thread: a subset as columns of bits."""

    member_row: Ints  # (V * 64,) int32 row of each member, -1 where a word is not full
    kind_start: Longs  # (C + 1,) int64 first word of each kind
    members: Longs  # (C,) int64 members of each kind
    block: Words  # (64,) uint64
    wide: WordMatrix  # (V, B * 64) uint64 columns of all splits
    columns: Words  # (V * stride,) uint64 columns of the splits that divide the subset, word by word
    passing: LongMatrix  # (C, B * 64) int64 members of each kind on the left of each split
    shorts: Shorts  # (4 * V * (D + 32),) int16 the columns in words of 16 members, where errors are counted
    short_start: Longs  # (C + 1,) int64 first short word of each kind
    passed: ShortMatrix  # (C, D + 32) int16 members of each kind on the left of each split that divides the subset
    errors: ShortMatrix  # (2, D + 32) int16 fewest errors of either side with one more split
    shared: FloatMatrix  # (D + 8, D + 8) worst cost of what passes two splits, where ``wanted``
    wanted: Bytes  # (1,) int8
    then: Floats  # (D + 8,) price of each second split after the first one at hand (`split_costs.py`)
    before: Floats  # (D + 8,) price of the first one after each of them
    total_worst: Floats  # (1,) most that all rows of the subset can cost


@shared_inlined
def hits(bits, c, s, t, stride):
    """Members of kind c that pass split s and each of eight splits from ``t`` on, as a vector of numbers."""
    found = no_counts()
    for word in range(bits.kind_start[c], bits.kind_start[c + 1]):
        found = count_both(found, bits.columns[word * stride + s], bits.columns, word * stride + t)
    return as_numbers(found)


@shared_inlined
def shared_hits(bits, c, s, t, stride):
    """Members of kind c that pass split s and each of 32 splits from ``t`` on, as small counts."""
    found = spread_small(0)
    for word in range(bits.short_start[c], bits.short_start[c + 1]):
        found = count_shared(found, bits.shorts[word * stride + s], bits.shorts, word * stride + t)
    return found


@shared_kernel
def counts_errors(kinds, bits):
    """Whether a leaf costs its errors, times a number, and they are small counts."""
    n_members = np.int64(0)
    for c in range(bits.members.shape[0]):
        n_members += bits.members[c]
    return kinds.unit > 0.0 and n_members <= MOST


@shared_kernel
def _shorten(local, active):
    """The columns of the splits that divide the subset in words of 16 members, and what passes each split."""
    bits = local.bits
    stride = (active + WIDE - 1) // WIDE * WIDE
    at = np.int64(0)
    for c in range(bits.passed.shape[0]):
        bits.short_start[c] = at
        left = bits.members[c]
        for word in range(bits.kind_start[c], bits.kind_start[c + 1]):
            for j in range(4):
                if left > 0:
                    for s in range(active):
                        bits.shorts[at * stride + s] = np.int16(bits.wide[word, local.map[s]] >> np.uint64(SHORT * j))
                    for s in range(active, stride):
                        bits.shorts[at * stride + s] = 0
                    at += 1
                    left -= SHORT
        for s in range(active):
            bits.passed[c, s] = np.int16(bits.passing[c, local.map[s]])
        for s in range(active, stride):
            bits.passed[c, s] = 0
    bits.short_start[bits.passed.shape[0]] = at


@shared_kernel
def pack(problem, rows, n, local):
    """Columns, sums and active splits of a subset; fills what the base cases read of `Local`."""
    kinds, bits = problem.row_kinds, local.bits
    n_words, n_members = _order_members(kinds, rows, n, bits)
    wide, count, block = bits.wide, bits.passing, bits.block
    for word in range(n_words):
        for b in range(kinds.row_bits.shape[1]):
            for j in range(64):
                row = bits.member_row[word * 64 + j]
                block[j] = kinds.row_bits[row, b] if row >= 0 else np.uint64(0)
            transpose(block)
            for j in range(64):
                wide[word, b * 64 + j] = block[j]
    n_splits = kinds.split_code.shape[0]
    count[:] = 0
    for c in range(count.shape[0]):
        for word in range(bits.kind_start[c], bits.kind_start[c + 1]):
            for d in range(n_splits):
                count[c, d] += popcount(wide[word, d])
    active, before = 0, np.int64(0)
    for d in range(n_splits):
        here = np.int64(0)
        for c in range(count.shape[0]):
            here += count[c, d]
        nested_same = kinds.follows[d] == 1 and here == before
        before = here
        if 0 < here < n_members and not nested_same:
            local.map[active] = d
            local.split_code[active] = kinds.split_code[d]
            local.flipped[active] = 0
            active += 1
    local.size[2] = active
    local.size[3] = n
    _sum_kinds(kinds, bits, local, active)
    if counts_errors(kinds, bits):
        _shorten(local, active)
    stride = (active + LANES - 1) // LANES * LANES
    for word in range(n_words):
        for s in range(active):
            bits.columns[word * stride + s] = wide[word, local.map[s]]
        for s in range(active, stride):
            bits.columns[word * stride + s] = np.uint64(0)


@shared_kernel
def _order_members(kinds, rows, n, bits):
    """Members of the subset by kind, each kind from a new word on: (words, members)."""
    n_kinds = kinds.kind_count.shape[1]
    at, n_members = np.int64(0), np.int64(0)
    for c in range(n_kinds):
        bits.kind_start[c] = at >> 6
        for i in range(n):
            row = rows[i]
            for _ in range(kinds.kind_count[row, c]):
                bits.member_row[at] = row
                at += 1
        bits.members[c] = at - (bits.kind_start[c] << 6)
        n_members += bits.members[c]
        while at & 63 != 0:
            bits.member_row[at] = -1
            at += 1
    bits.kind_start[n_kinds] = at >> 6
    return at >> 6, n_members


@shared_kernel
def _sum_kinds(kinds, bits, local, active):
    """Sums of the subset and of the left side of every active split."""
    n_kinds, width = kinds.kind_stats.shape
    local.total[:] = 0.0
    bits.total_worst[0] = 0.0
    for c in range(n_kinds):
        members = np.float64(bits.members[c])
        bits.total_worst[0] += members * kinds.worst[c]
        for k in range(width):
            local.total[k] += members * kinds.kind_stats[c, k]
    padded = (active + LANES - 1) // LANES * LANES
    for k in range(width):
        for s in range(padded):
            local.side[k, s] = 0.0
        for c in range(n_kinds):
            value = kinds.kind_stats[c, k]
            for s in range(active):
                local.side[k, s] += value * np.float64(bits.passing[c, local.map[s]])
