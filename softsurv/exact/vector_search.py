"""Search for trees whose objectives are vectors: the best tree for given weights, and all trees near it.

>>> search = VectorSearch(ERRORS, codes, n_codes, nominal, statistics, depth=3)  # doctest: +SKIP
>>> search.use(np.array([1.0, 2.0]))  # a false positive costs twice as much as a false negative  # doctest: +SKIP
>>> search.best(stop).tree  # by the engine of `search.py`  # doctest: +SKIP
>>> search.points(stop, upper=30.0).v  # objectives of the trees that cost less than 30  # doctest: +SKIP

The rows are prepared once. Weights change the costs of the rows, not the rows. So `best` and `points` share rows, bit
columns, cache and bounds, and new weights take less than a millisecond.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.errors import InvalidParameterError
from softsurv.exact.bounds import Bounds, interval_applies
from softsurv.exact.kernels.listing import front
from softsurv.exact.kernels.lists import FULL, Listing, new_listing
from softsurv.exact.kernels.subsets import CALLS, STOP
from softsurv.exact.kernels.views import Packed
from softsurv.exact.memory import bytes_of
from softsurv.exact.prepare import GIVEN, RELATIVE_TOLERANCE, SHARED_SPLITS, Prepared, as_size, check_sums, prepare
from softsurv.exact.problem import MAX_DEPTH, column_sums, round_to_grid, row_minima, sum_by_group
from softsurv.exact.row_kinds import unit_of
from softsurv.exact.search import NO_CACHE, Search
from softsurv.exact.tree import CodeTree, LabelledTree, Points, TreeBuilder, WeightedOptimum
from softsurv.exact.vector_task import Objectives
from softsurv.results import Status
from softsurv.stopping import StopSignal

Answer = TypeVar("Answer")

SHORT_RUN = 256
"""With at most so many splits and a depth of two a run takes milliseconds: no thread has to look after the clock."""

LIST_POINTS = 1 << 16
"""Points of a list under construction. If thinning leaves more, the search ends with ``Status.MEMORY_LIMIT``."""

SLACK = 1e-9
"""Share of an objective's size by which two values may differ and still be the same: above the rounding of sums."""

ROUNDING = 1e-12
"""The same for a constraint on the whole tree, which is a plain sum over the rows."""


class VectorSearch:
    """Search over one training set for trees whose objectives are vectors.

    Parameters
    ----------
    objectives : Objectives
    codes, n_codes, nominal
        As `Search` has them.
    statistics : (N, K)
        Statistics of each row. Where rows are of few kinds their sums are population counts, which is fastest.
    depth : int
        Deepest tree, 0 to 10.
    min_leaf : float
        Least rows per leaf, or the least ``size``.
    size : (N,), optional
        What ``min_leaf`` adds up, such as weights; 1 for every row by default.
    memory_limit : float
        Bytes for what the search makes of the rows, for its cache and fronts.
    bounds : Bounds, optional
    n_jobs : int
        Threads of `best`.
    stop : StopSignal, optional
        Its clock does not count compilation.
    lists : bool
        Whether `points` will be called: what it needs is then compiled with the rest.
    cuts : bool
        Whether `best` may search cut by cut where there are very many.
    """

    def __init__(
        self,
        objectives: Objectives,
        codes: NDArray[np.integer],
        n_codes: NDArray[np.integer],
        nominal: BoolArray,
        statistics: FloatArray,
        depth: int,
        *,
        min_leaf: float = 1,
        size: FloatArray | None = None,
        memory_limit: float = 1e9,
        bounds: Bounds | None = None,
        n_jobs: int = 1,
        stop: StopSignal | None = None,
        lists: bool = False,
        cuts: bool = False,
    ) -> None:
        if not 0 <= depth <= MAX_DEPTH:
            raise InvalidParameterError(f"max_depth must be an integer from 0 to {MAX_DEPTH}, got {depth!r}")
        min_leaf, size = as_size(min_leaf, size, len(codes))
        self.objectives, self.depth, self.n_jobs, self.codes = objectives, depth, n_jobs, codes
        self.nominal, self.bounds, self.memory_limit = np.asarray(nominal, dtype=bool), bounds or Bounds(), memory_limit
        self.statistics = np.ascontiguousarray(statistics, dtype=float)
        check_sums(self.statistics)
        self.totals: FloatArray = column_sums(self.statistics)
        given = replace(GIVEN, superadditive=cuts and objectives.rule.task.superadditive)
        self.rows = prepare(
            given, codes, n_codes, nominal, self.statistics, None, size, min_leaf, 0.0, self.bounds, None
        )
        self.rows = replace(self.rows, first_trees=self.rows.first_trees and not self.rows.by_cuts)
        self._kind_count = self.rows.problem.row_kinds.kind_count.astype(float)
        self.size, self._counts = objectives.size_of(self.totals), column_sums(self._kind_count)
        self.slack = ROUNDING * np.maximum(np.abs(objectives.constraint) @ self.size, np.abs(objectives.limit))
        """Rounding by which each constraint (C,) may be missed."""
        self._listing: Packed | None = None
        # the weights that most searches begin with
        self.search = Search.over(self._weighted(np.where(objectives.kept, 0.0, 1.0)), memory_limit)
        if depth > 2:  # else there is no cache
            self.search.memory_limit = 0.3 * self.room + self.search.held - self.search.scratch_bytes
        self.search.make_ready(depth, stop, leaf_points=objectives.rule.leaf_points if lists else None)

    @property
    def held(self) -> float:
        """Bytes of the rows, of what the search makes of them and of scratch; cache and fronts apart."""
        rows = bytes_of(self.statistics, self._kind_count, self.rows, self.search.problem)
        return rows + self.search.scratch_bytes + self.search.cut_bytes

    @cached_property
    def room(self) -> float:
        """Bytes for cache and fronts."""
        return max(self.memory_limit - self.held + self.search.scratch_bytes - self.search.joint_bytes, 0.0)

    # -- weights -------------------------------------------------------------------------------------------------
    def use(self, w: FloatArray, shift: float = 0.0) -> None:
        """Take weights w (D,) for the following calls; what was found for others, or with full memory, is forgotten.

        Where the constraint holds, w . v <= first objective + ``shift``: that bounds the search for the best tree
        under it.
        """
        w, self.shift = np.array(w, dtype=float), shift
        if w.tobytes() != self.w.tobytes() or self.search.control[FULL]:
            self.search.take(self._weighted(w))

    def _weighted(self, w: FloatArray) -> Prepared:
        """The rows with the costs of w . objectives."""
        rule, weights, k = self.objectives.rule, self.objectives.weights, self.statistics.shape[1]
        self.w, self._listed, problem, row_kinds = w, False, self.rows.problem, self.rows.problem.row_kinds
        few, limited = len(row_kinds.kind_stats) > 0, problem.use_size
        floor, use_similar, base = np.zeros(len(problem.stats)), False, np.zeros(len(problem.stats))
        similar = self.bounds.similar and rule.task.linear
        if rule.task.linear:
            label_cost = w @ weights  # (L, K)
            given = row_kinds.kind_stats if few else problem.stats
            each = given[:, :k] @ label_cost.T
            base = row_minima(each)
            each = np.hstack([round_to_grid(each - base[:, None], self._counts if few else None), given[:, k:]])
            stats, self._base_of_kind = each, base
            if few:
                unit = 0.0 if limited else unit_of(each)
                stats, base = self._kind_count @ each, self._kind_count @ base
                row_kinds = row_kinds._replace(kind_stats=each, worst=each[:, : len(weights)].max(axis=1), unit=unit)
                use_similar = similar and not limited and len(row_kinds.split_code) <= SHARED_SPLITS
            if self.bounds.equivalent_points:
                floor = row_minima(stats[:, : len(weights)])
            scale, parameters, width = float(column_sums(stats[:, : len(weights)]).max()), np.zeros(0), len(weights)

            def costs(sums: FloatArray) -> FloatArray:
                return row_minima(sums @ label_cost.T)
        else:
            assert rule.parameters is not None
            assert rule.task.floor is not None
            parameters, width, stats = rule.parameters(w, weights), k, problem.stats
            floor = rule.task.floor(stats[:, :k], parameters)
            scale = float(max(np.abs(rule.task.costs(self.totals[None], parameters)).max(), np.abs(floor).sum()))

            def costs(sums: FloatArray) -> FloatArray:
                return rule.task.costs(sums, parameters)

        self.base = base
        problem = problem._replace(
            stats=np.ascontiguousarray(stats),
            row_kinds=row_kinds,
            floor=np.ascontiguousarray(floor),
            parameters=parameters,
            complexity=float(w @ self.objectives.constant), linear=rule.task.linear, n_statistics=width,
            tolerance=RELATIVE_TOLERANCE * (scale or 1.0), use_similar=use_similar,
            use_interval=self.bounds.interval and interval_applies(rule.task.superadditive, limited),
        )  # fmt: skip
        cancelled = float(base.sum())
        return replace(self.rows, task=rule.task, problem=problem, cancelled=cancelled, costs=costs, similar=similar)

    @property
    def by_cuts(self) -> bool:
        """Whether `best` searches cut by cut."""
        return self.rows.by_cuts

    # -- running -------------------------------------------------------------------------------------------------
    def run(self, work: Callable[[], Answer], stop: StopSignal) -> Answer:
        """Do work that calls the kernels several times: one thread watches the clock, not one for each call."""
        short = self.depth <= 2 and len(self.search.problem.feature_of) <= SHORT_RUN
        return stop.run(work, self.search.control[STOP:], short=short)

    def best(
        self, stop: StopSignal, upper: float = math.inf, leaves: int | None = None, depth: int = MAX_DEPTH
    ) -> WeightedOptimum:
        """The tree with the least w . objectives, if that is below ``upper``, within ``leaves`` and ``depth``."""

        def work() -> WeightedOptimum:
            """Search, and value the tree that was found."""
            self.search.by_cuts = self.by_cuts
            solution = self.search.solve(min(depth, self.depth), leaves, n_jobs=self.n_jobs, stop=stop, upper=upper)
            tree, report = solution.tree, solution.report
            points = self.objectives.points(tree.sums[tree.leaves])
            label = (points @ self.w).argmin(axis=1)
            v = points[np.arange(len(label)), label].sum(axis=0)
            return WeightedOptimum(LabelledTree(tree, label), v, report.objective, report.lower_bound, report.status)

        return self.run(work, stop)

    def points(
        self, stop: StopSignal, upper: float = math.inf, *, constrained: bool = False, depth: int = MAX_DEPTH
    ) -> Points:
        """Trees with w . objectives below ``upper`` that none dominates, within ``depth``.

        ``constrained``: only the tree with the least first objective among those that meet the constraint, if any;
        where the search ends early, the best so far.
        """
        return self.run(lambda: self._points(stop, upper, constrained, min(depth, self.depth)), stop)

    def _points(self, stop: StopSignal, upper: float, constrained: bool, depth: int) -> Points:
        search = self.search
        search.by_cuts = False  # lists are made by the recursion
        problem = search.make_ready(self.depth, stop, leaf_points=self.objectives.rule.leaf_points)
        listing = self._filled(constrained)
        search.control[FULL] = listing.value.n_points[0] = 0  # time may be over before `front` begins a list
        if not stop.stage():
            return self._unfinished(listing, stop.reason)
        front(
            problem, search.rows, len(search.rows), *search.key, depth, upper - search.constant, 0,
            *search.scratch[0], Packed(search.cache) if depth > 2 else NO_CACHE, search.idle, listing,
        )  # fmt: skip
        if search.control[FULL] or search.control[STOP]:
            return self._unfinished(listing, Status.MEMORY_LIMIT if search.control[FULL] else stop.reason)
        filed: Listing = listing.value
        start, end = filed.span[0]
        return Points(filed.filed_point[start:end].copy(), np.arange(start, end), Status.OPTIMAL)

    def _filled(self, constrained: bool) -> Packed:
        """The scratch of a listing, under the present weights."""
        objectives, given = self.objectives, self.rows.problem
        if self._listing is None:
            room = 2 * LIST_POINTS  # only lists of the root are filed
            if self.depth > 2:
                room = max(1024, int(0.5 * self.room / (8 * (objectives.n + 4))))  # by the bytes of a point
            self._listing = Packed(new_listing(given, objectives, self.depth, LIST_POINTS, room, self.slack))
        packed, listing = self._listing, self._listing.value
        if not self._listed:
            listing.filed[0], self._listed = 0, True
            listing.stats[:, -2] = self.base
            if len(listing.kinds):
                listing.kinds[:, -2] = 0.0 if not objectives.rule.task.linear else self._base_of_kind
        limit, shift = objectives.limit + self.slack, self.shift - self.search.constant
        packed.take(listing._replace(w=self.w, limit=limit, shift=shift, front=front.address, constrained=constrained))
        return packed

    def _unfinished(self, packed: Packed, status: Status) -> Points:
        """What the list of the root holds when a listing ends early, filed so that its trees can be read."""
        listing: Listing = packed.value
        start = int(listing.filed[0])
        n = min(int(listing.n_points[0]), len(listing.filed_reduced) - start)
        listing.filed_point[start : start + n] = listing.point[0, :n]
        listing.filed_origin[start : start + n] = listing.origin[0, :n]
        listing.filed[0] = start + n
        return Points(listing.point[0, :n].copy(), np.arange(start, start + n), status)

    # -- reading -------------------------------------------------------------------------------------------------
    def tree(self, place: int) -> LabelledTree:
        """The tree of a listed point. It is lost once points are listed under other weights."""
        builder, label = TreeBuilder(), list[int]()
        self._grow(int(place), builder, label)
        return LabelledTree(builder.tree(), np.array(label))

    def _grow(self, place: int, builder: TreeBuilder, label: list[int]) -> int:
        """Add the tree of a place and return its node. A nested function would keep the search alive (a cycle)."""
        assert self._listing is not None
        labels = self.objectives.n_labels
        if place >= 0:
            split, left, right = self._listing.value.filed_origin[place].tolist()
            if split < 0:
                return self._grow(left, builder, label)
        elif place >= -labels:  # a tree that a code of `listing` stands for
            label.append(-1 - place)
            return builder.add(np.zeros(0))
        else:
            rest, right = divmod(-1 - labels - place, labels)
            split, left = divmod(rest, labels)
            left, right = -1 - left, -1 - right
        feature, code, swapped = self.split(split)
        node = builder.add(np.zeros(0), feature, code)
        sides = (right, left) if swapped else (left, right)
        builder.connect(node, *(self._grow(side, builder, label) for side in sides))
        return node

    def split(self, g: int) -> tuple[int, int, bool]:
        """The given feature and code of a split of the search, and whether its sides are swapped."""
        splits = self.search.splits
        return int(splits.feature[g]), int(splits.code[g]), bool(splits.swapped[g])

    def leaf(self, label: int) -> LabelledTree:
        """The tree without splits."""
        none = np.full(1, -1)
        return LabelledTree(CodeTree(none, none, none, none, self.totals[None]), np.array([label]))

    def meets(self, v: FloatArray) -> bool:
        """Whether objectives (D,) keep to the constraint, but for rounding."""
        return bool((self.objectives.constraint @ v <= self.objectives.limit + self.slack).all())

    def limit_to(self, limit: FloatArray) -> None:
        """Change the limits (C,) of the constraint for the following calls."""
        self.objectives = replace(self.objectives, limit=np.asarray(limit, dtype=float))

    def value(self, tree: LabelledTree) -> FloatArray:
        """Objectives (D,) of a tree, from the rows."""
        leaf = tree.leaf_of(self.codes, self.nominal)
        sums = sum_by_group(self.statistics, leaf, len(tree.label))
        return self.objectives.points(sums)[np.arange(len(tree.label)), tree.label].sum(axis=0)

    @property
    def base_cases(self) -> int:
        """Base cases solved so far."""
        return int(self.search.control[CALLS])
