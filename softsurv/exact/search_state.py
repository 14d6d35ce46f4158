"""What a search keeps between its calls: the rows as kernels see them, what is compiled, scratch and the cache."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from softsurv.exact.compile import CUTS, price_of, ready, ready_to_join
from softsurv.exact.cuts.run import CutRun
from softsurv.exact.cuts.scratch import bytes_of_cuts
from softsurv.exact.depth_run import DepthRun, new_shared, work_of
from softsurv.exact.first_trees import LONG_WORK, Ahead
from softsurv.exact.joint.run import DEEPEST, JointRun
from softsurv.exact.joint.scratch import bytes_of_joint
from softsurv.exact.kernels.cache import ENTRY_BYTES, Cache, at_rest, forget, new_cache, with_room
from softsurv.exact.kernels.views import Packed
from softsurv.exact.memory import TABLE_SHARE, bytes_of, bytes_of_pairs, bytes_of_scratch, bytes_of_shares
from softsurv.exact.prepare import Prepared
from softsurv.exact.problem import Scratch, SearchArrays, column_sums
from softsurv.exact.split_costs import SplitCosts, paid
from softsurv.exact.tree import CodeTree
from softsurv.stopping import StopSignal

JOINT_TABLES = 7.0
"""Memory of a search by joint sums, in tables of one thread: tables of all rows, of the rows below first splits, of
each thread, and copies while they are compared."""


THREADS_SHARE = 0.5
"""Share of the memory beside the rows and the first thread's scratch that further threads may take; the cache has the
rest, without which they find the same again."""


class SearchState:
    """A prepared problem with the cache of a search, its scratch and the functions compiled for it."""

    _cache: Cache | None = None
    _resting: bool = False
    problem: SearchArrays
    by_joint: bool

    def _start(self, prepared: Prepared, memory_limit: float, split_costs: SplitCosts | None) -> None:
        self.split_costs, self.memory_limit = split_costs, memory_limit
        self._deep, self._recursive, self._leaf_points = False, False, None
        self._packed: Packed | None = None
        self._ready_for: tuple[Any, ...] = ()
        self._in_lanes = bytes_of_pairs(prepared.problem) <= TABLE_SHARE * memory_limit
        self._shares = bytes_of_shares(prepared.problem) <= TABLE_SHARE * memory_limit
        self._set(prepared)
        self.control = np.zeros(8, np.int64)
        self.scratch: list[Scratch] = []
        self.take_scratch(0 if self.by_joint else 1)
        self.run: DepthRun | CutRun | JointRun | None = None  # the latest, for the progress bar
        self.ahead: Ahead | None = None  # trees by a rolling horizon

    def take(self, prepared: Prepared) -> None:
        """Go on with other costs of the same rows, in arrays of the same shapes; nothing found before is kept."""
        calls = self.problem.calls
        self._set(prepared)
        self.problem = self.problem._replace(calls=calls)
        if self._packed is not None:
            self._packed.take(self.problem)
        if self._cache is not None:
            forget(self._cache)

    def _set(self, prepared: Prepared) -> None:
        self.task, self.base, self.problem, self.rows = prepared.task, prepared.base, prepared.problem, prepared.rows
        lanes, similar = self.problem.use_lanes and self._in_lanes, self.problem.use_similar and self._shares
        self.problem = self.problem._replace(use_lanes=lanes, use_similar=similar)
        self.exact_sums, self.splits, self.cancelled = prepared.sums, prepared.splits, prepared.cancelled
        self.costs, self.similar, self.by_cuts = prepared.costs, prepared.similar, prepared.by_cuts
        self.first_trees = prepared.first_trees
        self.by_joint = prepared.by_joint and self._joint_bytes(prepared) <= self.memory_limit
        self.joint: JointRun | None = None  # with its sums, which serve all limits
        self.constant = prepared.offset + self.cancelled
        key = column_sums(self.problem.keys)
        self.key = key[0], key[1]
        self.order = np.empty(0, np.int32)  # splits of the root, the most promising first

    @staticmethod
    def _joint_bytes(prepared: Prepared) -> float:
        """Bytes that a search by joint sums holds: it only saves time, so the memory limit decides on it."""
        rows = bytes_of(prepared.problem, prepared.rows, prepared.sums)
        return rows + JOINT_TABLES * bytes_of_joint(prepared.problem, len(prepared.rows))

    def empty(self) -> None:
        """Empty the cache and give its memory back; the next one is as large as the limit allows beside all else."""
        self._cache, self._resting = None, False

    def rest(self, room: float) -> None:
        """Between two calls: keep what is known, if it takes at most so many bytes, and no room for more."""
        self.ahead = None  # its reader holds the cache, and its values this search: a circle that nothing would free
        if self.n_cached * ENTRY_BYTES > room:
            self.empty()
        elif self._cache is not None and not self._resting:
            self._cache, self._resting = at_rest(self._cache), True

    @property
    def needed(self) -> float:
        """Bytes of the rows as kernels see them and of scratch."""
        rows = bytes_of(self.problem, self.rows, self.exact_sums)
        return rows + self.scratch_bytes + self.cut_bytes

    @property
    def held(self) -> float:
        """The same with the tables of a search by joint sums. The cache is not counted."""
        return self.needed + self.joint_bytes

    @property
    def cut_bytes(self) -> float:
        """Bytes of a search by cuts."""
        return bytes_of_cuts(self.problem, self.similar) if self.by_cuts else 0.0

    @property
    def joint_bytes(self) -> float:
        """Bytes of the tables of a search by joint sums."""
        return JOINT_TABLES * bytes_of_joint(self.problem, len(self.rows)) if self.by_joint else 0.0

    @property
    def scratch_bytes(self) -> float:
        """Bytes of the scratch of all threads; a search by cuts writes to its own alone."""
        return 0.0 if self.by_cuts else bytes_of_scratch(self.scratch)

    @property
    def cache(self) -> Cache:
        """What is known of subsets; made when a search first needs it."""
        if self._cache is None:
            self._cache = new_cache(self.memory_limit - self.held, expected=0.0)
        elif self._resting:
            self._cache, self._resting = with_room(self._cache, self.memory_limit - self.held), False
        return self._cache

    @cache.setter
    def cache(self, cache: Cache) -> None:
        self._cache = cache

    @cached_property
    def idle(self) -> Packed:
        """State for calls below the root, which share nothing but the flags."""
        return Packed(new_shared(self.control, self.order, 1, math.inf, np.zeros((2, len(self.problem.feature_of)))))

    @property
    def n_cached(self) -> int:
        """Entries of the cache."""
        return 0 if self._cache is None else int(self._cache.used[0])

    def take_scratch(self, threads: int) -> None:
        """Make scratch for so many threads of the recursion, fewer where the memory limit has no room for all; the
        cache is emptied and made anew in the memory left.
        """
        more = threads - len(self.scratch)
        if self.scratch and more > 0:
            each = bytes_of_scratch(self.scratch) / len(self.scratch)
            more = min(more, int(max(THREADS_SHARE * (self.memory_limit - self.held), 0.0) / each))
        self.scratch += [Scratch(self.problem, self.control) for _ in range(more)]
        self.empty()

    def warm_up(self, depth: int, stop: StopSignal) -> None:
        """Compile what `solve` calls at a depth."""
        if self.joins(depth):
            ready_to_join(self.task, triples=depth > 2, stop=stop)
        else:
            self.make_ready(depth, stop)

    def joins(self, depth: int) -> bool:
        """Whether trees of a depth are compared by joint sums."""
        return self.by_joint and depth <= DEEPEST

    def make_ready(
        self, depth: int, stop: StopSignal | None = None, *, recursive: bool = False, leaf_points: Any = None
    ) -> Packed:
        """The problem as kernels see it, with the compiled functions that the recursion calls at this depth."""
        if not self.scratch:
            self.take_scratch(1)
        if self.by_joint and depth > DEEPEST:
            ready_to_join(self.task, triples=True, stop=stop)
        self._deep = self._deep or depth > 2  # what was compiled for one call serves the later ones
        self._leaf_points = leaf_points or self._leaf_points
        self._recursive = self._recursive or recursive or depth > 3 or self._leaf_points is not None
        asked = (self.by_cuts, self._deep, self._recursive, self._leaf_points)
        if self._packed is not None and asked == self._ready_for:
            return self._packed
        self._ready_for = asked
        calls = ready(
            self.task, CUTS if self.by_cuts else self.base, deep=self._deep, recursive=self._recursive,
            in_lanes=self.problem.use_lanes, leaf_points=self._leaf_points, stop=stop,
        )  # fmt: skip
        if self._packed is None or self.problem.calls != calls:
            self.problem = self.problem._replace(calls=calls)
            self._packed = Packed(self.problem)
        return self._packed

    def joint_run(self, depth: int, n_jobs: int, stop: StopSignal) -> Callable[[], JointRun]:
        """Compile the search by joint sums; the returned function makes one, or takes the one that has its sums."""
        calls = ready_to_join(self.task, triples=depth > 2, stop=stop)

        def run() -> JointRun:
            if self.joint is None:
                packed = Packed(self.problem._replace(calls=calls))
                self.joint = JointRun(packed, self.rows, price_of(self.task), self.control)
            self.joint.depth, self.joint.n_jobs = depth, n_jobs
            return self.joint

        return run

    def _work(self, depth: int) -> float:
        return work_of(self.problem, len(self.rows), depth, self.base, self.by_cuts)

    def is_long(self, depth: int, times: float = 1.0) -> bool:
        """Whether so many searches of this depth may take so long that trees by a rolling horizon beforehand pay."""
        return self.first_trees and times * self._work(depth) > LONG_WORK

    def _value(self, tree: CodeTree) -> float:
        """Objective of a tree as the search has it."""
        return self.objective(tree) - self.constant

    def objective(self, tree: CodeTree) -> float:
        """Objective of a tree from its leaves' sums, offsets and cost per leaf included."""
        costs = math.fsum(self.costs(tree.sums[tree.leaves])) - self.cancelled
        prices = 0.0 if self.split_costs is None else paid(tree, self.split_costs, tree.sums[:, -1])
        return costs + prices + self.problem.complexity * tree.n_leaves + self.constant
