"""From coded rows to optimal trees, whatever the objective: the solvers behind one form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.cores import n_threads
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.optimal.parameters import AUTO_SHRINKAGE, OptimalParameters, least_rows
from softsurv.estimators.optimal.rows import (
    Rows,
    baseline_of,
    branches_of_plan,
    exposure,
)
from softsurv.estimators.optimal.shrinkage import node_rows, with_risk
from softsurv.estimators.separable.tree import branches
from softsurv.estimators.shared.cause_weights import cause_weights
from softsurv.estimators.shared.exact_tree import PROVEN, SizedTree
from softsurv.exact.brier.nodes import TreePlan
from softsurv.exact.brier.solve import IbsSolution, solve_ibs
from softsurv.exact.brier.warm_up import ready as ready_ibs
from softsurv.exact.compile import ready
from softsurv.exact.kernels.cache import ENTRY_BYTES
from softsurv.exact.memory import Room, bytes_of
from softsurv.exact.objectives import relative_risk
from softsurv.exact.objectives.brier import IbsScore
from softsurv.exact.prepare import RELATIVE_TOLERANCE
from softsurv.exact.rashomon.problem import SearchProblem
from softsurv.exact.search import Search
from softsurv.exact.tree import CodeTree, SearchProgress, Solution
from softsurv.results import FitReport, Status
from softsurv.stopping import StopSignal
from softsurv.trees.hard_tree import Branch, HardTree
from softsurv.trees.missing_sides import larger_sides

LEAST_BYTES = 1e6
"""Least memory for the subproblems of a Brier search, which ends when it is full. No `memory_limit` is smaller."""

BINARY_COPIES = 3.5
"""The 0/1 columns of a search for the Brier score: as given, sorted by time, and while they are packed into bits."""

KEPT_BYTES = 1e8
"""A larger cache is not kept for the path of sizes, which is then found without it; nor is a larger search while those
of folds need room."""


@dataclass(frozen=True)
class FoundTree:
    """Outcome of a search; ``path`` works out the best trees with fewer leaves, none where they are not proven."""

    tree: HardTree
    report: FitReport
    path: Callable[[], tuple[SizedTree, ...]] = tuple
    code_tree: CodeTree | None = None  # of a search for relative risks


class TreeSearch:
    """Optimal trees over training rows for one objective, within a room of memory."""

    def __init__(self, rows: Rows, p: OptimalParameters, leaf: str, room: Room) -> None:
        self.rows, self.p, self.leaf, self.room = rows, p, leaf, room
        self.n_jobs = n_threads(p.n_jobs)
        self.shrinkage = AUTO_SHRINKAGE if p.shrinkage == "auto" else float(p.shrinkage)
        self.complexity = float(p.complexity)
        self.least = least_rows(p, rows.n, int(np.count_nonzero(rows.event)))
        self.cause_weights = cause_weights(p.cause_weights, rows.cause_names)
        self.baselines = [baseline_of(one) for one in rows.by_cause]
        self.hazards = [exposure(baseline, rows) for baseline in self.baselines]
        pairs = zip(rows.by_cause, self.hazards, strict=True)
        self.statistics = np.hstack([relative_risk.statistics(one.event, hazard, rows.weight) for one, hazard in pairs])

    @classmethod
    def warm_up(cls, depth: int | str | None) -> None:
        """Compile what trees of a depth need, before a clock starts."""

    def ask(self, complexity: float) -> None:
        """Take another cost per leaf from now on."""
        self.complexity = complexity

    @abstractmethod
    def best(self, depth: int | None, leaves: int | None, seconds: float, progress: SearchProgress | None) -> FoundTree:
        """Best tree within limits."""

    @abstractmethod
    def path(self, depth: int, leaves: int, seconds: float) -> tuple[list[SizedTree], Status]:
        """Best trees with at most 1, 2, ... leaves, up to the limit or to where more do not help; and how it ended."""

    def rest(self, room: float) -> None:
        """Keep at most so many bytes of what was found for the searches to come."""

    def set_aside(self) -> None:
        """Let go of what was made of the rows, until it is needed, where that is much."""

    @property
    @abstractmethod
    def held(self) -> float:
        """Bytes that the search has made of the rows."""

    @property
    def needed(self) -> float:
        """Those of the held bytes without which there is no search; the others only save time."""
        return self.held

    @abstractmethod
    def limit_to(self, room: Room) -> None:
        """Change the room; what was found is forgotten."""

    @abstractmethod
    def loss(self, rows: IntArray) -> float:
        """Cost of some rows as one leaf, the part that splits can change."""

    def leaf_sums(self, tree: HardTree) -> FloatArray:
        """Events and expected events of the training rows of each leaf, for each cause, (L, 2 K)."""
        leaf = self.rows.leaf_of(tree)
        return np.stack([np.bincount(leaf, column, tree.n_leaves) for column in self.statistics.T], axis=1)

    def grown(self, root: Branch | None, leaf_sums: FloatArray | None = None) -> HardTree:
        """The tree of nested branches with the relative risk of every leaf."""
        tree = HardTree.grow(self.rows.sources, root)
        if self.rows.binarizer.routes:
            tree = larger_sides(tree, self.rows.table, self.rows.weight)
        return with_risk(self.rows, tree, self.leaf_sums(tree) if leaf_sums is None else leaf_sums, self.shrinkage)

    def gains(self, tree: HardTree) -> FloatArray:
        """What each node's split takes off the cost, (V,); 0 at a leaf."""
        members, gain = node_rows(tree, tree.node_of(self.rows.table, self.rows.n)), np.zeros(tree.n_nodes)
        for node in np.flatnonzero(tree.feature >= 0):
            sides = members[tree.left[node]], members[tree.right[node]]
            gain[node] = self.loss(members[node]) - sum(self.loss(side) for side in sides)
        return gain


class RelativeRiskSearch(TreeSearch):
    """The deviance of proportional hazards over a common Nelson-Aalen baseline (paper `surtree`, eq. 20)."""

    def __init__(self, rows: Rows, p: OptimalParameters, leaf: str, room: Room) -> None:
        super().__init__(rows, p, leaf, room)
        constant = np.zeros(rows.n)
        for one, hazard, count in zip(rows.by_cause, self.hazards, self.cause_weights, strict=True):
            constant -= count * one.event * np.log(hazard, out=np.zeros(rows.n), where=one.event)
        self.problem = SearchProblem(
            relative_risk.TASK,
            rows.codes,
            rows.binarizer.n_codes,
            rows.binarizer.nominal,
            self._weighed(self.statistics),
            rows.weight * constant,
            min_leaf=self.least,
            complexity=self.complexity,
        )
        self._search: Search | None = self.problem.search(room.left)
        self.limits: tuple[int, int | None] = (0, 1)

    @property
    def search(self) -> Search:
        """Over the rows; made anew where it was set aside."""
        if self._search is None:
            self._search = self.problem.search(self.room.left)
        return self._search

    def ask(self, complexity: float) -> None:
        if complexity != self.complexity:
            self.complexity, self.problem = complexity, replace(self.problem, complexity=complexity)
            self._search = None

    def set_aside(self) -> None:
        if self.held > KEPT_BYTES:
            self._search = None

    @classmethod
    def warm_up(cls, depth: int | str | None) -> None:
        deep, recursive = depth not in (0, 1, 2), depth != 3
        ready(relative_risk.TASK, deep=deep, recursive=recursive, meanwhile=import_torch)

    def best(self, depth: int | None, leaves: int | None, seconds: float, progress: SearchProgress | None) -> FoundTree:
        """Best tree within the limits; smaller sizes are searched when they are asked for."""
        assert depth is not None
        timer, self.limits = StopSignal(seconds), (depth, leaves)
        solution = self.search.solve(depth, leaves, stop=timer, n_jobs=self.n_jobs, progress=progress)
        tree, left = self.tree_of(solution.tree), max(timer.left, 0.0)

        def path() -> tuple[SizedTree, ...]:
            return tuple(self._path(depth, solution, StopSignal(left))[0])

        if solution.report.status != Status.OPTIMAL:
            return FoundTree(tree, solution.report, code_tree=solution.tree)
        self.rest(KEPT_BYTES)  # for a path that may never be asked for
        return FoundTree(tree, solution.report, path, solution.tree)

    def rest(self, room: float) -> None:
        if self.search.n_cached * ENTRY_BYTES > room:
            self.search.empty()

    @property
    def held(self) -> float:
        return 0.0 if self._search is None else self._search.held

    @property
    def needed(self) -> float:
        return self.search.needed

    def limit_to(self, room: Room) -> None:
        self.room, self.search.memory_limit = room, room.left
        self.search.empty()

    def path(self, depth: int, leaves: int, seconds: float) -> tuple[list[SizedTree], Status]:
        timer = StopSignal(seconds)
        solution = self.search.solve(depth, leaves, stop=timer, n_jobs=self.n_jobs)
        status = solution.report.status
        return self._path(depth, solution, timer) if status == Status.OPTIMAL else ([], status)

    def _path(self, depth: int, largest: Solution, timer: StopSignal) -> tuple[list[SizedTree], Status]:
        """Sizes up to that of the optimum, which more leaves do not improve; the cache keeps what they share."""
        sizes, status, n_leaves = [], Status.OPTIMAL, largest.tree.n_leaves
        for most in range(1, n_leaves):
            status = timer.status or Status.OPTIMAL  # small trees are solved without a look at the clock
            if status == Status.OPTIMAL:
                solution = self.search.solve(depth, most, stop=timer, n_jobs=self.n_jobs)
                status = solution.report.status
            if status != Status.OPTIMAL:
                break
            sizes.append(self._sized(most, solution))
        return [*sizes, self._sized(n_leaves, largest)], status

    def _sized(self, most: int, solution: Solution) -> SizedTree:
        tree, sums = self.with_sums(solution.tree)
        return SizedTree(most, solution.report.objective, tree, sums)

    def loss(self, rows: IntArray) -> float:
        sums = self.statistics[rows].sum(axis=0, keepdims=True)
        return float(relative_risk.TASK.costs(self._weighed(sums))[0])

    def tree_of(self, code_tree: CodeTree) -> HardTree:
        """The tree in the data's own units."""
        return self.with_sums(code_tree)[0]

    def with_sums(self, code_tree: CodeTree) -> tuple[HardTree, FloatArray | None]:
        """The same with the sums of its leaves (L, 2); None with competing causes, whose sums are weighed by cause."""
        root, order = branches(code_tree, self.rows.binarizer)
        sums = code_tree.sums[code_tree.leaves[order]] if self.rows.cause is None else None
        return self.grown(root, sums), sums

    def _weighed(self, sums: FloatArray) -> FloatArray:
        """Sums (n, 2 K) with each cause as often as it counts."""
        return sums if self.rows.cause is None else sums * np.repeat(self.cause_weights, 2)


def import_torch() -> None:
    """A second that every fit needs."""
    import torch  # noqa: F401


class IbsSearch(TreeSearch):
    """The integrated Brier score of Kaplan-Meier leaves, or of the leaves that minimise it (paper `osst`, eq. 4)."""

    def __init__(
        self, rows: Rows, p: OptimalParameters, leaf: str, room: Room, reference: FloatArray | None = None
    ) -> None:
        super().__init__(rows, p, leaf, room)
        if rows.entry is not None:
            raise InvalidSurvivalDataError(
                'entry must be left out for objective="ibs", whose censoring weights know no late entry; '
                'take objective="relative_risk"'
            )
        n_splits = sum(len(column.splits) for column in rows.binarizer.columns_)
        room.refuse(
            BINARY_COPIES * rows.n * n_splits, f"{n_splits} splits of {rows.n} rows, as columns of zeros and ones,"
        )
        self.score = IbsScore.from_columns(rows.time, rows.event, rows.weight)
        self.binary = rows.binarizer.binary_of(rows.codes)
        self.reference = reference

    @classmethod
    def warm_up(cls, depth: int | str | None) -> None:
        ready_ibs()

    def best(self, depth: int | None, leaves: int | None, seconds: float, progress: SearchProgress | None) -> FoundTree:
        solution = self._solve(depth, leaves, seconds, progress)
        tree = self.tree_of(solution.plan)
        return FoundTree(tree, self._report(solution.report, tree), lambda: tuple(self._sizes(solution)))

    def _report(self, report: FitReport, tree: HardTree) -> FitReport:
        """The report of the tree as it is returned: the curves of "ipcw" leaves may rise in the search alone."""
        objective = self._objective(tree) if self.leaf == "ipcw" else report.objective
        if objective <= report.objective * (1 + RELATIVE_TOLERANCE):
            return report
        return replace(
            report,
            status=Status.CONDITIONALLY_OPTIMAL if report.status is Status.OPTIMAL else report.status,
            objective=objective,
            trace=tuple(max(value, objective) for value in report.trace),
            details={**report.details, "assumption": "curves of leaves may rise"},
        )

    def _objective(self, tree: HardTree) -> float:
        """Score of a tree with the curves that its leaves predict, cost per leaf included."""
        leaf = self.rows.leaf_of(tree)
        return sum(self.loss(np.flatnonzero(leaf == k)) for k in range(tree.n_leaves)) + self.complexity * tree.n_leaves

    @property
    def held(self) -> float:
        return BINARY_COPIES * bytes_of(self.binary)

    def limit_to(self, room: Room) -> None:
        self.room = room

    def path(self, depth: int, leaves: int, seconds: float) -> tuple[list[SizedTree], Status]:
        solution = self._solve(depth, leaves, seconds, None)
        status = solution.report.status
        return (self._sizes(solution), Status.OPTIMAL) if status in PROVEN else ([], status)

    def _solve(
        self, depth: int | None, leaves: int | None, seconds: float, progress: SearchProgress | None
    ) -> IbsSolution:
        limit = None if np.isinf(seconds) else max(seconds, 0.0)
        return solve_ibs(
            self.binary, self.rows.time, self.rows.event, weight=self.rows.weight, complexity=self.complexity,
            max_depth=depth, max_leaves=leaves, min_samples_leaf=self.least, time_limit=limit,
            memory_limit=max(self.room.left - self.held, LEAST_BYTES), reference=self.reference,
            leaf="ipcw" if self.leaf == "ipcw" else "km", n_jobs=self.n_jobs, progress=progress,
        )  # fmt: skip

    def _sizes(self, solution: IbsSolution) -> list[SizedTree]:
        trees = [(loss, self.tree_of(plan)) for loss, plan in solution.path]
        if self.leaf == "ipcw":
            return [SizedTree(k + 1, self._objective(tree), tree) for k, (_, tree) in enumerate(trees)]
        return [SizedTree(k + 1, loss + self.complexity * tree.n_leaves, tree) for k, (loss, tree) in enumerate(trees)]

    def loss(self, rows: IntArray) -> float:
        return self.score.loss(rows, self.curve(rows))

    def curve(self, rows: IntArray) -> FloatArray:
        """What a leaf of some rows predicts at the distinct training times, (T,)."""
        return self.score.curve(rows, "ipcw" if self.leaf == "ipcw" else "km", monotone=True)

    def tree_of(self, plan: TreePlan | None) -> HardTree:
        """The tree in the data's own units."""
        return self.grown(branches_of_plan(plan, self.rows.binarizer))


SEARCHES: dict[str, type[TreeSearch]] = {"relative_risk": RelativeRiskSearch, "ibs": IbsSearch}
"""What finds the trees of each objective."""
