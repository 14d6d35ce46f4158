"""Costs of the leaves of LANES pairs of splits: what the search calls most, and half of its machine code.

It is called through its address (`Rules.tile`), so it is compiled once for all that call it, beside them.
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.brier.coarse import least_costs
from softsurv.exact.brier.jit import entry_at_address
from softsurv.exact.brier.leaf_costs import IPCW, KM_BINS, LANES, LEAST, bin_costs, ipcw_costs, row_costs
from softsurv.exact.brier.table import SubsetTable
from softsurv.exact.entries import LONG
from softsurv.exact.jit import fused_kernel
from softsurv.exact.kernels.views import floats_at, view_at
from softsurv.exact.kernels.words import popcount

table_at = view_at(SubsetTable)

DONE = 1.0
"""What `tile` returns. It makes arrays. Without memory for them it returns 0: no error passes through an address."""


@fused_kernel
def cell_sums(x, side, lo, weight, out):
    """Sum of weights in the 4 leaves of LANES splits below a first split."""
    out[:] = 0.0
    for i in range(x.shape[0]):
        first = 2 * LANES * (1 - np.int64(side[i]))
        cells = out[first : first + 2 * LANES]
        lanes = x[i, lo : lo + LANES]
        w = weight[i]
        for j in range(LANES):
            lane = np.float64(lanes[j]) * w
            cells[j] += lane
            cells[LANES + j] += w - lane


@fused_kernel
def cell_counts(bits, total, f, lo, out):
    """Rows in the 4 leaves of LANES splits below split f, from the bits."""
    everyone = bits.shape[1] - 1
    acc = np.zeros(LANES, dtype=np.int64)
    for word in range(bits.shape[0]):
        mask = bits[word, f]
        lanes = bits[word, lo : lo + LANES]
        for j in range(LANES):
            acc[j] += popcount(mask & lanes[j])
    for j in range(LANES):
        both, lane = acc[j], total[0, lo + j]
        out[j], out[LANES + j] = both, total[0, f] - both
        out[2 * LANES + j], out[3 * LANES + j] = lane - both, total[0, everyone] - total[0, f] - lane + both


@entry_at_address(LONG, LONG, LONG, LONG, LONG, LONG, returns=float)
def tile(table, f, lo, work, cost, count):
    """Cost and rows (4 * LANES,) of the leaves of the splits lo .. lo + LANES - 1 below split f. Returns `DONE`.

    ``lo`` is a multiple of LANES; f may be the last column, which all rows have.
    """
    local = table_at(table)
    work, cost, count = floats_at(work, (24 * LANES,)), floats_at(cost, (4 * LANES,)), floats_at(count, (4 * LANES,))
    if local.mode == KM_BINS:
        lanes = local.lanes[lo // LANES]
        grid = (local.inverse_g, local.dh, local.dy)
        bin_costs(local.bits, f, lo, local.first, local.total, lanes, *grid, work, cost, count)
        return DONE
    if local.mode == LEAST:
        lanes = local.lanes[lo // LANES]
        steps = (local.inverse_g, local.dy)
        least_costs(local.bits, f, lo, local.first, local.total, lanes, *steps, work, cost, count)
        return DONE
    rows, side = local.rows, local.x[:, f].copy()
    start = count
    if local.equal:
        cell_counts(local.bits, local.total, f, lo, count)
    else:
        cell_sums(local.x, side, lo, rows.multiplicity, count)
        start = np.empty(4 * LANES)
        cell_sums(local.x, side, lo, rows.weight, start)
    if local.mode == IPCW:
        ipcw_costs(local.x, lo, side, rows.weight, rows.v, local.stop, local.inverse_g, local.dy, start, work, cost)
    else:
        row_costs(local.x, lo, side, rows.weight, rows.h, rows.y, rows.v, start, local.y_end, work, cost)
    return DONE
