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
def scan_backwards(order, number, curve, place, start, offset, base, column, own, mass):
    """Mass of the first ``number`` subjects of the order whose value is below that of each event, or equal, each (E,).

    A value is the subject's offset plus its curve at the event. Offsets (N,) rise within each curve, those of curve g
    begin at ``start[g]``; a Fenwick tree over their places adds up the mass of those met so far.
    """
    tree = np.zeros(offset.size, dtype=mass.dtype)
    lower = np.zeros(own.size, dtype=mass.dtype)
    equal = np.zeros(own.size, dtype=mass.dtype)
    met = 0
    for e in range(own.size - 1, -1, -1):
        while met < number[e]:
            subject = order[met]
            first, last = start[curve[subject]], start[curve[subject] + 1]
            node = place[subject] - first + 1
            while node <= last - first:
                tree[first + node - 1] += mass[subject]
                node += node & -node
            met += 1
        for g in range(base.shape[0]):
            first, last, rise = start[g], start[g + 1], base[g, column[e]]
            begin = _first_place(offset, first, last, rise, own[e], False)
            end = _first_place(offset, begin, last, rise, own[e], True)
            below = _mass_before(tree, first, begin)
            lower[e] += below
            if end > begin:
                equal[e] += _mass_before(tree, first, end) - below
    return lower, equal


@njit(cache=True, nogil=True)
def _first_place(offset, low, high, rise, value, beyond):
    """First place in [low, high) whose offset plus rise reaches the value, or is beyond it; ``high`` where none is."""
    while low < high:
        middle = (low + high) // 2
        found = offset[middle] + rise
        if found > value or (found == value and not beyond):
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def _mass_before(tree, first, place):
    """Mass at the places from the first of a curve to before the given one."""
    total = tree[0] * 0
    node = place - first
    while node > 0:
        total += tree[first + node - 1]
        node -= node & -node
    return total
