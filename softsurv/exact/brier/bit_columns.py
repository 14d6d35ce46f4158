"""Large sets of rows in the integrated-Brier-score search: masks over features as bits of words.

With many more rows than distinct times, a subproblem's table is the features as bits, masked by its rows: a few
operations per word of 64 rows, where gathering costs dozens per row. A million rows become sixteen thousand words.
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.brier.leaf_costs import LANES
from softsurv.exact.brier.table import SubsetTable, by_lane, take
from softsurv.exact.jit import array_kernel
from softsurv.exact.kernels.words import popcount


@array_kernel
def mask_words(time_bits, index):
    """Words of a set of rows that hold any, and their bits: (words,), (words,) uint64."""
    mask = np.zeros(time_bits.bits.shape[0], dtype=np.uint64)
    for i in index:
        position = time_bits.position[i]
        mask[position >> 6] |= np.uint64(1) << np.uint64(position & 63)
    words, n = np.empty(mask.shape[0], dtype=np.int64), 0
    for word in range(mask.shape[0]):
        if mask[word] != 0:
            words[n], mask[n] = word, mask[word]
            n += 1
    return words[:n], mask[:n]


@array_kernel
def gather_bits(rows, time_bits, words, mask, feature, mode):
    """The local table of a subproblem with many rows, by masking the features as bits; no row is touched."""
    p, n_words = feature.shape[0], words.shape[0]
    width = LANES * (p // LANES + 1) + 1
    bits = np.zeros((n_words, width), dtype=np.uint64)
    time, first = np.empty(n_words, dtype=np.int64), np.zeros(2 * n_words + 1, dtype=np.int64)
    bins = 0
    for k in range(n_words):
        word, segment = words[k], time_bits.segment[words[k]]
        for f in range(p):
            bits[k, f] = time_bits.bits[word, feature[f]] & mask[k]
        bits[k, -1] = mask[k]
        if bins == 0 or time[bins - 1] != segment // 2:
            time[bins] = segment // 2
            first[2 * bins], first[2 * bins + 1] = k, k
            bins += 1
        if segment % 2 == 0:
            first[2 * bins - 1] = k + 1
    first[2 * bins] = n_words
    first = first[: 2 * bins + 1]
    total = np.zeros((2 * bins + 1, width))
    for segment in range(2 * bins):
        for word in range(first[segment], first[segment + 1]):
            for f in range(width):
                total[segment, f] += popcount(bits[word, f])
        for f in range(width):
            total[2 * bins, f] += total[segment, f]
    inverse_g, dh, dy = np.empty(bins), np.empty(bins), np.empty(bins)
    for b in range(bins):
        here, after = time[b], time[b + 1] if b + 1 < bins else rows.t.shape[0] - 1
        inverse_g[b] = 1.0 / rows.g[here] if rows.g[here] > 0.0 else 0.0
        dh[b], dy[b] = rows.th[after] - rows.th[here], rows.t[after] - rows.t[here]
    nobody = words[:0]
    x = np.zeros((0, width), dtype=np.uint8)
    none, by_bin = take(rows, nobody), (inverse_g, dh, dy, nobody)
    return SubsetTable(feature, x, none, rows.t[-1], bits, first, total, by_lane(total), *by_bin, mode, True)


@array_kernel
def counts_of_bits(time_bits, words, mask):
    """Rows per split, (p + 1,) with the total last, of a set of rows known by its words."""
    p = time_bits.bits.shape[1]
    count = np.zeros(p + 1)
    for k in range(words.shape[0]):
        for f in range(p):
            count[f] += popcount(time_bits.bits[words[k], f] & mask[k])
        count[p] += popcount(mask[k])
    return count


@array_kernel
def bound_sums(rows, index):
    """Bound per split, (p + 1,) with the total last."""
    p = rows.x.shape[1]
    bound = np.zeros(p + 1)
    for i in index:
        if rows.bound[i] > 0.0:
            bound[p] += rows.bound[i]
            for f in range(p):
                bound[f] += rows.x[i, f] * rows.bound[i]
    return bound
