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
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.exact.bounds import Bounds
from softsurv.exact.compile import BASES, CUTS, ready
from softsurv.exact.cuts.run import CutRun
from softsurv.exact.depth_run import SHORT_WORK, DepthRun, details_of, new_shared, root_bounds, work_of
from softsurv.exact.first_trees import LONG_WORK, Ahead, Found, of_depth_two
from softsurv.exact.kernels.cache import forget, new_cache, with_heads
from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.kernels.views import Packed
from softsurv.exact.memory import bytes_of, bytes_of_scratch
from softsurv.exact.prepare import Prepared, as_size, check_arrays, prepare
from softsurv.exact.problem import new_scratch
from softsurv.exact.reconstruct import TreeReader
from softsurv.exact.split_costs import SplitCosts, paid
from softsurv.exact.task import Task
from softsurv.exact.tree import CodeTree, Solution
from softsurv.results import FitReport, Status
from softsurv.stopping import StopSignal

GRACE_SECONDS = 0.25
"""What the best tree of depth two, and reading a tree out of the cache, may take after the end of the clock."""

CHILDREN = 2.0
"""Subproblems expected per choice of splits above the base case."""

Progress = Callable[[float, float, float], None]
"""Called with (share of the root's splits done, lower bound, incumbent)."""


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
        Prices of splits.
    bounds : Bounds
    memory_limit : float
        Bytes for what the search makes of the rows and for its cache. A full cache makes the search slower, not
        inexact.

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

    def _start(self, prepared: Prepared, memory_limit: float, split_costs: SplitCosts | None) -> None:
        self.split_costs, self.memory_limit = split_costs, memory_limit
        self._deep = self._recursive = False
        self._set(prepared)
        self.control = np.zeros(8, np.int64)
        self.scratch = [new_scratch(self.problem, self.control)]
        self.empty()
        self.run: DepthRun | CutRun | None = None  # the latest, for the progress bar
        self.ahead: Ahead | None = None  # trees by a rolling horizon

    def take(self, prepared: Prepared) -> None:
        """Go on with other costs of the same rows, in arrays of the same shapes; nothing found before is kept."""
        self._set(prepared)
        forget(self.cache)

    def _set(self, prepared: Prepared) -> None:
        self.task, self.base, self.problem, self.rows = prepared.task, prepared.base, prepared.problem, prepared.rows
        self.exact_sums, self.splits, self.cancelled = prepared.sums, prepared.splits, prepared.cancelled
        self.costs, self.similar, self.by_cuts = prepared.costs, prepared.similar, prepared.by_cuts
        self.first_trees = prepared.first_trees
        self.constant = prepared.offset + self.cancelled
        key = self.problem.keys.sum(axis=0, dtype=np.uint64)
        self.key = key[0], key[1]
        self.order = np.empty(0, np.int32)  # splits of the root, the most promising first
        self._packed: Packed | None = None
        self._ready_for: tuple[Any, ...] = ()

    def empty(self) -> None:
        """Empty the cache and give its memory back; the next one is as large as the limit allows beside all else."""
        self.held = bytes_of(self.problem, self.rows, self.exact_sums) + bytes_of_scratch(self.scratch)
        self.cache = new_cache(self.memory_limit - self.held, expected=0.0)

    def make_ready(
        self, depth: int, stop: StopSignal | None = None, *, recursive: bool = False, leaf_points: Any = None
    ) -> Packed:
        """The problem as kernels see it, with the compiled functions that a search of this depth calls."""
        self._deep = self._deep or depth > 2  # what one call needed serves the others
        self._recursive = self._recursive or recursive or depth > 3 or leaf_points is not None
        asked = (self.by_cuts, self._deep, self._recursive, leaf_points)
        if self._packed is not None and asked == self._ready_for:
            return self._packed
        self._ready_for = asked
        calls = ready(
            self.task, CUTS if self.by_cuts else self.base, deep=self._deep, recursive=self._recursive,
            in_lanes=self.problem.use_lanes, leaf_points=leaf_points, stop=stop,
        )  # fmt: skip
        if self._packed is None or self.problem.calls != calls:
            self.problem = self.problem._replace(calls=calls)
            self._packed = Packed(self.problem)
        return self._packed

    # -- solving -------------------------------------------------------------------------------------------------
    def solve(
        self,
        depth: int,
        leaves: int | None = None,
        *,
        time_limit: float = math.inf,
        n_jobs: int = 1,
        progress: Progress | None = None,
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
            Only trees with an objective below this are wanted. Where there is none, the lower bound says so.
        """
        leaves = min(leaves or 1 << depth, 1 << depth)
        depth, stop = min(depth, leaves - 1), stop or StopSignal(time_limit)
        self.run = self.ahead = None
        problem = self.make_ready(depth, stop)

        def tell() -> None:
            run = self.run
            if progress is not None and run is not None and not stop.exhausted:
                incumbent = min(run.incumbent, math.inf if self.ahead is None else self.ahead.best.value)
                progress(run.done, min(run.proven(), incumbent) + self.constant, incumbent + self.constant)

        work = partial(self._solve, problem, depth, leaves, n_jobs, stop, upper)
        if self.by_cuts:
            work = partial(self._solve_by_cuts, problem, depth, leaves, stop, upper)
        short = self._work(depth) < SHORT_WORK
        solution = stop.run(work, self.control[STOP:], tell, short=short)
        report = solution.report
        if progress is not None and report.status == Status.OPTIMAL:
            progress(1.0, report.lower_bound, report.objective)
        return solution

    def _solve(self, problem: Packed, depth: int, leaves: int, n_jobs: int, stop: StopSignal, upper: float) -> Solution:
        begin = stop.seconds
        if depth > 2 and len(self.scratch) < n_jobs:
            self.scratch += [new_scratch(self.problem, self.control) for _ in range(n_jobs - len(self.scratch))]
            self.empty()
        self.cache = with_heads(self.cache, CHILDREN * len(self.problem.feature_of) ** max(depth - 2, 0))
        cache = Packed(self.cache)
        reader = self._reader(problem, cache)
        stop.stage(GRACE_SECONDS)
        if depth <= 2:
            found, bound = [Found(depth, leaves)], float(self.problem.floor.sum()) + self.problem.complexity
        else:
            best, order = of_depth_two(BASES[self.base], problem, self.rows, self.scratch[0])
            self.order, found = self.order if len(self.order) else order, [best]
            sides = root_bounds(self.problem, None if self.control[STOP] else self.scratch[0].local.value)
            self.ahead = ahead = Ahead(reader, self._value, depth, leaves, found[0])
            bound = self._deepen(
                problem, cache, found, ahead, sides, depth, leaves, n_jobs, stop, upper - self.constant
            )
        stopped, trees = depth > 2 and bool(self.control[STOP]), list[CodeTree]()
        for best in reversed(found):
            stop.stage(GRACE_SECONDS)
            trees.append(best.tree or reader.read(best.depth, best.leaves, best.choice))
            if not self.control[STOP]:
                break
            stopped, bound = True, min(bound, best.value)  # read in part only: proven is the value, not this tree
        objectives = [self.objective(tree) for tree in trees]
        objective = min(objectives)
        report = FitReport(
            stop.reason if stopped else Status.OPTIMAL,
            objective,
            min(bound + self.constant, objective) if stopped else min(objective, upper),
            stop.seconds - begin,
            (*(max(one.value + self.constant, objective) for one in found[:-1]), objective),
            details_of(self.control, self.cache, len(self.exact_sums)),
        )
        return Solution(trees[objectives.index(objective)], report)

    def _reader(self, problem: Packed, cache: Packed) -> TreeReader:
        everything = np.arange(len(self.exact_sums), dtype=np.int32)
        idle = new_shared(self.control, self.order, 1, math.inf, np.zeros((2, len(self.problem.feature_of))))
        return TreeReader(
            BASES[self.base], problem, cache, self.exact_sums, self.splits, self.scratch[0], Packed(idle), everything
        )

    def rolling(self, depth: int, horizon: int, stop: StopSignal) -> CodeTree:
        """A tree by a rolling horizon (`first_trees.py`); best after a search of that depth."""
        problem = self.make_ready(depth, stop)
        return self._reader(problem, Packed(self.cache)).read(depth, 1 << depth, None, horizon)

    def _solve_by_cuts(self, problem: Packed, depth: int, leaves: int, stop: StopSignal, upper: float) -> Solution:
        begin, constant = stop.seconds, self.constant
        self.run = run = CutRun(problem, self.rows, depth, self.similar, self.control)
        bound = run.solve(leaves, upper - constant, stop) + constant
        stopped = bool(self.control[STOP])
        tree = run.tree(self.exact_sums, self.splits)
        objective = self.objective(tree)
        trace = (*(max(value + constant, objective) for value in run.values[:-1]), objective)
        status = stop.reason if stopped else Status.OPTIMAL
        proven = min(bound if stopped else upper, objective)
        details = details_of(self.control, self.cache, len(self.exact_sums))
        return Solution(tree, FitReport(status, objective, proven, stop.seconds - begin, trace, details))

    def _deepen(
        self,
        problem: Packed,
        cache: Packed,
        found: list[Found],
        ahead: Ahead,
        sides: FloatArray,
        depth: int,
        leaves: int,
        n_jobs: int,
        stop: StopSignal,
        upper: float,
    ) -> float:
        """Run the recursion depth by depth, adding to what is ``found``; a lower bound.

        ``sides`` (2, G) are bounds of both sides of the root's splits.
        """
        for limit in range(3, depth + 1):
            most = min(leaves, 1 << limit)
            if self.is_long(limit) and stop.stage():
                ahead.look(found[-1], limit - 1)
            if limit == depth and ahead.best.value < found[-1].value:
                found.append(ahead.best)
            shared = new_shared(self.control, self.order, most, min(found[-1].value, upper), sides)
            # what is proven for shallower trees says nothing of deeper ones
            floor = None if limit == depth else float(sides.sum(axis=0)[self.order].min(initial=math.inf))
            self.run = run = DepthRun(shared, limit, most, floor)
            if stop.stage():
                run.go(problem, self.rows, self.key, cache, self.scratch[:n_jobs])
            if shared.choice[0] >= 0:
                found.append(Found(limit, most, float(shared.choice[0]), run.incumbent))
            if self.control[STOP]:
                if ahead.best.value < found[-1].value:
                    found.append(ahead.best)
                break
            self.order = self.order[np.argsort(run.promise()[self.order], kind="stable")]
        return run.proven()

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

    def _work(self, depth: int) -> float:
        return work_of(self.problem, len(self.rows), depth, self.base, self.by_cuts)

    def is_long(self, depth: int, times: float = 1.0) -> bool:
        """Whether so many searches of this depth may take long, so that trees beforehand pay."""
        return self.first_trees and times * self._work(depth) > LONG_WORK

    def _value(self, tree: CodeTree) -> float:
        """Objective of a tree as the search has it."""
        return self.objective(tree) - self.constant

    def objective(self, tree: CodeTree) -> float:
        """Objective of a tree from its leaves' sums, offsets and cost per leaf included."""
        costs = math.fsum(self.costs(tree.sums[tree.leaves])) - self.cancelled
        prices = 0.0 if self.split_costs is None else paid(tree, self.split_costs, tree.sums[:, -1])
        return costs + prices + self.problem.complexity * tree.n_leaves + self.constant
