"""The exact search from outside: prepare, run the compiled recursion in threads, read the tree out of the cache.

>>> search = Search(task, codes, n_codes, nominal, statistics, offset, min_leaf=1, complexity=0.0)  # doctest: +SKIP
>>> solution = search.solve(depth, leaves, time_limit=60.0, n_jobs=1)  # doctest: +SKIP
>>> solution.tree, solution.report  # a CodeTree; a FitReport with bound and status  # doctest: +SKIP
>>> solutions = search.path(depth, leaves)  # best trees with at most 1, 2, ... leaves  # doctest: +SKIP

The cache stays with the search and serves every later call, whatever its limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.exact.bounds import Bounds
from softsurv.exact.compile import BASES
from softsurv.exact.cuts.run import CutRun
from softsurv.exact.depth_run import SHORT_WORK, DepthRun, details_of, in_threads, new_shared, root_bounds
from softsurv.exact.first_trees import Ahead, Found, of_depth_two
from softsurv.exact.joint.rolling import rolled
from softsurv.exact.joint.run import DEEPEST, JointRun
from softsurv.exact.kernels.cache import MAX_LEAVES, new_cache, with_heads
from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.kernels.views import Packed
from softsurv.exact.prepare import Prepared, as_size, check_arrays, prepare
from softsurv.exact.reconstruct import TreeReader
from softsurv.exact.search_state import SearchState
from softsurv.exact.split_costs import SplitCosts
from softsurv.exact.task import Task
from softsurv.exact.tree import CodeTree, SearchProgress, Solution
from softsurv.results import FitReport, Status
from softsurv.stopping import GRACE_SECONDS, StopSignal

NO_CACHE = Packed(new_cache(0.0, expected=0.0))
"""What trees of depth two are read with: their base case writes to no cache."""

CHILDREN = 2.0
"""Subproblems expected per choice of splits above the base case."""


class Search(SearchState):
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
        Prices of splits.
    bounds : Bounds
    memory_limit : float
        Bytes for what the search makes of the rows and for its cache. A full cache makes the search slower, not
        inexact.

    Raises
    ------
    InvalidParameterError
        ``min_leaf`` exceeds the number of rows or their total size; codes are not in 0 .. ``n_codes`` - 1; statistics
        have other columns than the task reads, or their sums are too large.
    """

    def __init__(
        self,
        task: Task,
        codes: NDArray[np.integer],
        n_codes: NDArray[np.integer],
        nominal: BoolArray,
        statistics: FloatArray,
        offset: FloatArray | None = None,
        *,
        min_leaf: float = 1,
        size: FloatArray | None = None,
        complexity: float = 0.0,
        split_costs: SplitCosts | None = None,
        bounds: Bounds | None = None,
        memory_limit: float = 1e9,
    ) -> None:
        min_leaf, size = as_size(min_leaf, size, len(codes))
        check_arrays(task, codes, n_codes, statistics)
        ready_made = prepare(
            task, codes, n_codes, nominal, statistics, offset, size, min_leaf, complexity, bounds or Bounds(),
            split_costs,
        )  # fmt: skip
        self._start(ready_made, memory_limit, split_costs)

    @classmethod
    def over(cls, prepared: Prepared, memory_limit: float = 1e9) -> Search:
        """The search over rows that are prepared already."""
        search = cls.__new__(cls)
        search._start(prepared, memory_limit, None)
        return search

    # -- solving -------------------------------------------------------------------------------------------------
    def solve(
        self,
        depth: int,
        leaves: int | None = None,
        *,
        time_limit: float = math.inf,
        n_jobs: int = 1,
        progress: SearchProgress | None = None,
        stop: StopSignal | None = None,
        upper: float = math.inf,
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
            Threads. The tree does not depend on it; the search by cuts uses one.
        progress : callable, optional
        stop : StopSignal, optional
            Shared by several calls; overrides ``time_limit``.
        upper : float
            Only trees with an objective below this are wanted. If there is none, the lower bound is at least ``upper``.
        """
        leaves = min(leaves or 1 << depth, 1 << depth)
        depth, stop = min(depth, leaves - 1), stop or StopSignal(time_limit)
        self.run = self.ahead = None

        def tell() -> None:
            run = self.run
            if progress is not None and run is not None and not stop.exhausted:
                incumbent = min(run.incumbent, math.inf if self.ahead is None else self.ahead.best.value)
                progress(run.done, min(run.proven(), incumbent) + self.constant, incumbent + self.constant)

        if self.joins(depth):
            work = partial(self._solve_by, self.joint_run(depth, n_jobs, stop), leaves, stop, upper)
        elif self.by_cuts:
            run = partial(CutRun, self.make_ready(depth, stop), self.rows, depth, self.similar, self.control)
            work = partial(self._solve_by, run, leaves, stop, upper)
        else:
            work = partial(self._recurse, self.make_ready(depth, stop), depth, leaves, n_jobs, stop, upper)
        short = self._work(depth) < SHORT_WORK
        solution = stop.run(work, self.control[STOP:], tell, short=short)
        report = solution.report
        if progress is not None and report.status == Status.OPTIMAL:
            progress(1.0, report.lower_bound, report.objective)
        return solution

    def least(self, depth: int, stop: StopSignal) -> float:
        """Objective of the best tree of depth two at most, by the base case; -inf if stopped. No tree is read."""
        reader = self._reader(self.make_ready(depth, stop), NO_CACHE)
        value = reader.least(1 << depth) if stop.stage() else -math.inf
        return -math.inf if self.control[STOP] else value + self.constant

    def _recurse(
        self, problem: Packed, depth: int, leaves: int, n_jobs: int, stop: StopSignal, upper: float
    ) -> Solution:
        """Let the recursion find the tree, depth by depth; trees of depth two are left to the base case."""
        begin = stop.seconds
        early = self._by_sums(depth, leaves, n_jobs, stop) if self.by_joint and depth > DEEPEST else []
        if depth > 2 and len(self.scratch) < n_jobs:
            self.take_scratch(n_jobs)
        if depth > 2:
            self.cache = with_heads(self.cache, CHILDREN * len(self.problem.feature_of) ** (depth - 2))
        cache = Packed(self.cache) if depth > 2 else NO_CACHE
        reader = self._reader(problem, cache)
        stop.stage(stop.grace)
        if depth <= 2:
            least = float(self.problem.floor.sum()) + self.problem.complexity
            return self._solution(reader, [Found(depth, leaves)], False, least, upper, begin, stop)
        best, order = of_depth_two(BASES[self.base], problem, self.rows, self.scratch[0])
        self.order, found = self.order if len(self.order) else self._in_order(order), [best, *early[:1]]
        sides = root_bounds(self.problem, None if self.control[STOP] else self.scratch[0].local.value)
        first = min([best, *early], key=lambda one: one.value)
        self.ahead = ahead = Ahead(reader, self._value, depth, leaves, first)
        for limit in range(found[-1].depth + 1, depth + 1):
            most = min(leaves, 1 << limit)
            if self.is_long(limit) and stop.stage():
                ahead.look(found[-1], limit - 1)
            if limit == depth and ahead.best.value < found[-1].value:
                found.append(ahead.best)
            shared = new_shared(self.control, self.order, most, min(found[-1].value, upper - self.constant), sides)
            # what is proven for shallower trees says nothing of deeper ones
            floor = None if limit == depth else float(sides.sum(axis=0)[self.order].min(initial=math.inf))
            self.run = run = DepthRun(shared, limit, most, floor)
            if stop.stage():
                compiled, *others = run.shares(problem, self.rows, self.key, cache, self.scratch[:n_jobs])
                with in_threads(others):
                    compiled()
            if shared.choice[0] >= 0:
                found.append(Found(limit, most, float(shared.choice[0]), run.incumbent))
            if self.control[STOP]:
                if ahead.best.value < found[-1].value:
                    found.append(ahead.best)
                break
            self.order = self.order[np.argsort(run.promise()[self.order], kind="stable")]
        stopped = bool(self.control[STOP])
        return self._solution(
            reader, found, stopped, run.proven() if stopped else run.incumbent, upper, begin, stop
        )  # fmt: skip

    def _solution(
        self,
        reader: TreeReader,
        found: list[Found],
        stopped: bool,
        bound: float,
        upper: float,
        begin: float,
        stop: StopSignal,
    ) -> Solution:
        """The last of the trees found, with its report. Where time ran out while it was read: the better of it and the
        one before.
        """
        trees = list[CodeTree]()
        for best in reversed(found):
            stop.stage(GRACE_SECONDS)
            trees.append(best.tree or reader.read(best.depth, best.leaves, best.choice, upper=upper - self.constant))
            if not self.control[STOP]:
                break
            stopped, bound = True, min(bound, best.value)  # read in part: the optimum may be as low as its value
        objectives = [self.objective(tree) for tree in trees]
        objective = min(objectives)
        report = FitReport(
            stop.reason if stopped else Status.OPTIMAL,
            objective,
            min(bound + self.constant, objective) if stopped else min(objective, upper),
            stop.seconds - begin,
            (*(max(one.value + self.constant, objective) for one in found[:-1]), objective),
            details_of(self.control, self._cache or NO_CACHE.value, len(self.exact_sums)),
        )
        return Solution(trees[objectives.index(objective)], report)

    def _by_sums(self, depth: int, leaves: int, n_jobs: int, stop: StopSignal) -> list[Found]:
        """The best tree of depth three by joint sums, if there is time, and a deeper tree from its first split."""
        self.run = run = self.joint_run(DEEPEST, n_jobs, stop)()
        run.solve(min(leaves, 1 << DEEPEST), math.inf, stop)
        if run.complete < DEEPEST or stop.exhausted:
            return []
        trees = [run.tree(self.exact_sums, self.splits), rolled(run, self.exact_sums, self.splits, depth, leaves, stop)]
        limits = (DEEPEST, min(leaves, 1 << DEEPEST)), (depth, leaves)
        return [Found(*most, None, self._value(tree), tree) for most, tree in zip(limits, trees, strict=True) if tree]

    def _in_order(self, splits: NDArray[np.int32]) -> NDArray[np.int32]:
        """Splits of the root, ordered by the joint sums where there are any."""
        if self.joint is None or self.joint.complete < DEEPEST:
            return splits
        promise = self.joint.promise(len(self.problem.feature_of))
        return splits[np.argsort(promise[splits], kind="stable")]

    def promising(self, stop: StopSignal) -> NDArray[np.int32]:
        """Splits of the root, the most promising first by what was searched so far, at least by trees of depth two."""
        if not len(self.order):
            order = of_depth_two(BASES[self.base], self.make_ready(2, stop), self.rows, self.scratch[0])[1]
            self.order = self._in_order(order)
        return self.order

    def _reader(self, problem: Packed, cache: Packed) -> TreeReader:
        everything = np.arange(len(self.exact_sums), dtype=np.int32)
        return TreeReader(
            BASES[self.base], problem, cache, self.exact_sums, self.splits, self.scratch[0], self.idle, everything
        )

    def rolling(
        self, depth: int, horizon: int, stop: StopSignal, leaves: int | None = None, first: int | None = None
    ) -> CodeTree:
        """A tree by a rolling horizon (`first_trees.py`), with the first split where that is given.

        It is fast after a search as deep as the horizon, whose cache it reads.
        """
        problem, most = self.make_ready(depth, stop), min(leaves or 1 << depth, 1 << depth)
        choice = None if first is None or most < 2 else float(first * MAX_LEAVES + (min(most, 1 << horizon) + 1) // 2)
        return self._reader(problem, Packed(self.cache)).read(depth, most, choice, horizon)

    def continued(self, tree: CodeTree, levels: int, horizon: int, stop: StopSignal) -> CodeTree | None:
        """A tree of this search with so many more levels below each of its leaves, by a rolling horizon of up to two.

        Whatever found the tree, the levels below are compared by the base case of the recursion. None where time ends
        before the tree does.
        """
        reader = replace(self._reader(self.make_ready(min(horizon, 2), stop), NO_CACHE), gives_up=True)
        work, short = partial(reader.continued, tree, levels, horizon), levels * self._work(horizon) < SHORT_WORK
        grown = stop.run(work, self.control[STOP:], short=short)
        return None if self.control[STOP] else grown

    @property
    def floor(self) -> float:
        """What no tree of any depth falls below: rows of equal codes share a leaf (equivalent points)."""
        return float(self.problem.floor.sum()) + self.problem.complexity + self.constant

    def _solve_by(self, make: Callable[[], CutRun | JointRun], leaves: int, stop: StopSignal, upper: float) -> Solution:
        """Let another search than the recursion find the tree."""
        begin, constant = stop.seconds, self.constant
        self.run = run = make()
        bound = run.solve(leaves, upper - constant, stop) + constant
        stopped = bool(self.control[STOP])
        tree = run.tree(self.exact_sums, self.splits)
        objective = self.objective(tree)
        trace = (*(max(value + constant, objective) for value in run.values[:-1]), objective)
        status = stop.reason if stopped else Status.OPTIMAL
        proven = min(bound if stopped else upper, objective)
        details = details_of(self.control, self._cache or NO_CACHE.value, len(self.exact_sums))
        return Solution(tree, FitReport(status, objective, proven, stop.seconds - begin, trace, details))

    def path(
        self, depth: int, leaves: int | None = None, *, time_limit: float = math.inf, **how: Any
    ) -> list[Solution]:
        """Best trees with at most 1, 2, ..., ``leaves`` leaves, from one cache; shorter where time ran out."""
        stop = how.pop("stop", None) or StopSignal(time_limit)
        solutions: list[Solution] = []
        for most in range(1, min(leaves or 1 << depth, 1 << depth) + 1):
            solution = self.solve(depth, most, stop=stop, **how)
            solutions.append(solution)
            if solution.report.status != Status.OPTIMAL:
                break
        return solutions
