"""What the search by cuts reads and writes.

Sizes: V levels, P columns, U distinct rows, W statistics, H intervals, C cells of a run. A column is an ordered
feature, or one level of a nominal one against the rest. Column f of a level is in row ``level * P + f``. A *cut* of a
column lies between two neighbouring codes of a subset; cut q has the first q + 1 codes on its left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softsurv.exact.kernels.simd import LANES
from softsurv.exact.kernels.views import (
    Bytes,
    FloatMatrix,
    Floats,
    IntMatrix,
    Ints,
    LongMatrix,
    Longs,
)
from softsurv.exact.problem import SearchArrays, aligned

RUN = 256
"""Cells that are priced together: their sums stay in the first-level cache."""

CELLS = RUN + 2
"""Room for the cells of a run, with the one before its first and the one after its last."""


class Cuts(NamedTuple):
    """A problem column by column, and the scratch of the search by cuts."""

    two_labels: bool  # whether the cost of a leaf is the lesser of two sums
    few_labels: bool  # whether it is the least of three to eight sums
    similar: bool  # whether similar support holds (`bounds.py`)
    complexity: float  # cost per leaf; that of the problem's own prices is 0
    limited: bool  # whether leaves have a least size, which the last column of the statistics adds up to
    code: IntMatrix  # (P, U) int32 code of each row
    split: Ints  # (P,) int32 global code of the first split of each column
    worst: Floats  # (U,) most that a row can cost under any label; no cost is below 0
    order: IntMatrix  # (V * P, U) int32 rows of the node by code
    start: IntMatrix  # (V * P, U + 1) int32 first place of each code of the node in ``order``
    n_codes: Ints  # (V * P,) int32 codes of the node
    run: FloatMatrix  # (V * P * (W + 2), U + 1) sums of the first rows: statistics, floor, worst
    group: IntMatrix  # (P, U) int32 code of each place, numbered within the node; of the latest base case
    side: Bytes  # (U,) int8 1 where a row is on the left of the cut at hand
    member: Floats  # (U,) the same as a number; this and the next six are for two labels
    stride: int  # columns, and empty ones that fill the last lanes
    lane_row: Ints  # (U * stride,) int32 row of each place, all columns of a place together; of the latest base case
    lane_gap: Floats  # (U * stride,) its first statistic less its second
    lane_size: Floats  # (U * stride,) its size, where leaves have a least size
    lane_end: Floats  # (U * stride,) 1 where a code's rows end, else 0
    extreme: Floats  # (4 * 8,) largest and smallest difference of left, of right, in each lane
    label_sums: Floats  # (U * 8,) statistics of each row, the first again in lanes to spare; for few labels
    label_total: Floats  # (2 * 8,) the same of both sides
    total: FloatMatrix  # (2, W) sums of both sides
    carry: Floats  # (W,) sums of the left side's rows in the runs before
    batch: FloatMatrix  # (W, 4 * C) leaves whose cost is asked for
    cost: Floats  # (4 * C,)
    stump: Floats  # (4,) best cost of left and right with at most one more split: allowed; then without least size
    leaf: Floats  # (4,) the same as one leaf
    first: IntMatrix  # (V, P) int32 cut of each feature to try first
    key: FloatMatrix  # (V, H) bounds of the waiting intervals: a heap, least first
    slot: IntMatrix  # (V, H) int32 where the interval of each place of the heap is
    waiting: LongMatrix  # (V, 3) int64 intervals waiting, slots used, slots given back
    back: IntMatrix  # (V, H) int32 slots given back
    span: IntMatrix  # (V * 3, H) int32 feature, first and last cut of each interval
    side_bound: FloatMatrix  # (V * 4, H) the four numbers of each interval: `intervals.py`
    free: Floats  # (V,) lower bound of the subset without a least size of leaves
    tree: LongMatrix  # (V, T) int64 best tree of the node: splits with left leaves, or LEAF, in heap order
    kept: LongMatrix  # (V, T) int64 tree of the side that was solved first
    state: Floats  # (4,) of the root: best so far, proven bound, bound of the shares of leaves that follow
    control: Longs  # (8,) int64 shared with Python: stop flag, base cases, blocks


def new_cuts(
    problem: SearchArrays, depth: int, complexity: float, limited: bool, similar: bool, control: np.ndarray
) -> Cuts:
    """Scratch for trees down to ``depth`` over a problem without cost per leaf and least size, and its columns."""
    code, split = columns_of(problem)
    p, n = code.shape
    width, levels, nodes = problem.stats.shape[1], max(depth, 2), 1 << max(depth, 2)
    most = int(code.max(axis=1, initial=0).sum()) + 2 * p
    spread = problem.stats[:, : problem.n_statistics]
    two_labels, few_labels = _in_lanes(problem, similar)
    stride = _stride(p) if two_labels else 0
    return Cuts(
        two_labels=two_labels,
        few_labels=few_labels,
        similar=similar,
        complexity=complexity,
        limited=limited,
        code=code,
        split=split,
        worst=spread.max(axis=1) if similar else np.zeros(n),
        order=np.empty((levels * p, n), np.int32),
        start=np.empty((levels * p, n + 1), np.int32),
        n_codes=np.zeros(levels * p, np.int32),
        run=np.empty((levels * p * (width + 2), n + 1)),
        group=np.empty((p, n), np.int32),
        side=np.zeros(n, np.int8),
        member=np.zeros(n),
        stride=stride,
        lane_row=np.zeros(n * stride, np.int32),
        lane_gap=aligned(n * stride),
        lane_size=aligned(n * stride if limited else 0),
        lane_end=aligned(n * stride),
        extreme=aligned(4 * LANES),
        label_sums=aligned_copy(spread, few_labels),
        label_total=aligned(2 * LANES),
        total=np.empty((2, width)),
        carry=np.empty(width),
        batch=aligned(width * 4 * CELLS).reshape(width, 4 * CELLS),
        cost=aligned(4 * CELLS),
        stump=np.empty(4),
        leaf=np.empty(4),
        first=np.full((levels, p), -1, np.int32),
        key=np.empty((levels, most)),
        slot=np.empty((levels, most), np.int32),
        waiting=np.zeros((levels, 3), np.int64),
        back=np.empty((levels, most), np.int32),
        span=np.empty((levels * 3, most), np.int32),
        side_bound=np.empty((levels * 4, most)),
        free=np.zeros(levels + 1),
        tree=np.full((levels + 1, nodes), -2, np.int64),
        kept=np.full((levels + 1, nodes), -2, np.int64),
        state=np.full(4, -np.inf),
        control=control,
    )


def _in_lanes(problem: SearchArrays, similar: bool) -> tuple[bool, bool]:
    """Whether the columns of a row are in the lanes of vectors, as for two labels; whether its labels are."""
    two_labels = problem.linear and problem.n_statistics == 2
    return two_labels, similar and not two_labels and 2 < problem.n_statistics <= LANES


def _stride(columns: int) -> int:
    """Places of a row's columns in full vectors."""
    return (columns + LANES - 1) // LANES * LANES


def bytes_of_cuts(problem: SearchArrays, similar: bool) -> float:
    """Bytes that a search by cuts writes for trees of depth two, before they are made; deeper nodes hold fewer rows.

    Without the intervals, of which few are waiting.
    """
    levels = np.diff(problem.code_start)
    columns = int(np.where(problem.nominal & (levels > 2), levels, 1).sum())
    two_labels, few_labels = _in_lanes(problem, similar)
    of_column = 8 + 2 * (8 + 8 * (problem.stats.shape[1] + 2))
    of_lane = 20 + 8 * problem.use_size if two_labels else 0
    of_row = columns * of_column + _stride(columns) * of_lane + 8 * LANES * few_labels
    return float(len(problem.gcode) * of_row)


def aligned_copy(statistics: np.ndarray, wanted: bool) -> np.ndarray:
    """Rows of up to eight statistics as vectors, the first one again in lanes to spare; empty where not wanted."""
    if not wanted:
        return np.zeros(0)
    out = aligned(len(statistics) * LANES).reshape(-1, LANES)
    out[:] = statistics[:, :1]
    out[:, : statistics.shape[1]] = statistics
    return out.reshape(-1)


def columns_of(problem: SearchArrays) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the columns (P, U) and the global code of the first split of each (P,)."""
    codes, splits = [], []
    for f, start in enumerate(problem.code_start[:-1]):
        column = problem.gcode[:, f]
        if not problem.nominal[f]:
            codes.append(column - start)
            splits.append(start)
            continue
        levels = range(start, problem.code_start[f + 1])
        for level in levels if len(levels) > 2 else levels[:1]:
            codes.append(column != level)
            splits.append(level)
    return np.array(codes, np.int32).reshape(len(codes), len(problem.gcode)), np.array(splits, np.int32)


def sort_rows(cuts: Cuts, rows: np.ndarray) -> None:
    """Sort some rows (R,) by code, as the columns of the root."""
    for f, column in enumerate(cuts.code):
        cuts.order[f, : len(rows)] = rows[np.argsort(column[rows], kind="stable")]


def take_rows(cuts: Cuts, ordered: np.ndarray, wanted: np.ndarray) -> int:
    """Make those rows of every column, ``ordered`` (P, R), that are wanted (U,) the root's; return their number."""
    taken = 0
    for f, order in enumerate(ordered):
        kept = order[wanted[order]]
        taken = len(kept)
        cuts.order[f, :taken] = kept
    return taken
