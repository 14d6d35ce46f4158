"""The depth-two base case over many subsets at once: the children of a node of depth three.

The subsets are sides of splits of one subset S, so they share its bins and splits.
Eight splits fill the lanes of a vector: every sum, cost and minimum is one vector operation, and none of the short
loops over splits leaves a remainder. Of a split's two sides only the rows of the smaller one enter its lane (with
weight 1, all others 0); the other side is S minus those, exactly (`problem.round_to_grid`), so a first pass prices one
side of each split and a second pass the other from the same sums.

Rows enter in the order of their bin on the first feature: the sums over (left of s, bin c) for the splits s of that
feature are then one running sum, which stays in the L1 cache.
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.base_cases.leaf_prices import leaf_batch
from softsurv.exact.entries import LONG, entry
from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.simd import LANES, load, smaller, spread, store
from softsurv.exact.kernels.subsets import Lanes, Local
from softsurv.exact.kernels.views import call
from softsurv.exact.problem import SearchArrays


@shared_kernel
def _add_singles(local, lanes):
    """Sums per bin over the rows that entered each lane."""
    width, n_bins = local.side.shape[0], local.size[1]
    single, active = lanes.single, local.active
    single[: n_bins * width * LANES] = 0.0
    lanes.entered_total[:] = 0.0
    for i in range(local.size[3]):
        if lanes.entered[i] == 0:
            continue
        member = load(lanes.member, i * LANES)
        for k in range(width):
            value = spread(local.stats[i, k]) * member
            store(lanes.entered_total, k * LANES, load(lanes.entered_total, k * LANES) + value)
            for a in range(local.n_active[i]):
                at = (active[i, a] * width + k) * LANES
                store(single, at, load(single, at) + value)


@shared_kernel
def _price_sides(problem, local, lanes, turn):
    """Sums and leaf costs of either side of every split, in every lane, of one pass."""
    width, n, plane = local.side.shape[0], local.size[2], lanes.plane
    side, batch, total = lanes.side, lanes.batch, lanes.total
    whole, sign = load(lanes.whole, turn * LANES), load(lanes.sign, turn * LANES)
    for k in range(width):
        value = whole * spread(local.total[k]) + sign * load(lanes.entered_total, k * LANES)
        store(total, (turn * width + k) * LANES, value)
    for f in range(local.size[0]):
        b0, s0, s1 = local.bin_start[f], local.split_start[f], local.split_start[f + 1]
        n_bins = local.bin_start[f + 1] - b0
        for k in range(width):
            run = spread(0.0)
            base = (turn * width + k) * n + s0
            for c in range(n_bins):
                at = (b0 + c) * width + k
                value = whole * spread(local.single[at]) + sign * load(lanes.single, at * LANES)
                run = run + value
                store(side, (base + c) * LANES, run if local.chained[f] else value)
            if s1 - s0 > n_bins:
                store(side, (base + n_bins) * LANES, load(total, (turn * width + k) * LANES) - run)
    for k in range(width):
        all_rows = load(total, (turn * width + k) * LANES)
        for s in range(n):
            left = load(side, ((turn * width + k) * n + s) * LANES)
            store(batch, k * plane + s * LANES, left)
            store(batch, k * plane + (n + s) * LANES, all_rows - left)
    call(problem.calls.price, leaf_batch(problem, lanes.sums, 2 * n * LANES, lanes.cost))
    for s in range(2 * n):
        value = load(lanes.cost, s * LANES)
        store(lanes.leaf, (turn * 2 * n + s) * LANES, value)
        store(lanes.stump, (turn * 2 * n + s) * LANES, value)


@shared_kernel
def _same_feature(problem, local, lanes, f, turn):
    """As `sums._same_feature`: intervals of an ordered feature, pairs of levels of a nominal one."""
    width, n, plane = local.side.shape[0], local.size[2], lanes.plane
    side, leaf, stump, batch, cost = lanes.side, lanes.leaf, lanes.stump, lanes.batch, lanes.cost
    s0, s1, chained = local.split_start[f], local.split_start[f + 1], local.chained[f]
    left, right = turn * 2 * n, turn * 2 * n + n
    for s in range(s0 + 1, s1):
        for k in range(width):
            base = (turn * width + k) * n
            here = load(side, (base + s) * LANES)
            if not chained:
                here = load(lanes.total, (turn * width + k) * LANES) - here
            for i in range(s - s0):
                store(batch, k * plane + i * LANES, here - load(side, (base + s0 + i) * LANES))
        call(problem.calls.price, leaf_batch(problem, lanes.sums, (s - s0) * LANES, cost))
        mine = (s + (left if chained else right)) * LANES
        other = load(leaf, (s + (right if chained else left)) * LANES)
        best = load(stump, mine)
        for i in range(s - s0):
            middle = load(cost, i * LANES)
            best = smaller(load(leaf, (left + s0 + i) * LANES) + middle, best)
            at = (right + s0 + i) * LANES
            store(stump, at, smaller(middle + other, load(stump, at)))
        store(stump, mine, best)


@shared_kernel
def _gather_bin(local, lanes, f, s):
    """Bring the sums over (left of s, bin c) of later features from the split before to split s."""
    width, n_bins = local.side.shape[0], local.size[1]
    b0, b1 = local.bin_start[f], local.bin_start[f + 1]
    b = b0 + s - local.split_start[f]
    first, last = b1 * width, n_bins * width
    gather, shared, active = lanes.gather, local.gather, local.active
    if b == b0 or not local.chained[f]:
        gather[first * LANES : last * LANES] = 0.0
        shared[first:last] = 0.0
    if b < b1:
        for c in range(first, last):
            shared[c] += local.pairs[b * last + c]
    else:
        for c in range(first, last):
            shared[c] += local.single[c]
        for other in range(b0, b1):
            for c in range(first, last):
                shared[c] -= local.pairs[other * last + c]
    for j in range(local.bucket[f, b - b0], local.bucket[f, b - b0 + 1]):
        i = local.by_bin[f, j]
        if lanes.entered[i] == 0:
            continue
        member = load(lanes.member, i * LANES)
        a = local.n_active[i] - 1
        if width == 2:
            first_value = spread(local.stats[i, 0]) * member
            second_value = spread(local.stats[i, 1]) * member
            while a >= 0 and active[i, a] >= b1:
                at = active[i, a] * 2 * LANES
                store(gather, at, load(gather, at) + first_value)
                store(gather, at + LANES, load(gather, at + LANES) + second_value)
                a -= 1
            continue
        while a >= 0 and active[i, a] >= b1:
            at = active[i, a] * width * LANES
            for k in range(width):
                value = spread(local.stats[i, k]) * member
                store(gather, at + k * LANES, load(gather, at + k * LANES) + value)
            a -= 1


@shared_kernel
def _fill_cells(local, lanes, f, s, w, turn):
    """Sums of the four cells of s and every split t of later features, into the batch: (both, s, t, neither)."""
    width, n, plane = local.side.shape[0], local.size[2], lanes.plane
    gather, batch, side = lanes.gather, lanes.batch, lanes.side
    whole, sign = load(lanes.whole, turn * LANES), load(lanes.sign, turn * LANES)
    after = local.split_start[f + 1]
    for k in range(width):
        base = (turn * width + k) * n
        here = load(side, (base + s) * LANES)
        rest = load(lanes.total, (turn * width + k) * LANES) - here
        for h in range(f + 1, local.size[0]):
            c0, n_here = local.bin_start[h], local.bin_start[h + 1] - local.bin_start[h]
            t0, t1 = local.split_start[h], local.split_start[h + 1]
            run = spread(0.0)
            for c in range(t1 - t0):
                both = here - run
                if c < n_here:
                    at = (c0 + c) * width + k
                    value = whole * spread(local.gather[at]) + sign * load(gather, at * LANES)
                    run = run + value
                    both = run if local.chained[h] else value
                other = load(side, (base + t0 + c) * LANES) - both
                at = k * plane + (t0 + c - after) * LANES
                store(batch, at, both)
                store(batch, at + w * LANES, here - both)
                store(batch, at + 2 * w * LANES, other)
                store(batch, at + 3 * w * LANES, rest - other)


@shared_kernel
def _lower_stumps(local, lanes, s, after, w, turn):
    """Take the prices of the cells into the best stumps under s (second split t) and under t (second split s)."""
    n, stump, cost = local.size[2], lanes.stump, lanes.cost
    left, right = turn * 2 * n, turn * 2 * n + n
    best_left, best_right = load(stump, (left + s) * LANES), load(stump, (right + s) * LANES)
    for t in range(w):
        left_left, left_right = load(cost, t * LANES), load(cost, (w + t) * LANES)
        right_left, right_right = load(cost, (2 * w + t) * LANES), load(cost, (3 * w + t) * LANES)
        best_left = smaller(left_left + left_right, best_left)
        best_right = smaller(right_left + right_right, best_right)
        at = (left + after + t) * LANES
        store(stump, at, smaller(left_left + right_left, load(stump, at)))
        at = (right + after + t) * LANES
        store(stump, at, smaller(left_right + right_right, load(stump, at)))
    store(stump, (left + s) * LANES, best_left)
    store(stump, (right + s) * LANES, best_right)


@shared_kernel
def _best_values(problem, local, lanes, turn):
    """Best cost with at most 1, 2, 3, 4 leaves in every lane, into ``value``."""
    width, n, leaf, stump, value = local.side.shape[0], local.size[2], lanes.leaf, lanes.stump, lanes.value
    for k in range(width):
        store(lanes.batch, k * lanes.plane, load(lanes.total, (turn * width + k) * LANES))
    call(problem.calls.price, leaf_batch(problem, lanes.sums, np.int64(LANES), lanes.cost))
    one = load(lanes.cost, 0)
    two = three = four = one
    for s in range(n):
        left_at, right_at = (turn * 2 * n + s) * LANES, (turn * 2 * n + n + s) * LANES
        left, right = load(leaf, left_at), load(leaf, right_at)
        left_stump, right_stump = load(stump, left_at), load(stump, right_at)
        two = smaller(left + right, two)
        three = smaller(smaller(left + right_stump, left_stump + right), three)
        four = smaller(left_stump + right_stump, four)
    at = turn * 5 * LANES
    store(value, at + LANES, one)
    store(value, at + 2 * LANES, two)
    store(value, at + 3 * LANES, three)
    store(value, at + 4 * LANES, four)


@entry(SearchArrays, Local, Lanes, LONG)
def solve_lanes(problem, local, lanes, passes):
    """Trees of depth two, eight at a time. Best cost with at most 1..4 leaves of 8 or 16 subsets (1 or 2 passes).

    Costs go to ``lanes.value``.
    """
    n_splits = local.size[2]
    _add_singles(local, lanes)
    for turn in range(passes):
        _price_sides(problem, local, lanes, turn)
    for f in range(local.size[0]):
        for turn in range(passes):
            _same_feature(problem, local, lanes, f, turn)
        after = local.split_start[f + 1]
        w = n_splits - after
        if w == 0:
            continue
        for s in range(local.split_start[f], after):
            _gather_bin(local, lanes, f, s)
            for turn in range(passes):
                _fill_cells(local, lanes, f, s, w, turn)
                call(problem.calls.price, leaf_batch(problem, lanes.sums, 4 * w * LANES, lanes.cost))
                _lower_stumps(local, lanes, s, after, w, turn)
    for turn in range(passes):
        _best_values(problem, local, lanes, turn)


@shared_kernel
def clear_lanes(lanes, n):
    """Empty all lanes."""
    lanes.member[: n * LANES] = 0.0
    lanes.entered[:n] = 0
    lanes.whole[:] = 0.0
    lanes.sign[:] = 1.0


@shared_kernel
def enter_lane(problem, rows, n, split, fewer_left, first_side, lanes, lane):
    """Put a split into a lane; pass 0 prices its side ``first_side`` (0 left, 1 right), pass 1 the other."""
    f = problem.feature_of[split]
    nominal = problem.nominal[f]
    direct = 0 if fewer_left else 1
    for turn in range(2):
        complement = (first_side + turn) % 2 != direct
        lanes.whole[turn * LANES + lane] = 1.0 if complement else 0.0
        lanes.sign[turn * LANES + lane] = -1.0 if complement else 1.0
    for i in range(n):
        g = problem.gcode[rows[i], f]
        left = g == split if nominal else g <= split
        if left == fewer_left:
            lanes.member[i * LANES + lane] = 1.0
            lanes.entered[i] = 1
