"""The arrays the compiled search reads, and the scratch it writes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache, reduce
from typing import NamedTuple

import numpy as np

from softsurv.exact.kernels.bit_columns import RowKinds
from softsurv.exact.kernels.simd import LANES
from softsurv.exact.kernels.subsets import Lanes, Local
from softsurv.exact.kernels.views import (
    ByteMatrix,
    Bytes,
    Flags,
    FloatCube,
    FloatMatrix,
    Floats,
    IntMatrix,
    Ints,
    Longs,
    WordCube,
    WordMatrix,
)
from softsurv.exact.layout import GIVEN, Laid, Layout, Same, Space, Spaces
from softsurv.exact.row_kinds import bit_sizes, bit_spaces
from softsurv.exact.split_costs import Prices

MANTISSA_BITS = 52
"""Sums on a grid of 2**-52 of their largest possible total are exact in float64 (53 bits of precision)."""


MARGIN = 1.0 + 1e-9
"""A total may be a power of two, as where classes weigh the same. Rounded up or down by the order of the rows, it takes
the same grid."""

SMALLEST_EXPONENT = -1074
"""Least exponent of two of a number above 0 in float64."""

MAX_DEPTH = 10
"""Deepest tree: scratch and cache tags are laid out for it; nobody reads a tree of a thousand leaves."""

BATCH = 1024
"""Leaves priced together, at most (unless one row of pairs of splits is longer): their sums stay in the L1 cache."""


class Calls(NamedTuple):
    """Addresses of compiled functions, 0 where they are not needed."""

    price: int = 0  # `base_cases/task_costs.py`
    solve_two: int = 0  # the base case that suits the rows
    solve_lanes: int = 0  # `base_cases/lanes.py`
    solve_three: int = 0  # `recursion.py`
    solve: int = 0  # `recursion.py`
    leaf_points: int = 0  # `listing.py`
    search_cuts: int = 0  # `cuts/node.py`


class SearchArrays(NamedTuple):
    """A training set as the kernels see it: U distinct rows, P features, G global codes, W statistics."""

    gcode: IntMatrix  # (U, P) int32 global code of each row on each feature
    code_start: Ints  # (P + 1,) int32 first global code of each feature
    nominal: Flags  # (P,) bool
    feature_of: Ints  # (G,) int32 feature of each global code
    stats: FloatMatrix  # (U, W) statistics summed over equal rows; the last column is their size if use_size
    row_kinds: RowKinds  # the rows by kind, for `base_cases/bits.py`
    prices: Prices  # what splits cost
    calls: Calls  # compiled functions that kernels call
    floor: Floats  # (U,) cost of each group of equal rows as a leaf of its own: the equivalent-points bound
    keys: WordMatrix  # (U, 2) uint64 random words: a subset's key is their sum
    parameters: Floats  # (M,) run-time numbers of the leaf cost
    complexity: float  # cost per leaf
    min_leaf: float  # least size of a leaf
    use_size: bool  # whether it limits anything
    linear: bool  # whether the cost of a leaf is the least of its sums
    branching: bool  # whether splits cost something
    n_statistics: int  # columns of ``stats`` that the task reads
    tolerance: float  # two objectives closer than this are the same
    use_interval: bool  # the switches of `bounds.Bounds`
    use_similar: bool
    use_look_ahead: bool
    use_cache: bool
    use_lanes: bool


class Nodes(NamedTuple):
    """Scratch of one thread for the recursion, one slice per level: D levels, N rows, G global codes, S splits."""

    rows: IntMatrix  # (D, N) int32 rows of the children
    key: WordCube  # (D, G, 2) uint64 key of the left side of each split
    floor: FloatMatrix  # (D, G) equivalent-points bound of the left side
    total_floor: Floats  # (D,)
    choice: Floats  # (D,) split and left leaves that the node chose
    ahead: FloatCube  # (D, 2, G) lower bound of either side before any is solved: `nodes.look_ahead`
    bound: FloatCube  # (D, 2, G) lower bound of either side under the limits of the pass
    order: IntMatrix  # (D, G) int32 splits in the order they are tried
    harder: ByteMatrix  # (D, G) int8 the side that costs more with one more split, solved first: 0 left, 1 right
    place: IntMatrix  # (D, G) int32 place of each split in ``shared``
    worst: FloatMatrix  # (D, G) most that the rows left of each split can cost
    total_worst: Floats  # (D,)
    shared: FloatCube  # (D, S, S) most that the rows left of two splits can cost, by place; empty where not used
    score: FloatMatrix  # (D, G)
    due: FloatMatrix  # (D, T) price of each test
    context: WordCube  # (D, T, 2) uint64 what a child's prices add to its key, by the test made
    two: FloatCube  # (2, 5, G) for a node of depth three: values of both sides of each split with 1..4 leaves
    n_left: Ints  # (G,) int32 rows of the left side of each split
    known: ByteMatrix  # (2, G) int8 which of those are known
    fewer: Bytes  # (G,) int8 1 where the left side has fewer rows


class Shared(NamedTuple):
    """What the threads of one search share."""

    control: Longs  # (8,) int64: stop flag, base cases run, runs of eight of them, full memory of a listing
    next: Longs  # (T,) int64 next split of the root to take, per way to share the leaves
    order: Ints  # (G,) int32 splits of the root in the order they are tried
    bound: FloatCube  # (T, 2, G) lower bound of either side of each split of the root, per way to share the leaves
    best: Floats  # (1,) objective of the incumbent
    choice: Floats  # (1,) its first split and left leaves, packed
    rank: Longs  # (1,) int64 its place in the order; of equally good splits the first is kept
    lock: Longs  # (1,) int64 spin lock of the incumbent


class Shape(NamedTuple):
    """Sizes of a problem, by which scratch is laid out."""

    rows: int
    features: int
    codes: int
    width: int
    most_codes: int
    tests: int
    use_lanes: bool
    use_similar: bool
    kinds: tuple[int, int, int, int]


def shape_of(problem: SearchArrays) -> Shape:
    """The sizes of a problem."""
    n, p = problem.gcode.shape
    return Shape(
        n,
        p,
        len(problem.feature_of),
        problem.stats.shape[1],
        int(np.diff(problem.code_start).max(initial=1)),
        len(problem.prices.full),
        problem.use_lanes,
        problem.use_similar,
        bit_sizes(problem.row_kinds),
    )


def column_sums(values: np.ndarray) -> np.ndarray:
    """Sum of each column of ``values`` (N, W), W small: `sum` takes three times as long."""
    return np.einsum("ij->j", values)


def row_minima(values: np.ndarray) -> np.ndarray:
    """Least of each row of ``values`` (N, W), W >= 1 and small: `min` takes ten times as long."""
    return reduce(np.minimum, values.T)


def round_to_grid(stats: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
    """Round every column to a power-of-two grid on which sums are exact; a row counts ``counts`` times, or once.

    Sums of multiples of 2**e stay exact in float64 while they are below 2**(e + 53); then a histogram made by
    subtracting rows equals one made by adding them, and ties are ties. The error per entry is at most 2**-53 of the
    column's total. Where all entries are 0 or one number, that stays one number in every column: all take the coarsest
    grid.
    """
    size = np.abs(stats)
    total = column_sums(size) if counts is None else counts @ size
    if ((stats == 0.0) | (stats == size.max(initial=0.0))).all():
        total = np.full_like(total, total.max(initial=0.0))
    exponent = np.ceil(np.log2(np.where(total > 0, total * MARGIN, 1.0)))
    grid = 2.0 ** np.maximum(exponent - MANTISSA_BITS, SMALLEST_EXPONENT)
    return np.round(stats / grid) * grid


def distinct_features(codes: np.ndarray, nominal: np.ndarray, test_of: np.ndarray) -> np.ndarray:
    """Features (P',) without those that divide the rows as an earlier one of the same test (P,) does.

    They are equal, or have two codes and are swapped.
    """
    column = np.ascontiguousarray(codes.T)
    two = column.max(axis=1, initial=0) <= 1
    if two.all():
        column = np.packbits(column ^ column[:, :1], axis=1)  # of swapped columns both begin with 0
    else:
        column = np.where(two[:, None], column ^ column[:, :1], column)
    content = column.view(np.dtype((np.void, column.shape[1] * column.itemsize))).ravel().tolist()
    if len(set(content)) == len(content):
        return np.arange(len(content))
    keys = list(zip(test_of.tolist(), (nominal & ~two).tolist(), content, strict=True))
    last_first = range(len(keys) - 1, -1, -1)
    return np.array(sorted(dict(zip(reversed(keys), last_first, strict=True)).values()), np.int64)


def sum_by_group(values: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Sum the rows of ``values`` (N, W) over groups, giving (n_groups, W)."""
    out = np.empty((n_groups, values.shape[1]))
    for k in range(values.shape[1]):
        out[:, k] = np.bincount(group, weights=values[:, k], minlength=n_groups)
    return out


def local_spaces(shape: Shape) -> Spaces:
    """Scratch for the base case, large enough for every subset of the problem."""
    n, p, g, w, tests = shape.rows, shape.features, shape.codes, shape.width, shape.tests
    batch = max(BATCH, 4 * (g + LANES) // LANES * LANES)
    return {
        "map": Space((g,)),
        "per_code": Space((g,)),
        "chained": Space((p + 1,)),
        "bin_start": Space((p + 1,)),
        "split_start": Space((p + 1,)),
        "split_code": Space((g,)),
        "flipped": Space((g,), zero=True),
        "size": Space((4,), zero=True),
        "origin": Space((p + 1,)),
        "bucket": Space((p + 1, shape.most_codes + 2)),
        "by_bin": Space((p + 1, n)),
        "active": Space((n, p)),
        "n_active": Space((n,)),
        "stats": Space((n, w)),
        "total": Space((w,)),
        "single": Space((g * w,)),
        "pairs": Space((g * g * w if shape.use_lanes else 0,)),
        "side": Space((w, g + LANES)),
        "gather": Space((g * w,)),
        "batch": Space((w, batch), zero=True),
        "cost": Space((batch,), zero=True),
        "leaf": Space((2, g + LANES)),
        "stump": Space((2, g + LANES)),
        "plain_splits": Space((g,)),
        "plain_scores": Space((2, g)),
        "plain_rows": Space((2, n)),
        "plain_prices": Space((g,)),
        "bits": bit_spaces(shape.kinds, shape.use_similar),
        "due": Space((tests,)),
        "after": Space((tests, tests), zero=True),
        "control": GIVEN,
        "value": Space((5,)),
        "root": Space((5,)),
    }


def aligned(size: int) -> np.ndarray:
    """Zeros (size,) that start on a cache line: a vector across two lines costs several times more."""
    line = LANES
    raw = np.zeros(size + line)
    skip = (-raw.ctypes.data // raw.itemsize) % line
    return raw[skip : skip + size]


def lane_spaces(shape: Shape) -> Spaces:
    """Scratch for the base case over eight splits; empty where it is not used."""
    n, g, w = (shape.rows, shape.codes, shape.width) if shape.use_lanes else (0, 0, shape.width)
    plane = 4 * g * LANES
    zeros = {
        "member": n * LANES, "entered": n, "whole": 2 * LANES, "sign": 2 * LANES, "split": LANES, "first_side": LANES,
        "entered_total": w * LANES, "single": g * w * LANES, "gather": g * w * LANES, "total": 2 * w * LANES,
        "side": 2 * w * g * LANES, "leaf": plane, "stump": plane, "cost": plane, "value": 2 * 5 * LANES,
    }  # fmt: skip
    spaces = {name: Space((size,), zero=True) for name, size in zeros.items()}
    sums = {"sums": Space((w, plane), zero=True), "batch": Same("sums", (w * plane,)), "plane": plane}
    return spaces | sums


class Scratch:
    """Scratch of one thread that reads the flags ``control``. Trees of depth two need one part of it: each part is made
    when it is first asked for.
    """

    def __init__(self, problem: SearchArrays, control: np.ndarray) -> None:
        shape = shape_of(problem)
        self._layouts = {part: _layout(part, shape) for part in (Nodes, Local, Lanes)}
        self._prices, self._control = problem.prices.full, control

    @cached_property
    def nodes(self) -> Laid:
        """What the recursion writes to."""
        return self._at_full_prices(Laid(self._layouts[Nodes]))

    @cached_property
    def local(self) -> Laid:
        """What the base case writes to."""
        return self._at_full_prices(Laid(self._layouts[Local], control=self._control))

    @cached_property
    def lanes(self) -> Laid:
        """What the base case over eight splits writes to."""
        return Laid(self._layouts[Lanes])

    def __iter__(self) -> Iterator[Laid]:
        """The parts in the order in which kernels take them."""
        return iter((self.nodes, self.local, self.lanes))

    def _at_full_prices(self, part: Laid) -> Laid:
        if len(self._prices):
            part.value.due[:] = self._prices
        return part

    @property
    def nbytes(self) -> tuple[int, int, int]:
        """Bytes of each part, once it is made."""
        nodes, local, lanes = (layout.nbytes for layout in self._layouts.values())
        return nodes, local, lanes


@lru_cache(maxsize=24)
def _layout(part: type, shape: Shape) -> Layout:
    return Layout(part, {Nodes: node_spaces, Local: local_spaces, Lanes: lane_spaces}[part](shape))


def node_spaces(shape: Shape) -> Spaces:
    """Scratch for the recursion down to `MAX_DEPTH`."""
    n, g, d, tests = shape.rows, shape.codes, MAX_DEPTH + 1, shape.tests
    splits = shape.kinds[1] if shape.use_similar else 0
    return {
        "rows": Space((d, n)),
        "key": Space((d, g, 2)),
        "floor": Space((d, g)),
        "total_floor": Space((d,)),
        "choice": Space((d,), zero=True),
        "ahead": Space((d, 2, g)),
        "bound": Space((d, 2, g)),
        "order": Space((d, g)),
        "harder": Space((d, g), zero=True),
        "place": Space((d, g)),
        "worst": Space((d, g)),
        "total_worst": Space((d,)),
        "shared": Space((d, splits, splits)),
        "score": Space((d, g)), "due": Space((d, tests)), "context": Space((d, tests, 2), zero=True),
        "two": Space((2, 5, g)), "n_left": Space((g,)), "known": Space((2, g)), "fewer": Space((g,)),
    }  # fmt: skip
