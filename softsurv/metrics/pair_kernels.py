"""Compiled inner loops that count ordered pairs of subjects."""

from __future__ import annotations

import numpy as np

from softsurv.kernel_cache import njit


@njit(cache=True, nogil=True)
def compare_block(block, column, own, n_missed, n_earlier, lower, equal):
    """Add to lower and equal (E,) the comparisons of every subject with the events from its entry to its time."""
    for j in range(block.shape[0]):
        for e in range(max(n_missed[j], 0), min(n_earlier[j], column.size)):
            value = block[j, column[e]]
            lower[e] += value < own[e]
            equal[e] += value == own[e]


@njit(cache=True, nogil=True)
def weigh_block(block, column, own, n_missed, n_earlier, mass, lower, equal):
    """As `compare_block`, where each subject counts as its mass (N,)."""
    for j in range(block.shape[0]):
        for e in range(max(n_missed[j], 0), min(n_earlier[j], column.size)):
            value = block[j, column[e]]
            if value < own[e]:
                lower[e] += mass[j]
            elif value == own[e]:
                equal[e] += mass[j]


@njit(cache=True, nogil=True)
def scan_backwards(order, position, rank, n_ranks):
    """Later subjects with lower and with equal rank, each (N,), by a Fenwick tree over the ranks."""
    n = order.size
    tree = np.zeros(n_ranks + 1, dtype=np.int64)
    seen = np.zeros(n_ranks, dtype=np.int64)
    lower = np.zeros(n, dtype=np.int64)
    equal = np.zeros(n, dtype=np.int64)
    begin = 0
    while begin < n:
        end = begin
        while end < n and position[order[end]] == position[order[begin]]:
            i = order[end]
            equal[i] = seen[rank[i]]
            node = rank[i]  # sum over ranks below this one
            while node > 0:
                lower[i] += tree[node]
                node -= node & -node
            end += 1
        for k in range(begin, end):
            node = rank[order[k]] + 1
            seen[node - 1] += 1
            while node <= n_ranks:
                tree[node] += 1
                node += node & -node
        begin = end
    return lower, equal
