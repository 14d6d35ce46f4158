"""Intervals of cuts that wait at a node, best first: a heap, with what is known of the two sides of their cuts.

For the cuts a to b of one feature there are four numbers, with r(u) the most that the rows left of cut u can cost more
under one label than under another:

=====  ============================================================================
0      L, a lower bound of the left side of every cut
1      R, a lower bound of the right side of every cut
2      L', where the left side of cut u costs at least L' + r(u) as well, or -inf
3      R', where the right side of cut u costs at least R' - r(u) as well, or -inf
=====  ============================================================================
"""

from __future__ import annotations

import numpy as np

from softsurv.exact.jit import shared_kernel


@shared_kernel
def clear_intervals(cuts, level):
    """Drop what waits at a level."""
    cuts.waiting[level, :] = 0


@shared_kernel
def push_interval(cuts, level, bound, feature, first, last, left, right, near_left, near_right):
    """Add an interval of at least one cut. There is room: intervals of a node do not overlap."""
    key, slot, count = cuts.key[level], cuts.slot[level], cuts.waiting[level]
    if count[2] > 0:
        count[2] -= 1
        own = np.int64(cuts.back[level, count[2]])
    else:
        own = count[1]
        count[1] += 1
    cuts.span[3 * level, own], cuts.span[3 * level + 1, own], cuts.span[3 * level + 2, own] = feature, first, last
    cuts.side_bound[4 * level, own], cuts.side_bound[4 * level + 1, own] = left, right
    cuts.side_bound[4 * level + 2, own], cuts.side_bound[4 * level + 3, own] = near_left, near_right
    at = count[0]
    count[0] += 1
    while at > 0:
        above = (at - 1) >> 1
        if key[above] <= bound:
            break
        key[at], slot[at] = key[above], slot[above]
        at = above
    key[at], slot[at] = bound, own


@shared_kernel
def pop_interval(cuts, level):
    """Take the interval with the least bound; its slot, which is free from now on."""
    key, slot, count = cuts.key[level], cuts.slot[level], cuts.waiting[level]
    own = np.int64(slot[0])
    cuts.back[level, count[2]] = own
    count[2] += 1
    count[0] -= 1
    n = count[0]
    bound, last = key[n], slot[n]
    at = np.int64(0)
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and key[child + 1] < key[child]:
            child += 1
        if bound <= key[child]:
            break
        key[at], slot[at] = key[child], slot[child]
        at = child
    key[at], slot[at] = bound, last
    return own
