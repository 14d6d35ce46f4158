"""Compiled search for the best cut along features and directions, on sums as in `kernels`."""

from __future__ import annotations

import numpy as np

from softsurv.loops import FLOAT, INT32, floats, ints
from softsurv.soft.jit import ONE_CAUSE, loop, loop_part
from softsurv.sparse.kernels import gain_of, rest_gain

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


@loop(*ints(1), *floats(2), *ints(2, 1, of=INT32), *floats(2, 1), FLOAT, FLOAT, FLOAT, ONE_CAUSE)
def best_cuts(columns, values, order, place, sums, size, least, penalty, close, causes):
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

    Returns
    -------
    best : (C, 2)
        The largest gain. Second: the same for ``sums`` with the sign changed where it has one column, else -inf. -inf
        where no cut is allowed.
    """
    k = sums.shape[1]
    (total, all_size), low = totals(sums, size), np.empty(k)
    best = np.empty((len(columns), 2))
    best[:] = -np.inf
    for c in range(len(columns)):
        value, sorted_ = values[columns[c]], order[columns[c]]
        first, last = 0, len(sorted_) - 1
        while first < last and place[sorted_[first]] < 0:
            first += 1
        while last > first and place[sorted_[last]] < 0:
            last -= 1
        margin = close * (1.0 + max(abs(value[sorted_[first]]), abs(value[sorted_[last]])))
        low[:] = 0.0
        low_size, before = 0.0, value[sorted_[first]]
        for t in range(first, last + 1):
            i = place[sorted_[t]]
            if i < 0:
                continue
            now = value[sorted_[t]]
            if now - before > margin and low_size >= least and all_size - low_size >= least:
                if k == 1:  # gain of the rows below the cut; of the reverse rule
                    best[c, 0], best[c, 1] = max(best[c, 0], -low[0]), max(best[c, 1], low[0])
                else:
                    gain = gain_of(low, penalty, causes) + rest_gain(total, low, penalty, causes)
                    best[c, 0] = max(best[c, 0], gain)
            for j in range(k):
                low[j] += sums[i, j]
            low_size += size[i]
            before = now
    return best


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
