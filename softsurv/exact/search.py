"""The exact search from outside: prepare, run the compiled recursion in threads, read the tree out of the cache.

>>> search = Search(task, codes, n_codes, nominal, statistics, offset, min_leaf=1, complexity=0.0)  # doctest: +SKIP
>>> solution = search.solve(depth, leaves, time_limit=60.0, n_jobs=1)  # doctest: +SKIP
>>> solution.tree, solution.report  # a CodeTree; a FitReport with bound and status  # doctest: +SKIP
>>> solutions = search.path(depth, leaves)  # best trees with at most 1, 2, ... leaves  # doctest: +SKIP

The cache stays with the search and serves every later call, whatever its limits.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.budget import Budget
from softsurv.errors import InvalidParameterError
from softsurv.exact import problem as arrays
from softsurv.exact.bounds import Bounds
from softsurv.exact.cache import new_cache, with_heads
from softsurv.exact.clock import POLL_SECONDS, Clock, run_watched
from softsurv.exact.compile import ready
from softsurv.exact.kernels import BLOCKS, CALLS, STOP
from softsurv.exact.nodes import LEAF, UNKNOWN
from softsurv.exact.prepare import prepare
from softsurv.exact.reading import TreeReader
from softsurv.exact.tasks.base import Task
from softsurv.exact.tolls import SplitCosts, paid, show_prices
from softsurv.exact.tree import CodeTree
from softsurv.results import FitReport, Status

MAX_DEPTH = 10
"""Deepest tree: scratch and cache tags are laid out for it; nobody reads a tree of a thousand leaves."""

GRACE_SECONDS = 0.25
"""What the best tree of depth two, and reading a tree out of the cache, may take after the end of the clock."""

CHILDREN = 2.0
"""Subproblems expected per choice of splits above the base case."""

Progress = Callable[[float, float, float], None]
"""Called with (share of the root's splits done, lower bound, incumbent)."""


@dataclass(frozen=True)
class Solution:
    """A tree with its objective, how good it is proven to be, and why the search ended."""

    tree: CodeTree
    report: FitReport


@dataclass(frozen=True)
class _Run:
    """Outcome of one run of the recursion at a fixed limit on depth."""

    value: float
    choice: float
    lower_bound: float
    status: Status


class Search:
    """Exact search over one training set; the cache serves all calls with any limits on depth and leaves.

    Parameters
    ----------
    task : Task
    codes : (N, P) int
        Bin of each row on each feature, 0 .. n_codes[p] - 1.
    n_codes : (P,) int
        Number of bins of each feature.
    nominal : (P,) bool
        Features of which one level is split from the rest; the others are ordered.
    statistics : (N, K)
        Task statistics of each row, weights included.
    offset : (N,), optional
        Part of the objective that no split changes, per row: makes the cost of any leaf, offsets added, >= 0.
    min_leaf : float
        Least rows per leaf, or the least ``size``.
    size : (N,), optional
        What ``min_leaf`` counts, rows where None.
    complexity : float
        Cost per leaf, >= 0, in the units of the summed costs.
    split_costs : SplitCosts, optional
        Prices of splits, for a task with ``branching``.
    bounds : Bounds
    memory_limit : float
        Bytes for the cache. A full cache makes the search slower, not inexact.

    Raises
    ------
    InvalidParameterError
        Where ``min_leaf`` exceeds the number of rows.
    """

    def __init__(
        self,
        task: Task,
        codes: NDArray[np.integer],
        n_codes: NDArray[np.integer],
        nominal: NDArray[np.bool_],
        statistics: NDArray[np.float64],
        offset: NDArray[np.float64] | None = None,
        *,
        min_leaf: float = 1,
        size: NDArray[np.float64] | None = None,
        complexity: float = 0.0,
        split_costs: SplitCosts | None = None,
        bounds: Bounds | None = None,
        memory_limit: float = 1e9,
    ) -> None:
        if size is None and min_leaf > 1:
            size = np.ones(len(codes))
            min_leaf = math.ceil(min_leaf)
        if size is not None and min_leaf > math.fsum(size):
            raise InvalidParameterError(
                f"the least size of a leaf must be at most the total, {math.fsum(size):g}, got {min_leaf:g}"
            )
        if codes.size and (codes.min() < 0 or (codes.max(axis=0) >= n_codes).any()):
            raise InvalidParameterError(
                f"codes must lie in 0 .. n_codes - 1, got {codes.min()} to {codes.max()}; code the features first"
            )
        if task.n_statistics not in (None, statistics.shape[1]):
            raise InvalidParameterError(
                f"statistics must have the {task.n_statistics} columns of task {task.name!r}, got {statistics.shape[1]}"
            )
        if task.branching != (split_costs is not None):
            raise InvalidParameterError(
                f"split_costs must be given for a task with branching costs and for no other, got "
                f"{'some' if split_costs is not None else 'none'} for {task.name!r}"
            )
        self.complexity, self.split_costs = complexity, split_costs
        offset = np.zeros(len(codes)) if offset is None else offset
        ready_made = prepare(
            task,
            codes,
            n_codes,
            nominal,
            statistics,
            offset,
            size,
            min_leaf,
            complexity,
            bounds or Bounds(),
            split_costs,
        )
        self.task, self.problem, self.rows = ready_made.task, ready_made.problem, ready_made.rows
        self.exact_sums, self.features, self.cancelled = ready_made.sums, ready_made.features, ready_made.cancelled
        self.constant = math.fsum(offset) + self.cancelled
        self.cache = new_cache(memory_limit, expected=0.0)
        self.control = np.zeros(8, np.int64)
        self.scratch = [self._new_scratch()]
        key = self.problem.keys.sum(axis=0, dtype=np.uint64)
        self.key = key[0], key[1]
        self.order = np.empty(0, np.int32)  # splits of the root, the most promising first

    def _new_scratch(self) -> tuple[Any, Any, Any]:
        return (
            arrays.new_nodes(self.problem, MAX_DEPTH),
            arrays.new_local(self.problem, self.control),
            arrays.new_lanes(self.problem),
        )

    # -- solving -------------------------------------------------------------------------------------------------
    def solve(
        self,
        depth: int,
        leaves: int | None = None,
        *,
        time_limit: float = math.inf,
        n_jobs: int = 1,
        progress: Progress | None = None,
        clock: Clock | None = None,
    ) -> Solution:
        """Best tree with at most this depth and that many leaves.

        Shallow trees come first, so that there is an incumbent from the first millisecond; each depth orders the
        splits of the next by what it found.

        Parameters
        ----------
        depth : int
            0 to 10.
        leaves : int, optional
            At least 1; ``2**depth`` by default.
        time_limit : float
            Seconds; compilation is not counted.
        n_jobs : int
            Threads. The tree does not depend on it.
        progress : callable, optional
        clock : Clock, optional
            Shared by several calls; overrides ``time_limit``.
        """
        module = ready(self.task)
        clock = clock or Clock(time_limit)
        with Budget() as budget:  # the first Ctrl-C is noted at safe points, a second one ends at once
            clock.budget = budget
            return self._solve(module, depth, leaves, n_jobs, progress, clock)

    def _solve(
        self, module: Any, depth: int, leaves: int | None, n_jobs: int, progress: Progress | None, clock: Clock
    ) -> Solution:
        begin = clock.seconds
        self.cache = with_heads(self.cache, CHILDREN * len(self.problem.feature_of) ** max(depth - 2, 0))
        reader = TreeReader(
            module, self.problem, self.cache, self.exact_sums, self.features, self.scratch[0], self._idle()
        )
        leaves = min(leaves or 1 << depth, 1 << depth)
        depth = min(depth, leaves - 1)
        flag = self.control[STOP:]
        everything = np.arange(len(self.exact_sums), dtype=np.int32)
        read = partial(reader.read, everything)
        tree = run_watched(lambda: read(min(depth, 2), min(leaves, 4)), clock, flag, GRACE_SECONDS)
        value, trace = self._search_value(tree), [self.objective(tree)]
        run = _Run(value, LEAF, value, Status.OPTIMAL)
        if flag[0]:
            run = _Run(value, LEAF, min(value, float(self.problem.floor.sum()) + self.complexity), clock.status)
        if depth > 2 and not len(self.order):
            self.order = run_watched(lambda: self._first_order(module), clock, flag)
        for limit in range(3, depth + 1):
            shared = self._new_shared(min(leaves, 1 << limit), value, self._root_bounds())
            floor = -math.inf
            if limit < depth:  # what is proven for shallower trees says nothing of deeper ones
                floor = self._lower_bound(self._new_shared(leaves, value, self._root_bounds()), depth)
            run = self._run(module, shared, limit, min(leaves, 1 << limit), clock, n_jobs, progress, floor)
            promise = self._promise(shared, limit)
            if run.choice >= 0:
                full = partial(read, limit, min(leaves, 1 << limit), run.choice)
                better = run_watched(full, clock, flag, GRACE_SECONDS)
                value = run.value
                if flag[0]:  # read in part only: proven is the value, not this tree
                    run = replace(run, lower_bound=min(run.lower_bound, value), status=clock.status)
                tree = min(tree, better, key=self.objective)
                trace.append(self.objective(tree))
            if run.status != Status.OPTIMAL:
                break
            self.order = self.order[np.argsort(promise[self.order], kind="stable")]
        objective = self.objective(tree)
        optimal = run.status == Status.OPTIMAL
        bound = objective if optimal else min(run.lower_bound + self.constant, objective)
        details = {
            "base_cases": int(self.control[CALLS]),
            "lane_runs": int(self.control[BLOCKS]),
            "cache_entries": int(min(self.cache.used[0], len(self.cache.tags))),
            "cache_full": bool(self.cache.used[0] >= len(self.cache.tags) * 7 // 8),
            "distinct_rows": len(self.exact_sums),
        }
        return Solution(tree, FitReport(run.status, objective, bound, clock.seconds - begin, tuple(trace), details))

    def path(
        self, depth: int, leaves: int | None = None, *, time_limit: float = math.inf, **how: Any
    ) -> list[Solution]:
        """Best trees with at most 1, 2, ..., ``leaves`` leaves, from one cache; shorter where time ran out."""
        clock = how.pop("clock", None) or Clock(time_limit)
        solutions: list[Solution] = []
        for most in range(1, min(leaves or 1 << depth, 1 << depth) + 1):
            solution = self.solve(depth, most, clock=clock, **how)
            solutions.append(solution)
            if solution.report.status != Status.OPTIMAL:
                break
        return solutions

    def objective(self, tree: CodeTree) -> float:
        """Objective of a tree from its leaves' sums, offsets and cost per leaf included."""
        return self._search_value(tree) + self.constant

    def _search_value(self, tree: CodeTree) -> float:
        tolls = 0.0 if self.split_costs is None else paid(tree, self.split_costs, tree.sums[:, -1])
        return self._leaf_value(tree) - self.cancelled + tolls + self.complexity * tree.n_leaves

    def _leaf_value(self, tree: CodeTree) -> float:
        return math.fsum(self.task.costs(tree.sums[tree.leaves, : self.problem.n_statistics]))

    # -- one depth -----------------------------------------------------------------------------------------------
    def _new_shared(self, leaves: int, value: float, sides: Any) -> arrays.Shared:
        """State that threads share: an incumbent's objective and bounds of both sides of the root's splits, (2, G)."""
        return arrays.Shared(
            control=self.control,
            next=np.zeros(leaves, np.int64),
            order=self.order,
            bound=np.repeat(sides[None], leaves, axis=0),
            best=np.array([value]),
            choice=np.array([UNKNOWN]),
            rank=np.array([-1]),
            lock=np.zeros(1, np.int64),
        )

    def _idle(self) -> arrays.Shared:
        """State for calls below the root."""
        return self._new_shared(1, math.inf, np.zeros((2, len(self.problem.feature_of))))

    def _first_order(self, module: Any) -> NDArray[np.int32]:
        """Splits of the root by the best tree of depth two under each."""
        local = self.scratch[0][1]
        show_prices(self.problem.tolls, self.problem.tolls.full, local)
        module.solve_two(self.problem, self.rows, len(self.rows), local)
        n = local.size[2]
        return local.split_code[:n][np.argsort(local.stump[:, :n].sum(axis=0), kind="stable")].copy()

    def _root_bounds(self) -> NDArray[np.float64]:
        """Equivalent-points bound of both sides of the root's splits, (2, G)."""
        p = self.problem
        floor = np.bincount(p.gcode.ravel(), np.repeat(p.floor, p.gcode.shape[1]), len(p.feature_of))
        for f in np.flatnonzero(~p.nominal):
            here = slice(p.code_start[f], p.code_start[f + 1])
            floor[here] = floor[here].cumsum()
        leaf = p.complexity if p.use_look_ahead else 0.0
        return np.stack([floor, p.floor.sum() - floor]) + leaf

    def _run(
        self,
        module: Any,
        shared: arrays.Shared,
        depth: int,
        leaves: int,
        clock: Clock,
        n_jobs: int,
        progress: Progress | None,
        floor: float,
    ) -> _Run:
        """Run the recursion in threads and look after the clock; ``floor`` bounds the depth that was asked for."""

        def proven() -> float:
            return self._lower_bound(shared, depth) if floor == -math.inf else min(floor, float(shared.best[0]))

        while len(self.scratch) < n_jobs:
            self.scratch.append(self._new_scratch())
        if clock.status != Status.OPTIMAL:
            return _Run(float(shared.best[0]), UNKNOWN, proven(), clock.status)
        self.control[STOP] = 0
        upper = float(shared.best[0])
        threads = [
            threading.Thread(target=self._work, args=(module, shared, depth, leaves, upper, scratch), daemon=True)
            for scratch in self.scratch[:n_jobs]
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(max(min(clock.left, POLL_SECONDS), 0.001))
            if clock.status != Status.OPTIMAL:
                if any(thread.is_alive() for thread in threads):
                    self.control[STOP] = 1
            elif progress is not None:
                done = min(1.0, shared.next.max() / max(len(shared.order), 1))
                progress(done, proven() + self.constant, float(shared.best[0]) + self.constant)
        status = clock.status if self.control[STOP] else Status.OPTIMAL
        value = float(shared.best[0])
        bound = value if status == Status.OPTIMAL else proven()
        return _Run(value, float(shared.choice[0]), bound, status)

    def _work(self, module: Any, shared: Any, depth: int, leaves: int, upper: float, scratch: Any) -> None:
        nodes, local, lanes = scratch
        module.solve(
            self.problem, self.rows, len(self.rows), *self.key, depth, leaves, upper, 0,
            nodes, local, lanes, self.cache, shared,
        )  # fmt: skip

    def _promise(self, shared: arrays.Shared, depth: int) -> NDArray[np.float64]:
        """Lower bound of the best tree with each of the root's splits first, (G,)."""
        leaves = len(shared.bound)
        child = 1 << (depth - 1)
        turns = np.arange(leaves)
        left = leaves // 2 + (turns + 1) // 2 * (1 - 2 * (turns & 1))  # as `recursion.solve` divides the leaves
        used = (left >= 1) & (leaves - left >= 1) & (left <= child) & (leaves - left <= child)
        return shared.bound[used].sum(axis=1).min(axis=0)

    def _lower_bound(self, shared: arrays.Shared, depth: int) -> float:
        """What the root's bounds prove: every tree is no better than the incumbent or has one of the splits first."""
        return float(min(shared.best[0], self._promise(shared, depth)[self.order].min(initial=math.inf)))
