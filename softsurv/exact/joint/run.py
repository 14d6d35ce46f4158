"""The search by joint sums from outside: the tables, filled once, and the best tree within any limits out of them."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.exact.entries import Entry
from softsurv.exact.joint.kernels import join_pairs, join_triples, price_pairs
from softsurv.exact.joint.scratch import (
    JointScratch,
    both_ways,
    new_rows,
    new_scratch,
    pairs_of_cells,
    values_of_sides,
)
from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.kernels.views import Packed
from softsurv.exact.nesting import Splits
from softsurv.exact.problem import SearchArrays
from softsurv.exact.tree import CodeTree, TreeBuilder
from softsurv.stopping import StopSignal

DEEPEST = 3
"""Depth of the trees that sums over three features compare."""


@dataclass
class JointRun:
    """Search by joint sums over a prepared problem; what was summed once serves all limits.

    Parameters
    ----------
    problem : Packed
        The problem, with the address of the leaf cost.
    rows : (R,) int32
        Rows to look at.
    price : Entry
        The compiled leaf cost.
    control : (8,) int64
        Stop flag and counts.
    depth : int
        Deepest tree, at most `DEEPEST`.
    n_jobs : int
        Threads. The tree does not depend on it.
    """

    problem: Packed
    rows: NDArray[np.int32]
    price: Entry
    control: IntArray
    depth: int = 0
    n_jobs: int = 1
    complete: int = field(default=0, init=False)
    """Depth down to which the tables are complete."""
    values: list[float] = field(default_factory=list, init=False)
    """Objective of the best tree at the end of each stage."""

    def __post_init__(self) -> None:
        self.joint, self.split_code = new_rows(self.problem.value, self.rows, self.control)
        self._packed = Packed(self.joint)
        self._stump = self.joint.leaf
        self._two = values_of_sides(self.joint.leaf, self._stump)
        self._whole = float(self._costs(self.joint.total[None])[0])
        self._leaves = 1

    # -- solving -------------------------------------------------------------------------------------------------
    def solve(self, leaves: int, upper: float, stop: StopSignal) -> float:
        """Fill the tables as far as the trees need them or time allows; a lower bound for trees within the limits.

        Parameters
        ----------
        leaves : int
            Most leaves.
        upper : float
            Only trees below this are wanted; all of them are compared anyway.
        stop : StopSignal
        """
        self._leaves, self.values = leaves, []
        if self.complete < min(self.depth, 2):
            stop.stage(stop.grace)
            self._join_pairs()
            self.values.append(self.incumbent)
        if self.complete < self.depth and stop.stage():
            self._join_triples()
        self.values.append(self.incumbent)
        return self.proven()

    def _join_pairs(self) -> None:
        self.joint.next[:] = self.joint.done[:] = 0
        self.joint.leaf[:] = np.inf
        scratch = [new_scratch(self.joint) for _ in range(self.n_jobs)]
        self._in_threads(join_pairs, scratch)
        price_pairs(self.problem, self._packed, Packed(scratch[0]))
        self._read(self.joint.leaf, 2)

    def _join_triples(self) -> None:
        self.joint.next[1] = 0
        scratch = [new_scratch(self.joint) for _ in range(self.n_jobs)]
        self._in_threads(join_triples, scratch)
        self._read(np.minimum.reduce([one.stump for one in scratch]), DEEPEST)

    def _in_threads(self, work: Entry, scratch: list[JointScratch]) -> None:
        packed = [Packed(one) for one in scratch]
        others = [threading.Thread(target=work, args=(self.problem, self._packed, one)) for one in packed[1:]]
        for thread in others:
            thread.start()
        work(self.problem, self._packed, packed[0])
        for thread in others:
            thread.join()

    def _read(self, stump: FloatArray, depth: int) -> None:
        """Take over the stumps (4, F, F) that trees of a depth need; some are missing where time ran out."""
        self._stump = both_ways(stump)
        self._two = values_of_sides(self.joint.leaf, self._stump)
        if not self.control[STOP]:
            self.complete = depth

    @property
    def done(self) -> float:
        """Share of the sums that are there."""
        return min(1.0, float(self.joint.next[1]) / max(len(self.joint.pair), 1))

    @property
    def incumbent(self) -> float:
        """Objective of the best tree so far, without the constant."""
        return self._value(self.depth, self._leaves)[0]

    def proven(self) -> float:
        """Lower bound, without the constant: that of equivalent points until all trees are compared."""
        if self.depth <= self.complete:
            return self.incumbent
        problem: SearchArrays = self.problem.value
        return min(float(problem.floor[self.rows].sum()) + problem.complexity, self.incumbent)

    # -- reading -------------------------------------------------------------------------------------------------
    def _value(self, depth: int, leaves: int) -> tuple[float, int, int]:
        """The best tree within limits: its objective, its first split or -1, and the leaves of its left side."""
        best, most = (self._whole, -1, 0), 1 << max(depth - 1, 0)
        for left in range(max(1, leaves - most), min(most, leaves - 1) + 1):
            costs = self._two[0, left] + self._two[1, min(leaves - left, most)]
            if costs.min(initial=math.inf) < best[0] - self._tolerance:
                best = float(costs.min()), int(costs.argmin()), left
        return best

    def _fewest(self, values: FloatArray) -> int:
        """The fewest leaves with a value as good as the last of all values (L,), those with 1 to L leaves."""
        return int(np.argmax(values <= values[-1] + self._tolerance)) + 1

    def tree(self, sums: FloatArray, splits: Splits) -> CodeTree:
        """The best tree within the limits of the latest call of `solve`.

        Parameters
        ----------
        sums : (U, K)
            Statistics of the distinct rows as given.
        splits : Splits
            The split of the given features that each global code is.
        """
        builder = TreeBuilder()
        self.add_tree(builder, np.ones(len(sums), np.bool_), sums, splits)
        return builder.tree()

    def add_tree(self, builder: TreeBuilder, rows: BoolArray, sums: FloatArray, splits: Splits) -> int:
        """Add the best tree of some rows (U,) to a builder and return its node."""
        return self._grow(builder, rows, self.root()[1], (), sums, splits)

    def _grow(
        self,
        builder: TreeBuilder,
        rows: BoolArray,
        leaves: int,
        path: tuple[tuple[int, int], ...],
        sums: FloatArray,
        splits: Splits,
    ) -> int:
        """Add the tree of some rows, below splits with the sides taken, to the builder and return its node.

        No function inside another: one that calls itself would keep the tables of this run until garbage is collected.
        """
        own = sums[rows].sum(axis=0)
        split, left_leaves = self._choose(rows, leaves, path)
        if split < 0:
            return builder.add(own)
        code, goes_left = int(self.split_code[split]), self.goes_left(split)
        here = builder.add(own, int(splits.feature[code]), int(splits.code[code]))
        sides = [
            (rows & goes_left, left_leaves, (*path, (split, 0))),
            (rows & ~goes_left, leaves - left_leaves, (*path, (split, 1))),
        ]
        if splits.swapped[code]:
            sides.reverse()
        builder.connect(here, *(self._grow(builder, *side, sums, splits) for side in sides))
        return here

    def root(self) -> tuple[int, int, int]:
        """The first split of the best tree, -1 at a leaf; the leaves of the tree, and those of its left side."""
        values = [self._value(self.depth, most)[0] for most in range(1, self._leaves + 1)]
        leaves = self._fewest(np.array(values))
        return (self._value(self.depth, leaves)[1], leaves, self._value(self.depth, leaves)[2])

    def goes_left(self, split: int) -> BoolArray:
        """Which of the distinct rows (U,) go left at a split."""
        problem: SearchArrays = self.problem.value
        code = int(self.split_code[split])
        feature = problem.feature_of[code]
        column = problem.gcode[:, feature]
        return np.asarray(column == code if problem.nominal[feature] else column <= code)

    def promise(self, n_codes: int) -> FloatArray:
        """Cost of the best tree with each split first, by global code (G,)."""
        promise = np.full(n_codes, np.inf)
        promise[self.split_code] = self._two[:, 4].sum(axis=0)
        return promise

    def over(self, rows: BoolArray) -> JointRun:
        """The same search over some of the distinct rows (U,)."""
        return JointRun(self.problem, self.rows[rows[self.rows]], self.price, self.control, self.depth, self.n_jobs)

    def _choose(self, rows: BoolArray, leaves: int, path: tuple[tuple[int, int], ...]) -> tuple[int, int]:
        """Split of some rows and the leaves of its left side; -1 at a leaf."""
        if leaves == 1:
            return -1, 0
        if not path:
            return self._value(self.depth, leaves)[1:]
        if len(path) == 1:
            return self._second(*path[0], leaves)
        return self._last(rows[self.rows]), 1

    def _second(self, split: int, side: int, leaves: int) -> tuple[int, int]:
        """The split below a side of the root, with the leaves of its left side."""
        leaves = self._fewest(self._two[side, 1 : leaves + 1, split])
        if leaves == 1:
            return -1, 0
        leaf, stump = (table[2 * side : 2 * side + 2, split] for table in (self.joint.leaf, self._stump))
        second = int(pairs_of_cells(leaf, stump)[leaves - 2].argmin())
        right_has_two = leaf[0, second] + stump[1, second] <= stump[0, second] + leaf[1, second]
        return second, 1 if leaves == 2 or (leaves == 3 and right_has_two) else 2

    def _last(self, rows: BoolArray) -> int:
        """The best split of some of the rows to look at (R,), or -1: the tables hold its cost and not its place."""
        joint, stats, split = self.joint, self.joint.stats[rows], 0
        left = np.empty((len(self.split_code), stats.shape[1]))
        for f, n_bins in enumerate(joint.n_bins.tolist()):
            bins, n_splits = joint.code[f][rows], int(joint.split_start[f + 1] - joint.split_start[f])
            one = np.stack([np.bincount(bins, column, n_bins) for column in stats.T], axis=1)
            left[split : split + n_splits] = (one.cumsum(axis=0) if joint.chained[f] else one)[:n_splits]
            split += n_splits
        whole = stats.sum(axis=0)
        costs = self._costs(left) + self._costs(whole - left)
        leaf = float(self._costs(whole[None])[0])
        return int(costs.argmin()) if costs.min(initial=math.inf) < leaf - self._tolerance else -1

    @property
    def _tolerance(self) -> float:
        problem: SearchArrays = self.problem.value
        return problem.tolerance

    def _costs(self, sums: FloatArray) -> FloatArray:
        """Cost of leaves (L,) from the sums (L, W) that the search has of them."""
        batch, out = np.ascontiguousarray(sums.T), np.empty(len(sums))
        self.price(self.problem, batch, len(sums), len(sums), out)
        return out
