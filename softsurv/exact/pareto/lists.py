"""Compiled lists of points: sorted, thinned to those that no other dominates, filed in the arena."""

from __future__ import annotations

import numpy as np

from softsurv.exact.jit import shared_kernel
from softsurv.exact.pareto.arrays import FULL, STOP


@shared_kernel
def precedes(problem, point, i, j):
    """Order of points for `thin`: kept objectives first, then the others, lexicographically."""
    for d in range(problem.kept.shape[0]):
        if problem.kept[d] and point[i, d] != point[j, d]:
            return point[i, d] < point[j, d]
    for d in range(problem.kept.shape[0]):
        if not problem.kept[d] and point[i, d] != point[j, d]:
            return point[i, d] < point[j, d]
    return i < j


@shared_kernel
def sort_points(problem, point, index, n):
    """Heapsort of the first n points by `precedes`, as an index."""
    for i in range(n):
        index[i] = i
    for start in range(n // 2 - 1, -1, -1):
        _sift(problem, point, index, start, n)
    for end in range(n - 1, 0, -1):
        index[0], index[end] = index[end], index[0]
        _sift(problem, point, index, 0, end)


@shared_kernel
def _sift(problem, point, index, root, n):
    while 2 * root + 1 < n:
        child = 2 * root + 1
        if child + 1 < n and precedes(problem, point, index[child], index[child + 1]):
            child += 1
        if not precedes(problem, point, index[root], index[child]):
            return
        index[root], index[child] = index[child], index[root]
        root = child


@shared_kernel
def copy_point(point, reduced, origin, i, to_point, to_reduced, to_origin, j):
    """Copy entry i of one list to entry j of another."""
    for d in range(point.shape[1]):
        to_point[j, d] = point[i, d]
    to_reduced[j] = reduced[i]
    for k in range(3):
        to_origin[j, k] = origin[i, k]


@shared_kernel
def thin(problem, scratch, slot):
    """Drop the points of a list that another one dominates or equals.

    Within points that agree in the kept objectives only an earlier one can dominate a later one, so one sweep is
    enough.
    """
    n = scratch.n_points[slot]
    point, index = scratch.point[slot], scratch.sorting
    n_objectives = problem.kept.shape[0]
    sort_points(problem, point, index, n)
    out = np.int64(0)
    group = np.int64(0)
    for i in range(n):
        here = index[i]
        if out > group:
            for d in range(n_objectives):
                if problem.kept[d] and scratch.spare_point[group, d] != point[here, d]:
                    group = out
                    break
        dominated = False
        for other in range(out - 1, group - 1, -1):
            worse = True
            for d in range(n_objectives):
                if not problem.kept[d] and scratch.spare_point[other, d] > point[here, d]:
                    worse = False
                    break
            if worse:
                dominated = True
                break
        if not dominated:
            copy_point(
                scratch.point[slot], scratch.reduced[slot], scratch.origin[slot], here,
                scratch.spare_point, scratch.spare_reduced, scratch.spare_origin, out,
            )  # fmt: skip
            out += 1
    for i in range(out):
        copy_point(
            scratch.spare_point, scratch.spare_reduced, scratch.spare_origin, i,
            scratch.point[slot], scratch.reduced[slot], scratch.origin[slot], i,
        )  # fmt: skip
    scratch.n_points[slot] = out


@shared_kernel
def push(problem, weights, scratch, control, slot, reduced, split, left, right, upper):
    """Add ``scratch.candidate`` to a list; at the root only where it meets the constraint. Returns the upper bound.

    Where one best tree is wanted, no later one may have a first objective as large.
    """
    point = scratch.candidate
    if slot == 0 and weights.constrained:
        for c in range(problem.limit.shape[0]):
            total = 0.0
            for d in range(point.shape[0]):
                total += problem.constraint[c, d] * point[d]
            if total > problem.limit[c] + problem.tolerance:
                return upper
        if scratch.n_points[0] > 0 and point[0] >= scratch.point[0, 0, 0]:
            return upper
        scratch.n_points[0] = 0
        upper = min(upper, point[0] + weights.shift - problem.tolerance)
    n = scratch.n_points[slot]
    if n == scratch.reduced.shape[1]:
        thin(problem, scratch, slot)
        n = scratch.n_points[slot]
        if 4 * n > 3 * scratch.reduced.shape[1]:
            control[FULL] = 1
            control[STOP] = 1
            scratch.n_points[slot] = 0
            n = 0
    for d in range(point.shape[0]):
        scratch.point[slot, n, d] = point[d]
    scratch.reduced[slot, n] = reduced
    scratch.origin[slot, n, 0] = split
    scratch.origin[slot, n, 1] = left
    scratch.origin[slot, n, 2] = right
    scratch.n_points[slot] = n + 1
    return upper


@shared_kernel
def by_reduced(reduced, index, n):
    """Heapsort of the first n by reduced cost, as an index."""
    for i in range(n):
        index[i] = i
    for start in range(n // 2 - 1, -1, -1):
        _sift_reduced(reduced, index, start, n)
    for end in range(n - 1, 0, -1):
        index[0], index[end] = index[end], index[0]
        _sift_reduced(reduced, index, 0, end)


@shared_kernel
def _sift_reduced(reduced, index, root, n):
    while 2 * root + 1 < n:
        child = 2 * root + 1
        if child + 1 < n and reduced[index[child]] < reduced[index[child + 1]]:
            child += 1
        if reduced[index[root]] >= reduced[index[child]]:
            return
        index[root], index[child] = index[child], index[root]
        root = child


@shared_kernel
def file_front(problem, scratch, arena, control, slot):
    """Thin a list and write it to the arena, cheapest first; its place goes to ``span``."""
    thin(problem, scratch, slot)
    n = scratch.n_points[slot]
    start = arena.used[0]
    if start + n > arena.reduced.shape[0]:
        control[FULL] = 1
        control[STOP] = 1
        n = 0
    by_reduced(scratch.reduced[slot], scratch.sorting, n)
    for i in range(n):
        copy_point(
            scratch.point[slot], scratch.reduced[slot], scratch.origin[slot], scratch.sorting[i],
            arena.point, arena.reduced, arena.origin, start + i,
        )  # fmt: skip
    arena.used[0] = start + n
    scratch.span[slot, 0] = start
    scratch.span[slot, 1] = start + n
