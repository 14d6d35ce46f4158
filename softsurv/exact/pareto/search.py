"""The Pareto search from outside: prepare the rows, run the compiled recursion, read trees out of the arena."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from softsurv.errors import InvalidParameterError
from softsurv.exact.cache import new_cache
from softsurv.exact.clock import Clock, Watch
from softsurv.exact.pareto import arrays
from softsurv.exact.pareto.arrays import CALLS, EPOCH, FULL, STOP, WORD
from softsurv.exact.pareto.compile import specialise
from softsurv.exact.pareto.task import ParetoTask
from softsurv.exact.pareto.tree import SplitTree, distinct_columns, equal_rows
from softsurv.exact.problem import round_to_grid, sum_by_group
from softsurv.results import Status

FloatArray = NDArray[np.float64]
Answer = TypeVar("Answer")

RELATIVE_TOLERANCE = 1e-10
"""Costs closer than this times the root's cost are the same, as in `search`."""

SIZE_SLACK = 1e-9
"""Share of the least size of a leaf that rounding may take off it."""

MAX_DEPTH = 10

SHORT_RUN = 256
"""With at most so many splits and a depth of two a run takes milliseconds: no thread has to look after the clock."""

LIST_POINTS = 1 << 16
"""Points of a list under construction; a list that stays longer after thinning ends the search, which says so."""


@dataclass(frozen=True)
class Points:
    """Trees that a listing found: objectives (T, D), and where each lies in the arena."""

    v: FloatArray
    place: NDArray[np.int64]
    status: Status


class ParetoSearch:
    """Search over one training set for trees whose objectives are vectors.

    Parameters
    ----------
    task : ParetoTask
    columns : (N, B) bool
        Binary splits.
    statistics : (N, K)
        Task statistics of each row. Where every row has a single 1 the sums are population counts, which is fastest.
    params : (L, D, K + 1)
        Parameters of the task: for linear tasks the weights of the sums, and a constant per leaf.
    depth : int
        Deepest tree, 0 to 10.
    constraint, limit : (C, D), (C,), optional
        ``constraint @ v <= limit`` for the whole tree.
    min_leaf : float
        Least rows per leaf, or the least ``size``.
    size : (N,), optional
        What ``min_leaf`` adds up, such as weights; 1 for every row by default.
    memory_limit : float
        Bytes for cache and fronts.
    """

    def __init__(
        self,
        task: ParetoTask,
        columns: NDArray[np.bool_],
        statistics: FloatArray,
        params: FloatArray,
        depth: int,
        *,
        constraint: FloatArray | None = None,
        limit: FloatArray | None = None,
        min_leaf: float = 1,
        size: FloatArray | None = None,
        memory_limit: float = 1e9,
    ) -> None:
        if not 0 <= depth <= MAX_DEPTH:
            raise InvalidParameterError(f"max_depth must be an integer from 0 to {MAX_DEPTH}, got {depth!r}")
        if size is None and min_leaf > len(columns):
            raise InvalidParameterError(
                f"min_samples_leaf must be at most the number of rows, {len(columns)}, got {min_leaf}"
            )
        self.task, self.depth, self.columns = task, depth, np.asarray(columns, dtype=bool)
        self.statistics = np.ascontiguousarray(statistics, dtype=float)
        self.params = np.ascontiguousarray(params, dtype=float)
        self.min_leaf, self.size = min_leaf, size
        none = np.zeros((0, task.n_objectives))
        self.constraint = none if constraint is None else np.asarray(constraint, dtype=float)
        self.limit = np.zeros(0) if limit is None else np.asarray(limit, dtype=float)
        self.problem = self._problem()
        self.module = specialise(task)
        self.control = np.zeros(8, np.int64)
        self.cache = new_cache(0.3 * memory_limit, expected=(2.0 * len(self.used)) ** max(depth - 1, 0))
        point_bytes = 8 * (task.n_objectives + 4)
        self.arena = arrays.new_arena(max(1024, int(0.5 * memory_limit / point_bytes)), task.n_objectives)
        self.scratch = arrays.new_scratch(self.problem, depth, LIST_POINTS)
        self.scratch.mask[0] = self.problem.everything
        first, group = equal_rows(self.columns)
        self._first = self.position[first]
        self._group_sums = sum_by_group(self.problem.stats[self.position], group, len(first))
        self._listed = -1
        self._watch: Watch | None = None
        self._warm_up()

    def _warm_up(self) -> None:
        """Compile the kernels, or read them from disk, once per process: so that no clock counts it."""
        if vars(self.module).get("warm"):
            return
        self.use(np.zeros(self.task.n_objectives))
        self.control[STOP] = 1
        shared = (self.problem, self.current, self.scratch, self.cache)
        subset = (0, 0, np.uint64(0), np.uint64(0), 0.0)
        self.module.optimum(*shared, self.control, *subset)
        self.module.front(*shared, self.arena, self.control, *subset)
        vars(self.module)["warm"] = True

    # -- preparing -----------------------------------------------------------------------------------------------
    def _problem(self) -> arrays.Problem:
        stats, params = self.statistics, self.params
        row_sum = stats.sum(axis=1)
        counted = bool(len(stats)) and bool(((stats == 0) | (stats == 1)).all() and (row_sum == 1).all())
        limited = self.size is not None or self.min_leaf > 1
        if limited and (self.size is not None or not counted):
            counted = False
            stats = np.column_stack([stats, np.ones(len(stats)) if self.size is None else self.size])
            if self.task.linear:
                params = np.insert(params, params.shape[2] - 1, 0.0, axis=2)
        k = stats.shape[1]
        self.used = distinct_columns(self.columns)
        kind = stats.argmax(axis=1) if counted else np.zeros(len(stats), np.int64)
        self.position, type_of_word = arrays.positions(kind, k if counted else 1)
        n_words = len(type_of_word)
        by_position = np.zeros((WORD * n_words, k))
        by_position[self.position] = stats if counted else round_to_grid(stats)
        columns = self.columns[:, self.used]
        return arrays.Problem(
            bits=arrays.pack(columns, self.position, n_words),
            stats=by_position,
            type_of_word=type_of_word,
            counted=counted,
            random=np.random.default_rng(0).integers(0, 2**63, (n_words, 2), dtype=np.uint64) * np.uint64(2)
            + np.uint64(1),
            everything=arrays.pack(np.ones((len(columns), 1), bool), self.position, n_words)[0],
            params=np.ascontiguousarray(params),
            n_labels=self.task.n_labels,
            kept=np.array(self.task.kept, dtype=np.bool_),
            constraint=np.ascontiguousarray(self.constraint),
            limit=self.limit,
            min_rows=float(self.min_leaf) * (1 - SIZE_SLACK) if limited else 0.0,
            row_count=np.ones(k) if counted else np.eye(k)[-1],
            similar=counted and self.task.linear and not limited,
            tolerance=RELATIVE_TOLERANCE,
        )

    def weights(self, w: FloatArray) -> arrays.Weights:
        """One scalarisation w . objectives as the kernels take it; ``self.base`` is the part that no tree changes."""
        w = np.asarray(w, dtype=float)
        params, stats = self.problem.params, self.problem.stats
        n, k = len(stats), stats.shape[1]
        label_cost = np.einsum("d,ldk->lk", w, params) if self.task.linear else np.zeros((self.task.n_labels, k + 1))
        self.base, excess = 0.0, np.zeros(n)
        if self.problem.counted and self.task.linear:
            least = label_cost[:, :k].min(axis=0)
            label_cost[:, :k] -= least
            self.base = float(least @ stats.sum(axis=0))
            excess = np.repeat(label_cost[:, :k].max(axis=0)[self.problem.type_of_word], WORD)
        floor = self._floor(w, label_cost)
        return arrays.Weights(w, np.ascontiguousarray(label_cost), floor, bool(floor.any()), excess, 0.0, False)

    def _floor(self, w: FloatArray, label_cost: FloatArray) -> FloatArray:
        """What a group of equal rows costs at least, at its first row (equivalent points)."""
        floor = np.zeros(len(self.problem.stats))
        k = self.problem.stats.shape[1]
        if self.task.linear:
            floor[self._first] = (self._group_sums @ label_cost[:, :k].T).min(axis=1)
        elif self.task.floor is not None:
            floor[self._first] = self.task.floor(self._group_sums, w, self.params)
        else:
            floor[self._first[0]] = -np.inf
        return floor

    def limit_to(self, limit: FloatArray) -> None:
        """Change the limits (C,) of the constraint for the following calls."""
        self.limit = np.asarray(limit, dtype=float)
        self.problem = self.problem._replace(limit=self.limit)

    # -- running -------------------------------------------------------------------------------------------------
    def use(self, w: FloatArray, shift: float = 0.0) -> None:
        """Take a scalarisation for the following calls; the cache of another one is left behind.

        Where the constraint holds, w . v <= first objective + ``shift``: that bounds the search for the best tree
        under it.
        """
        weights = self.weights(w)
        self.current = weights._replace(shift=shift - self.base)
        self.control[EPOCH] += 1

    def looked_after(self, work: Callable[[], Answer], clock: Clock) -> Answer:
        """Do work that runs the kernels several times: one thread for all of them takes less time than one for each."""
        if self._watch is not None or self._is_short:
            return work()
        self._watch = Watch(clock, self.control)
        try:
            return self._watch.run(work)
        finally:
            self._watch = None

    @property
    def _is_short(self) -> bool:
        return self.depth <= 2 and len(self.problem.bits) <= SHORT_RUN

    def _run(self, work: Callable[[], None], clock: Clock) -> Status:
        """Run a kernel, within the clock's time where it may take long."""
        self.control[STOP] = self.control[FULL] = 0
        if clock.status != Status.OPTIMAL:
            return clock.status
        if self._watch is not None:
            self._watch.stage()
        self.looked_after(work, clock)
        if self.control[FULL]:
            return Status.MEMORY_LIMIT
        return clock.status if self.control[STOP] else Status.OPTIMAL

    def optimum(self, clock: Clock, upper: float = np.inf) -> tuple[float, Status]:
        """Least w . objectives where it is below ``upper``, else a bound that is not; only proven where OPTIMAL."""
        found = [np.inf]

        def work() -> None:
            found[0] = self.module.optimum(
                self.problem, self.current, self.scratch, self.cache, self.control,
                0, self.depth, np.uint64(0), np.uint64(0), upper - self.base,
            )  # fmt: skip

        status = self._run(work, clock)
        return found[0] + self.base, status

    def points(self, clock: Clock, upper: float = np.inf, *, constrained: bool = False) -> Points:
        """Trees with w . objectives below ``upper`` that none dominates.

        ``constrained``: of those that meet the constraint the one with the least first objective, if any; where the
        search ends early, the best so far.
        """
        if self.control[EPOCH] != self._listed:
            self.arena.used[0], self._listed = 0, int(self.control[EPOCH])

        weights = self.current._replace(constrained=constrained)

        def work() -> None:
            self.module.front(
                self.problem, weights, self.scratch, self.cache, self.arena, self.control,
                0, self.depth, np.uint64(0), np.uint64(0), upper - self.base,
            )  # fmt: skip

        status = self._run(work, clock)
        if status != Status.OPTIMAL:
            return self._unfinished(status)
        start, end = self.scratch.span[0]
        return Points(self.arena.point[start:end].copy(), np.arange(start, end), status)

    def _unfinished(self, status: Status) -> Points:
        """What the list of the root holds when a listing ends early, filed so that its trees can be read."""
        n = int(self.scratch.n_points[0])
        start = int(self.arena.used[0])
        n = min(n, len(self.arena.reduced) - start)
        self.arena.point[start : start + n] = self.scratch.point[0, :n]
        self.arena.origin[start : start + n] = self.scratch.origin[0, :n]
        self.arena.used[0] = start + n
        return Points(self.scratch.point[0, :n].copy(), np.arange(start, start + n), status)

    # -- reading -------------------------------------------------------------------------------------------------
    def tree(self, place: int) -> SplitTree:
        """The tree of a point in the arena; before the next scalarisation is listed."""
        split, left, right = (int(x) for x in self.arena.origin[place])
        if split < 0:
            return self._coded(left)
        sides = [self.tree(side) if side >= 0 else self._coded(side) for side in (left, right)]
        return SplitTree(int(self.used[split]), 0, *sides)

    def _coded(self, code: int) -> SplitTree:
        """The tree that a code of `two` stands for."""
        labels = self.task.n_labels
        if code >= -labels:
            return SplitTree(label=-1 - code)
        rest, right = divmod(-1 - labels - code, labels)
        split, left = divmod(rest, labels)
        return SplitTree(int(self.used[split]), 0, SplitTree(label=left), SplitTree(label=right))

    def value(self, tree: SplitTree) -> FloatArray:
        """Objectives of a tree, from the rows."""
        leaves = tree.leaves
        sums = sum_by_group(self.statistics, tree.leaf_of(self.columns), len(leaves))
        labels = [leaf.label for leaf in leaves]
        return self.task.points(sums, self.params)[np.arange(len(leaves)), labels].sum(axis=0)

    @property
    def base_cases(self) -> int:
        return int(self.control[CALLS])
