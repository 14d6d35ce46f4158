"""The tree of largest area under the ROC convex hull, or under its leftmost part, by branch and bound on whole trees.

The ROC convex hull of a tree ranks its leaves by their share of positives (paper `gosdt`, section 2.1); with FN and FP
the errors after each leaf, 1 - AUC is the area under the curve of the miss rate FN / P against the false-positive rate
FP / N (eq. 2), and the partial loss for a share s is the area up to a rate of s (appendix C.5). It is no sum over
leaves: the rank of a leaf depends on the others. What is a sum over leaves is the least weighted misclassification

    c_T(u, v) = min over labels of  u FN + v FP  =  sum over leaves of min(u p_leaf, v n_leaf),

and for every direction (u, v) > 0 the curve of T lies on or above the line u FN + v FP = c_T(u, v) and touches it, so
the area of T is that under the upper envelope of these lines.

*Bound.* A partly grown tree has closed leaves and open nodes with some depth left. In each direction the least cost
of what an open node may become, c*(u, v), is a separable minimum, found for the node alone; the sum of c over the
closed leaves and of c* over the open nodes is at most c_T of every tree that grows from it. So the area under the
envelope of those lines, for finitely many directions, is a lower bound of the loss. Theorem 2.1 of the paper is the
case c* = 0 (open nodes become pure), and its equivalent-points bound (Theorem C.3) the case of unlimited depth; the
bound here knows the depth that is left. Growing an open node only raises c, so the bound is hierarchical (Theorem 2.2).

Best-first search on this bound, the most promising partly grown tree next: the least bound in the queue is proven at
any time, which gives the gap where time ends. Splitting never makes the area larger (Lemma C.1), so without a cost per
leaf every open node is split where it can be.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray
from softsurv.exact.entries import make_ready
from softsurv.exact.kernels.tree_changes import improve
from softsurv.exact.kernels.tree_rows import AREA
from softsurv.exact.tree import CodeTree, LabelledTree, TreeBuilder
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.whole_trees.auc_kernels import best_last_split, curve_area, directional, least_area
from softsurv.exact.whole_trees.auc_nodes import NODE_BYTES, AucNodes, PartTree
from softsurv.exact.whole_trees.improve import LocalSearch
from softsurv.results import Status
from softsurv.stopping import Stopped, StopSignal

EPSILON = 1e-12
"""Areas closer than this are the same."""

SOME_DIRECTIONS = [12, 4, 20, 8, 16]
"""Directions in which the search begins with trees of least weighted error, of those of `auc_nodes`."""

OFTEN = 100.0
"""How many additive searches this search takes, at the least."""


@dataclass(frozen=True)
class AucResult:
    """The best tree found, its loss with the cost of its leaves, and a lower bound of the loss of all trees."""

    tree: LabelledTree
    loss: float
    bound: float
    status: Status
    expanded: int


LOOPS = (directional, best_last_split, least_area, curve_area)
"""Loops that the search calls."""


class AucSearch:
    """Branch and bound for one training set.

    Parameters
    ----------
    search : VectorSearch
        Its statistics are the weights of negatives and positives, its objectives `ERRORS`.
    share : float
        Largest false-positive rate of interest; 1 for the whole curve.
    complexity : float
        Cost per leaf, in the unit of the loss.
    leaves : int, optional
        Most leaves.
    memory_limit : float
        Bytes for open nodes and partly grown trees.
    """

    def __init__(
        self,
        search: VectorSearch,
        share: float = 1.0,
        complexity: float = 0.0,
        leaves: int | None = None,
        memory_limit: float = 1e9,
    ) -> None:
        self.search, self.share, self.complexity = search, share, complexity
        self.most = min(leaves or 1 << search.depth, 1 << search.depth)
        self.negatives, self.positives = search.totals
        self.balanced = np.array([1.0 / self.positives, 1.0 / self.negatives])
        self.nodes = AucNodes(search, memory_limit)
        self.local: LocalSearch | None = None
        self.expanded = 0

    def solve(self, stop: StopSignal) -> AucResult:
        """The best tree, or the best so far with its bound; the time of ``stop`` does not include compilation."""
        loops = (*LOOPS, improve) if self._is_long() else LOOPS
        make_ready(loops, "the search for the largest AUC", stop)
        return self.search.run(lambda: self._solve(stop), stop)

    def _is_long(self) -> bool:
        """Whether trees from a local search come first."""
        return self.search.search.is_long(self.search.depth, OFTEN)

    def _solve(self, stop: StopSignal) -> AucResult:
        self.nodes.stop, self.proven = stop, self.complexity
        stop.stage(stop.grace)
        everything = self.search.rows.rows
        self.best, self.loss = self.nodes.close(everything), np.inf
        self._offer(self.best)
        try:
            self._offer_accurate(stop)
            if not stop.stage():
                raise Stopped(stop.reason)
            if self._is_long():
                self._offer_changed(stop)
                if not stop.stage():
                    raise Stopped(stop.reason)
                self._offer_weighted(stop)
            self._grow_best_first(self.nodes.open(everything, self.search.depth))
        except Stopped as stopped:
            return self._result(min(self.proven, self.loss), stopped.status)
        return self._result(self.loss, Status.OPTIMAL)

    def _grow_best_first(self, root: PartTree) -> None:
        """Grow the tree with the least bound, until none is below the incumbent."""
        self.proven = max(self.proven, self._bound(root))
        self._dive(root)
        queue: list[tuple[float, int, PartTree]] = [(self._bound(root), 0, root)] if root.open else []
        number = 0
        while queue and queue[0][0] < self.loss - EPSILON:
            self.proven = max(self.proven, queue[0][0])
            self.nodes.check()  # a tree may grow from nodes that are all known
            _, _, tree = heapq.heappop(queue)
            for child in self._grow(tree):
                self._offer(child)
                bound = self._bound(child)
                if child.open and bound < self.loss - EPSILON:
                    number += 1
                    self.nodes.memory_left -= NODE_BYTES * (self.search.depth + 2)
                    heapq.heappush(queue, (bound, -number, child))

    # -- growing -------------------------------------------------------------------------------------------------
    def _grow(self, tree: PartTree) -> list[PartTree]:
        """Partly grown trees with the next open node closed or split in every way; whole ones are offered instead."""
        self.expanded += 1
        ends = tree.leaves()
        node = max((end for end in ends if end.depth > 0), key=lambda end: (end.depth, end.sums[:2].sum()))
        last = sum(end.depth > 0 for end in ends) == 1
        closed = tree.with_leaf(node, self.nodes.close(node.rows))
        grown = []
        if last:
            self._offer(closed)
        elif self.complexity > 0 or self.most < 1 << self.search.depth:
            grown.append(closed)  # else a split is no worse (Lemma C.1)
        if len(ends) >= self.most:
            return grown
        if last and node.depth == 1:
            self._split_last(tree, node, ends)
            return grown
        for split in self.nodes.splits(node):
            left, right = (self.nodes.open(side, node.depth - 1) for side in self.nodes.sides(node.rows, split))
            grown.append(tree.with_leaf(node, replace(node, depth=0, split=int(split), left=left, right=right)))
        return grown

    def _dive(self, root: PartTree) -> None:
        """A first whole tree: the child with the least bound, again and again."""
        tree = root
        while tree.open:
            children = self._grow(tree)
            if not children:
                return
            tree = min(children, key=self._bound)
        self._offer(tree)

    def _offer_accurate(self, stop: StopSignal) -> None:
        """Offer the tree of least balanced error of depth two: a good incumbent after a moment."""
        self._minimise(self.balanced, stop, 2)

    def _offer_changed(self, stop: StopSignal) -> None:
        """Offer trees that were changed node by node while their loss fell, from many starts."""
        self.local = LocalSearch(self.search, AREA, self.most, stop, share=self.share, price=self.complexity)
        for loss in self.local.first_trees([self.balanced]):
            self._offer_better(loss)
        self.local.work[0] = np.inf  # no limit on changes of single trees from now on

    def _offer_weighted(self, stop: StopSignal) -> None:
        """Offer trees of least error weighted in several directions, and bound the loss by what they cost.

        No tree costs less in any of these directions: that bounds the area as for a partly grown tree.
        """
        directions = self.nodes.directions[SOME_DIRECTIONS]
        cost = np.zeros(len(directions))
        for depth in range(2, self.search.depth + 1):
            for k, direction in enumerate(directions):
                cost[k] = self._minimise(direction, stop, depth)
                self.nodes.check()
        area = least_area(directions, cost, self.share, self.positives, self.negatives)
        self.proven = max(self.proven, float(area / self.share + self.complexity) - EPSILON)

    def _minimise(self, direction: FloatArray, stop: StopSignal, depth: int) -> float:
        """Offer the tree of a depth that costs least in a direction, and return a lower bound of that cost."""
        search = self.search
        search.use(direction)
        best = search.best(stop, leaves=min(self.most, 1 << min(depth, search.depth)), depth=depth)
        self._offer(self._part(best.tree.tree))
        if self.local is not None:
            self._offer_better(self.local.improved(best.tree.tree))
        return best.bound

    def _offer_better(self, loss: float) -> None:
        """Offer the latest tree of the local search if it is better."""
        if self.local is not None and loss < self.loss - EPSILON:
            self._offer(self._part(self.local.tree))

    def _part(self, tree: CodeTree) -> PartTree:
        """A whole tree as this search has it."""

        def grow(node: int, rows: NDArray[np.int32]) -> PartTree:
            """The part of the tree below a node."""
            here = self.nodes.close(rows)
            if tree.feature[node] < 0:
                return here
            split, *below = self.search.search.splits.of_branch(*tree.branch(node))
            left, right = (grow(*side) for side in zip(below, self.nodes.sides(rows, split), strict=True))
            return replace(here, split=split, left=left, right=right)

        return grow(0, self.search.rows.rows)

    def _split_last(self, tree: PartTree, node: PartTree, ends: list[PartTree]) -> None:
        """Offer the tree with the best split of its only open node."""
        nodes = self.nodes
        nodes.load(node.rows, 1)
        closed = np.array([end.sums[:2] for end in ends if end is not node]).reshape(-1, 2)
        _, chosen = best_last_split(
            nodes.single, nodes.local.total, closed, self.share, self.positives, self.negatives, nodes.allowed()
        )
        if chosen >= 0:
            split = int(nodes.local.split_code[chosen])
            left, right = (nodes.close(side) for side in nodes.sides(node.rows, split))
            self._offer(tree.with_leaf(node, replace(node, depth=0, split=split, left=left, right=right)))

    def _offer(self, tree: PartTree) -> None:
        """Take a whole tree if it is better."""
        if tree.open:
            return
        leaves = tree.leaves()
        area = curve_area(np.array([end.sums for end in leaves]), self.share, self.positives, self.negatives)
        loss = area / self.share + self.complexity * len(leaves)
        if loss < self.loss - EPSILON:
            self.best, self.loss = tree, loss

    # -- nodes ---------------------------------------------------------------------------------------------------
    def _bound(self, tree: PartTree) -> float:
        """Lower bound for all trees that grow from this one."""
        leaves = tree.leaves()
        cost = np.sum([end.cost for end in leaves], axis=0)
        area = least_area(self.nodes.directions, cost, self.share, self.positives, self.negatives)
        return float(area / self.share + self.complexity * len(leaves)) - EPSILON

    def _result(self, bound: float, status: Status) -> AucResult:
        """The best tree with labels: leaves with a larger share of positives than all rows are called positive."""
        prior = self.positives / (self.positives + self.negatives)
        builder, label = TreeBuilder(), list[int]()

        def read(node: PartTree) -> int:
            """Add a node and all below it to the builder; return its place."""
            if node.left is None or node.right is None:
                label.append(int(node.sums[1] > prior * node.sums[:2].sum()))
                return builder.add(node.sums)
            feature, code, swapped = self.search.split(node.split)
            here = builder.add(node.sums, feature, code)
            sides = (node.right, node.left) if swapped else (node.left, node.right)
            builder.connect(here, *(read(side) for side in sides))
            return here

        read(self.best)
        return AucResult(LabelledTree(builder.tree(), np.array(label)), self.loss, bound, status, self.expanded)
