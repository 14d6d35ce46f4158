"""Sums over three features at once, and the best stumps of all cells of two splits from them.

A tree of depth three asks, of all pairs of splits s and t, what the rows on one side of each cost with at most one more
split u. The sums that this needs are those of the rows left of s, t and u. Here they come from one histogram over each
triple of features: a row is added to P (P - 1) (P - 2) / 6 sums, whatever the number of cuts, and every tree of depth
three is then compared without looking at a row again. A triple of splits serves all three of its pairs.

The sums are exact (`problem.round_to_grid`), so they do not depend on the order of the rows.
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.base_cases.leaf_prices import leaf_batch
from softsurv.exact.entries import entry
from softsurv.exact.jit import shared_kernel
from softsurv.exact.joint.scratch import JointRows, JointScratch
from softsurv.exact.kernels.cache import fetch_add
from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.kernels.views import call
from softsurv.exact.kernels.words import lower
from softsurv.exact.problem import SearchArrays


@shared_kernel
def _add_two(place, stats, code, more, one, other):
    """Add rows of two statistics to the sums over two third features at once: no addition waits for another."""
    for i in range(code.shape[0]):
        start, value, rest = place[i], stats[i, 0], stats[i, 1]
        at = start + (np.uint64(np.uint8(code[i])) << np.uint64(1))
        to = start + (np.uint64(np.uint8(more[i])) << np.uint64(1))
        a, b = one[at] + value, one[at + np.uint64(1)] + rest
        one[at], one[at + np.uint64(1)] = a, b
        a, b = other[to] + value, other[to + np.uint64(1)] + rest
        other[to], other[to + np.uint64(1)] = a, b


@shared_kernel
def _add_three(place, stats, code, table):
    """Add rows of three statistics to the sums over one third feature, without a loop over the statistics."""
    for i in range(code.shape[0]):
        at = place[i] + np.uint64(np.uint8(code[i])) * np.uint64(3)
        a, b = table[at] + stats[i, 0], table[at + np.uint64(1)] + stats[i, 1]
        c = table[at + np.uint64(2)] + stats[i, 2]
        table[at], table[at + np.uint64(1)], table[at + np.uint64(2)] = a, b, c


@shared_kernel
def _add_one(place, stats, code, table):
    """Add rows to the sums over one third feature."""
    width = np.uint64(stats.shape[1])
    for i in range(code.shape[0]):
        at = place[i] + np.uint64(np.uint8(code[i])) * width
        for k in range(stats.shape[1]):
            table[at + np.uint64(k)] += stats[i, k]


@shared_kernel
def _add_rows(rows, scratch, f, g, begin):
    """Sums per bin of features f, g (none where below 0) and each third feature from ``begin`` on."""
    n, width, stride = rows.stats.shape[0], rows.stats.shape[1], _most_bins(rows)
    if begin >= rows.code.shape[0]:
        return
    p, place, first = rows.code.shape[0], scratch.place, rows.code[f]
    size = stride * stride * stride if g >= 0 else stride * stride
    for third in range(begin, p):
        scratch.table[third, : size * width] = 0.0
    for start in range(0, n, place.shape[0]):
        if rows.control[STOP] != 0:
            return
        end = lower(start + place.shape[0], n)
        stats, own = rows.stats[start:end], first[start:end]
        if g >= 0:
            second = rows.code[g, start:end]
            for i in range(end - start):
                place[i] = np.uint64((np.int64(own[i]) * stride + np.int64(second[i])) * stride * width)
        else:
            for i in range(end - start):
                place[i] = np.uint64(np.int64(own[i]) * stride * width)
        third = begin
        if width == 2:
            while third + 1 < p:
                code, more = rows.code[third, start:end], rows.code[third + 1, start:end]
                _add_two(place, stats, code, more, scratch.table[third], scratch.table[third + 1])
                third += 2
        while width == 3 and third < p:
            _add_three(place, stats, rows.code[third, start:end], scratch.table[third])
            third += 1
        while third < p:
            _add_one(place, stats, rows.code[third, start:end], scratch.table[third])
            third += 1


@shared_kernel
def _most_bins(rows):
    most = np.int64(2)
    for f in range(rows.n_bins.shape[0]):
        if rows.n_bins[f] > most:
            most = np.int64(rows.n_bins[f])
    return most


@shared_kernel
def _cumulate(table, start, width, stride, n, m):
    """Sums per bin of two features, n by m, to sums up to every bin of the second."""
    for a in range(n):
        base = start + a * stride * width
        for at in range(base + width, base + m * width):
            table[at] += table[at - width]


@shared_kernel
def _cumulate_rows(table, start, step, n, size):
    """Add to each of n runs of numbers the run before it."""
    for a in range(1, n):
        base = start + a * step
        for at in range(base, base + size):
            table[at] += table[at - step]


@shared_kernel
def _pair_sums(rows, scratch, f, g):
    """Sums of the rows left of every two splits of two features, from the sums per bin."""
    width, stride, table = rows.stats.shape[1], _most_bins(rows), scratch.table[g]
    n, m = np.int64(rows.n_bins[f]), np.int64(rows.n_bins[g])
    if rows.chained[g]:
        _cumulate(table, np.int64(0), width, stride, n, m)
    if rows.chained[f]:
        _cumulate_rows(table, np.int64(0), stride * width, n, m * width)
    for s in range(rows.split_start[f], rows.split_start[f + 1]):
        for t in range(rows.split_start[g], rows.split_start[g + 1]):
            at = ((s - rows.split_start[f]) * stride + t - rows.split_start[g]) * width
            for k in range(width):
                rows.sums[k, s, t] = rows.sums[k, t, s] = table[at + k]


@shared_kernel
def _triple_sums(rows, scratch, f, g, h):
    """Sums of the rows left of every three splits, into ``triple``: from the sums per bin, or of pairs (f = g, g = h).

    Of two splits of one ordered feature the first counts; of two levels of a nominal one no row is left of both.
    """
    width, sums, triple = rows.stats.shape[1], rows.sums, scratch.triple
    s0, t0, u0 = rows.split_start[f], rows.split_start[g], rows.split_start[h]
    nf, ng, nh = rows.split_start[f + 1] - s0, rows.split_start[g + 1] - t0, rows.split_start[h + 1] - u0
    size = nf * ng * nh
    if f == g or g == h:
        for k in range(width):
            for s in range(nf):
                for t in range(ng):
                    base = k * size + (s * ng + t) * nh
                    for u in range(nh):
                        value = 0.0
                        if f == g:
                            if s == t or rows.chained[f]:
                                value = sums[k, s0 + lower(s, t), u0 + u]
                        elif t == u or rows.chained[g]:
                            value = sums[k, s0 + s, t0 + lower(t, u)]
                        triple[base + u] = value
        return
    stride, table = _most_bins(rows), scratch.table[h]
    n, m, r = np.int64(rows.n_bins[f]), np.int64(rows.n_bins[g]), np.int64(rows.n_bins[h])
    plane = stride * stride * width
    for a in range(n):
        if rows.chained[h]:
            _cumulate(table, a * plane, width, stride, m, r)
        if rows.chained[g]:
            _cumulate_rows(table, a * plane, stride * width, m, r * width)
    if rows.chained[f]:
        _cumulate_rows(table, np.int64(0), plane, n, m * stride * width)
    for k in range(width):
        for s in range(nf):
            for t in range(ng):
                base, at = k * size + (s * ng + t) * nh, (s * stride + t) * stride * width + k
                for u in range(nh):
                    triple[base + u] = table[at + u * width]


@shared_kernel
def _price_pairs(problem, rows, scratch, f, g):
    """Costs of the four cells of every two splits of two features as leaves."""
    batch, cost, sums = scratch.batch, scratch.cost, rows.sums
    t0, m = rows.split_start[g], rows.split_start[g + 1] - rows.split_start[g]
    for s in range(rows.split_start[f], rows.split_start[f + 1]):
        for k in range(sums.shape[0]):
            total, left = rows.total[k], sums[k, s, s]
            for t in range(m):
                both, other = sums[k, s, t0 + t], sums[k, t0 + t, t0 + t]
                batch[k, t], batch[k, m + t] = both, left - both
                batch[k, 2 * m + t], batch[k, 3 * m + t] = other - both, (total - left) - (other - both)
        call(problem.calls.price, leaf_batch(problem, batch, 4 * m, cost))
        for t in range(m):
            for cell in range(4):
                rows.leaf[cell, s, t0 + t] = cost[cell * m + t]
            rows.leaf[0, t0 + t, s], rows.leaf[1, t0 + t, s] = cost[t], cost[2 * m + t]
            rows.leaf[2, t0 + t, s], rows.leaf[3, t0 + t, s] = cost[m + t], cost[3 * m + t]


@shared_kernel
def _cells(rows, scratch, f, g, h, s):
    """Sums of the eight cells of split s with every two splits of features g and h, into the batch."""
    batch, sums, triple = scratch.batch, rows.sums, scratch.triple
    t0, u0 = rows.split_start[g], rows.split_start[h]
    ng, nh = rows.split_start[g + 1] - t0, rows.split_start[h + 1] - u0
    nf, m, own = rows.split_start[f + 1] - rows.split_start[f], ng * nh, s - rows.split_start[f]
    for k in range(sums.shape[0]):
        left, right, cell = sums[k, s, s], rows.total[k] - sums[k, s, s], batch[k]
        after, of_third = sums[k, s], sums[k]
        for t in range(ng):
            base, at = ((k * nf + own) * ng + t) * nh, t * nh
            both, second, row = sums[k, s, t0 + t], sums[k, t0 + t, t0 + t], sums[k, t0 + t]
            neither = right - (second - both)
            for u in range(nh):
                value, third, of_both = triple[base + u], after[u0 + u], row[u0 + u]
                cell[at + u] = value
                cell[m + at + u] = both - value
                cell[2 * m + at + u] = third - value
                cell[3 * m + at + u] = (left - both) - (third - value)
                cell[4 * m + at + u] = of_both - value
                cell[5 * m + at + u] = (second - both) - (of_both - value)
                beyond = (of_third[u0 + u, u0 + u] - third) - (of_both - value)
                cell[6 * m + at + u] = beyond
                cell[7 * m + at + u] = neither - beyond


@shared_kernel
def _lower_stumps(rows, scratch, g, h, s):
    """Take the costs of the eight cells into the best stumps of the cells of all three pairs of splits."""
    cost, stump = scratch.cost, scratch.stump
    t0, u0 = rows.split_start[g], rows.split_start[h]
    ng, nh = rows.split_start[g + 1] - t0, rows.split_start[h + 1] - u0
    m = ng * nh
    left_left, left_right, right_left, right_right = stump[0, s], stump[1, s], stump[2, s], stump[3, s]
    for t in range(ng):
        at, v = t * nh, t0 + t
        a, b, c, d = left_left[v], left_right[v], right_left[v], right_right[v]
        both, one, other, none = stump[0, v], stump[1, v], stump[2, v], stump[3, v]
        for u in range(nh):
            i, w = at + u, u0 + u
            c0, c1, c2, c3 = cost[i], cost[m + i], cost[2 * m + i], cost[3 * m + i]
            c4, c5, c6, c7 = cost[4 * m + i], cost[5 * m + i], cost[6 * m + i], cost[7 * m + i]
            a, b, c, d = lower(a, c0 + c1), lower(b, c2 + c3), lower(c, c4 + c5), lower(d, c6 + c7)
            left_left[w], left_right[w] = lower(left_left[w], c0 + c2), lower(left_right[w], c1 + c3)
            right_left[w], right_right[w] = lower(right_left[w], c4 + c6), lower(right_right[w], c5 + c7)
            both[w], one[w] = lower(both[w], c0 + c4), lower(one[w], c1 + c5)
            other[w], none[w] = lower(other[w], c2 + c6), lower(none[w], c3 + c7)
        left_left[v], left_right[v] = lower(left_left[v], a), lower(left_right[v], b)
        right_left[v], right_right[v] = lower(right_left[v], c), lower(right_right[v], d)


@shared_kernel
def _compare(problem, rows, scratch, f, g, h):
    """Price the cells of all splits on three features, and take them into the best stumps."""
    _triple_sums(rows, scratch, f, g, h)
    m = (rows.split_start[g + 1] - rows.split_start[g]) * (rows.split_start[h + 1] - rows.split_start[h])
    for s in range(rows.split_start[f], rows.split_start[f + 1]):
        _cells(rows, scratch, f, g, h, s)
        call(problem.calls.price, leaf_batch(problem, scratch.batch, np.int64(8 * m), scratch.cost))
        _lower_stumps(rows, scratch, g, h, s)


@entry(SearchArrays, JointRows, JointScratch)
def join_pairs(problem, rows, scratch):
    """Sums over pairs of features. The cost of all cells of two splits as leaves."""
    p = rows.code.shape[0]
    f = fetch_add(rows.next, 0, np.int64(1))
    while f < p:
        _add_rows(rows, scratch, f, np.int64(-1), f)
        if rows.control[STOP] != 0:
            return
        for g in range(f, p):
            _pair_sums(rows, scratch, f, g)
        rows.done[f] = 1
        f = fetch_add(rows.next, 0, np.int64(1))


@entry(SearchArrays, JointRows, JointScratch)
def price_pairs(problem, rows, scratch):
    """Costs of pairs of splits. The cells of two splits as leaves, once the sums are there."""
    for f in range(rows.code.shape[0]):
        for g in range(f, rows.code.shape[0] if rows.done[f] == 1 else f):
            if rows.done[g] == 1:
                _price_pairs(problem, rows, scratch, f, g)


@entry(SearchArrays, JointRows, JointScratch)
def join_triples(problem, rows, scratch):
    """Sums over triples of features. The best stumps of all cells of two splits."""
    q = fetch_add(rows.next, 1, np.int64(1))
    while q < rows.pair.shape[0]:
        f, g = np.int64(rows.pair[q, 0]), np.int64(rows.pair[q, 1])
        if f < g:
            _add_rows(rows, scratch, f, g, g + 1)
        if rows.control[STOP] != 0:
            return
        if f == g:
            _compare(problem, rows, scratch, f, f, f)
        else:
            _compare(problem, rows, scratch, f, f, g)
            _compare(problem, rows, scratch, f, g, g)
            for h in range(g + 1, rows.code.shape[0]):
                _compare(problem, rows, scratch, f, g, h)
        q = fetch_add(rows.next, 1, np.int64(1))
