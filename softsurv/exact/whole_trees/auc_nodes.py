"""The nodes of partly grown trees, for the area under the ROC convex hull: the least cost of what each may become."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.exact import problem as arrays
from softsurv.exact.kernels.simd import LANES
from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.kernels.views import Packed
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.whole_trees.auc_kernels import directional
from softsurv.results import Status
from softsurv.stopping import Stopped, StopSignal

N_DIRECTIONS = 24
"""Lines that bound the curve; more make the bound tighter and slower."""

NODE_BYTES = 500
"""Memory of a node but for its arrays."""


@dataclass(frozen=True)
class PartTree:
    """A node of a partly grown tree: open with some depth left, closed, or split.

    Attributes
    ----------
    rows : (R,) int32
        Its distinct rows.
    depth : int
        Depth left; 0 where it is closed.
    cost : (G,)
        Least cost of what it may become, per direction.
    sums : (K,)
        Its negatives, positives and perhaps size.
    split, left, right
        Where it is split.
    """

    rows: NDArray[np.int32]
    depth: int
    cost: FloatArray
    sums: FloatArray
    split: int = -1
    left: PartTree | None = None
    right: PartTree | None = None

    def leaves(self) -> list[PartTree]:
        """Open and closed ends from left to right."""
        return [self] if self.left is None or self.right is None else self.left.leaves() + self.right.leaves()

    @property
    def open(self) -> bool:
        """Whether an end may still be split."""
        return any(end.depth > 0 for end in self.leaves())

    def with_leaf(self, old: PartTree, new: PartTree) -> PartTree:
        """The tree with one end replaced."""
        if self is old:
            return new
        if self.left is None or self.right is None:
            return self
        left, right = self.left.with_leaf(old, new), self.right.with_leaf(old, new)
        return self if left is self.left and right is self.right else replace(self, left=left, right=right)


class AucNodes:
    """The nodes of one training set; each is worked out once.

    Parameters
    ----------
    search : VectorSearch
        As `auc.AucSearch` has it.
    memory_limit : float
        Bytes for the nodes.

    Attributes
    ----------
    memory_left : float
        Bytes.
    stop : StopSignal
        Stop signal of the search that uses the nodes now.
    local, single
        Scratch with the splits and the sums of the subset that was loaded last.
    """

    def __init__(self, search: VectorSearch, memory_limit: float) -> None:
        self.problem = search.rows.problem
        negatives, positives = search.totals
        angle = (np.arange(N_DIRECTIONS) + 0.5) / N_DIRECTIONS * np.pi / 2
        self.directions = np.column_stack([np.cos(angle) / positives, np.sin(angle) / negatives])
        self.packed, self.packed_local = Packed(self.problem), arrays.Scratch(self.problem, search.search.control).local
        self.local: Any = self.packed_local.value
        width, g = self.problem.stats.shape[1], len(self.problem.feature_of)
        self.single, self.both = np.empty((width, g + LANES)), np.empty((width, g + LANES))
        self.by_code = np.empty((g, width))
        self.memory: dict[tuple[tuple[int, int], int], tuple[PartTree, NDArray[np.int32]]] = {}
        self.memory_left, self.stop = memory_limit, StopSignal()

    def check(self) -> None:
        """End the search where time or memory has run out."""
        if self.memory_left < 0:
            raise Stopped(Status.MEMORY_LIMIT)
        if self.local.control[STOP] or self.stop.exhausted:
            raise Stopped(self.stop.reason)

    def load(self, rows: NDArray[np.int32], depth: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Costs of a subset, see `directional`; its splits and sums are in the scratch."""
        given = self.packed, rows, len(rows), self.packed_local, self.directions, depth > 1
        return directional(*given, self.single, self.both, self.by_code)

    def open(self, rows: NDArray[np.int32], depth: int) -> PartTree:
        """A node with so much depth left, and the least cost of what it may become."""
        if depth == 0:
            return self.close(rows)
        key = self._key(rows), depth
        if key not in self.memory:
            leaf, stump, whole = self.load(rows, depth)
            self.check()
            sums, allowed = self.local.total.copy(), self.allowed()
            splits = self.local.split_code[: leaf.shape[1]][allowed]
            sides = (leaf if depth == 1 else stump).sum(axis=0)[allowed]
            cost = np.minimum(whole, sides.min(axis=0, initial=np.inf)) if len(sides) else whole
            if depth > 2 and len(splits):
                children = [[self.open(side, depth - 1).cost for side in self.sides(rows, s)] for s in splits]
                cost = np.minimum(whole, np.sum(children, axis=1).min(axis=0))
            self._remember(key, PartTree(rows, depth if len(splits) else 0, cost, sums), splits)
        return self.memory[key][0]

    def splits(self, node: PartTree) -> NDArray[np.int32]:
        """Splits of an open node that leave enough rows on both sides."""
        self.open(node.rows, node.depth)
        return self.memory[self._key(node.rows), node.depth][1]

    def close(self, rows: NDArray[np.int32]) -> PartTree:
        """A leaf."""
        key = self._key(rows), 0
        if key not in self.memory:
            sums = self.problem.stats[rows].sum(axis=0)
            cost = (self.directions * sums[1::-1]).min(axis=1)
            self._remember(key, PartTree(rows, 0, cost, sums), np.zeros(0, np.int32))
        return self.memory[key][0]

    def _remember(self, key: tuple[tuple[int, int], int], node: PartTree, splits: NDArray[np.int32]) -> None:
        self.memory[key] = node, splits
        self.memory_left -= NODE_BYTES + node.rows.nbytes + node.cost.nbytes + splits.nbytes

    def _key(self, rows: NDArray[np.int32]) -> tuple[int, int]:
        low, high = self.problem.keys[rows].sum(axis=0, dtype=np.uint64)
        return int(low), int(high)

    def sides(self, rows: NDArray[np.int32], split: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Rows on the left and on the right of a split."""
        feature = self.problem.feature_of[split]
        codes = self.problem.gcode[rows, feature]
        left = codes == split if self.problem.nominal[feature] else codes <= split
        return rows[left], rows[~left]

    def allowed(self) -> BoolArray:
        """Which splits of the loaded subset leave enough rows on both sides."""
        m = int(self.local.size[2])
        if not self.problem.use_size:
            return np.ones(m, dtype=np.bool_)
        left = self.single[-1, :m]
        return np.minimum(left, self.local.total[-1] - left) >= self.problem.min_leaf
