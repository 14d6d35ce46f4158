"""The search by cuts from outside: depth by depth, and the tree read out of what it keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.exact.cuts.node import search_cuts
from softsurv.exact.cuts.scratch import Cuts, new_cuts, sort_rows, take_rows
from softsurv.exact.kernels.cache import MAX_LEAVES
from softsurv.exact.kernels.nodes import LEAF, UNKNOWN
from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.kernels.views import Packed
from softsurv.exact.nesting import Splits
from softsurv.exact.problem import SearchArrays
from softsurv.exact.tree import CodeTree, TreeBuilder
from softsurv.stopping import StopSignal

READING, MOST_READING = 4.0, 0.25
"""Time kept for reading the tree, whose last splits are found again: a multiple of the time that sorting the rows
takes, at most a share of the time left."""


@dataclass
class CutRun:
    """Search by cuts over a prepared problem.

    Parameters
    ----------
    problem : Packed
        The problem, with the addresses of the compiled search.
    rows : (R,) int32
        Rows to look at.
    depth : int
        Deepest tree.
    similar : bool
        Whether the bound of similar support holds.
    control : (8,) int64
        Stop flag and counts.
    """

    problem: Packed
    rows: NDArray[np.int32]
    depth: int
    similar: bool
    control: IntArray
    values: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        given: SearchArrays = self.problem.value
        bare = given._replace(complexity=0.0, use_size=False)
        self._bare = Packed(bare)
        self.cuts: Cuts = new_cuts(bare, self.depth, given.complexity, given.use_size, self.similar, self.control)
        self._packed = Packed(self.cuts)
        self._best: tuple[int, int, IntArray] = 0, 1, np.array([UNKNOWN, LEAF], np.int64)
        self._limit = 0
        self._floor = float(given.floor[self.rows].sum()) + given.complexity
        self._total = max(int(self.cuts.code[:, self.rows].max(axis=1, initial=0).sum()), 1)

    # -- solving -------------------------------------------------------------------------------------------------
    def solve(self, leaves: int, upper: float, stop: StopSignal) -> float:
        """Search trees of ever more splits; a lower bound for all trees within the limits.

        Parameters
        ----------
        leaves : int
            Most leaves.
        upper : float
            Only trees below this are wanted.
        stop : StopSignal
        """
        begin = stop.seconds
        sort_rows(self.cuts, self.rows)
        with stop.keeping(min(READING * (stop.seconds - begin), MOST_READING * max(stop.left, 0.0))):
            return self._solve(leaves, upper, stop)

    def _solve(self, leaves: int, upper: float, stop: StopSignal) -> float:
        stop.stage(stop.grace)
        value = self._floor
        for limit in range(min(2, self.depth), self.depth + 1):
            self._limit = limit
            self.cuts.state[:] = -math.inf
            most = min(leaves, 1 << self._limit)
            # no upper bound at first: there must be a tree even where none is below it
            best = min([upper, *self.values]) if self.values else math.inf
            value = search_cuts(self._bare, self._packed, 0, len(self.rows), max(self._limit, 2), most, best)
            if self.cuts.tree[0, 1] != UNKNOWN:
                self.values.append(value)
                self._best = self._limit, most, self.cuts.tree[0].copy()
            if self.control[STOP] or (self._limit < self.depth and not stop.stage()):
                return self.proven()
            self._try_first()
        return value

    def _try_first(self) -> None:
        """Let the next depth begin with the root of the best tree so far."""
        self.cuts.first[0] = -1
        choice = int(self._best[2][1])
        if choice >= 0:
            column, code = self._column(choice // MAX_LEAVES)
            present = np.unique(self.cuts.code[column, self.rows])
            self.cuts.first[0, column] = np.searchsorted(present, code)

    @property
    def incumbent(self) -> float:
        """Objective of the best tree so far, without the constant; inf before there is one."""
        now = float(self.cuts.state[0])
        return min([now if now > -math.inf else math.inf, *self.values])

    def proven(self) -> float:
        """Lower bound of the objective, without the constant."""
        if self._limit < self.depth:  # what is proven for shallower trees says nothing of deeper ones
            return self._floor
        return max(self._floor, min(float(self.cuts.state[1]), self.incumbent))

    @property
    def done(self) -> float:
        """Share of the root's cuts that are settled."""
        slots = self.cuts.slot[0, : self.cuts.waiting[0, 0]].copy()
        waiting = (self.cuts.span[2, slots] - self.cuts.span[1, slots] + 1).sum()
        return float(np.clip(1.0 - waiting / self._total, 0.0, 1.0))

    # -- reading -------------------------------------------------------------------------------------------------
    def tree(self, sums: FloatArray, splits: Splits) -> CodeTree:
        """The best tree.

        Parameters
        ----------
        sums : (U, K)
            Statistics of the distinct rows as given.
        splits : Splits
            The split of the given features that each global code is.
        """
        depth, leaves, choices = self._best
        builder, ordered = TreeBuilder(), self.cuts.order[: len(self.cuts.code), : len(self.rows)].copy()
        at_root = np.ones(len(sums), np.bool_), depth, leaves, 1, int(choices[1])
        self._grow(builder, ordered, *at_root, sums, splits)
        return builder.tree()

    def _grow(
        self,
        builder: TreeBuilder,
        ordered: NDArray[np.int32],
        rows: BoolArray,
        depth: int,
        leaves: int,
        node: int,
        choice: int,
        sums: FloatArray,
        splits: Splits,
    ) -> int:
        """Add the tree of some rows, a node in heap order of the best one, to the builder and return its node.

        No function inside another: one that calls itself would keep the scratch of this run until garbage is collected.
        """
        own = sums[rows].sum(axis=0)
        depth = min(depth, leaves - 1)
        leaves = min(leaves, 1 << depth)
        if choice == LEAF:
            return builder.add(own)
        split, left_leaves = divmod(choice, MAX_LEAVES)
        goes_left, choices = rows & self._goes_left(split), self._best[2]
        here = builder.add(own, int(splits.feature[split]), int(splits.code[split]))
        sides = [(goes_left, left_leaves, 2 * node), (rows & ~goes_left, leaves - left_leaves, 2 * node + 1)]
        if splits.swapped[split]:
            sides.reverse()
        below = []
        for side, most, at in sides:
            next_choice = int(choices[at]) if depth > 2 else self._stump(ordered, side, most)
            below.append(self._grow(builder, ordered, side, depth - 1, most, at, next_choice, sums, splits))
        builder.connect(here, *below)
        return here

    def _stump(self, ordered: NDArray[np.int32], rows: BoolArray, leaves: int) -> int:
        """Choice at a node of depth one or zero, of rows ``ordered`` in every column (P, R).

        At the root's level, whose scratch is in memory already: that of deeper ones may never have been touched.
        """
        if leaves == 1:
            return int(LEAF)
        search_cuts(self._bare, self._unstopped, 0, take_rows(self.cuts, ordered, rows), 2, 2, math.inf)
        return int(self.cuts.tree[0, 1])

    @cached_property
    def _unstopped(self) -> Packed:
        """The same scratch, where nobody sets the flag: a tree is read to its end."""
        return Packed(self.cuts._replace(control=np.zeros_like(self.control)))

    def _column(self, split: int) -> tuple[int, int]:
        """The column of a split, and its code there."""
        column = int(np.searchsorted(self.cuts.split, split, side="right")) - 1
        return column, split - int(self.cuts.split[column])

    def _goes_left(self, split: int) -> BoolArray:
        column, code = self._column(split)
        return self.cuts.code[column] <= code
