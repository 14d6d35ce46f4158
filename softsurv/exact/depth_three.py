"""The depth-two base case over eight subsets at once: the children of a node of depth three.

Template module, as `depth_two.py`. The subsets are sides of splits of one subset S, so they share its bins and splits;
a row enters lane l with its statistics times 0 or 1. Of a split's two sides only the rows of the smaller one enter;
the larger side is S minus those, exactly (see `problem.round_to_grid`). Every sum, cost and minimum is then a vector over the lanes, and
none of the short loops over splits leaves a remainder. A node of depth three needs two such values per split.
"""

from __future__ import annotations

from collections.abc import Callable

from numba import njit

from softsurv.exact.jit import FAST, inlined, kernel
from softsurv.exact.simd import LANES, load, smaller, spread, store

price: Callable[..., None]  # set by `compile.specialise`


@inlined
def _add_rows(local, lanes, n):
    """Sums per bin over the rows that entered each lane, then those of the lane itself."""
    width, n_bins = local.side.shape[0], local.size[1]
    single, active = lanes.single, local.active
    single[: n_bins * width * LANES] = 0.0
    lanes.total[:] = 0.0
    for i in range(n):
        if lanes.entered[i] == 0:
            continue
        member = load(lanes.member, i * LANES)
        for k in range(width):
            value = spread(local.stats[i, k]) * member
            store(lanes.total, k * LANES, load(lanes.total, k * LANES) + value)
            for a in range(local.n_active[i]):
                at = (active[i, a] * width + k) * LANES
                store(single, at, load(single, at) + value)
    whole, sign = load(lanes.whole, 0), load(lanes.sign, 0)
    for k in range(width):
        store(lanes.total, k * LANES, whole * spread(local.total[k]) + sign * load(lanes.total, k * LANES))
    for c in range(n_bins * width):
        store(single, c * LANES, whole * spread(local.single[c]) + sign * load(single, c * LANES))


@inlined
def _add_pairs(local, lanes, n, f):
    """Sums per (bin of feature f, bin of a later feature): one feature at a time stays in the nearest cache."""
    width, n_bins = local.side.shape[0], local.size[1]
    pairs, active = lanes.pairs, local.active
    b0, b1 = local.bin_start[f], local.bin_start[f + 1]
    later = n_bins - b1
    pairs[: (b1 - b0) * later * width * LANES] = 0.0
    for i in range(n):
        if lanes.entered[i] == 0:
            continue
        m = local.n_active[i]
        a = 0
        while a < m and active[i, a] < b0:
            a += 1
        if a == m or active[i, a] >= b1:
            continue
        base = (active[i, a] - b0) * later - b1
        member = load(lanes.member, i * LANES)
        for k in range(width):
            value = spread(local.stats[i, k]) * member
            for b in range(a + 1, m):
                at = ((base + active[i, b]) * width + k) * LANES
                store(pairs, at, load(pairs, at) + value)


@inlined
def _price_sides(problem, local, lanes):
    """Sums and leaf costs of either side of every split, in every lane."""
    width, n, plane = local.side.shape[0], local.size[2], lanes.plane
    side, batch = lanes.side, lanes.batch
    for f in range(local.size[0]):
        b0, s0, s1 = local.bin_start[f], local.split_start[f], local.split_start[f + 1]
        n_bins = local.bin_start[f + 1] - b0
        for k in range(width):
            run = spread(0.0)
            for c in range(n_bins):
                value = load(lanes.single, ((b0 + c) * width + k) * LANES)
                run = run + value
                store(side, (k * n + s0 + c) * LANES, run if local.chained[f] else value)
            if s1 - s0 > n_bins:
                store(side, (k * n + s1 - 1) * LANES, load(lanes.total, k * LANES) - run)
    for k in range(width):
        total = load(lanes.total, k * LANES)
        for s in range(n):
            left = load(side, (k * n + s) * LANES)
            store(batch, k * plane + s * LANES, left)
            store(batch, k * plane + (n + s) * LANES, total - left)
    price(problem, lanes.sums, 2 * n * LANES, lanes.cost)
    for s in range(2 * n):
        value = load(lanes.cost, s * LANES)
        store(lanes.leaf, s * LANES, value)
        store(lanes.stump, s * LANES, value)


@inlined
def _same_feature(problem, local, lanes, f):
    """As `depth_two._same_feature`: intervals of an ordered feature, pairs of levels of a nominal one."""
    width, n, plane = local.side.shape[0], local.size[2], lanes.plane
    side, leaf, stump, batch, cost = lanes.side, lanes.leaf, lanes.stump, lanes.batch, lanes.cost
    s0, s1, chained = local.split_start[f], local.split_start[f + 1], local.chained[f]
    for s in range(s0 + 1, s1):
        for k in range(width):
            here = load(side, (k * n + s) * LANES)
            if not chained:
                here = load(lanes.total, k * LANES) - here
            for i in range(s - s0):
                store(batch, k * plane + i * LANES, here - load(side, (k * n + s0 + i) * LANES))
        price(problem, lanes.sums, (s - s0) * LANES, cost)
        mine = (s if chained else n + s) * LANES
        other = load(leaf, (n + s if chained else s) * LANES)
        best = load(stump, mine)
        for i in range(s - s0):
            middle = load(cost, i * LANES)
            best = smaller(load(leaf, (s0 + i) * LANES) + middle, best)
            at = (n + s0 + i) * LANES
            store(stump, at, smaller(middle + other, load(stump, at)))
        store(stump, mine, best)


@inlined
def _gather_row(local, lanes, f, s):
    """As `depth_two._gather_row`: sums of (left of s, bin c) for all bins c of later features."""
    n_bins, width = local.size[1], local.side.shape[0]
    b0, b1 = local.bin_start[f], local.bin_start[f + 1]
    pairs, gather = lanes.pairs, lanes.gather
    whole, sign = load(lanes.whole, 0), load(lanes.sign, 0)
    first, last = b1 * width, n_bins * width
    stride = last - first
    b = b0 + s - local.split_start[f]
    if b == b1:
        for c in range(first, last):
            value = load(lanes.single, c * LANES)
            for b in range(b1 - b0):
                at = (b * stride + c - first) * LANES
                value = value - (whole * spread(local.pairs[(b0 + b) * last + c]) + sign * load(pairs, at))
            store(gather, c * LANES, value)
        return
    base = (b - b0) * stride - first
    keep = spread(1.0 if local.chained[f] and b > b0 else 0.0)
    for c in range(first, last):
        value = whole * spread(local.pairs[b * last + c]) + sign * load(pairs, (base + c) * LANES)
        store(gather, c * LANES, keep * load(gather, c * LANES) + value)


@inlined
def _fill_cells(local, lanes, f, s, w):
    """Sums of the four cells of s and every split t of later features, into the batch: (s t, s, t, neither)."""
    width, n, plane = local.side.shape[0], local.size[2], lanes.plane
    gather, batch, side = lanes.gather, lanes.batch, lanes.side
    after = local.split_start[f + 1]
    for k in range(width):
        here = load(side, (k * n + s) * LANES)
        rest = load(lanes.total, k * LANES) - here
        for h in range(f + 1, local.size[0]):
            c0, n_here = local.bin_start[h], local.bin_start[h + 1] - local.bin_start[h]
            t0, t1 = local.split_start[h], local.split_start[h + 1]
            run = spread(0.0)
            for c in range(t1 - t0):
                both = here - run
                if c < n_here:
                    value = load(gather, ((c0 + c) * width + k) * LANES)
                    run = run + value
                    both = run if local.chained[h] else value
                other = load(side, (k * n + t0 + c) * LANES) - both
                at = k * plane + (t0 + c - after) * LANES
                store(batch, at, both)
                store(batch, at + w * LANES, here - both)
                store(batch, at + 2 * w * LANES, other)
                store(batch, at + 3 * w * LANES, rest - other)


@inlined
def _other_features(problem, local, lanes, n_rows, f):
    """As `depth_two._other_features`: second splits on later features, and first splits there with second ones here."""
    n, stump, cost = local.size[2], lanes.stump, lanes.cost
    after = local.split_start[f + 1]
    w = n - after
    _add_pairs(local, lanes, n_rows, f)
    for s in range(local.split_start[f], after):
        _gather_row(local, lanes, f, s)
        _fill_cells(local, lanes, f, s, w)
        price(problem, lanes.sums, 4 * w * LANES, cost)
        best_left, best_right = load(stump, s * LANES), load(stump, (n + s) * LANES)
        for t in range(w):
            left_left, left_right = load(cost, t * LANES), load(cost, (w + t) * LANES)
            right_left, right_right = load(cost, (2 * w + t) * LANES), load(cost, (3 * w + t) * LANES)
            best_left = smaller(left_left + left_right, best_left)
            best_right = smaller(right_left + right_right, best_right)
            at = (after + t) * LANES
            store(stump, at, smaller(left_left + right_left, load(stump, at)))
            at += n * LANES
            store(stump, at, smaller(left_right + right_right, load(stump, at)))
        store(stump, s * LANES, best_left)
        store(stump, (n + s) * LANES, best_right)


@kernel
def solve_lanes(problem, local, lanes, n):
    """Best cost with at most 1..4 leaves and depth two of eight subsets (`lanes.member`), into ``lanes.value``."""
    width, n_splits = local.side.shape[0], local.size[2]
    _add_rows(local, lanes, n)
    _price_sides(problem, local, lanes)
    for f in range(local.size[0]):
        _same_feature(problem, local, lanes, f)
        if local.split_start[f + 1] < n_splits:
            _other_features(problem, local, lanes, n, f)
    for k in range(width):
        store(lanes.batch, k * lanes.plane, load(lanes.total, k * LANES))
    price(problem, lanes.sums, LANES, lanes.cost)
    leaf, stump = lanes.leaf, lanes.stump
    one = load(lanes.cost, 0)
    two = three = four = one
    for s in range(n_splits):
        left, right = load(leaf, s * LANES), load(leaf, (n_splits + s) * LANES)
        left_stump, right_stump = load(stump, s * LANES), load(stump, (n_splits + s) * LANES)
        two = smaller(left + right, two)
        three = smaller(smaller(left + right_stump, left_stump + right), three)
        four = smaller(left_stump + right_stump, four)
    store(lanes.value, LANES, one)
    store(lanes.value, 2 * LANES, two)
    store(lanes.value, 3 * LANES, three)
    store(lanes.value, 4 * LANES, four)


@njit(**FAST)
def clear_lanes(lanes, n):
    """Empty all lanes."""
    lanes.member[: n * LANES] = 0.0
    lanes.entered[:n] = 0
    lanes.whole[:] = 0.0
    lanes.sign[:] = 1.0


@njit(**FAST)
def enter_lane(problem, rows, n, split, right, fewer_left, lanes, lane):
    """Put one side of a split into a lane: the rows of the smaller side enter, the larger one is all minus those."""
    f = problem.feature_of[split]
    nominal = problem.nominal[f]
    complement = right == fewer_left
    lanes.whole[lane] = 1.0 if complement else 0.0
    lanes.sign[lane] = -1.0 if complement else 1.0
    for i in range(n):
        g = problem.gcode[rows[i], f]
        left = g == split if nominal else g <= split
        if left == fewer_left:
            lanes.member[i * LANES + lane] = 1.0
            lanes.entered[i] = 1
