"""Branch and bound over sets of rows for the integrated Brier score (OSST).

Dynamic programming over subproblems (set of rows, depth) with a cache, as paper `osst`, Algorithm 1, but depth first
with budgets, and with all trees of depth two below a set of rows solved at once (`ibs_depth_two.py`).

Why the integrated Brier score has its own driver: the additive engine keys everything on a few sums per row and
prices leaves from them; here a leaf's price needs its rows in time order, the base case costs leaves by passes over
rows or bins of time, and with the Kaplan-Meier leaf the loss is not superadditive, so the engine's interval bounds do
not hold. The conventions of cache, budgets, time limit and report are the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsurv.exact.ibs_bounds import deeper_floor, useful_depth
from softsurv.exact.ibs_depth_two import IMPROVEMENT, expand, solve_shallow
from softsurv.exact.ibs_table import Rows, split_rows
from softsurv.results import Status

Key = tuple[int, int]


class Node(NamedTuple):
    """A subproblem: a set of rows."""

    key: Key
    size: float
    """Rows."""
    leaf: float
    """Loss as a leaf."""
    bound: float
    """Additive lower bound of the loss (equivalent points, or a reference)."""
    useful: int
    """Depth beyond which no tree beats the leaf."""


class Plan(NamedTuple):
    """A tree below a node: the split, and the plans of the rows with and without the feature (None: a leaf)."""

    split: int
    one: Plan | None
    zero: Plan | None


Progress = Callable[[float, float, float], None]
"""Called with (share of the root's splits done at the present depth, lower bound, incumbent)."""

NOTHING = (0, math.inf)
"""Depth and optimum of a set of rows that is not solved at any depth yet."""

Option = tuple[int, tuple[Node, Node]]
"""A first split and its two children: rows with the feature, rows without."""


@dataclass
class Entry:
    """What is known of a subproblem at one depth: bounds of its objective, and the plan of the upper bound."""

    lower: float
    value: float = math.inf
    plan: Plan | None = None

    @property
    def solved(self) -> bool:
        return self.lower >= self.value - 2.0 * IMPROVEMENT


class Stop(Exception):  # noqa: N818  control flow, not an error
    """Raised inside the search when a limit is reached."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


@dataclass
class Limits:
    """When to stop."""

    deadline: float = math.inf
    max_entries: float = math.inf


@dataclass
class Search:
    """Least loss + complexity * leaves over trees of limited depth."""

    rows: Rows
    mode: int
    equal: bool
    complexity: float
    min_rows: float
    limits: Limits = field(default_factory=Limits)
    progress: Progress | None = None
    cache: dict[tuple[Key, int], Entry] = field(default_factory=dict)
    solved: dict[Key, tuple[int, float]] = field(default_factory=dict)
    """Greatest depth at which a set of rows is solved, and its optimum there."""
    trace: list[float] = field(default_factory=list)
    """Objective of every incumbent of the whole training set."""
    splits_tried: int = 0

    @property
    def everyone(self) -> NDArray[np.int64]:
        """Index of all rows."""
        return np.arange(self.rows.weight.size)

    def entry(self, node: Node, depth: int) -> Entry | None:
        """What is known of a node at a depth; None if it was not visited, or can only be a leaf."""
        return self.cache.get((node.key, min(depth, node.useful)))

    def entries_of(self, node: Node) -> list[Entry]:
        """What is known of a node at any depth."""
        return [entry for (key, _), entry in self.cache.items() if key == node.key]

    def root(self) -> Node:
        """The whole training set."""
        *_, (size, leaf, bound), key = self._expand(self.everyone, math.inf)
        useful = useful_depth(leaf, bound, size, self.complexity, self.min_rows)
        return Node((int(key[0]), int(key[1])), float(size), float(leaf), float(bound), useful)

    def solve(self, node: Node, index: NDArray[np.int64], depth: int, budget: float) -> tuple[float, bool]:
        """Objective of the best tree on a node (True), or a lower bound of it that reaches the budget (False)."""
        depth = min(depth, node.useful)
        as_leaf = node.leaf + self.complexity
        if depth == 0:
            return as_leaf, True
        entry = self.cache.get((node.key, depth))
        if entry is None:
            self.check_limits(len(self.cache))
            entry = Entry(self._floor(node, depth), as_leaf)
            self.cache[node.key, depth] = entry
        if entry.solved:
            return entry.value, True
        if entry.lower >= budget:
            return entry.lower, False
        if depth <= 2:
            self._solve_shallow(entry, index, depth)
        else:
            self._solve_deep(entry, node, index, depth, budget)
        if not entry.solved:
            return entry.lower, False
        if depth > self.solved.get(node.key, NOTHING)[0]:
            self.solved[node.key] = (depth, entry.value)
        return entry.value, True

    def _solve_shallow(self, entry: Entry, index: NDArray[np.int64], depth: int) -> None:
        """Depth one or two: every pair of splits at once.

        Solved whatever the budget: coming back with a larger one costs more than the budget would save.
        """
        features = np.arange(self.rows.x.shape[1])
        loss, plan = solve_shallow(
            self.rows, index, features, self.mode, self.equal, depth, self.min_rows, self.complexity, entry.value
        )
        for leaves in (2, 3, 4):
            value = loss[leaves] + self.complexity * leaves
            if value < entry.value - IMPROVEMENT:
                entry.value, entry.plan = float(value), shallow_plan(plan[leaves])
        entry.lower = entry.value

    def _solve_deep(self, entry: Entry, node: Node, index: NDArray[np.int64], depth: int, budget: float) -> None:
        """Try every first split, best one-split loss first, each child within what is left of the budget."""
        shallower = depth - 1 if depth <= 4 else (depth + 1) // 2
        value, exact = self.solve(node, index, shallower, budget)
        if exact and value < entry.value - IMPROVEMENT:
            entry.value, entry.plan = value, self._plan(node, shallower)
        entry.lower = max(entry.lower, self._floor_unvisited(node, depth))
        if entry.solved or entry.lower >= budget:
            return
        # ``unresolved`` is the least lower bound of the splits that did not become the incumbent
        options, unresolved = self.children(index, min(budget, entry.value - IMPROVEMENT))
        for position, option in enumerate(options):
            try:
                value, plan = self._try_split(option, index, depth, min(budget, entry.value - IMPROVEMENT))
            except (Stop, KeyboardInterrupt):
                entry.lower = self._open_floor(entry, unresolved, options[position:], depth)
                raise
            if plan is None:
                unresolved = min(unresolved, value)
            else:
                entry.value, entry.plan = value, plan
            if index.size == self.rows.weight.size:
                self._report(entry, (position + 1) / len(options), unresolved, options[position + 1 :], depth)
        entry.lower = max(entry.lower, min(entry.value, unresolved))

    def _open_floor(self, entry: Entry, unresolved: float, rest: list[Option], depth: int) -> float:
        """Lower bound of a node some of whose first splits were not tried yet."""
        floors = [sum(self._floor(child, depth - 1) for child in children) for _, children in rest]
        return max(entry.lower, min(entry.value, unresolved, *floors))

    def _report(self, entry: Entry, share: float, unresolved: float, rest: list[Option], depth: int) -> None:
        """Keep the trace of the whole training set's incumbents, and tell the caller."""
        if not self.trace or entry.value < self.trace[-1]:
            self.trace.append(entry.value)
        if self.progress is not None:
            self.progress(share, self._open_floor(entry, unresolved, rest, depth), entry.value)

    def _try_split(
        self, option: Option, index: NDArray[np.int64], depth: int, ceiling: float
    ) -> tuple[float, Plan | None]:
        """Objective and plan of the best tree with a first split, or a lower bound >= ceiling and no plan."""
        split, children = option
        floors = [self._floor(child, depth - 1) for child in children]
        if sum(floors) >= ceiling:
            return sum(floors), None
        self.splits_tried += 1
        parts = split_rows(self.rows.x, index, split)
        first = 0 if children[0].leaf >= children[1].leaf else 1
        other = 1 - first
        value, exact = self.solve(children[first], parts[first], depth - 1, ceiling - floors[other])
        if not exact or value + floors[other] >= ceiling:
            return value + floors[other], None
        rest, exact = self.solve(children[other], parts[other], depth - 1, ceiling - value)
        value += rest
        if not exact or value >= ceiling:
            return value, None
        return value, Plan(split, self._plan(children[0], depth - 1), self._plan(children[1], depth - 1))

    def _plan(self, node: Node, depth: int) -> Plan | None:
        """Plan of a solved node."""
        entry = self.entry(node, depth)
        return None if entry is None else entry.plan

    def _floor(self, node: Node, depth: int) -> float:
        """Best known lower bound of a node's objective."""
        entry = self.entry(node, depth)
        if entry is not None:
            return entry.lower
        return self._floor_unvisited(node, min(depth, node.useful))

    def _floor_unvisited(self, node: Node, depth: int) -> float:
        """Lower bound of a node's objective from the bounds of `ibs_bounds.py` and from other depths."""
        leaf = node.leaf + self.complexity
        if depth == 0:
            return leaf
        floor = min(leaf, node.bound + 2.0 * self.complexity)  # `floor_with_split`
        solved_depth, value = self.solved.get(node.key, NOTHING)
        if solved_depth >= depth:
            return max(floor, value)
        if solved_depth > 0:
            return max(floor, deeper_floor(value, node.bound, self.complexity, solved_depth))
        return floor

    def children(self, index: NDArray[np.int64], ceiling: float = math.inf) -> tuple[list[Option], float]:
        """Both children of every split with room below the ceiling, the best stump first.

        Returns also the least floor of the other splits.
        """
        feature, node, key, pruned, _, _ = self._expand(index, ceiling)
        order = np.argsort(node[0, 1] + node[1, 1], kind="stable")  # by the children's losses as leaves
        feature, node, key = feature[order], node[:, :, order], key[:, :, order]
        sides = [
            [
                Node((k0, k1), size, leaf, bound, int(useful))
                for k0, k1, size, leaf, bound, useful in zip(*key[side].tolist(), *node[side].tolist(), strict=True)
            ]
            for side in range(2)
        ]
        return list(zip(feature.tolist(), zip(*sides, strict=True), strict=True)), pruned

    def _expand(self, index: NDArray[np.int64], ceiling: float) -> tuple:
        return expand(self.rows, index, self.mode, self.equal, self.min_rows, self.complexity, ceiling)

    def check_limits(self, entries: int) -> None:
        """Raise `Stop` when time or memory has run out."""
        if time.perf_counter() > self.limits.deadline:
            raise Stop(Status.TIME_LIMIT)
        if entries >= self.limits.max_entries:
            raise Stop(Status.MEMORY_LIMIT)


def shallow_plan(splits: NDArray[np.int64]) -> Plan:
    """Plan of a tree of depth two from its three splits, -1 for none."""
    root, one, zero = (int(split) for split in splits)
    return Plan(root, _stump(one), _stump(zero))


def _stump(split: int) -> Plan | None:
    return None if split < 0 else Plan(split, None, None)


def leaf_count(plan: Plan | None) -> int:
    """Leaves of a plan."""
    return 1 if plan is None else leaf_count(plan.one) + leaf_count(plan.zero)
