"""Compiled loops of the Pareto search that do not depend on the objectives: subsets, sums over pairs, bounds."""

from __future__ import annotations

import numpy as np

from softsurv.exact.bits import first_one, popcount
from softsurv.exact.jit import shared_kernel


@shared_kernel
def key_of(problem, mask):
    """128-bit key of a subset: mixed words, summed."""
    low, high = np.uint64(0), np.uint64(0)
    for w in range(mask.shape[0]):
        x = mask[w]
        if x != 0:
            a = (x ^ problem.random[w, 0]) * np.uint64(0xBF58476D1CE4E5B9)
            a = (a ^ (a >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
            b = (x ^ problem.random[w, 1]) * np.uint64(0xFF51AFD7ED558CCD)
            b = (b ^ (b >> np.uint64(31))) * np.uint64(0xC4CEB9FE1A85EC53)
            low += a ^ (a >> np.uint64(32))
            high += b ^ (b >> np.uint64(33))
    return low, high


@shared_kernel
def load(problem, scratch, level):
    """Pack the subset of a level: words that are not empty, splits with rows on both sides."""
    mask, word, kind = scratch.mask[level], scratch.word, scratch.type_start
    n_words = np.int64(0)
    k = 0
    for w in range(mask.shape[0]):
        if mask[w] != 0:
            while k <= problem.type_of_word[w]:
                kind[k] = n_words
                k += 1
            word[n_words] = w
            n_words += 1
    while k < kind.shape[0]:
        kind[k] = n_words
        k += 1
    rows = np.int64(0)
    for x in range(n_words):
        rows += popcount(mask[word[x]])
    m = np.int64(0)
    for split in range(problem.bits.shape[0]):
        here = np.int64(0)
        for x in range(n_words):
            both = mask[word[x]] & problem.bits[split, word[x]]
            scratch.packed[x, m] = both
            here += popcount(both)
        if 0 < here < rows:
            scratch.active[m] = split
            scratch.flipped[m] = 2 * here > rows
            m += 1
    scratch.size[0], scratch.size[1] = m, n_words
    return rows


@shared_kernel
def count_pairs(problem, scratch, level, pairs):
    """Sums of counted rows: in total, per split, and where ``pairs`` per pair of splits (both left)."""
    m, packed, count = scratch.size[0], scratch.packed, scratch.tally
    for k in range(problem.stats.shape[1]):
        start, end = scratch.type_start[k], scratch.type_start[k + 1]
        total = np.int64(0)
        count[:m] = 0
        for x in range(start, end):
            total += popcount(scratch.mask[level, scratch.word[x]])
            for a in range(m):
                count[a] += popcount(packed[x, a])
        scratch.total[k] = total
        for a in range(m):
            scratch.single[k, a] = count[a]
        if not pairs:
            continue
        for a in range(m - 1):
            count[a + 1 : m] = 0
            for x in range(start, end):
                here = packed[x, a]
                if here != 0:
                    for b in range(a + 1, m):
                        count[b] += popcount(here & packed[x, b])
            for b in range(a + 1, m):
                scratch.pair[k, a * m + b] = count[b]


@shared_kernel
def add_pairs(problem, scratch, level, pairs):
    """The same for statistics that are any numbers: every row adds to the pairs of splits on its rarer side."""
    m, n_words = scratch.size[0], scratch.size[1]
    width = problem.stats.shape[1]
    scratch.total[:] = 0.0
    scratch.single[:, :m] = 0.0
    if pairs:
        scratch.pair[:, : m * m] = 0.0
    for x in range(n_words):
        w = scratch.word[x]
        rest = scratch.mask[level, w]
        while rest != 0:
            bit = first_one(rest)
            rest &= rest - np.uint64(1)
            row = w * 64 + np.int64(bit)
            n = 0
            for a in range(m):
                if ((scratch.packed[x, a] >> bit) & np.uint64(1) != 0) != scratch.flipped[a]:
                    scratch.member[n] = a
                    n += 1
            for k in range(width):
                s = problem.stats[row, k]
                scratch.total[k] += s
                if s == 0.0:
                    continue
                for i in range(n):
                    scratch.single[k, scratch.member[i]] += s
                if pairs:
                    for i in range(n - 1):
                        base = scratch.member[i] * m
                        for j in range(i + 1, n):
                            scratch.pair[k, base + scratch.member[j]] += s
    unflip(scratch, m, width, pairs)


@shared_kernel
def unflip(scratch, m, width, pairs):
    """From sums over the rarer sides to sums over the left sides."""
    for k in range(width):
        if pairs:
            for a in range(m - 1):
                for b in range(a + 1, m):
                    rare = scratch.pair[k, a * m + b]
                    one, two = scratch.single[k, a], scratch.single[k, b]
                    if scratch.flipped[a] and scratch.flipped[b]:
                        scratch.pair[k, a * m + b] = scratch.total[k] - one - two + rare
                    elif scratch.flipped[a]:
                        scratch.pair[k, a * m + b] = two - rare
                    elif scratch.flipped[b]:
                        scratch.pair[k, a * m + b] = one - rare
        for a in range(m):
            if scratch.flipped[a]:
                scratch.single[k, a] = scratch.total[k] - scratch.single[k, a]


@shared_kernel
def too_small(problem, sums):
    """Whether a leaf with these sums has fewer rows than allowed."""
    if problem.min_rows <= 0.0:
        return False
    rows = 0.0
    for k in range(sums.shape[0]):
        rows += problem.row_count[k] * sums[k]
    return rows < problem.min_rows


@shared_kernel
def refuse_small(problem, sums, n, price):
    """Price leaves that are too small at infinity."""
    if problem.min_rows <= 0.0:
        return
    for i in range(n):
        rows = 0.0
        for k in range(sums.shape[0]):
            rows += problem.row_count[k] * sums[k, i]
        if rows < problem.min_rows:
            price[i] = np.inf


@shared_kernel
def add_floors(problem, weights, scratch, level):
    """Lower bounds of both sides of every split from what its rows cost at least, into ``lower``."""
    m, n_words = scratch.size[0], scratch.size[1]
    lower = scratch.lower[level]
    for a in range(m):
        lower[0, a] = 0.0
        lower[1, a] = 0.0
    if not weights.has_floor:
        return
    for x in range(n_words):
        w = scratch.word[x]
        rest = scratch.mask[level, w]
        while rest != 0:
            bit = first_one(rest)
            rest &= rest - np.uint64(1)
            floor = weights.floor[w * 64 + np.int64(bit)]
            if floor != 0.0:
                for a in range(m):
                    if (scratch.packed[x, a] >> bit) & np.uint64(1) != 0:
                        lower[0, a] += floor
                    else:
                        lower[1, a] += floor


@shared_kernel
def similar_bound(problem, weights, scratch, level, mask, best):
    """Bound from a solved sibling T: the tree of S serves T at the price of the rows of T outside S.

    cost(T) <= cost(S) + what the rows of T without S cost at most (similar support, paper `gosdt`, Theorem B.9).
    """
    for s in range(scratch.n_solved[level]):
        known = scratch.solved_value[level, s]
        if known <= best:
            continue
        for w in range(mask.shape[0]):
            rest = scratch.solved[level, s, w] & ~mask[w]
            if rest == 0:
                continue
            if problem.counted:
                known -= weights.excess[w * 64] * popcount(rest)
            else:
                while rest != 0:
                    known -= weights.excess[w * 64 + np.int64(first_one(rest))]
                    rest &= rest - np.uint64(1)
            if known <= best:
                break
        best = max(best, known)
    return best


@shared_kernel
def remember(scratch, level, mask, value):
    """Keep a solved child for `similar_bound`."""
    n = scratch.n_solved[level]
    if n < scratch.solved_value.shape[1]:
        for w in range(mask.shape[0]):
            scratch.solved[level, n, w] = mask[w]
        scratch.solved_value[level, n] = value
        scratch.n_solved[level] = n + 1
