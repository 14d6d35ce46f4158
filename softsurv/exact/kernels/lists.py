"""Lists of points of a listing: what its kernels read and write, lists thinned to those that no other dominates."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.nodes import sort_up
from softsurv.exact.kernels.simd import LANES
from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.kernels.views import Flags, FloatCube, FloatMatrix, Floats, Ints, LongCube, LongMatrix, Longs
from softsurv.exact.kernels.words import lower

if TYPE_CHECKING:
    from softsurv.exact.problem import SearchArrays
    from softsurv.exact.vector_task import Objectives

FULL = 3
"""Place in the control array: a list, or the memory of finished fronts, overflowed."""


class Listing(NamedTuple):
    """Data and scratch of a listing: U distinct rows, G global codes, K statistics, W = K + 2 columns, V levels.

    L labels, D objectives, C kinds of rows. The last two columns are what the engine has taken out of the cost of each
    row, and a count: of the row's members if rows are of few kinds, else 1. There are two more lists than levels: for
    the two sides of a split in the base case.
    """

    stats: FloatMatrix  # (U, W)
    kinds: FloatMatrix  # (C, W) the same of a member of each kind, where rows are of few kinds; else empty
    weights: FloatCube  # (L, D, K) of the objectives
    constant: Floats  # (D,) what every leaf adds
    w: Floats  # (D,) weights of the objectives
    kept: Flags  # (D,) bool objectives without a preferred direction
    constraint: FloatMatrix  # (M, D) of the whole tree: constraint @ v <= limit
    limit: Floats  # (M,)
    constrained: bool  # at the root only the best tree that meets the constraint is wanted, not a front
    shift: float  # cost <= first objective + shift where the constraint holds
    front: int  # address of the listing itself
    whole: FloatMatrix  # (W, G + 8) sums of the rows left of each split that divides the subset
    inside: FloatMatrix  # (W, G + 8) the same of the rows left of one split
    by_code: FloatMatrix  # (G, W)
    total: Floats  # (W,)
    sums: FloatMatrix  # (2, W)
    label: FloatCube  # (2, L, D) objectives of two leaves
    cost: FloatMatrix  # (2, L)
    candidate: Floats  # (D,)
    point: FloatCube  # (V + 2, P, D) lists under construction
    reduced: FloatMatrix  # (V + 2, P) cost of each point, as the engine has it
    origin: LongCube  # (V + 2, P, 3) int64 split (-1: none), left and right: a place among the filed or a code < 0
    n_points: Longs  # (V + 2,) int64
    sorting: Ints  # (P,) int32
    spare_point: FloatMatrix  # (P, D)
    spare_reduced: Floats  # (P,)
    spare_origin: LongMatrix  # (P, 3) int64
    span: LongMatrix  # (V, 2) int64 where the front just found lies among the filed
    filed_point: FloatMatrix  # (A, D) finished fronts, one after the other
    filed_reduced: Floats  # (A,)
    filed_origin: LongMatrix  # (A, 3) int64
    filed: Longs  # (1,) int64 how many


def new_listing(
    problem: SearchArrays, objectives: Objectives, depth: int, points: int, room: int, slack: np.ndarray
) -> Listing:
    """Scratch over rows whose statistics are those of ``problem``: trees down to ``depth``, lists of so many points."""
    v, d, labels = max(depth - 1, 1), objectives.n, objectives.n_labels  # nodes of depth two list all below them
    given, kinds, g = problem.stats, problem.row_kinds.kind_stats, len(problem.feature_of)
    count = problem.row_kinds.kind_count.sum(axis=1) if len(kinds) else np.ones(len(given))
    width = given.shape[1] + 2
    return Listing(
        stats=np.column_stack([given, np.zeros(len(given)), count]),
        kinds=np.column_stack([kinds, np.zeros(len(kinds)), np.ones(len(kinds))]),
        weights=objectives.weights,
        constant=objectives.constant,
        w=np.zeros(d),
        kept=objectives.kept,
        constraint=objectives.constraint,
        limit=objectives.limit + slack,
        constrained=False,
        shift=0.0,
        front=0,
        whole=np.empty((width, g + LANES)),
        inside=np.empty((width, g + LANES)),
        by_code=np.empty((g, width)),
        total=np.empty(width),
        sums=np.empty((2, width)),
        label=np.zeros((2, labels, d)),
        cost=np.empty((2, labels)),
        candidate=np.empty(d),
        point=np.empty((v + 2, points, d)),
        reduced=np.empty((v + 2, points)),
        origin=np.empty((v + 2, points, 3), np.int64),
        n_points=np.zeros(v + 2, np.int64),
        sorting=np.empty(points, np.int32),
        spare_point=np.empty((points, d)),
        spare_reduced=np.empty(points),
        spare_origin=np.empty((points, 3), np.int64),
        span=np.zeros((v, 2), np.int64),
        filed_point=np.empty((room, d)),
        filed_reduced=np.empty(room),
        filed_origin=np.empty((room, 3), np.int64),
        filed=np.zeros(1, np.int64),
    )


@shared_kernel
def precedes(kept, point, i, j):
    """Order of points for `thin`: kept objectives first, then the others, lexicographically."""
    for d in range(kept.shape[0]):
        if kept[d] and point[i, d] != point[j, d]:
            return point[i, d] < point[j, d]
    for d in range(kept.shape[0]):
        if not kept[d] and point[i, d] != point[j, d]:
            return point[i, d] < point[j, d]
    return i < j


@shared_kernel
def sort_points(kept, point, index, n):
    """Heapsort of the first n points by `precedes`, as an index."""
    for i in range(n):
        index[i] = i
    for start in range(n // 2 - 1, -1, -1):
        _sift(kept, point, index, start, n)
    for end in range(n - 1, 0, -1):
        index[0], index[end] = index[end], index[0]
        _sift(kept, point, index, np.int64(0), end)


@shared_kernel
def _sift(kept, point, index, root, n):
    while 2 * root + 1 < n:
        child = 2 * root + 1
        if child + 1 < n and precedes(kept, point, index[child], index[child + 1]):
            child += 1
        if not precedes(kept, point, index[root], index[child]):
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
def thin(listing, slot):
    """Drop the points of a list that another one dominates or equals.

    Within points that agree in the kept objectives only an earlier one can dominate a later one, so one sweep is
    enough.
    """
    n, kept = listing.n_points[slot], listing.kept
    point, index = listing.point[slot], listing.sorting
    n_objectives = kept.shape[0]
    sort_points(kept, point, index, n)
    out = np.int64(0)
    group = np.int64(0)
    for i in range(n):
        here = np.int64(index[i])
        if out > group:
            for d in range(n_objectives):
                if kept[d] and listing.spare_point[group, d] != point[here, d]:
                    group = out
                    break
        dominated = False
        for other in range(out - 1, group - 1, -1):
            worse = True
            for d in range(n_objectives):
                if not kept[d] and listing.spare_point[other, d] > point[here, d]:
                    worse = False
                    break
            if worse:
                dominated = True
                break
        if not dominated:
            copy_point(
                listing.point[slot], listing.reduced[slot], listing.origin[slot], here,
                listing.spare_point, listing.spare_reduced, listing.spare_origin, out,
            )  # fmt: skip
            out += 1
    for i in range(out):
        copy_point(
            listing.spare_point, listing.spare_reduced, listing.spare_origin, i,
            listing.point[slot], listing.reduced[slot], listing.origin[slot], i,
        )  # fmt: skip
    listing.n_points[slot] = out


@shared_kernel
def push(listing, control, slot, reduced, split, left, right, upper, tolerance):
    """Add ``listing.candidate`` to a list; at the root only where it meets the constraint. Returns the upper bound.

    Where only the best tree is wanted, a later one must have a smaller first objective.
    """
    point = listing.candidate
    if slot == 0 and listing.constrained:
        for c in range(listing.limit.shape[0]):
            total = 0.0
            for d in range(point.shape[0]):
                total += listing.constraint[c, d] * point[d]
            if total > listing.limit[c]:
                return upper
        if listing.n_points[0] > 0 and point[0] >= listing.point[0, 0, 0]:
            return upper
        listing.n_points[0] = 0
        upper = lower(upper, point[0] + listing.shift - tolerance)
    n = listing.n_points[slot]
    if n == listing.reduced.shape[1]:
        thin(listing, slot)
        n = listing.n_points[slot]
        if 4 * n > 3 * listing.reduced.shape[1]:
            control[FULL] = 1
            control[STOP] = 1
            listing.n_points[slot] = 0
            n = 0
    for d in range(point.shape[0]):
        listing.point[slot, n, d] = point[d]
    listing.reduced[slot, n] = reduced
    listing.origin[slot, n, 0] = split
    listing.origin[slot, n, 1] = left
    listing.origin[slot, n, 2] = right
    listing.n_points[slot] = n + 1
    return upper


@shared_kernel
def file_front(listing, control, slot):
    """Thin a list and file it, cheapest first; its place goes to ``span``."""
    thin(listing, slot)
    n = listing.n_points[slot]
    start = listing.filed[0]
    if start + n > listing.filed_reduced.shape[0]:
        control[FULL] = 1
        control[STOP] = 1
        n = 0
    for i in range(n):
        listing.spare_reduced[i], listing.sorting[i] = listing.reduced[slot, i], i
    sort_up(listing.spare_reduced, listing.sorting, n)
    for i in range(n):
        copy_point(
            listing.point[slot], listing.reduced[slot], listing.origin[slot], np.int64(listing.sorting[i]),
            listing.filed_point, listing.filed_reduced, listing.filed_origin, start + i,
        )  # fmt: skip
    listing.filed[0] = start + n
    listing.span[slot, 0] = start
    listing.span[slot, 1] = start + n
