"""Good trees before the search, for losses that are no sums over leaves: local search from many starts.

Trees of least weighted error are found fast, by a rolling horizon (`first_trees.py`), one for each first split. None of
them was made for the area under the ROC hull, F1 or the Matthews correlation. So each is changed node by node while its
loss falls (`kernels/tree_changes.py`): a change is judged by the sums of all leaves, whatever the loss is. Different
first splits end in different places, and the best of some hundred is often the optimum. Nothing is proven by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.exact.entries import make_ready
from softsurv.exact.kernels.tree_changes import improve
from softsurv.exact.kernels.tree_rows import WIDTH, Goal, TreeRows
from softsurv.exact.kernels.views import Packed
from softsurv.exact.tree import CodeTree, TreeBuilder
from softsurv.exact.vector_search import VectorSearch
from softsurv.stopping import StopSignal

MOST_WORK = 2.5e8
"""Additions that the changes of all first trees may take: a second or so."""

HORIZON = 3
"""Longer horizon: depth of the best trees that a first tree is put together from. The shorter one is two."""

FEW = 4
"""First splits that get the longer horizon before all get the shorter one."""


class LocalSearch:
    """Changes of whole trees for one training set.

    Parameters
    ----------
    search : VectorSearch
        Its statistics are the weights of negatives and positives.
    kind : int
        The loss: AREA, F1 or MATTHEWS of `kernels/tree_rows.py`.
    leaves : int
        Most leaves.
    share : float
        Largest false-positive rate of the area.
    price : float
        Cost per leaf.
    work : float
        Additions that it may take at most.
    stop : StopSignal
    """

    def __init__(
        self, search: VectorSearch, kind: int, leaves: int, stop: StopSignal, *, share: float = 1.0,
        price: float = 0.0, work: float = MOST_WORK,
    ) -> None:  # fmt: skip
        make_ready([improve], "the local search over whole trees", stop)
        self.search, self.leaves, self.stop = search, leaves, stop
        problem, (negatives, positives) = search.rows.problem, search.totals
        limited = problem.use_size
        size = problem.stats[:, -1] if limited else np.ones(len(problem.stats))
        goal = Goal(
            kind, share, float(negatives), float(positives), price, search.depth, leaves,
            float(problem.min_leaf) if limited else 1.0,
        )  # fmt: skip
        self.work = np.array([work])
        self.rows = _new_rows(search, np.column_stack([problem.stats[:, :2], size]), goal, self.work)
        self.packed = Packed(self.rows)
        self._is_large = _leaves_enough(self.rows)

    def improved(self, tree: CodeTree) -> float:
        """The loss of a tree once no change lowers it, or work has run out; `tree` then is the one with that loss."""
        self.rows.split[:] = -1
        self._write(tree, 0, 0)
        return float(improve(self.packed))

    @property
    def tree(self) -> CodeTree:
        """The latest tree, with its sums."""
        builder = TreeBuilder()
        self._read(builder, 0, self.search.rows.rows)
        return builder.tree()

    def first_trees(self, directions: Sequence[FloatArray]) -> Iterator[float]:
        """Losses of trees from each first split, the most promising first, with weights in several directions."""
        depth = self.search.depth
        if depth < 2:
            return
        far = max(min(HORIZON, depth - 1), 2)  # a search as deep as the trees would be the one that they are to shorten
        all_at_once = [(2, slice(None))]
        parts = [(far, slice(FEW)), *all_at_once, (far, slice(FEW, None))] if far > 2 else all_at_once
        for part, (horizon, some) in enumerate(parts):
            for k, direction in enumerate(directions):
                if (part, k) != (0, 0) and (self.work[0] < 0 or not self.stop.stage()):
                    return
                self.search.use(direction)
                best = self.search.best(self.stop, leaves=self.leaves, depth=far)
                if part == 0:
                    self.stop.stage()  # where time is over the tree stays as it is
                    yield self.improved(best.tree.tree)
                for first in self._starts()[some] if horizon < depth else []:
                    if self.work[0] < 0 or not self.stop.stage():
                        return
                    yield self.improved(self.search.search.rolling(depth, horizon, self.stop, self.leaves, first))

    def _starts(self) -> list[int]:
        """First splits whose sides are large enough, the most promising first."""
        return [first for first in self.search.search.promising(self.stop).tolist() if self._is_large[first]]

    def _write(self, tree: CodeTree, node: int, at: int) -> None:
        """The splits below a node of a tree, in heap order."""
        if tree.feature[node] < 0:
            return
        self.rows.split[at], left, right = self.search.search.splits.of_branch(*tree.branch(node))
        self._write(tree, left, 2 * at + 1)
        self._write(tree, right, 2 * at + 2)

    def _read(self, builder: TreeBuilder, at: int, rows: NDArray[np.int32]) -> int:
        """Add the tree below a place in heap order, with the sums of its rows; return its node."""
        problem, split = self.search.rows.problem, self.rows.split
        sums = problem.stats[rows].sum(axis=0)
        if at >= len(split) or split[at] < 0:
            return builder.add(sums)
        feature, code, swapped = self.search.split(int(split[at]))
        node, f = builder.add(sums, feature, code), problem.feature_of[split[at]]
        codes = problem.gcode[rows, f]
        left = codes == split[at] if problem.nominal[f] else codes <= split[at]
        sides = [(2 * at + 1, rows[left]), (2 * at + 2, rows[~left])]
        if swapped:
            sides.reverse()
        builder.connect(node, *(self._read(builder, *side) for side in sides))
        return node


def _leaves_enough(rows: TreeRows) -> BoolArray:
    """Which splits (G,) leave enough of all rows on both sides."""
    total = float(rows.sums[:, 2].sum())
    left = np.zeros(len(rows.feature_of))
    for f, nominal in enumerate(rows.nominal):
        first, end = int(rows.code_start[f]), int(rows.code_start[f + 1])
        sizes = np.bincount(rows.gcode[:, f] - first, rows.sums[:, 2], end - first)
        left[first:end] = sizes if nominal else sizes.cumsum()
    return np.minimum(left, total - left) >= rows.goal.least


def _new_rows(search: VectorSearch, sums: FloatArray, goal: Goal, work: FloatArray) -> TreeRows:
    """What the compiled part reads, and its scratch."""
    problem, full = search.rows.problem, 1 << search.depth
    u, g = len(problem.gcode), len(problem.feature_of)

    def numbers(*shape: int) -> FloatArray:
        return np.empty(shape)

    def whole(n: int) -> NDArray[np.int32]:
        return np.empty(n, np.int32)

    return TreeRows(
        problem.gcode, problem.code_start, problem.nominal, problem.feature_of, sums, goal,
        split=whole(full - 1), flag=search.search.control, work=work,
        members=whole(u), ordered=whole(u), start=whole(g + 1), end=whole(u), other_end=whole(u),
        leaf=numbers(full + 4, WIDTH), order=whole(full + 4), place=whole(2 * full),
        single=numbers(WIDTH, g), both=numbers(WIDTH, g), rest=numbers(WIDTH, g), added=numbers(g, WIDTH),
        error=numbers(g), whole=numbers(3, WIDTH), found=np.empty(3, np.int64),
    )  # fmt: skip
