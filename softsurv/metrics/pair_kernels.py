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
    """Masses of the first ``number`` subjects of the order with values below that of each event, or equal, each (E, R).

    A value is the subject's offset plus its curve at the event. Offsets (N,) rise within each curve, those of curve g
    begin at ``start[g]``; a Fenwick tree over their places adds up the masses (N, R) of those met so far.
    """
    tree = np.zeros_like(mass)
    lower = np.zeros((own.size, mass.shape[1]), dtype=mass.dtype)
    equal = np.zeros((own.size, mass.shape[1]), dtype=mass.dtype)
    met = 0
    for e in range(own.size - 1, -1, -1):
        while met < number[e]:
            subject = order[met]
            first, last = start[curve[subject]], start[curve[subject] + 1]
            node = place[subject] - first + 1
            while node <= last - first:
                for r in range(mass.shape[1]):
                    tree[first + node - 1, r] += mass[subject, r]
                node += node & -node
            met += 1
        for g in range(base.shape[0]):
            first, last, rise = start[g], start[g + 1], base[g, column[e]]
            begin = _first_place(offset, first, last, rise, own[e], False)
            end = _first_place(offset, begin, last, rise, own[e], True)
            _add_mass_before(tree, first, begin, 1, lower[e])
            if end > begin:
                _add_mass_before(tree, first, end, 1, equal[e])
                _add_mass_before(tree, first, begin, -1, equal[e])
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
def _add_mass_before(tree, first, place, sign, total):
    """Add to the total (R,) the masses at the places from the first of a curve to before the given one."""
    node = place - first
    while node > 0:
        for r in range(total.size):
            total[r] += sign * tree[first + node - 1, r]
        node -= node & -node


@njit(cache=True, nogil=True)
def win_by_rank(order, rises, case, control, mass):
    """Mass of pairs of a case and a control of lower risk, those of equal risk counting half, and of all, each (R,).

    ``order`` (N,) holds the subjects by rising risk, ``rises`` (N,) whether the risk of a place is above that of the
    place before. ``case`` (N,) are the weights of cases, 0 for others; ``mass`` (N, R) is that of each subject.
    """
    below, won, cases = np.zeros(mass.shape[1]), np.zeros(mass.shape[1]), np.zeros(mass.shape[1])
    first = 0
    while first < order.size:
        last = first + 1
        while last < order.size and not rises[last]:
            last += 1
        equal = order[first:last]
        _add_half(equal, control, mass, below)  # as if half of them were below the cases of equal risk
        for subject in equal:
            if case[subject] > 0.0:
                for r in range(won.size):
                    own = case[subject] * mass[subject, r]
                    won[r] += own * below[r]
                    cases[r] += own
        _add_half(equal, control, mass, below)
        first = last
    return won, cases * below


@njit(cache=True, nogil=True)
def _add_half(subjects, control, mass, total):
    """Add to the total (R,) half the mass of the controls among some subjects."""
    for subject in subjects:
        if control[subject]:
            for r in range(total.size):
                total[r] += 0.5 * mass[subject, r]
