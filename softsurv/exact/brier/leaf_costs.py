"""Compiled inner loops of the integrated-Brier-score objective: leaf costs of many leaves at once.

Every loop here works on *lanes*: LANES splits side by side, so that one pass over the rows in time order (or over
bins of time) costs all of them with vector instructions. The cost of a leaf needs the whole time axis, not a few
sums, which is why this objective does not use the sums of `base_cases`.

Rows come sorted by time, events before censorings at equal times. With H(t) the integral of 1/G from the first time
to t, a row i of a leaf with Kaplan-Meier curve S contributes to the score (paper `osst`, eq. 2 and 7)

    weight_i * int_0^{t_i} (1 - S)^2 dH  +  event_i * weight_i / G(t_i) * int_{t_i}^{end} S^2 dt,

so two running integrals per leaf, P(t) = int (1 - S)^2 dH and Q(t) = int S^2 dt, give every row in O(1). Between two
events of the leaf S is constant, hence P(t) = offset + (1 - S)^2 H(t), and a censored row costs a few operations.
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.jit import array_kernel, fused_inlined, fused_kernel
from softsurv.exact.kernels.words import popcount

LANES = 16
"""Splits per pass: enough for the compiler to fill vector registers, few enough for the state to stay in cache."""

TINY = 1e-300
"""Stands in for an empty at-risk set: its leaf has no row left, so the quotient is multiplied by 0."""

KM_ROWS, KM_BINS, IPCW, LEAST = 0, 1, 2, 3
"""Ways to cost a leaf: Kaplan-Meier row by row, Kaplan-Meier by bins of time (bit counts), pointwise minimiser, and
a bound of all of them by coarse bins of time."""


@fused_kernel
def row_costs(x, lo, side, weight, h, y, v, start, y_end, state, out):
    """Kaplan-Meier cost of 4 leaves x LANES splits in one pass over the rows.

    Parameters
    ----------
    x : (n, width) uint8, features of the rows; lanes are the columns lo .. lo + LANES - 1
    side : (n,) uint8, 1 or 0: value of the first split
    weight, h, y, v : (n,) weight, H(t), t (from the first time), weight / G(t) for events and 0 for censored rows
    start : (4 * LANES,) weight at risk at the beginning of each leaf; leaf = 2 * (side == 0) + (lane == 0)
    y_end : end of the time range
    state : (24 * LANES,) workspace
    out : (4 * LANES,) costs
    """
    for leaf in range(4):
        base = leaf * 6 * LANES
        for j in range(LANES):
            state[base + j] = start[leaf * LANES + j]
            state[base + LANES + j] = 1.0
            state[base + 2 * LANES + j] = 0.0
            state[base + 3 * LANES + j] = 0.0
            state[base + 4 * LANES + j] = 0.0
            state[base + 5 * LANES + j] = 0.0
    for i in range(x.shape[0]):
        first = 12 * LANES * (1 - np.int64(side[i]))
        leaves = state[first : first + 12 * LANES]  # two leaves: at risk, S, P offset, Q offset, cost, sum of v
        lanes = x[i, lo : lo + LANES]
        if v[i] == 0.0:
            _censored_row(leaves, lanes, weight[i], h[i])
        else:
            _event_row(leaves, lanes, weight[i], h[i], y[i], v[i])
    for leaf in range(4):
        base = leaf * 6 * LANES
        for j in range(LANES):
            s = state[base + LANES + j]
            tail = state[base + 3 * LANES + j] + s * s * y_end  # Q at the end of the range
            out[leaf * LANES + j] = state[base + 4 * LANES + j] + state[base + 5 * LANES + j] * tail


@fused_inlined
def _censored_row(leaves, lanes, weight, h):
    """A censored row: it pays P at its time and leaves the at-risk set."""
    for j in range(LANES):
        one = np.float64(lanes[j]) * weight
        zero = weight - one
        miss = 1.0 - leaves[LANES + j]
        leaves[4 * LANES + j] += one * (leaves[2 * LANES + j] + miss * miss * h)
        leaves[j] -= one
        miss = 1.0 - leaves[7 * LANES + j]
        leaves[10 * LANES + j] += zero * (leaves[8 * LANES + j] + miss * miss * h)
        leaves[6 * LANES + j] -= zero


@fused_inlined
def _event_row(leaves, lanes, weight, h, y, v):
    """An event: it pays P so far and Q from now on, and its leaf's curve steps down.

    Tied events are taken one after the other: (n-1)/n (n-2)/(n-1) = (n-2)/n.
    """
    for j in range(LANES):
        lane = np.float64(lanes[j])
        one, vee = lane * weight, lane * v
        at_risk, s = leaves[j], leaves[LANES + j]
        after = s * (1.0 - one / max(at_risk, TINY))
        miss, miss_after = (1.0 - s) * (1.0 - s), (1.0 - after) * (1.0 - after)
        paid, cost = leaves[2 * LANES + j], leaves[4 * LANES + j]
        q = leaves[3 * LANES + j]
        leaves[4 * LANES + j] = cost + one * (paid + miss * h) - vee * (q + s * s * y)
        leaves[2 * LANES + j] = paid + (miss - miss_after) * h
        leaves[3 * LANES + j] = q + (s * s - after * after) * y
        leaves[5 * LANES + j] += vee
        leaves[j] = at_risk - one
        leaves[LANES + j] = after
        zero, vee = weight - one, v - vee
        at_risk, s = leaves[6 * LANES + j], leaves[7 * LANES + j]
        after = s * (1.0 - zero / max(at_risk, TINY))
        miss, miss_after = (1.0 - s) * (1.0 - s), (1.0 - after) * (1.0 - after)
        paid, cost = leaves[8 * LANES + j], leaves[10 * LANES + j]
        q = leaves[9 * LANES + j]
        leaves[10 * LANES + j] = cost + zero * (paid + miss * h) - vee * (q + s * s * y)
        leaves[8 * LANES + j] = paid + (miss - miss_after) * h
        leaves[9 * LANES + j] = q + (s * s - after * after) * y
        leaves[11 * LANES + j] += vee
        leaves[6 * LANES + j] = at_risk - zero
        leaves[7 * LANES + j] = after


@fused_kernel
def bin_costs(bits, f, lo, first, total, lanes, inverse_g, dh, dy, state, out, counts):
    """Kaplan-Meier cost of 4 leaves x LANES splits by bins of time, for rows of equal weight.

    Parameters
    ----------
    bits : (words, width) uint64, one bit per row; each bin starts a word for its events, another for the rest
    f : column of the first split
    first : (2 * bins + 1,) first word of each segment (events, then censorings, of each bin)
    total : (2 * bins + 1, width) float, rows with the feature in each segment, then in all; last column: all rows
    lanes : (2 * bins * LANES,) float, ``total`` of the lanes' splits, segment by segment
    inverse_g, dh, dy : (bins,) 1 / G, and the growth of H and of t until the next bin, in units of the objective
    state : (24 * LANES,) workspace: per leaf S, sum of 1 / G over events, at risk, cost
    out, counts : (4 * LANES,) costs and rows of the leaves
    """
    n_bins, everyone = dh.shape[0], bits.shape[1] - 1
    both, lane_only = start_leaves(bits, f, lo, first, total[2 * n_bins], lanes, counts, state)
    without = state[8 * LANES :]
    for b in range(n_bins):
        died, left = total[2 * b], total[2 * b + 1]
        rest, other = died[everyone] - died[f], left[everyone] - left[f]
        segment = slice(2 * b * LANES, 2 * (b + 1) * LANES)
        if died[everyone] > 0.0:
            _step(state, both[segment], died[f], left[f], inverse_g[b], dh[b], dy[b])
            _step(without, lane_only[segment], rest, other, inverse_g[b], dh[b], dy[b])
        else:
            _wait(state, both[segment], left[f], dh[b], dy[b])
            _wait(without, lane_only[segment], other, dh[b], dy[b])
    keep_costs(state, out)


@array_kernel
def _count_both(bits, f, lo, first):
    """Rows with split f and with each of LANES others, per segment: (segments * LANES,) float."""
    segments = first.shape[0] - 1
    found = np.zeros(segments * LANES, dtype=np.int64)
    for segment in range(segments):
        cells = found[segment * LANES : (segment + 1) * LANES]
        for word in range(first[segment], first[segment + 1]):
            mask = bits[word, f]
            lanes = bits[word, lo : lo + LANES]
            for j in range(LANES):
                cells[j] += popcount(mask & lanes[j])
    both = np.empty(segments * LANES)
    for k in range(segments * LANES):
        both[k] = found[k]
    return both


@array_kernel
def start_leaves(bits, f, lo, first, total, lanes, counts, state):
    """Fill in the rows of every leaf, and its curve at 1.

    Returns rows with both splits, and with the lane's split alone, per segment.
    """
    both = _count_both(bits, f, lo, first)
    lane_only = np.empty_like(both)
    for k in range(both.shape[0]):
        lane_only[k] = lanes[k] - both[k]
    counts[:LANES] = 0.0
    for at in range(0, both.shape[0], LANES):
        for j in range(LANES):
            counts[j] += both[at + j]
    in_f, rows = total[f], total[total.shape[0] - 1]
    for j in range(LANES):
        common, lane = counts[j], total[lo + j]
        counts[LANES + j] = in_f - common
        counts[2 * LANES + j] = lane - common
        counts[3 * LANES + j] = rows - in_f - lane + common
    for leaf in range(4):
        for j in range(LANES):
            state[4 * leaf * LANES + j] = 1.0
            state[(4 * leaf + 1) * LANES + j] = 0.0
            state[(4 * leaf + 2) * LANES + j] = counts[leaf * LANES + j]
            state[(4 * leaf + 3) * LANES + j] = 0.0
    return both, lane_only


@array_kernel
def keep_costs(state, out):
    """The costs of all leaves, out of the workspace."""
    for leaf in range(4):
        for j in range(LANES):
            out[leaf * LANES + j] = state[(4 * leaf + 3) * LANES + j]


@fused_kernel
def _step(state, pair, events, censored, g, h, y):
    """A bin with events: two curves per lane step down, then their integrals grow until the next bin.

    ``pair``: events and censorings of the leaf with the lane's split; the other leaf has the rest. Written out for
    both leaves: the compiler does not vectorise it through a helper.
    """
    for j in range(LANES):
        d, c = pair[j], pair[LANES + j]
        n = state[2 * LANES + j]
        s = state[j] * (1.0 - d / max(n, 1.0))
        dead = state[LANES + j] + d * g
        n = n - d - c
        state[j] = s
        state[LANES + j] = dead
        state[2 * LANES + j] = n
        state[3 * LANES + j] = state[3 * LANES + j] + (1.0 - s) * (1.0 - s) * n * h + s * s * dead * y
        d, c = events - d, censored - c
        n = state[6 * LANES + j]
        s = state[4 * LANES + j] * (1.0 - d / max(n, 1.0))
        dead = state[5 * LANES + j] + d * g
        n = n - d - c
        state[4 * LANES + j] = s
        state[5 * LANES + j] = dead
        state[6 * LANES + j] = n
        state[7 * LANES + j] = state[7 * LANES + j] + (1.0 - s) * (1.0 - s) * n * h + s * s * dead * y


@fused_kernel
def _wait(state, pair, censored, h, y):
    """A bin without events: the curves keep their values."""
    for j in range(LANES):
        c = pair[LANES + j]
        s = state[j]
        n = state[2 * LANES + j] - c
        state[2 * LANES + j] = n
        state[3 * LANES + j] = state[3 * LANES + j] + (1.0 - s) * (1.0 - s) * n * h + s * s * state[LANES + j] * y
        s = state[4 * LANES + j]
        n = state[6 * LANES + j] - (censored - c)
        state[6 * LANES + j] = n
        state[7 * LANES + j] = state[7 * LANES + j] + (1.0 - s) * (1.0 - s) * n * h + s * s * state[5 * LANES + j] * y


@fused_kernel
def ipcw_costs(x, lo, side, weight, v, stop, g, dy, start, state, out):
    """Cost of 4 leaves x LANES splits whose curve is the pointwise minimiser S* = B / (B + D).

    B(t) = at risk(t) / G(t) and D(t) = sum over events up to t of weight / G(t_i): the leaf's weighted squared
    error at t is B (1 - S)^2 + D S^2, least at S*, where it is B D / (B + D) = n D / (n + D G).

    Parameters
    ----------
    stop : (steps,) rows before the end of each step of time
    g, dy : (steps,) G in the step, and the step's length in units of the objective
    start : (4 * LANES,) weight at risk at the beginning; others as `row_costs`
    """
    for j in range(4 * LANES):
        at = 2 * (j // LANES) * LANES + j % LANES
        state[at] = start[j]
        state[at + LANES] = 0.0
        out[j] = 0.0
    row = np.int64(0)
    for step in range(stop.shape[0]):
        while row < stop[step]:
            first = 4 * LANES * (1 - np.int64(side[row]))
            leaves = state[first : first + 4 * LANES]
            lanes = x[row, lo : lo + LANES]
            w, vee = weight[row], v[row]
            for j in range(LANES):
                lane = np.float64(lanes[j])
                leaves[j] -= lane * w
                leaves[LANES + j] += lane * vee
                leaves[2 * LANES + j] -= w - lane * w
                leaves[3 * LANES + j] += vee - lane * vee
            row += 1
        for leaf in range(4):
            base = 2 * leaf * LANES
            for j in range(LANES):
                n, d = max(state[base + j], 0.0), state[base + LANES + j]  # heavy rows leave their rounding behind
                out[leaf * LANES + j] += n * d / max(n + d * g[step], TINY) * dy[step]
