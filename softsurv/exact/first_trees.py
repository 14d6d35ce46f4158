"""Good trees before the search: the rolling horizon.

The best tree of depth h is found long before one of depth d > h. Its first split is taken, then the first split of the
best tree of depth h below either side, and so on until no more than h levels are left, which are solved exactly
(`TreeReader.read`). That takes some 2 (d - h) times as long as the best tree of depth h. The search starts with this
tree as its incumbent, and proves it optimal or finds a better one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from softsurv.exact.kernels.cache import MAX_LEAVES
from softsurv.exact.kernels.nodes import LEAF
from softsurv.exact.kernels.views import Packed
from softsurv.exact.problem import Scratch
from softsurv.exact.reconstruct import TreeReader
from softsurv.exact.split_costs import show_prices
from softsurv.exact.tree import CodeTree

LONG_WORK = 3e8
"""Work (`depth_run.work_of`) from which on a search may take so long that a millisecond for a tree does not count."""


@dataclass(frozen=True)
class Found:
    """Best tree within limits: its first split, where known (a choice of `nodes`), and the search's objective of it.

    ``tree`` is the tree itself, if it has been read already.
    """

    depth: int
    leaves: int
    choice: float | None = None
    value: float = math.inf
    tree: CodeTree | None = None


def of_depth_two(
    base: ModuleType, packed: Packed, rows: NDArray[np.int32], scratch: Scratch
) -> tuple[Found, NDArray[np.int32]]:
    """The best tree of depth two by a base case, and the splits of the root by the best such tree under each."""
    problem, local = packed.value, scratch.local.value
    show_prices(problem.prices, problem.prices.full, local)
    base.solve_two(packed, rows, len(rows), 2, scratch.local)
    value, leaf, root = float(local.value[4]), float(local.value[1]), int(local.root[4])
    splits = local.split_code[: local.size[2]]
    promise = local.stump[:, : len(splits)].sum(axis=0)
    if problem.branching:
        prices = problem.prices
        promise += local.total[prices.column] * prices.full[prices.test_of[problem.feature_of[splits]]]
    order = splits[np.argsort(promise, kind="stable")]
    if root < 0 or value >= leaf - problem.tolerance:
        return Found(2, 4, LEAF, leaf), order
    return Found(2, 4, float(splits[root]) * MAX_LEAVES + 2, value), order


@dataclass
class Ahead:
    """The best tree by a rolling horizon so far.

    Attributes
    ----------
    reader : TreeReader
    objective : callable
        The search's objective of a tree.
    depth, leaves : int
        Limits of the trees.
    best : Found
    """

    reader: TreeReader
    objective: Callable[[CodeTree], float]
    depth: int
    leaves: int
    best: Found

    def look(self, solved: Found, horizon: int) -> None:
        """Read the tree by a horizon whose first split is that of ``solved``, and keep it if it is better."""
        below_leaf = solved.choice is None or solved.choice < 0
        if below_leaf or horizon >= self.depth or self.leaves <= 1 << horizon:
            return
        tree = self.reader.read(self.depth, self.leaves, solved.choice, horizon)
        value = self.objective(tree)
        if value < self.best.value:
            self.best = Found(self.depth, self.leaves, solved.choice, value, tree)
