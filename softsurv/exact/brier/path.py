"""Best trees of every size for the integrated Brier score: the search of `search.py` with a vector per node.

A node's value is the list of least losses with at most 1, 2, ..., K leaves; a split combines its children's lists by
min-plus convolution. Complexity plays no part, so the path answers every complexity at once, and `max_leaves` too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from softsurv.arrays import IntArray
from softsurv.exact.brier.base_case import IMPROVEMENT, solve_shallow
from softsurv.exact.brier.nodes import Node, Option, TreePlan, leaf_count, shallow_plan
from softsurv.exact.brier.search import BrierSearch
from softsurv.exact.brier.table import split_rows

Sizes = list[tuple[float, TreePlan | None]]
"""Least loss with at most k leaves and its plan, for k = 1, 2, ..."""


@dataclass
class SizePath:
    """Least loss for every number of leaves, over trees of limited depth."""

    search: BrierSearch
    cache: dict[tuple[tuple[int, int], int, int], Sizes] = field(default_factory=dict)
    incumbent: Sizes = field(default_factory=list)
    """Best trees of the whole training set so far: the result when a limit stops the search."""

    def solve(self, root: Node, depth: int, leaves: int) -> None:
        """Fill ``incumbent`` for the whole training set, shallow trees first."""
        for limit in range(min(2, depth), depth + 1):
            sizes = self.best(root, self.search.everyone, limit, leaves)
            self.incumbent = list(sizes)
            if limit >= self._useful(root, depth, leaves)[0]:
                break

    def best(self, node: Node, index: IntArray, depth: int, leaves: int) -> Sizes:
        """Least losses with 1, ..., ``leaves`` leaves; the list is shorter where more leaves cannot help."""
        depth, leaves = self._useful(node, depth, leaves)
        if depth == 0:
            return [(node.leaf, None)]
        known = self.cache.get((node.key, depth, leaves))
        if known is None:
            self.search.limits.check(len(self.cache))
            work = self._shallow if depth <= self.search.bounds.base_depth else self._deep
            known = work(node, index, depth, leaves)
            self.cache[node.key, depth, leaves] = known
        return known

    def _useful(self, node: Node, depth: int, leaves: int) -> tuple[int, int]:
        """The limits, lowered to what the rows of the node allow; a single leaf if it meets its lower bound."""
        leaves = min(leaves, int(node.size // self.search.rules.min_rows))
        if node.leaf <= node.bound + IMPROVEMENT:
            return 0, 1
        depth = max(min(depth, leaves - 1), 0)
        return depth, leaves if depth >= 31 else min(leaves, 2**depth)

    def _shallow(self, node: Node, index: IntArray, depth: int, leaves: int) -> Sizes:
        """Depth one or two: every pair of splits at once."""
        search = self.search
        loss, plan = solve_shallow(
            search.rows, index, search.rules._replace(complexity=0.0), depth, math.inf, search.no_floor
        )
        search.limits.check()  # a stopped one has not seen every pair
        sizes: Sizes = [(node.leaf, None)]
        for k in range(2, leaves + 1):
            improves = loss[k] < sizes[-1][0] - IMPROVEMENT
            sizes.append((float(loss[k]), shallow_plan(plan[k])) if improves else sizes[-1])
        return sizes

    def _deep(self, node: Node, index: IntArray, depth: int, leaves: int) -> Sizes:
        """Try every first split; one whose children's bounds improve no size is skipped."""
        sizes = list(self.best(node, index, depth - 1, leaves))
        sizes += [sizes[-1]] * (leaves - len(sizes))
        options, _ = self.search.children(index)
        for done, option in enumerate(options, start=1):
            self._try_split(option, index, depth, leaves, sizes)
            if index.size == self.search.rows.weight.size:
                self._report(sizes, done / len(options))
        return sizes

    def _try_split(self, option: Option, index: IntArray, depth: int, leaves: int, sizes: Sizes) -> None:
        """Take the best trees with a first split into ``sizes``."""
        split, (one, zero) = option
        left, right = _floors(one, leaves), _floors(zero, leaves)
        if not _improves(left, right, sizes):
            return
        ones, zeros = split_rows(self.search.rows.x, index, split)
        below = self.best(one, ones, depth - 1, leaves - 1)
        if _improves([loss for loss, _ in below], right, sizes):
            _combine(split, below, self.best(zero, zeros, depth - 1, leaves - 1), sizes)

    def chosen(self) -> tuple[float, TreePlan | None]:
        """The tree of the whole training set that is best with the cost of its leaves, and its objective."""
        complexity = self.search.rules.complexity
        return min(((loss + complexity * leaf_count(plan), plan) for loss, plan in self.incumbent), key=lambda x: x[0])

    def _report(self, sizes: Sizes, share: float) -> None:
        """Keep the best trees so far, and tell the caller."""
        self.incumbent = list(sizes)
        value, _ = self.chosen()
        self.search.note(value)
        if self.search.progress is not None:
            self.search.progress(share, min(self.search.root_floor(), value), value)


def _floors(node: Node, leaves: int) -> list[float]:
    """Lower bounds of a child's losses: exact as a leaf, the additive bound otherwise."""
    return [node.leaf, min(node.leaf, node.bound)] if leaves > 2 else [node.leaf]


def _improves(left: list[float], right: list[float], sizes: Sizes) -> bool:
    """Whether some number of leaves could become better with these bounds of the two sides.

    The last bound of a side holds for more leaves too; ``sizes`` never rises, so the fewest leaves decide.
    """
    return any(
        a + b < sizes[i + j + 1][0] - IMPROVEMENT
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if i + j + 1 < len(sizes)
    )


def _combine(split: int, one: Sizes, zero: Sizes, sizes: Sizes) -> None:
    """Min-plus convolution of the children's lists into ``sizes``, which stays non-increasing."""
    for i, (a, plan_one) in enumerate(one):
        for j, (b, plan_zero) in enumerate(zero):
            k = i + j + 2
            if k <= len(sizes) and a + b < sizes[k - 1][0] - IMPROVEMENT:
                better = (a + b, TreePlan(split, plan_one, plan_zero))
                for size in range(k - 1, len(sizes)):
                    if better[0] < sizes[size][0] - IMPROVEMENT:
                        sizes[size] = better
