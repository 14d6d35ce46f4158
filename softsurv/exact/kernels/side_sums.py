"""Sums over the rows left of one split, or of two, for statistics that the base cases do not add up.

The base case must have run on the subset, or `pack` or `localise`: the splits are those that divide it, S of them.
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.bit_columns import hits
from softsurv.exact.kernels.simd import LANES, load, spread, store


@shared_kernel
def left_sums(problem, stats, kinds, rows, n, local, out, by_code):
    """Sums of the rows left of every split, into ``out`` (W, S).

    ``stats`` (U, W) are statistics of the distinct rows, ``kinds`` (C, W) those of a unit of each kind, empty where
    rows are not counted by bits; ``by_code`` (G, W) is scratch.
    """
    m = local.size[2]
    if kinds.shape[0] == 0:
        by_code[:] = 0.0
        for i in range(n):
            _add_row(problem, stats, rows[i], by_code)
        _cumulate(problem, local, out, by_code)
        return
    for k in range(kinds.shape[1]):
        for s in range(m):
            total = 0.0
            for c in range(kinds.shape[0]):
                total += kinds[c, k] * np.float64(local.bits.passing[c, local.map[s]])
            out[k, s] = total


@shared_kernel
def both_sums(problem, stats, kinds, rows, n, local, first, begin, out, by_code):
    """Sums of the rows left of split ``first`` and of each other split from ``begin`` on, as `left_sums`."""
    if kinds.shape[0] == 0:
        g = local.split_code[first]
        f = problem.feature_of[g]
        by_code[:] = 0.0
        for i in range(n):
            code = problem.gcode[rows[i], f]
            if code == g or (code < g and not problem.nominal[f]):
                _add_row(problem, stats, rows[i], by_code)
        _cumulate(problem, local, out, by_code)
        return
    stride = (local.size[2] + LANES - 1) // LANES * LANES
    for k in range(kinds.shape[1]):
        row = out[k]
        for t in range(begin // LANES * LANES, stride, LANES):
            store(row, t, spread(0.0))
    for t in range(begin // LANES * LANES, stride, LANES):
        for c in range(kinds.shape[0]):
            found = hits(local.bits, c, first, t, stride)
            for k in range(kinds.shape[1]):
                if kinds[c, k] != 0.0:
                    row = out[k]
                    store(row, t, load(row, t) + spread(kinds[c, k]) * found)


@shared_kernel
def _add_row(problem, stats, row, by_code):
    for f in range(problem.nominal.shape[0]):
        g = problem.gcode[row, f]
        for k in range(stats.shape[1]):
            by_code[g, k] += stats[row, k]


@shared_kernel
def _cumulate(problem, local, out, by_code):
    """From sums by code to sums left of each split."""
    for f in range(problem.nominal.shape[0]):
        if not problem.nominal[f]:
            for g in range(problem.code_start[f] + 1, problem.code_start[f + 1]):
                for k in range(by_code.shape[1]):
                    by_code[g, k] += by_code[g - 1, k]
    for s in range(local.size[2]):
        for k in range(by_code.shape[1]):
            out[k, s] = by_code[local.split_code[s], k]
