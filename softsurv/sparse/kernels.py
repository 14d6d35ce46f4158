"""Compiled search for splits: what corrections of leaves gain, and the best tree of depth two on binned features.

A row has five numbers for each cause: the slopes and curvatures of its loss with respect to a correction of its leaf's
level and shape. A leaf with the summed slopes g and curvatures H gains ``1/2 g' (H + penalty I)^-1 g`` by its
correction, to second order, so a search needs nothing but sums. The losses of causes add up, and so do their gains.
"""

from __future__ import annotations

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.loops import FLOAT, INT16, floats, ints
from softsurv.soft.jit import ONE_CAUSE, loop, loop_part

N_SUMS = 5
"""Sums of each cause: slopes of level and shape; curvatures level-level, level-shape, shape-shape."""


def causes_of(sums: FloatArray) -> tuple[int, ...]:
    """First column of each cause in sums (n, 5 K): a tuple, whose length the compiler knows and unrolls."""
    return tuple(range(0, max(sums.shape[1], N_SUMS), N_SUMS))


@loop_part()
def leaf_gain(g0, g1, h00, h01, h11, penalty):
    """Gain of a leaf by its correction, to second order."""
    a, c = h00 + penalty, h11 + penalty
    determinant = a * c - h01 * h01
    if a <= 0.0 or determinant <= 1e-12 * a * c:  # the shape is not determined: correct the level alone
        return 0.5 * g0 * g0 / a if a > 0.0 else 0.0
    return 0.5 * (c * g0 * g0 - 2.0 * h01 * g0 * g1 + a * g1 * g1) / determinant


@loop_part(inline="always")
def gain_of(sums, penalty, causes):
    """`leaf_gain` of a vector of sums (5 K, ...), added up over the causes."""
    gain = 0.0
    for q in range(len(causes)):
        c = q * N_SUMS
        gain += leaf_gain(sums[c], sums[c + 1], sums[c + 2], sums[c + 3], sums[c + 4], penalty)
    return gain


@loop(*floats(1), FLOAT, ONE_CAUSE)
def gain_of_leaf(sums, penalty, causes):
    """Gain of one leaf."""
    return gain_of(sums, penalty, causes)


@loop_part(inline="always")
def rest_gain(total, low, penalty, causes):
    """`gain_of` of the difference ``total - low``."""
    gain = 0.0
    for q in range(len(causes)):
        c = q * N_SUMS
        gain += leaf_gain(
            total[c] - low[c],
            total[c + 1] - low[c + 1],
            total[c + 2] - low[c + 2],
            total[c + 3] - low[c + 3],
            total[c + 4] - low[c + 4],
            penalty,
        )
    return gain


@loop_part()
def histogram_pair(first, second, n_first, n_second, rows, sums, size, out, causes):
    """Sums (and sizes) of the rows in each pair of bins, cumulated over both: out (n_first, n_second, 5 K + 1)."""
    n_sums = N_SUMS * len(causes)
    out[:n_first, :n_second] = 0.0
    for i in rows:
        cell = out[first[i], second[i]]
        for k in range(n_sums):
            cell[k] += sums[i, k]
        cell[n_sums] += size[i]
    for a in range(n_first):
        for b in range(1, n_second):
            for k in range(n_sums + 1):
                out[a, b, k] += out[a, b - 1, k]
    for a in range(1, n_first):
        for b in range(n_second):
            for k in range(n_sums + 1):
                out[a, b, k] += out[a - 1, b, k]


@loop(*ints(2, of=INT16), *ints(1, 1), *floats(2, 1), FLOAT, FLOAT, ONE_CAUSE)
def best_trees(codes, n_codes, rows, sums, size, least, penalty, causes):
    """Best gains of trees of two levels.

    They have each root cut in turn, and one further cut in either side.

    Parameters
    ----------
    codes : (P, N) int
        Bins of each feature.
    n_codes : (P,) int
    rows : (n,) int
        Rows that the tree is for.
    sums : (N, 5 K)
    size : (N,)
        Size of each row; ``least`` is the least sum of sizes in a leaf.
    least, penalty : float
    causes : tuple of int
        See :func:`causes_of`.

    Returns
    -------
    gain : (P, C, 2)
        For the root cut "code <= c": gain of either side as a leaf; -inf where a side is too small. The side of the
        codes up to c comes first.
    inner : (P, C, 2)
        Gain of either side with its best further cut, -inf where there is none.
    cut : (P, C, 2, 2) int
        Feature and code of that cut.
    """
    p, c, n_sums = len(n_codes), 0, N_SUMS * len(causes)
    for f in range(p):  # n_codes.max() would take a second to compile
        c = max(c, n_codes[f])
    gain, inner, cut = np.empty((p, c, 2)), np.empty((p, c, 2)), np.empty((p, c, 2, 2), np.int64)
    gain[:], inner[:], cut[:] = -np.inf, -np.inf, -1
    table, below, part = np.empty((c, c, n_sums + 1)), np.empty((c + 1, n_sums + 1)), np.empty((4, n_sums + 1))
    for f in range(p):
        for s in range(p):
            if s == f:
                # both cuts on one feature: the table of the pair would be diagonal, and one histogram is enough
                add_up(codes[f], n_codes[f], rows, sums, size, below)
                one_feature(below, n_codes[f], least, penalty, f, gain, inner, cut, part, causes)
                continue
            nf, ns = n_codes[f], n_codes[s]
            histogram_pair(codes[f], codes[s], nf, ns, rows, sums, size, table, causes)
            for a in range(nf - 1):
                for b in range(ns - 1):
                    for k in range(n_sums + 1):
                        part[0, k] = table[a, b, k]
                        part[1, k] = table[a, ns - 1, k] - part[0, k]
                        part[2, k] = table[nf - 1, b, k] - part[0, k]
                        part[3, k] = table[nf - 1, ns - 1, k] - table[a, ns - 1, k] - part[2, k]
                    for side in range(2):
                        if part[2 * side, n_sums] < least or part[2 * side + 1, n_sums] < least:
                            continue
                        value = gain_of(part[2 * side], penalty, causes) + gain_of(part[2 * side + 1], penalty, causes)
                        if value > inner[f, a, side]:
                            inner[f, a, side] = value
                            cut[f, a, side, 0], cut[f, a, side, 1] = s, b
    return gain, inner, cut


@loop(*ints(2, of=INT16), *ints(1, 1), *floats(2, 1), FLOAT, FLOAT, ONE_CAUSE)
def gains_alone(codes, n_codes, rows, sums, size, least, penalty, causes):
    """Gain of the best cut of each feature (P,), -inf where a side is too small; the arguments of `best_trees`."""
    p, c, width = len(n_codes), 0, N_SUMS * len(causes) + 1
    for f in range(p):
        c = max(c, n_codes[f])
    best, below, low, high = np.empty(p), np.empty((c + 1, width)), np.empty(width), np.empty(width)
    for f in range(p):
        best[f] = -np.inf
        add_up(codes[f], n_codes[f], rows, sums, size, below)
        for a in range(n_codes[f] - 1):
            both_sides(below, 0, a + 1, n_codes[f], low, high)
            if low[width - 1] >= least and high[width - 1] >= least:
                best[f] = max(best[f], gain_of(low, penalty, causes) + gain_of(high, penalty, causes))
    return best


@loop_part()
def add_up(code, n_codes, rows, sums, size, below):
    """Sums and size of the rows below each code, ``below`` (C + 1, 5 K + 1)."""
    below[:] = 0.0
    last = below.shape[1] - 1
    for i in rows:
        for k in range(last):
            below[code[i] + 1, k] += sums[i, k]
        below[code[i] + 1, last] += size[i]
    for a in range(n_codes):
        for k in range(last + 1):
            below[a + 1, k] += below[a, k]


@loop_part()
def one_feature(below, n_codes, least, penalty, f, gain, inner, cut, part, causes):
    """The part of `best_trees` that cuts one feature twice, and the plain gains of its cuts."""
    low, high, last = part[0], part[1], part.shape[1] - 1
    for a in range(n_codes - 1):
        both_sides(below, 0, a + 1, n_codes, low, high)
        if low[last] < least or high[last] < least:
            continue
        gain[f, a, 0], gain[f, a, 1] = gain_of(low, penalty, causes), gain_of(high, penalty, causes)
        for b in range(n_codes - 1):
            if b == a:
                continue
            side = 0 if b < a else 1
            first, end = (0, a + 1) if side == 0 else (a + 1, n_codes)
            both_sides(below, first, b + 1, end, low, high)
            if low[last] < least or high[last] < least:
                continue
            value = gain_of(low, penalty, causes) + gain_of(high, penalty, causes)
            if value > inner[f, a, side]:
                inner[f, a, side] = value
                cut[f, a, side, 0], cut[f, a, side, 1] = f, b


@loop_part()
def both_sides(below, first, middle, end, low, high):
    """Sums (5 K + 1,) of the codes from ``first`` up to ``middle``, and from there up to ``end``."""
    for k in range(low.size):
        low[k] = below[middle, k] - below[first, k]
        high[k] = below[end, k] - below[middle, k]
