"""The arrays of the search by joint sums, and when it is used."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.exact.kernels.views import (
    ByteMatrix,
    Bytes,
    FloatCube,
    FloatMatrix,
    Floats,
    IntMatrix,
    Ints,
    Longs,
    Words,
)
from softsurv.exact.problem import SearchArrays, aligned

BLOCK = 2048
"""Rows that are added up together: so few that they stay in the L1 cache."""

MOST_BINS = 64
"""Most bins of a feature: the sums over three features of 64 bins each fill the second-level cache."""

MOST_SPLITS = 1024
"""Most splits: the tables hold some twenty numbers for each pair of them."""

CELL_WORK = 12
"""Least rows for each triple of bins: with fewer, pricing the cells takes longer than adding up the rows."""

BUSY_CUTS = 4
"""Least mean number of cuts of a feature: with fewer, sums over triples of features cost more than those over pairs of
cuts."""

MOST_WORK = 2e11
"""Most rows times triples of features: this takes some minutes. Beyond that a search with bounds is faster."""


class JointRows(NamedTuple):
    """Rows and tables that all threads share: P features, R rows, W statistics, F splits."""

    code: ByteMatrix  # (P, R) int8 bin of each row on each feature
    stats: FloatMatrix  # (R, W)
    n_bins: Ints  # (P,) int32
    chained: Bytes  # (P,) int8 1 where bins are ordered
    split_start: Ints  # (P + 1,) int32 first split of each feature
    pair: IntMatrix  # (Q, 2) int32 pairs of features, in the order of the work
    total: Floats  # (W,)
    sums: FloatCube  # (W, F, F) sums of the rows left of two splits
    leaf: FloatCube  # (4, F, F) cost of the four cells of two splits as leaves: left left, left right, ...
    done: Bytes  # (P,) int8 1 where the sums over pairs with this feature first are complete
    next: Longs  # (2,) int64 next feature of the sums over pairs, next pair of those over triples
    control: Longs  # (8,) int64 stop flag and counts


class JointScratch(NamedTuple):
    """What a thread writes to; S is the most bins of a feature, B the leaves of a batch."""

    place: Words  # (BLOCK,) uint64 where the sums of a row's bins on two features begin
    table: FloatMatrix  # (P, S * S * S * W) sums per bin of three features, by the third
    triple: Floats  # (W * S * S * S,) sums of the rows left of three splits
    batch: FloatMatrix  # (W, B) leaves whose cost is asked for
    cost: Floats  # (B,)
    stump: FloatCube  # (4, F, F) cost of the four cells of two splits with at most one more split


def joint_pays(problem: SearchArrays, rows: NDArray[np.int32]) -> bool:
    """Whether the sums over all triples of features take less time than searching without them."""
    features, splits = len(problem.nominal), len(problem.feature_of)
    if not BUSY_CUTS * features <= splits <= MOST_SPLITS or not features or problem.branching:
        return False
    triples, cells = math.comb(features + 2, 3), (splits / features) ** 3
    enough = CELL_WORK * cells < len(rows) and triples * float(len(rows)) < MOST_WORK
    return enough and bool(np.diff(problem.code_start).max() <= MOST_BINS)


def new_rows(problem: SearchArrays, rows: NDArray[np.int32], control: IntArray) -> tuple[JointRows, IntArray]:
    """The rows to look at, with bins and features left out that do not occur; the global code of each split (F,)."""
    codes, n_bins, chained, split_code = [], [], [], []
    as_they_are = len(rows) == len(problem.gcode) and bool((rows[1:] > rows[:-1]).all())
    for f, begin in enumerate(problem.code_start[:-1].tolist()):
        column = problem.gcode[:, f] if as_they_are else problem.gcode[rows, f]
        column = (column - begin).astype(np.int8)
        present = np.bincount(column, minlength=1).astype(bool)
        found = np.flatnonzero(present)
        if len(found) < 2:
            continue
        ordered = len(found) == 2 or not problem.nominal[f]
        codes.append((np.cumsum(present) - 1).astype(np.int8)[column])
        n_bins.append(len(found))
        chained.append(ordered)
        split_code.append(begin + found[: len(found) - ordered])
    p, width = len(codes), problem.stats.shape[1]
    split_start = np.cumsum([0, *map(len, split_code)])
    n_splits = int(split_start[-1])
    stats = np.ascontiguousarray(problem.stats[rows])
    ready = JointRows(
        code=np.array(codes, np.int8).reshape(p, len(rows)),
        stats=stats,
        n_bins=np.array(n_bins, np.int32),
        chained=np.array(chained, np.int8),
        split_start=split_start.astype(np.int32),
        pair=np.array([(f, g) for f in range(p) for g in range(f, p)], np.int32).reshape(-1, 2),
        total=stats.sum(axis=0),
        sums=np.zeros((width, n_splits, n_splits)),
        leaf=np.full((4, n_splits, n_splits), np.inf),
        done=np.zeros(p, np.int8),
        next=np.zeros(2, np.int64),
        control=control,
    )
    return ready, np.concatenate([*split_code, np.empty(0, np.int64)]).astype(np.int64)


def new_scratch(rows: JointRows) -> JointScratch:
    """Scratch of a thread, once the leaves of all pairs of splits are priced."""
    width, bins = rows.stats.shape[1], int(rows.n_bins.max(initial=2))
    return JointScratch(
        place=np.zeros(BLOCK, np.uint64),
        table=np.zeros((len(rows.code), bins**3 * width)),
        triple=np.zeros(bins**3 * width),
        batch=aligned(width * 8 * bins * bins).reshape(width, -1),
        cost=aligned(8 * bins * bins),
        stump=rows.leaf.copy(),
    )


def bytes_of_joint(problem: SearchArrays, n_rows: int) -> float:
    """Bytes of the rows and tables for one thread, before they are made."""
    features, splits = len(problem.nominal), float(len(problem.feature_of))
    width, bins = problem.stats.shape[1], float(np.diff(problem.code_start).max(initial=2))
    per_row = features + 8 * width
    return n_rows * per_row + 8 * (splits**2 * (8 + width) + bins**3 * width * (features + 1))


def values_of_sides(leaf: FloatArray, stump: FloatArray) -> FloatArray:
    """Best cost of either side of each split with at most 1 to 4 leaves and depth two, (2, 5, F); index 0 is unused.

    Parameters
    ----------
    leaf, stump : (4, F, F)
        Cost of the cells of two splits as leaves, and with at most one more split.
    """
    own = np.arange(leaf.shape[1])
    two = np.full((2, 5, len(own)), np.inf)
    for side in range(2):
        two[side, 1] = leaf[3 * side, own, own]
        cells = slice(2 * side, 2 * side + 2)
        for leaves, costs in enumerate(pairs_of_cells(leaf[cells], stump[cells]), start=2):
            two[side, leaves] = np.minimum(two[side, leaves - 1], costs.min(axis=1, initial=np.inf))
    return two


def pairs_of_cells(leaf: FloatArray, stump: FloatArray) -> list[FloatArray]:
    """Cost of two cells, the first axis, together with 2, 3 and 4 leaves."""
    three = np.minimum(leaf[0] + stump[1], stump[0] + leaf[1])
    return [leaf[0] + leaf[1], three, stump[0] + stump[1]]


def both_ways(stump: FloatArray) -> FloatArray:
    """Values for pairs of splits (4, F, F), each found in one order, for both orders."""
    return np.minimum(stump, stump[[0, 2, 1, 3]].transpose(0, 2, 1))
