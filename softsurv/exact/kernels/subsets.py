"""Compiled loops that do not depend on the objective: subsets of rows, their histograms, and sums over pairs of splits.

A *code* is the bin of a row on a feature (0 .. number of bins - 1); a *global code* adds the feature's offset, so that
every bin of every feature has one number g in 0 .. G-1. A split has the number of a global code as well: rows with
code <= g go left on an ordered feature, rows with code == g on a nominal one.

`localise` renumbers the bins that occur in a subset: deep subsets have lost many bins, and the work of the depth-two
base case grows with the square of what is left. One bin of every feature, the last of an ordered and the most frequent
of a nominal one, is left out: its sums follow by subtraction, so rows in it cost nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.bit_columns import BitColumns
from softsurv.exact.kernels.views import Bytes, FloatMatrix, Floats, IntMatrix, Ints, Longs

STOP, CALLS, BLOCKS = 0, 1, 2
"""Places in the control array: stop flag, base cases solved, runs over the lanes."""


class Local(NamedTuple):
    """Scratch of one thread for the base case: a subset with its bins renumbered.

    Sizes: N rows, P features, G global codes, W statistics, F local splits.
    """

    map: Ints  # (G,) int32 local bin of a global code, -1 where left out
    per_code: Ints  # (G,) int32 rows per global code
    chained: Bytes  # (P,) int8 1 where sums of local bins are cumulated (ordered), 0 nominal
    bin_start: Ints  # (P + 1,) int32 first local bin of each local feature
    split_start: Ints  # (P + 1,) int32 first local split of each local feature
    split_code: Ints  # (G,) int32 global code of each local split
    flipped: Bytes  # (G,) int8 1 where the bin that stands for an ordered split of two bins is its right side
    size: Longs  # (4,) int64 local features, bins, splits, rows
    origin: Ints  # (P + 1,) int32 the feature that a local feature is
    bucket: IntMatrix  # (P + 1, largest number of bins + 2) int32 where the rows of each local bin start in `by_bin`
    by_bin: IntMatrix  # (P + 1, N) int32 rows of the subset ordered by local bin, those left out last
    active: IntMatrix  # (N, P) int32 local bins of each row, those left out skipped
    n_active: Ints  # (N,) int32
    stats: FloatMatrix  # (N, W) statistics of the subset's rows
    total: Floats  # (W,)
    single: Floats  # (G * W,) sums per local bin
    pairs: Floats  # (F * F * W,) sums per pair of local bins; empty where there are too many bins for the lanes
    side: FloatMatrix  # (W, F) sums of the left side of each local split
    gather: Floats  # (G * W,) sums of (left of one split, bin)
    batch: FloatMatrix  # (W, B) leaves whose cost is asked for
    cost: Floats  # (B,)
    leaf: FloatMatrix  # (2, F) cost of either side as a leaf
    stump: FloatMatrix  # (2, F) cost of either side with at most one more split
    plain_splits: Ints  # (G,) int32; this and the next three are scratch of `base_cases/plain.py`
    plain_scores: FloatMatrix  # (2, G)
    plain_rows: IntMatrix  # (2, N) int32
    plain_prices: Floats  # (G,)
    bits: BitColumns  # the subset as bits
    due: Floats  # (T,) price of each test at this node, where splits cost something (`split_costs.py`)
    after: FloatMatrix  # (T, T) price of each test once another has been made here
    control: Longs  # (8,) int64 shared by all threads: places `STOP`, `CALLS`, `BLOCKS`, `lists.FULL`
    value: Floats  # (5,) best cost with at most that many leaves
    root: Longs  # (5,) int64 split that attains it, -1 for a leaf


class Lanes(NamedTuple):
    """Scratch of one thread for 8 splits and their 16 sides (`base_cases/lanes.py`); flat, the last axis is the lane.

    Two passes over the lanes, each with one side of every split.
    """

    member: Floats  # (N * 8,) 1 where a row of the subset entered the lane
    entered: Bytes  # (N,) int8 1 where a row is in any lane
    whole: Floats  # (2 * 8,) a side is whole * S + sign * (the rows that entered the lane)
    sign: Floats  # (2 * 8,)
    split: Ints  # (8,) int32 the split in each lane
    first_side: Ints  # (8,) int32 the side that the first pass prices, 0 left, 1 right
    entered_total: Floats  # (W * 8,) sums over the rows that entered
    single: Floats  # (G * W * 8,) the same per bin
    gather: Floats  # (G * W * 8,) the same per (left of the current split, bin)
    total: Floats  # (2 * W * 8,) sums of the side
    side: Floats  # (2 * W * F * 8,) sums of the left of every split of the side
    leaf: Floats  # (2 * 2 * F * 8,) cost of left and right of every split of the side, as leaves
    stump: Floats  # (2 * 2 * F * 8,) the same with at most one more split
    sums: FloatMatrix  # (W, 4 * F * 8) leaves whose cost is asked for
    batch: Floats  # the same memory, flat
    plane: int  # 4 * F * 8
    cost: Floats  # (4 * F * 8,)
    value: Floats  # (2 * 5 * 8,) best cost of the side with at most that many leaves


@shared_kernel
def collect(problem, rows, n, local):
    """The statistics of the subset's rows and the renumbered bins in which they are."""
    width = problem.stats.shape[1]
    local.total[:] = 0.0
    for i in range(n):
        r = rows[i]
        m = 0
        for f in range(problem.nominal.shape[0]):
            b = local.map[problem.gcode[r, f]]
            if b >= 0:
                local.active[i, m] = b
                m += 1
        local.n_active[i] = m
        for k in range(width):
            value = problem.stats[r, k]
            local.stats[i, k] = value
            local.total[k] += value


@shared_kernel
def localise(problem, rows, n, local):
    """Renumber the bins that occur in a subset; fills everything of `Local` up to ``total``."""
    gcode, start, nominal = problem.gcode, problem.code_start, problem.nominal
    n_features = nominal.shape[0]
    count, table = local.per_code, local.map
    count[:] = 0
    for i in range(n):
        r = rows[i]
        for f in range(n_features):
            count[gcode[r, f]] += 1
    features = bins = splits = 0
    for f in range(n_features):
        present = 0
        largest = last = np.int32(-1)
        for g in range(start[f], start[f + 1]):
            table[g] = -1
            if count[g] > 0:
                present += 1
                last = np.int32(g)
                if largest < 0 or count[g] > count[largest]:
                    largest = np.int32(g)
        if present < 2:
            continue
        skipped = largest if nominal[f] or present == 2 else last
        local.bin_start[features] = bins
        local.split_start[features] = splits
        local.origin[features] = f
        local.chained[features] = 0 if nominal[f] and present > 2 else 1
        for g in range(start[f], start[f + 1]):
            if count[g] > 0 and g != skipped:
                table[g] = bins
                local.split_code[splits] = g
                local.flipped[splits] = 0
                bins += 1
                splits += 1
        if nominal[f] and present > 2:
            local.split_code[splits] = skipped
            local.flipped[splits] = 0
            splits += 1
        elif present == 2 and not nominal[f] and skipped < local.split_code[splits - 1]:
            local.split_code[splits - 1] = skipped
            local.flipped[splits - 1] = 1
        features += 1
    local.bin_start[features] = bins
    local.split_start[features] = splits
    local.size[0] = features
    local.size[1] = bins
    local.size[2] = splits
    local.size[3] = n
    collect(problem, rows, n, local)


@shared_kernel
def order_by_bin(problem, rows, local):
    """Order the rows of the localised subset by their bin on every feature: a counting sort."""
    n = local.size[3]
    for f in range(local.size[0]):
        b0 = local.bin_start[f]
        n_bins = local.bin_start[f + 1] - b0
        bucket, by_bin = local.bucket[f], local.by_bin[f]
        bucket[: n_bins + 2] = 0
        g = local.origin[f]
        for i in range(n):
            b = local.map[problem.gcode[rows[i], g]]
            bucket[(b - b0 if b >= 0 else n_bins) + 1] += 1
        for b in range(n_bins + 1):
            bucket[b + 1] += bucket[b]
        for i in range(n):
            b = local.map[problem.gcode[rows[i], g]]
            b = b - b0 if b >= 0 else n_bins
            by_bin[bucket[b]] = i
            bucket[b] += 1
        for b in range(n_bins + 1, 0, -1):
            bucket[b] = bucket[b - 1]
        bucket[0] = 0


@shared_kernel
def _sum_bins(local):
    """Sums of the localised subset per bin."""
    width = local.stats.shape[1]
    local.single[: local.size[1] * width] = 0.0
    for i in range(local.size[3]):
        for a in range(local.n_active[i]):
            at = local.active[i, a] * width
            for k in range(width):
                local.single[at + k] += local.stats[i, k]


@shared_kernel
def sum_pairs(local):
    """Sums of the localised subset per pair of bins: P^2/2 additions a row."""
    width = local.stats.shape[1]
    stride = local.size[1] * width
    pairs, active = local.pairs, local.active
    pairs[: local.size[1] * stride] = 0.0
    if width == 2:
        for i in range(local.size[3]):
            first, second = local.stats[i, 0], local.stats[i, 1]
            m = local.n_active[i]
            for a in range(m - 1):
                base = active[i, a] * stride
                for b in range(a + 1, m):
                    at = base + 2 * active[i, b]
                    pairs[at] += first
                    pairs[at + 1] += second
        return
    for i in range(local.size[3]):
        m = local.n_active[i]
        for a in range(m - 1):
            base = active[i, a] * stride
            for b in range(a + 1, m):
                at = base + width * active[i, b]
                for k in range(width):
                    pairs[at + k] += local.stats[i, k]


@shared_kernel
def sum_sides(local):
    """Sums of the left side of every split of the localised subset, into ``side``."""
    _sum_bins(local)
    width = local.stats.shape[1]
    for f in range(local.size[0]):
        b0, b1 = local.bin_start[f], local.bin_start[f + 1]
        s0, s1 = local.split_start[f], local.split_start[f + 1]
        for k in range(width):
            run = 0.0
            for b in range(b0, b1):
                value = local.single[b * width + k]
                run += value
                local.side[k, s0 + b - b0] = run if local.chained[f] else value
            if s1 - s0 > b1 - b0:
                local.side[k, s1 - 1] = local.total[k] - run


@shared_kernel
def partition(problem, rows, n, split, feature, out, begin):
    """Write the rows that go left, then those that go right, to ``out[begin:]``; returns how many went left."""
    gcode = problem.gcode
    left = begin
    right = begin + n - 1
    if problem.nominal[feature]:
        for i in range(n):
            if gcode[rows[i], feature] == split:
                out[left] = rows[i]
                left += 1
            else:
                out[right] = rows[i]
                right -= 1
    else:
        for i in range(n):
            if gcode[rows[i], feature] <= split:
                out[left] = rows[i]
                left += 1
            else:
                out[right] = rows[i]
                right -= 1
    return left - begin
