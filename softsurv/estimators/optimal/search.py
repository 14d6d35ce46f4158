"""From coded rows to optimal trees, whatever the objective: the solvers behind one form."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.optimal.parameters import OptimalParameters
from softsurv.estimators.optimal.rows import Rows, branches_of_plan
from softsurv.estimators.optimal.tree_search import FoundTree, TreeSearch
from softsurv.estimators.separable.tree import branches
from softsurv.estimators.shared.exact_tree import PROVEN, SizedTree
from softsurv.exact.brier.nodes import TreePlan, leaf_count
from softsurv.exact.brier.solve import IbsSolution, solve_ibs
from softsurv.exact.brier.warm_up import ready as ready_ibs
from softsurv.exact.compile import ready
from softsurv.exact.memory import Room, bytes_of
from softsurv.exact.objectives import relative_risk
from softsurv.exact.objectives.brier import IbsScore
from softsurv.exact.prepare import RELATIVE_TOLERANCE
from softsurv.exact.rashomon.problem import SearchProblem
from softsurv.exact.search import Search
from softsurv.exact.tree import CodeTree, SearchProgress, Solution
from softsurv.results import FitReport, Status
from softsurv.stopping import StopSignal
from softsurv.trees.hard_tree import HardTree

LEAST_BYTES = 1e6
"""Least memory for the subproblems of a Brier search, which ends when it is full. No `memory_limit` is smaller."""

BINARY_COPIES = 3.5
"""The 0/1 columns of a search for the Brier score: as given, sorted by time, and while they are packed into bits."""

KEPT_BYTES = 1e8
"""A larger cache is not kept for the path of sizes, which is then found without it; nor is a larger search while those
of folds need room."""


class RelativeRisks(TreeSearch):
    """The deviance of proportional hazards over a common Nelson-Aalen baseline (paper `surtree`, eq. 20)."""

    def __init__(self, rows: Rows, p: OptimalParameters, leaf: str, room: Room) -> None:
        super().__init__(rows, p, leaf, room)
        constant = np.zeros(rows.n)
        for one, hazard, count in zip(rows.by_cause, self.hazards, self.cause_weights, strict=True):
            constant -= count * one.event * np.log(hazard, out=np.zeros(rows.n), where=one.event)
        self.offset = rows.weight * constant  # part of each row's deviance that no split changes, (N,)

    @property
    def constant(self) -> float:
        """The deviance that no tree changes."""
        return math.fsum(self.offset.tolist())

    def loss(self, rows: IntArray) -> float:
        sums = self.statistics[rows].sum(axis=0, keepdims=True)
        return float(relative_risk.TASK.costs(self._weighed(sums))[0])

    def _weighed(self, sums: FloatArray) -> FloatArray:
        """Sums (n, 2 K) with each cause as often as it counts."""
        return sums if self.rows.cause is None else sums * np.repeat(self.cause_weights, 2)


class RelativeRiskSearch(RelativeRisks):
    """The trees of least deviance."""

    def __init__(self, rows: Rows, p: OptimalParameters, leaf: str, room: Room) -> None:
        super().__init__(rows, p, leaf, room)
        self.problem = SearchProblem(
            relative_risk.TASK,
            rows.codes,
            rows.binarizer.n_codes,
            rows.binarizer.nominal,
            self._weighed(self.statistics),
            self.offset,
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
        self.search.rest(room)

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

    def tree_of(self, code_tree: CodeTree) -> HardTree:
        """The tree in the data's own units."""
        return self.with_sums(code_tree)[0]

    def with_sums(self, code_tree: CodeTree) -> tuple[HardTree, FloatArray | None]:
        """The same with the sums of its leaves (L, 2); None with competing causes, whose sums are weighed by cause."""
        root, order = branches(code_tree, self.rows.binarizer)
        sums = code_tree.sums[code_tree.leaves[order]] if self.rows.cause is None else None
        return self.grown(root, sums), sums


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
        tree, proven = self.tree_of(solution.plan), solution.report.status in PROVEN
        path = (lambda: tuple(self._sizes(solution))) if proven else tuple  # else sizes have better trees
        return FoundTree(tree, self._report(solution.report, tree), path)

    def _report(self, report: FitReport, tree: HardTree) -> FitReport:
        """The report of the tree as it is returned: the curves of "ipcw" leaves may rise in the search alone."""
        if self.leaf != "ipcw":
            return report
        objective, root = self._objective(tree), self.loss(np.arange(self.rows.n))
        if objective <= report.objective + RELATIVE_TOLERANCE * (root or 1.0):
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
        """Best trees with at most 1, 2, ... leaves, cost of the leaves included, up to the largest that is better."""
        best: list[tuple[float, TreePlan | None]] = []
        for loss, plan in solution.path:
            value = loss + self.complexity * leaf_count(plan)
            best.append((value, plan) if not best or value < best[-1][0] else best[-1])
        sizes = [(value, self.tree_of(plan)) for value, plan in best[: leaf_count(best[-1][1])]] if best else []
        if self.leaf == "ipcw":
            return [SizedTree(k, self._objective(tree), tree) for k, (_, tree) in enumerate(sizes, start=1)]
        return [SizedTree(k, value, tree) for k, (value, tree) in enumerate(sizes, start=1)]

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
