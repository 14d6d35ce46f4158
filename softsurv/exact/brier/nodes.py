"""What the integrated-Brier-score search knows of its subproblems: nodes, plans, entries of the cache."""

from __future__ import annotations

import math
import threading
from typing import NamedTuple

from softsurv.arrays import IntArray
from softsurv.exact.brier.base_case import IMPROVEMENT

Key = tuple[int, int]


class Node(NamedTuple):
    """A subproblem: a set of rows."""

    key: Key
    size: float
    """Rows, each as often as it was merged."""
    leaf: float
    """Loss as a leaf."""
    bound: float
    """Additive lower bound of the loss (equivalent points, or a reference)."""
    useful: int
    """Depth beyond which no tree beats the leaf."""


class TreePlan(NamedTuple):
    """A tree below a node: the split, and the plans of the rows with and without the feature (None: a leaf)."""

    split: int
    one: TreePlan | None
    zero: TreePlan | None


Option = tuple[int, tuple[Node, Node]]
"""A first split and its two children: rows with the feature, rows without."""


class Known:
    """What is known of a subproblem at one depth: bounds of its objective, and the plan of the upper bound.

    Several threads may work on one entry: value and plan change together, and both bounds only for the better.
    """

    _lock = threading.Lock()

    def __init__(self, lower: float, value: float = math.inf, plan: TreePlan | None = None) -> None:
        self.lower = lower
        self.best = value, plan

    @property
    def value(self) -> float:
        """Upper bound."""
        return self.best[0]

    @property
    def plan(self) -> TreePlan | None:
        """A tree that attains it."""
        return self.best[1]

    @property
    def solved(self) -> bool:
        """Whether the bounds meet, but for the margins by which threads settle ties."""
        return self.lower >= self.best[0] - 4.0 * IMPROVEMENT

    def raise_lower(self, lower: float) -> None:
        """Keep a lower bound that is better."""
        with self._lock:
            self.lower = max(self.lower, lower)

    def improve(self, value: float, plan: TreePlan | None, margin: float = IMPROVEMENT) -> bool:
        """Keep a tree if it is better by the margin, and say whether it was."""
        if value >= self.best[0] - margin:
            return False
        with self._lock:
            if value >= self.best[0] - margin:
                return False
            self.best = value, plan
            return True


class Agenda:
    """The first splits of a node, handed out one by one, and what became of them; threads may share it.

    Attributes
    ----------
    unresolved : float
        Least lower bound of the splits that did not become the incumbent.
    rank : int
        Place of the incumbent's split, so that of equally good ones the first is kept whatever the threads do.
    """

    def __init__(self, options: list[Option], unresolved: float) -> None:
        self.unresolved, self.rank = unresolved, -1
        self.n, self.done = len(options), 0
        self.open = dict(enumerate(options))  # handed out or waiting
        self.waiting = iter(tuple(enumerate(options)))
        self.lock = threading.Lock()

    def ceiling(self, position: int, entry: Known) -> float:
        """The limit below which a tree with the split at this place must stay; an earlier place wins a draw."""
        return entry.value + (IMPROVEMENT if position < self.rank else -IMPROVEMENT)

    def settle(self, position: int, value: float, plan: TreePlan | None, entry: Known) -> None:
        """Take the outcome of a split: a tree, or (no plan) a lower bound."""
        with self.lock:
            margin = -IMPROVEMENT if position < self.rank else IMPROVEMENT
            if plan is None:
                self.unresolved = min(self.unresolved, value)
            elif entry.improve(value, plan, margin):
                self.rank = position
            del self.open[position]
            self.done += 1


def shallow_plan(splits: IntArray) -> TreePlan:
    """Plan of a tree of depth two from its three splits, -1 for none."""
    root, one, zero = (int(split) for split in splits)
    return TreePlan(root, _stump(one), _stump(zero))


def _stump(split: int) -> TreePlan | None:
    return None if split < 0 else TreePlan(split, None, None)


def leaf_count(plan: TreePlan | None) -> int:
    """Leaves of a plan."""
    return 1 if plan is None else leaf_count(plan.one) + leaf_count(plan.zero)
