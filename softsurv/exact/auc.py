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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.exact.auc_kernels import best_last_split, curve_area, directional, least_area
from softsurv.exact.clock import Clock
from softsurv.exact.pareto.search import ParetoSearch
from softsurv.exact.pareto.tree import SplitTree
from softsurv.results import Status

FloatArray = NDArray[np.float64]

N_DIRECTIONS = 24
"""Lines that bound the curve; more make the bound tighter and dearer."""

EPSILON = 1e-12
"""Areas closer than this are the same."""


@dataclass(frozen=True)
class Node:
    """A node of a partly grown tree: open with some depth left, closed, or split.

    Attributes
    ----------
    mask : (W,) uint64
        Its rows.
    depth : int
        Depth left; 0 where it is closed.
    cost : (G,)
        Least cost of what it may become, per direction.
    sums : (2,)
        Its negatives and positives.
    split, left, right
        Where it is split.
    """

    mask: NDArray[np.uint64]
    depth: int
    cost: FloatArray
    sums: FloatArray
    split: int = -1
    left: Node | None = None
    right: Node | None = None

    def leaves(self) -> list[Node]:
        """Open and closed ends from left to right."""
        return [self] if self.left is None or self.right is None else self.left.leaves() + self.right.leaves()

    @property
    def open(self) -> bool:
        """Whether an end may still be split."""
        return any(end.depth > 0 for end in self.leaves())

    def with_leaf(self, old: Node, new: Node) -> Node:
        """The tree with one end replaced."""
        if self is old:
            return new
        if self.left is None or self.right is None:
            return self
        left, right = self.left.with_leaf(old, new), self.right.with_leaf(old, new)
        return self if left is self.left and right is self.right else replace(self, left=left, right=right)


@dataclass(frozen=True)
class AucResult:
    """The best tree found, its loss with the cost of its leaves, and what no tree falls below."""

    tree: SplitTree
    loss: float
    bound: float
    status: Status
    expanded: int


class AucSearch:
    """Branch and bound for one training set.

    Parameters
    ----------
    search : ParetoSearch
        Whose statistics are the weights of negatives and positives.
    share : float
        Largest false-positive rate of interest; 1 for the whole curve.
    complexity : float
        Cost per leaf, in the unit of the loss.
    leaves : int, optional
        Most leaves.
    """

    def __init__(
        self, search: ParetoSearch, share: float = 1.0, complexity: float = 0.0, leaves: int | None = None
    ) -> None:
        self.search, self.share, self.complexity = search, share, complexity
        self.most = min(leaves or 1 << search.depth, 1 << search.depth)
        self.negatives, self.positives = search.statistics.sum(axis=0)
        angle = (np.arange(N_DIRECTIONS) + 0.5) / N_DIRECTIONS * np.pi / 2
        self.directions = np.column_stack([np.cos(angle) / self.positives, np.sin(angle) / self.negatives])
        self.memory: dict[tuple[bytes, int], Any] = {}
        self.best, self.loss, self.expanded = self._close(search.problem.everything), np.inf, 0

    def solve(self, clock: Clock) -> AucResult:
        """The best tree, or the best so far with its bound."""
        root = self._open(self.search.problem.everything, self.search.depth)
        self._offer(self._close(root.mask))
        self._dive(root, clock)
        queue: list[tuple[float, int, Node]] = [(self._bound(root), 0, root)] if root.open else []
        number = 0
        while queue and queue[0][0] < self.loss - EPSILON:
            if clock.status != Status.OPTIMAL:
                return self._result(min(queue[0][0], self.loss), clock.status)
            _, _, tree = heapq.heappop(queue)
            for child in self._grow(tree):
                self._offer(child)
                bound = self._bound(child)
                if child.open and bound < self.loss - EPSILON:
                    number += 1
                    heapq.heappush(queue, (bound, -number, child))
        return self._result(self.loss, Status.OPTIMAL)

    # -- growing -------------------------------------------------------------------------------------------------
    def _grow(self, tree: Node) -> list[Node]:
        """Partly grown trees with the next open node closed or split in every way; whole ones are offered instead."""
        self.expanded += 1
        ends = tree.leaves()
        node = max((end for end in ends if end.depth > 0), key=lambda end: (end.depth, end.sums.sum()))
        last = sum(end.depth > 0 for end in ends) == 1
        closed = tree.with_leaf(node, self._close(node.mask))
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
        for split in self._splits(node):
            left = self.search.problem.bits[split] & node.mask
            right = node.mask & ~self.search.problem.bits[split]
            make = self._close if node.depth == 1 else lambda mask: self._open(mask, node.depth - 1)
            grown.append(tree.with_leaf(node, replace(node, depth=0, split=split, left=make(left), right=make(right))))
        return grown

    def _dive(self, root: Node, clock: Clock) -> None:
        """A first whole tree: the child with the least bound, again and again."""
        tree = root
        while clock.status == Status.OPTIMAL and tree.open:
            children = self._grow(tree)
            if not children:
                return
            tree = min(children, key=self._bound)
        self._offer(tree)

    def _split_last(self, tree: Node, node: Node, ends: list[Node]) -> None:
        """Offer the tree with the best split of its only open node."""
        self._load(node.mask, 1)
        closed = np.array([end.sums for end in ends if end is not node]).reshape(-1, 2)
        _, chosen = best_last_split(
            self.search.scratch, closed, len(closed), self.share, self.positives, self.negatives, self._allowed()
        )
        if chosen >= 0:
            split = int(self.search.scratch.active[chosen])
            left, right = (self._close(m) for m in self._sides(node.mask, split))
            self._offer(tree.with_leaf(node, replace(node, depth=0, split=split, left=left, right=right)))

    def _offer(self, tree: Node) -> None:
        """Take a whole tree if it is better."""
        if tree.open:
            return
        leaves = tree.leaves()
        area = curve_area(np.array([end.sums for end in leaves]), self.share, self.positives, self.negatives)
        loss = area / self.share + self.complexity * len(leaves)
        if loss < self.loss - EPSILON:
            self.best, self.loss = tree, loss

    # -- nodes ---------------------------------------------------------------------------------------------------
    def _bound(self, tree: Node) -> float:
        """What no tree that grows from this one falls below."""
        leaves = tree.leaves()
        cost = np.sum([end.cost for end in leaves], axis=0)
        area = least_area(self.directions, cost, self.share, self.positives, self.negatives)
        return float(area / self.share + self.complexity * len(leaves)) - EPSILON

    def _load(self, mask: NDArray[np.uint64], depth: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        self.search.scratch.mask[1] = mask
        return directional(self.search.problem, self.search.scratch, 1, self.directions, depth > 1)

    def _open(self, mask: NDArray[np.uint64], depth: int) -> Node:
        """A node with so much depth left, and the least cost of what it may become."""
        if depth == 0:
            return self._close(mask)
        key = (mask.tobytes(), depth)
        if key not in self.memory:
            leaf, stump, whole = self._load(mask, depth)
            sums = self.search.scratch.total.copy()[:2]
            splits, allowed = self.search.scratch.active[: leaf.shape[1]].copy(), self._allowed()
            sides = (leaf if depth == 1 else stump).sum(axis=0)[allowed]
            cost = np.minimum(whole, sides.min(axis=0, initial=np.inf)) if len(sides) else whole
            splits = splits[allowed]
            if depth > 2 and len(splits):
                children = [[self._open(side, depth - 1).cost for side in self._sides(mask, s)] for s in splits]
                cost = np.minimum(whole, np.sum(children, axis=1).min(axis=0))
            self.memory[key] = (Node(mask, depth if len(splits) else 0, cost, sums), splits)
        node: Node = self.memory[key][0]
        return node

    def _splits(self, node: Node) -> NDArray[np.int64]:
        """Splits of an open node that leave enough rows on both sides."""
        self._open(node.mask, node.depth)
        return np.asarray(self.memory[node.mask.tobytes(), node.depth][1])

    def _close(self, mask: NDArray[np.uint64]) -> Node:
        """A leaf."""
        key = (mask.tobytes(), 0)
        if key not in self.memory:
            _, _, whole = self._load(mask, 0)
            self.memory[key] = Node(mask, 0, whole, self.search.scratch.total.copy()[:2])
        node: Node = self.memory[key]
        return node

    def _sides(self, mask: NDArray[np.uint64], split: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        bits = self.search.problem.bits[split]
        return mask & bits, mask & ~bits

    def _allowed(self) -> NDArray[np.bool_]:
        """Which active splits of the loaded subset leave enough rows on both sides."""
        scratch, problem = self.search.scratch, self.search.problem
        m = scratch.size[0]
        if problem.min_rows <= 0:
            return np.ones(m, dtype=np.bool_)
        rows = problem.row_count @ scratch.single[:, :m]
        total = problem.row_count @ scratch.total
        return np.asarray((rows >= problem.min_rows) & (total - rows >= problem.min_rows))

    def _result(self, bound: float, status: Status) -> AucResult:
        """The best tree with labels: leaves with a larger share of positives than all rows are called positive."""
        prior = self.positives / (self.positives + self.negatives)

        def read(node: Node) -> SplitTree:
            if node.left is None or node.right is None:
                return SplitTree(label=int(node.sums[1] > prior * node.sums.sum()))
            return SplitTree(int(self.search.used[node.split]), 0, read(node.left), read(node.right))

        return AucResult(read(self.best), self.loss, bound, status, self.expanded)
