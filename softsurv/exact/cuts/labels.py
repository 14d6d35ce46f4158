"""Best next splits of both sides of a cut where the cost of a leaf is the least of its sums: one for each label."""

from __future__ import annotations

import numpy as np

from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.simd import LANES, gather, kept, larger, least, load, smaller, spread, store
from softsurv.exact.kernels.words import higher, lower


@shared_kernel
def fill_lane(problem, cuts, row, f, n):
    """Lay a column beside the others for `two_labels`."""
    order, start, stats = cuts.order[row], cuts.start[row], problem.stats
    for p in range(n):
        at = p * cuts.stride + f
        cuts.lane_row[at] = order[p]
        cuts.lane_gap[at] = stats[order[p], 0] - stats[order[p], 1]
        if cuts.limited:
            cuts.lane_size[at] = stats[order[p], 2]
        cuts.lane_end[at] = 0.0
    for code in range(cuts.n_codes[row]):
        cuts.lane_end[(start[code + 1] - 1) * cuts.stride + f] = 1.0


@shared_kernel
def mark_members(cuts, row, at, n):
    """Mark the first ``at`` rows of a column as those on the left."""
    order, member = cuts.order[row], cuts.member
    for p in range(at):
        member[order[p]] = 1.0
    for p in range(at, n):
        member[order[p]] = 0.0


@shared_kernel
def two_labels(cuts, n):
    """Best splits of both sides where the cost of a leaf is the lesser of two sums a and b; eight columns at a time.

    min(a, b) = (a + b - |a - b|) / 2, so that a cut with the difference d on the left of a side with the difference D
    costs (A + B - |d| - |D - d|) / 2: least where d is largest or smallest.
    """
    places, gap, end, member = cuts.lane_row, cuts.lane_gap, cuts.lane_end, cuts.member
    stride = cuts.stride
    for f in range(0, stride, LANES):
        left = right = most = least = most_right = least_right = spread(0.0)
        for p in range(f, f + n * stride, stride):
            value, last = load(gap, p), load(end, p)
            own = value * gather(member, places, p)
            left, right = left + own, right + (value - own)
            here, there = left * last, right * last
            most, least = larger(here, most), smaller(here, least)
            most_right, least_right = larger(there, most_right), smaller(there, least_right)
        _keep_extremes(cuts.extreme, most, least, most_right, least_right)
        for side in range(2):
            cuts.stump[side] = cuts.stump[2 + side] = lower(cuts.stump[side], _cost_of_extremes(cuts, side))


@shared_kernel
def _keep_extremes(extreme, most, least, most_right, least_right):
    """Keep the extreme differences of eight columns on the left and on the right."""
    store(extreme, 0, most)
    store(extreme, LANES, least)
    store(extreme, 2 * LANES, most_right)
    store(extreme, 3 * LANES, least_right)


@shared_kernel
def _cost_of_extremes(cuts, side):
    """Cost of the best cut of a side from the extreme differences of each lane."""
    extreme, whole, best = cuts.extreme, cuts.total[side, 0] - cuts.total[side, 1], 0.0
    for k in range(2 * side * LANES, 2 * (side + 1) * LANES):
        best = higher(best, abs(extreme[k]) + abs(whole - extreme[k]))
    return 0.5 * (cuts.total[side, 0] + cuts.total[side, 1] - best)


@shared_kernel
def two_labels_of_size(cuts, n, min_leaf):
    """As `two_labels`, under a least size of leaves.

    A cut that leaves too little on one part of its side has the difference 0: its cost is that of the side as one leaf.
    """
    places, gap, end, member = cuts.lane_row, cuts.lane_gap, cuts.lane_end, cuts.member
    stride, enough = cuts.stride, spread(min_leaf)
    size, all_left, all_right = cuts.lane_size, spread(cuts.total[0, 2]), spread(cuts.total[1, 2])
    for f in range(0, stride, LANES):
        left = right = most = least = most_right = least_right = size_left = size_right = spread(0.0)
        for p in range(f, f + n * stride, stride):
            value, last, rows, is_left = load(gap, p), load(end, p), load(size, p), gather(member, places, p)
            own, rows_left = value * is_left, rows * is_left
            left, right = left + own, right + (value - own)
            size_left, size_right = size_left + rows_left, size_right + (rows - rows_left)
            here = kept(kept(left * last, size_left, enough), all_left - size_left, enough)
            there = kept(kept(right * last, size_right, enough), all_right - size_right, enough)
            most, least = larger(here, most), smaller(here, least)
            most_right, least_right = larger(there, most_right), smaller(there, least_right)
        _keep_extremes(cuts.extreme, most, least, most_right, least_right)
        for side in range(2):
            if cuts.total[side, 2] >= min_leaf:
                cuts.stump[side] = lower(cuts.stump[side], _cost_of_extremes(cuts, side))


@shared_kernel
def few_labels(cuts, row, f, n):
    """Best splits of both sides by one column for up to eight labels, which fill the lanes of a vector.

    A row moves the cost of two leaves by at most ``worst`` (`bounds.py`, similar support). So where a cut costs more
    than the best one by some amount, no cut is better until the rows after it have moved the costs by that amount.
    """
    order, group, side, worst, sums = cuts.order[row], cuts.group[f], cuts.side, cuts.worst, cuts.label_sums
    label_total = cuts.label_total
    total_left, total_right = load(label_total, 0), load(label_total, LANES)
    left = right = spread(0.0)
    best_left, best_right = cuts.stump[2], cuts.stump[3]
    room_left = room_right = 0.0
    last_left = last_right = np.int32(-1)
    for p in range(n):
        one, code = order[p], group[p]
        if side[one] == 1:
            if room_left < 0.0 and code != last_left:
                room_left = least(left) + least(total_left - left) - best_left
                if room_left < 0.0:
                    best_left += room_left
                    room_left = 0.0
            last_left = code
            room_left -= worst[one]
            left = left + load(sums, one * LANES)
        else:
            if room_right < 0.0 and code != last_right:
                room_right = least(right) + least(total_right - right) - best_right
                if room_right < 0.0:
                    best_right += room_right
                    room_right = 0.0
            last_right = code
            room_right -= worst[one]
            right = right + load(sums, one * LANES)
    cuts.stump[0] = cuts.stump[2] = best_left
    cuts.stump[1] = cuts.stump[3] = best_right


@shared_kernel
def total_labels(cuts):
    """Sums of both sides by label, for `few_labels`; the best next split begins at the cost of no split."""
    width = cuts.total.shape[1] - np.int64(cuts.limited)  # the last one is the size
    for side in range(2):
        cuts.stump[side] = cuts.stump[2 + side] = cuts.leaf[2 + side]
        for k in range(LANES):
            cuts.label_total[side * LANES + k] = cuts.total[side, k if k < width else 0]
