"""Lower bounds of the integrated-Brier-score search from coarse bins of time, for many rows with many distinct times.

A leaf loses, whatever its curve, at least the integral of n D / (n + D G) (`leaf_costs.ipcw_costs`): n rows are still
at risk, D sums 1 / G over the events so far. That grows with n and D and falls with G. So within a bin, n at its end,
D before it and G at its start give a bound, from counts of bits alone: a few operations per word of 64 rows where
the exact cost takes some per row. It comes close when there are many rows, which is when the exact cost is slow.
"""

from __future__ import annotations

from softsurv.exact.brier.leaf_costs import IPCW, LANES, TINY, keep_costs, start_leaves
from softsurv.exact.brier.table import BIN_STEP_NS, BIN_WORD_NS, ROW_NS, Rules, SortedRows, TimeBits
from softsurv.exact.jit import fused_kernel

LEAST_SAVING = 4.0
"""Bounds must be this many times as fast as exact costs: then they pay even if they seldom decide."""


def are_worth_it(rows: SortedRows, rules: Rules, size: int) -> bool:
    """Whether bounds from the coarse bins are much faster than exact costs of that many rows."""
    if rows.coarse.bins == 0 or rules.complexity <= 0.0:
        return False
    exact = size * ROW_NS
    if rows.time_bits.bins > 0 and rules.mode != IPCW:
        exact = min(exact, pass_ns(rows.time_bits))
    return LEAST_SAVING * pass_ns(rows.coarse) < exact


def pass_ns(time_bits: TimeBits) -> float:
    """Cost of one pass over features as bits, per pair of splits."""
    return float(time_bits.segment.size * BIN_WORD_NS + time_bits.bins * BIN_STEP_NS)


@fused_kernel
def least_costs(bits, f, lo, first, total, lanes, inverse_g, dy, state, out, counts):
    """Lower bound of the cost of 4 leaves x LANES splits, whatever the leaves' curves; arguments as `bin_costs`."""
    n_bins, everyone = dy.shape[0], bits.shape[1] - 1
    both, lane_only = start_leaves(bits, f, lo, first, total[2 * n_bins], lanes, counts, state)
    without = state[8 * LANES :]
    for b in range(n_bins):
        died, left = total[2 * b], total[2 * b + 1]
        rest, other = died[everyone] - died[f], left[everyone] - left[f]
        segment = slice(2 * b * LANES, 2 * (b + 1) * LANES)
        _bin(state, both[segment], died[f], left[f], inverse_g[b], dy[b])
        _bin(without, lane_only[segment], rest, other, inverse_g[b], dy[b])
    keep_costs(state, out)


@fused_kernel
def _bin(state, pair, events, censored, inverse_g, y):
    """One bin of two leaves per lane, each with its sum of 1 / G, rows at risk and cost (the first place is unused)."""
    g = 1.0 / max(inverse_g, TINY)  # where G is 0 no time is left
    for j in range(LANES):
        d, c = pair[j], pair[LANES + j]
        dead = state[LANES + j]
        n = state[2 * LANES + j] - d - c
        state[LANES + j] = dead + d * inverse_g
        state[2 * LANES + j] = n
        state[3 * LANES + j] = state[3 * LANES + j] + n * dead / max(n + dead * g, TINY) * y
        d, c = events - d, censored - c
        dead = state[5 * LANES + j]
        n = state[6 * LANES + j] - d - c
        state[5 * LANES + j] = dead + d * inverse_g
        state[6 * LANES + j] = n
        state[7 * LANES + j] = state[7 * LANES + j] + n * dead / max(n + dead * g, TINY) * y
