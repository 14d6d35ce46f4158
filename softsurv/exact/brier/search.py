"""Branch and bound over sets of rows for the integrated Brier score (OSST).

Dynamic programming over subproblems (set of rows, depth) with a cache, as paper `osst`, Algorithm 1, but depth first
with budgets, and with all trees of depth two below a set of rows solved at once (`base_case.py`).

Why the integrated Brier score has its own driver: the additive engine keys everything on a few sums per row and
prices leaves from them; here a leaf's price needs its rows in time order, the base case costs leaves by passes over
rows or bins of time, and with the Kaplan-Meier leaf the loss is not superadditive, so the engine's interval bounds do
not hold. The conventions of cache, budgets, time limit and report are the same.

Threads share the first splits of the whole training set, and the cache; what lies below a first split belongs to one
thread. The compiled parts run side by side.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.exact.brier.base_case import IMPROVEMENT, coarse_floor, expand, solve_shallow
from softsurv.exact.brier.bounds import IbsBounds, deeper_floor, floor_with_split, useful_depth
from softsurv.exact.brier.coarse import are_worth_it
from softsurv.exact.brier.limits import Limits
from softsurv.exact.brier.nodes import Agenda, Key, Known, Node, Option, TreePlan, shallow_plan
from softsurv.exact.brier.table import Rules, SortedRows, split_rows
from softsurv.exact.tree import SearchProgress

DEEPENING = 8
"""Up to this depth the whole training set is solved depth by depth, so that a limit finds good trees. Below the first
split this holds up to depth four. Deeper trees begin from those of half their depth, which costs less."""

NOTHING = (0, 0.0)
"""Depth and lower bound of a set of rows that was not looked into yet."""


@dataclass
class BrierSearch:
    """Least loss + complexity * leaves over trees of limited depth."""

    rows: SortedRows
    rules: Rules
    bounds: IbsBounds = field(default_factory=IbsBounds)
    limits: Limits = field(default_factory=Limits)
    progress: SearchProgress | None = None
    n_jobs: int = 1
    cache: dict[tuple[Key, int], Known] = field(default_factory=dict)
    learnt: dict[Key, tuple[int, float]] = field(default_factory=dict)
    """Greatest depth at which a set of rows was looked into, and a lower bound of its objective there."""
    trace: list[float] = field(default_factory=list)
    """Objective of every incumbent of the whole training set."""

    @property
    def everyone(self) -> IntArray:
        """Index of all rows."""
        return np.arange(self.rows.weight.size)

    def _is_whole(self, index: IntArray) -> bool:
        return bool(index.size == self.rows.weight.size)

    def entry(self, node: Node, depth: int) -> Known | None:
        """What is known of a node at a depth; None if it was not visited, or can only be a leaf."""
        return self.cache.get((node.key, min(depth, node.useful)))

    def entries_of(self, node: Node) -> list[Known]:
        """What is known of a node at any depth."""
        return [entry for (key, _), entry in self.cache.items() if key == node.key]

    @cached_property
    def no_floor(self) -> FloatArray:
        """Nothing known of any first split, (P,)."""
        return np.zeros(self.rows.x.shape[1])

    @cached_property
    def root(self) -> Node:
        """The whole training set as a leaf, priced without any split: it is there before the clock is looked at."""
        no_splits = self.rows._replace(x=self.rows.x[:, :0])
        *_, (size, leaf, bound), key = expand(no_splits, self.everyone, self.rules, math.inf)
        trusted = bound if self.rules.splitting else -math.inf
        useful = useful_depth(leaf, trusted, size, self.rules.complexity, self.rules.min_rows)
        return Node((int(key[0]), int(key[1])), float(size), float(leaf), float(bound), useful)

    def root_floor(self) -> float:
        """Lower bound for all trees of the whole training set, before any search."""
        return floor_with_split(self.root.leaf, self.root.bound, self.rules.complexity, self.rules.least_leaves)

    def solve(self, node: Node, index: IntArray, depth: int, budget: float) -> tuple[float, bool]:
        """Objective of the best tree on a node (True), or a lower bound of it that reaches the budget (False)."""
        depth = min(depth, node.useful)
        as_leaf = node.leaf + self.rules.complexity
        if depth == 0:
            return as_leaf, True
        entry = self.cache.get((node.key, depth))
        if entry is None:
            self.limits.check(len(self.cache))
            entry = self.cache.setdefault((node.key, depth), Known(self._floor(node, depth), as_leaf))
        if entry.solved:
            return entry.value, True
        if entry.lower >= budget:
            return entry.lower, False
        if depth <= self.bounds.base_depth:
            self._solve_shallow(entry, node, index, depth, budget)
        else:
            self._solve_deep(entry, node, index, depth, budget)
        if not entry.solved:
            return entry.lower, False
        self._learn(node, depth, entry.value)
        return entry.value, True

    def _learn(self, node: Node, depth: int, lower: float) -> None:
        """Keep a lower bound of a node's objective up to a depth, if no other reaches as deep or this one is better."""
        self.learnt[node.key] = max(self.learnt.get(node.key, NOTHING), (depth, lower))

    def _solve_shallow(self, entry: Known, node: Node, index: IntArray, depth: int, budget: float) -> None:
        """Depth one or two: every pair of splits at once.

        Solved whatever the budget: coming back with a larger one costs more than the budget would save. But many rows
        are left alone if coarse bins of time show that no tree stays within it.
        """
        floor = self.no_floor
        if are_worth_it(self.rows, self.rules, index.size):
            floor = coarse_floor(self.rows, index, self.rules)
            self.limits.check()  # a stopped one has not seen every pair
            entry.raise_lower(min(entry.value, float(floor.min(initial=math.inf))))  # without splits it is a leaf
            self._learn(node, depth, entry.lower)
            if entry.solved or entry.lower >= budget:
                return
        loss, plan = solve_shallow(self.rows, index, self.rules, depth, entry.value, floor)
        for leaves in (2, 3, 4):
            value = float(loss[leaves] + self.rules.complexity * leaves)
            if value < entry.value:
                entry.improve(value, shallow_plan(plan[leaves]))
        self.limits.check()  # a stopped one has not seen every pair
        entry.raise_lower(entry.value)

    def _solve_deep(self, entry: Known, node: Node, index: IntArray, depth: int, budget: float) -> None:
        """Try every first split, best one-split loss first, each child within the rest of the budget."""
        step_by_step = DEEPENING if self._is_whole(index) else 4
        shallower = depth - 1 if depth <= step_by_step else (depth + 1) // 2
        value, exact = self.solve(node, index, shallower, budget)
        if exact:
            entry.improve(value, self._plan(node, shallower))
        entry.raise_lower(self._floor_unvisited(node, depth))
        if entry.solved or entry.lower >= budget:
            return
        agenda = Agenda(*self.children(index, min(budget, entry.value - IMPROVEMENT)))
        try:
            self._try_all(agenda, entry, index, depth, budget)
        except BaseException:
            entry.raise_lower(self._open_floor(entry, agenda, depth))
            raise
        entry.raise_lower(min(entry.value, agenda.unresolved))

    def _try_all(self, agenda: Agenda, entry: Known, index: IntArray, depth: int, budget: float) -> None:
        """Settle every first split, for the whole training set in several threads."""
        whole = self._is_whole(index)

        def work(_: int = 0) -> None:
            for position, option in agenda.waiting:
                ceiling = min(budget, agenda.ceiling(position, entry))
                agenda.settle(position, *self._try_split(option, index, depth, ceiling), entry)
                if whole:
                    self._report(entry, agenda, depth)

        if not whole or self.n_jobs == 1:
            return work()
        with ThreadPoolExecutor(self.n_jobs) as pool:
            list(pool.map(work, range(self.n_jobs)))
        return None

    def _open_floor(self, entry: Known, agenda: Agenda, depth: int) -> float:
        """Lower bound of a node some of whose first splits were not tried to the end yet."""
        rest = list(agenda.open.values())
        floors = [sum(self._floor(child, depth - 1) for child in children) for _, children in rest]
        return max(entry.lower, min(entry.value, agenda.unresolved, *floors))

    def _report(self, entry: Known, agenda: Agenda, depth: int) -> None:
        """Keep the trace of the whole training set's incumbents, and tell the caller."""
        with agenda.lock:
            self.note(entry.value)
            if self.progress is not None:
                self.progress(agenda.done / agenda.n, self._open_floor(entry, agenda, depth), entry.value)

    def note(self, value: float) -> None:
        """Keep the objective of an incumbent of the whole training set."""
        if not self.trace or value < self.trace[-1]:
            self.trace.append(value)

    def _try_split(self, option: Option, index: IntArray, depth: int, ceiling: float) -> tuple[float, TreePlan | None]:
        """Objective and plan of the best tree with a first split, or a lower bound >= ceiling and no plan."""
        split, children = option
        floors = [self._floor(child, depth - 1) for child in children]
        if sum(floors) >= ceiling:
            return sum(floors), None
        parts = split_rows(self.rows.x, index, split)
        first = 0 if children[0].leaf >= children[1].leaf else 1
        other = 1 - first
        budget = ceiling if self.bounds.hierarchical else math.inf
        value, exact = self.solve(children[first], parts[first], depth - 1, budget - floors[other])
        if not exact or value + floors[other] >= budget:
            return value + floors[other], None
        rest, exact = self.solve(children[other], parts[other], depth - 1, budget - value)
        value += rest
        if not exact or value >= ceiling:
            return value, None
        return value, TreePlan(split, self._plan(children[0], depth - 1), self._plan(children[1], depth - 1))

    def _plan(self, node: Node, depth: int) -> TreePlan | None:
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
        """Lower bound of a node's objective from the bounds of `bounds.py` and from other depths."""
        rules = self.rules
        if depth == 0:
            return node.leaf + rules.complexity
        floor = floor_with_split(node.leaf, node.bound, rules.complexity, rules.least_leaves)
        known_depth, lower = self.learnt.get(node.key, NOTHING)
        if known_depth >= depth:
            return max(floor, lower)
        if known_depth > 0 and self.bounds.look_ahead:
            return max(floor, deeper_floor(lower, node.bound, rules.complexity, known_depth))
        return floor

    def children(self, index: IntArray, ceiling: float = math.inf) -> tuple[list[Option], float]:
        """Both children of every split with room below the ceiling, the best stump first.

        Returns also the least floor of the other splits.
        """
        feature, node, key, pruned, _, _ = expand(self.rows, index, self.rules, ceiling)
        self.limits.check()  # a stopped one has not priced every split
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
