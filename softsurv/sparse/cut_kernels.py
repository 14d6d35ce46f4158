"""Compiled search for the best cut along features and directions, on sums as in `kernels`."""

from __future__ import annotations

import numpy as np

from softsurv.loops import FLOAT, INT32, floats, ints
from softsurv.soft.jit import ONE_CAUSE, loop, loop_part
from softsurv.sparse.kernels import N_SUMS, gain_of, rest_gain

SCORE_BINS, SCORE_RANGE = 64, 2.6
"""Bins of a score by which directions are compared, and their range about its mean, in standard deviations."""


@loop_part()
def totals(sums, size):
    """Sums (k,) and size of all rows, added up one row after the other."""
    total, all_size = np.empty(sums.shape[1]), 0.0
    total[:] = 0.0
    for i in range(len(sums)):
        for j in range(len(total)):
            total[j] += sums[i, j]
        all_size += size[i]
    return total, all_size


@loop(*floats(1), *ints(1), *floats(2, 1), FLOAT, FLOAT, FLOAT, ONE_CAUSE)
def cut_gains(score, order, sums, size, least, penalty, margin, causes):
    """Gain of each cut along one score.

    Parameters
    ----------
    score : (n,)
    order : (n,) int
        Sorts ``score``.
    sums : (n, 5 K) or (n, 1)
        Five columns for each cause: both sides are leaves to be corrected. One column: how much more a row costs below
        the cut than above it.
    size : (n,)
    least, penalty, margin : float
        Least size of a side; penalty of a correction; distance up to which neighbouring scores count as equal.
    causes : tuple of int

    Returns
    -------
    gains : (n - 1,)
        Of the cuts between the rows ``order[t]`` and ``order[t + 1]``; -inf where a side would be too small, nan where
        both have the same score.
    best : float
        The largest; -inf where no cut is allowed.
    """
    n, k = sums.shape
    (total, all_size), low = totals(sums, size), np.empty(k)
    low[:] = 0.0
    low_size, best, gains = 0.0, -np.inf, np.empty(max(n - 1, 0))
    for t in range(n - 1):
        i = order[t]
        for j in range(k):
            low[j] += sums[i, j]
        low_size += size[i]
        if score[order[t + 1]] - score[i] <= margin:
            gains[t] = np.nan
        elif low_size < least or all_size - low_size < least:
            gains[t] = -np.inf
        elif k == 1:  # gain of the rows below the cut
            gains[t] = -low[0]
        else:
            gains[t] = gain_of(low, penalty, causes) + rest_gain(total, low, penalty, causes)
        if gains[t] > best:
            best = gains[t]
    return gains, best


@loop(*ints(1), *floats(2), *ints(2, 1, of=INT32), *floats(2, 1), FLOAT, FLOAT, FLOAT, *floats(1), ONE_CAUSE)
def best_cuts(columns, values, order, place, sums, size, least, penalty, close, room, causes):
    """Gain of the best cut of each feature.

    They are some columns, whose order is known.

    Parameters
    ----------
    columns : (C,) int
    values : (P, N)
    order : (P, N) int
        Sorts each row of ``values``.
    place : (N,) int
        Place of each row among the n that count; -1 of the others.
    sums, size, least, penalty, causes
        As in :func:`cut_gains`, of the n rows.
    close : float
        Share of their size up to which neighbouring values count as equal.
    room : (C,)
        Distance up to which they do so in any case.

    Returns
    -------
    best : (C, 2)
        The largest gain. Second: the same for ``sums`` with the sign changed where it has one column, else -inf. -inf
        where no cut is allowed.
    """
    n, k = sums.shape
    total, all_size = totals(sums, size)
    best, cut = np.empty((len(columns), 2)), np.empty(n)
    best[:] = -np.inf
    own, at, low, low_size = np.empty(n + 1), np.empty(n + 1, np.int32), np.empty((k, n)), np.empty(n)
    for c in range(len(columns)):
        below_each(values[columns[c]], order[columns[c]], place, sums, size, causes, own, low, low_size, at)
        if k > 1:
            gains_below(low, total, penalty, causes, cut)
        margin = max(close * max(abs(own[0]), abs(own[n - 1])), room[c])
        for t in range(1, n):
            if own[t] - own[t - 1] > margin and low_size[t] >= least and all_size - low_size[t] >= least:
                if k == 1:  # gain of the rows below the cut; of the reverse rule
                    best[c, 0], best[c, 1] = max(best[c, 0], -low[0, t]), max(best[c, 1], low[0, t])
                else:
                    best[c, 0] = max(best[c, 0], cut[t])
    return best


@loop_part()
def below_each(value, order, place, sums, size, causes, own, low, low_size, at):
    """Values (n,) of the rows that count in order, and the sums (k, n) and sizes (n,) of the rows before each.

    ``own`` and ``at``, for the rows' places, have room for one more.
    """
    t = 0
    for row in order:  # every row is written, and the next one over it where it does not count: no branch to be guessed
        at[t], own[t] = place[row], value[row]
        t += place[row] >= 0
    below = 0.0
    for t in range(low_size.size):
        low_size[t] = below
        below += size[at[t]]
    if low.shape[0] == 1:
        below = 0.0
        for t in range(low_size.size):
            low[0, t] = below
            below += sums[at[t], 0]
        return
    for q in range(len(causes)):
        c = q * N_SUMS
        g0, g1, h00, h01, h11 = 0.0, 0.0, 0.0, 0.0, 0.0
        for t in range(low_size.size):
            low[c, t], low[c + 1, t], low[c + 2, t], low[c + 3, t], low[c + 4, t] = g0, g1, h00, h01, h11
            row = sums[at[t]]
            g0, g1, h00, h01, h11 = g0 + row[c], g1 + row[c + 1], h00 + row[c + 2], h01 + row[c + 3], h11 + row[c + 4]


@loop_part(error_model="numpy")
def gains_below(low, total, penalty, causes, out):
    """Gain of each cut, from the sums (5 K, n) of the rows below it: `leaf_gain` without a branch, for many at once."""
    out[:] = 0.0
    for sign, share in ((1.0, 0.0), (-1.0, 1.0)):  # the rows below, the other rows
        for q in range(len(causes)):
            c = q * N_SUMS
            slope, tilt, level, mixed, shape = low[c], low[c + 1], low[c + 2], low[c + 3], low[c + 4]
            slopes, tilts, levels = share * total[c], share * total[c + 1], share * total[c + 2] + penalty
            mixeds, shapes = share * total[c + 3], share * total[c + 4] + penalty
            for t in range(out.size):
                g0, g1, h01 = slopes + sign * slope[t], tilts + sign * tilt[t], mixeds + sign * mixed[t]
                h00, h11 = levels + sign * level[t], shapes + sign * shape[t]
                determinant = h00 * h11 - h01 * h01
                both = h00 > 0.0 and determinant > 1e-12 * h00 * h11
                joint = 0.5 * (h11 * g0 * g0 - 2.0 * h01 * g0 * g1 + h00 * g1 * g1)
                top = joint if both else (0.5 * g0 * g0 if h00 > 0.0 else 0.0)
                out[t] += top / (determinant if both else (h00 if h00 > 0.0 else 1.0))


@loop(*floats(2), *ints(2), *floats(1, 2, 1), FLOAT, FLOAT, ONE_CAUSE)
def best_pair(z, pairs, ratios, sums, size, least, penalty, causes):
    """Best combination of two features for a split.

    It is a direction ``z_j + r z_k`` among pairs of columns and ratios; returns (gain, pair, ratio).
    The rows (S, n) are standardised. Scores are compared in :data:`SCORE_BINS` bins within :data:`SCORE_RANGE`
    standard deviations of their mean: enough to choose a direction, whose cut is then found among all rows.
    """
    n, k = sums.shape
    best, at, which = -np.inf, -1, -1
    score = np.empty(n)
    table = np.empty((SCORE_BINS, k))
    count = np.empty(SCORE_BINS)
    (total, all_size), low = totals(sums, size), np.empty(k)
    for q in range(len(pairs)):
        a, b = pairs[q]
        for t in range(len(ratios)):
            ratio, mean, square = ratios[t], 0.0, 0.0
            for i in range(n):
                score[i] = z[a, i] + ratio * z[b, i]
                mean += score[i]
                square += score[i] * score[i]
            mean /= n
            spread = np.sqrt(max(square / n - mean * mean, 1e-300))
            scale = SCORE_BINS / (2.0 * SCORE_RANGE * spread)
            shift = 0.5 * SCORE_BINS - mean * scale
            table[:] = 0.0
            count[:] = 0.0
            for i in range(n):
                bin_ = min(max(int(score[i] * scale + shift), 0), SCORE_BINS - 1)
                count[bin_] += size[i]
                for c in range(k):
                    table[bin_, c] += sums[i, c]
            low[:] = 0.0
            low_size = 0.0
            for bin_ in range(SCORE_BINS - 1):
                low_size += count[bin_]
                for c in range(k):
                    low[c] += table[bin_, c]
                if low_size < least or all_size - low_size < least:
                    continue
                value = -low[0] if k == 1 else gain_of(low, penalty, causes) + rest_gain(total, low, penalty, causes)
                if value > best:
                    best, at, which = value, q, t
    return best, at, which
