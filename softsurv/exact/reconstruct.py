"""Reading the optimal tree out of the cache, from the root down; where the cache ends, the base case runs again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.exact.kernels.cache import MAX_LEAVES
from softsurv.exact.kernels.nodes import LEAF
from softsurv.exact.kernels.recursion import solve
from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.kernels.views import Packed
from softsurv.exact.nesting import Splits
from softsurv.exact.problem import Scratch, SearchArrays, column_sums
from softsurv.exact.split_costs import prices_after, show_prices
from softsurv.exact.tree import LEAF as LEAF_NODE
from softsurv.exact.tree import CodeTree, TreeBuilder

Rows = NDArray[np.int32]


@dataclass(frozen=True)
class TreeReader:
    """Builds trees from choices; a choice that the cache has lost is solved for again.

    Attributes
    ----------
    base : module
        The compiled base case.
    packed, cache : Packed
        The problem and the cache of the search.
    sums : (U, K)
        Statistics of the distinct rows as given, not rounded.
    splits : Splits
        The split of the given features that each global code of the problem is.
    scratch : Scratch
    idle : Packed
        State for calls below the root, which share nothing.
    rows : (U,) int32
        All rows.
    gives_up : bool
        Nodes are leaves from where the search is told to stop.
    """

    base: ModuleType
    packed: Packed
    cache: Packed
    sums: FloatArray
    splits: Splits
    scratch: Scratch
    idle: Packed
    rows: Rows
    gives_up: bool = False

    @property
    def problem(self) -> SearchArrays:
        """The problem."""
        problem: SearchArrays = self.packed.value
        return problem

    def read(
        self, depth: int, leaves: int, choice: float | None = None, horizon: int | None = None,
        upper: float = math.inf,
    ) -> CodeTree:  # fmt: skip
        """The optimal tree within limits; ``choice`` is its first split where that is known already.

        Where the base case of the root says that no tree is below ``upper``, the tree is a single leaf.
        With a ``horizon`` below ``depth`` it is a good tree instead: each split is the first one of the best tree as
        deep as the horizon, until no more depth is left than that.
        """
        builder, full = TreeBuilder(), self.problem.prices.full
        if choice is None and depth <= 2 and upper < math.inf:
            choice = self._choose(self.rows, depth, leaves, full, upper)
        self._grow(builder, self.rows, depth, leaves, choice, full, horizon or depth)
        return builder.tree()

    def continued(self, tree: CodeTree, levels: int, horizon: int) -> CodeTree:
        """A tree with so many more levels below each of its leaves, by a rolling horizon as in :meth:`read`."""
        pairs = zip(self.splits.feature.tolist(), self.splits.code.tolist(), strict=True)
        places = {pair: split for split, pair in enumerate(pairs)}
        builder = TreeBuilder()
        self._go_on(builder, tree, 0, self.rows, self.problem.prices.full, places, levels, horizon)
        return builder.tree()

    def _go_on(
        self, builder: TreeBuilder, tree: CodeTree, node: int, rows: Rows, due: FloatArray,
        places: dict[tuple[int, int], int], levels: int, horizon: int,
    ) -> int:  # fmt: skip
        """Add a node of a tree with all below it, and the levels below its leaves; its number."""
        if tree.feature[node] == LEAF_NODE:
            return self._grow(builder, rows, levels, 1 << levels, None, due, horizon)
        feature, code, *children = tree.branch(node)
        split = places[feature, code]
        here = builder.add(tree.sums[node], feature, code)
        goes_left = self._goes_left(rows, split) != self.splits.swapped[split]
        after = self._prices_after(int(self.problem.feature_of[split]), due)
        sides = zip(children, (rows[goes_left], rows[~goes_left]), strict=True)
        below = (self._go_on(builder, tree, child, side, after, places, levels, horizon) for child, side in sides)
        builder.connect(here, *below)
        return here

    def least(self, leaves: int) -> float:
        """Cost of the best tree of depth two with at most 1 to 4 leaves."""
        return min(self._shallow(self.rows, leaves, self.problem.prices.full)[1:])

    def _grow(
        self, builder: TreeBuilder, rows: Rows, depth: int, leaves: int, choice: float | None, due: FloatArray,
        horizon: int,
    ) -> int:  # fmt: skip
        """Add the tree of a subset, with the prices ``due`` (T,) of tests at its root."""
        sums = column_sums(self.sums.take(rows, axis=0))
        depth = min(depth, leaves - 1)
        leaves = min(leaves, 1 << depth)
        seen = min(depth, horizon)
        if choice is None:
            choice = self._choose(rows, seen, min(leaves, 1 << seen), due)
        if choice < 0:
            return builder.add(sums)
        split, left_leaves = divmod(int(choice), MAX_LEAVES)
        if seen < depth:
            left_leaves = share_leaves(left_leaves, min(leaves, 1 << seen), leaves, 1 << (depth - 1))
        feature = int(self.problem.feature_of[split])
        node = builder.add(sums, int(self.splits.feature[split]), int(self.splits.code[split]))
        goes_left, after = self._goes_left(rows, split), self._prices_after(feature, due)
        sides = [(rows[goes_left], left_leaves), (rows[~goes_left], leaves - left_leaves)]
        if self.splits.swapped[split]:
            sides.reverse()
        left, right = (self._grow(builder, side, depth - 1, most, None, after, horizon) for side, most in sides)
        builder.connect(node, left, right)
        return node

    def _goes_left(self, rows: Rows, split: int) -> BoolArray:
        feature = self.problem.feature_of[split]
        codes = self.problem.gcode[:, feature].take(rows)
        return codes == split if self.problem.nominal[feature] else codes <= split

    def _prices_after(self, feature: int, due: FloatArray) -> FloatArray:
        prices = self.problem.prices
        return prices_after(prices, due, int(prices.test_of[feature])) if len(due) else due

    def _choose(self, rows: Rows, depth: int, leaves: int, due: FloatArray, upper: float = math.inf) -> float:
        """First split of the optimal subtree, packed with its left leaves, or `LEAF`."""
        if leaves == 1:
            return LEAF
        if depth >= 3:
            nodes = self.scratch.nodes.value
            nodes.due[1] = due
            key = self.problem.keys[rows].sum(axis=0, dtype=np.uint64)
            solve(self.packed, rows, len(rows), *key, depth, leaves, math.inf, 1, *self.scratch, self.cache, self.idle)
            return float(nodes.choice[1])
        split, value, leaf = self._shallow(rows, leaves, due)
        if self.gives_up and self.scratch.local.value.control[STOP]:
            return LEAF
        if split < 0 or value >= min(upper, leaf - self.problem.tolerance):
            return LEAF
        left_leaves = self._left_of_three(rows, split, due) if leaves == 3 else leaves // 2
        return float(split * MAX_LEAVES + left_leaves)

    def _shallow(self, rows: Rows, leaves: int, due: FloatArray) -> tuple[int, float, float]:
        """(first split, cost, cost as a leaf) of the best tree of depth two with at most 1 to 4 leaves."""
        local = self.scratch.local.value
        show_prices(self.problem.prices, due, local)
        self.base.solve_two(self.packed, rows, len(rows), 1 if leaves <= 2 else 2, self.scratch.local)
        if local.root[leaves] < 0:
            return -1, float(local.value[1]), float(local.value[1])
        return int(local.split_code[local.root[leaves]]), float(local.value[leaves]), float(local.value[1])

    def _left_of_three(self, rows: Rows, split: int, due: FloatArray) -> int:
        """How many of three leaves the left side of the first split takes."""
        goes_left, after = self._goes_left(rows, split), self._prices_after(int(self.problem.feature_of[split]), due)
        _, left_two, left_one = self._shallow(rows[goes_left], 2, after)
        _, right_two, right_one = self._shallow(rows[~goes_left], 2, after)
        return 2 if left_two + right_one < left_one + right_two else 1


def share_leaves(left: int, of: int, leaves: int, most: int) -> int:
    """How many of ``leaves`` go left, in the proportion of ``left`` to ``of``; either side takes at most ``most``."""
    return min(max(round(leaves * left / of), 1, leaves - most), most, leaves - 1)
