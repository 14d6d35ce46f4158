"""From coded rows to optimal trees, whatever the objective: the solvers behind one form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.checks import n_threads
from softsurv.estimators.optimal_rows import (
    FloatArray,
    Rows,
    baseline_of,
    branches_of_codes,
    branches_of_plan,
    exposure,
    with_risk,
)
from softsurv.estimators.solvers import SizedTree
from softsurv.exact.brier.nodes import Plan
from softsurv.exact.brier.solve import IbsSolution, solve_ibs
from softsurv.exact.brier.warm_up import ready as ready_ibs
from softsurv.exact.compile import ready
from softsurv.exact.objectives import relative_risk
from softsurv.exact.objectives.brier import IbsScore
from softsurv.exact.search import Search, Solution
from softsurv.exact.tree import CodeTree
from softsurv.results import FitReport, Status
from softsurv.stopping import StopSignal
from softsurv.trees.hard_tree import HardTree

Progress = Callable[[float, float, float], None]


@dataclass(frozen=True)
class Found:
    """Outcome of a search."""

    tree: HardTree
    report: FitReport
    path: tuple[SizedTree, ...]


class TreeSearch:
    """Optimal trees over training rows for one objective."""

    def __init__(self, rows: Rows, p: Any, leaf: str) -> None:
        self.rows, self.p, self.leaf = rows, p, leaf

    @classmethod
    def warm_up(cls) -> None:
        """Compile what has to be, before a clock starts."""

    @abstractmethod
    def best(self, depth: int | None, leaves: int | None, seconds: float, progress: Progress | None) -> Found:
        """Best tree within limits, and the trees of the sizes below where they came with it."""

    @abstractmethod
    def path(self, depth: int, leaves: int, seconds: float) -> tuple[list[SizedTree], Status]:
        """Best trees with at most 1, 2, ... leaves, up to the limit or to where more do not help; and how it ended."""

    @abstractmethod
    def loss(self, rows: NDArray[np.int64]) -> float:
        """Cost of some rows as one leaf, the part that splits can change."""

    @abstractmethod
    def held_out(self, tree: HardTree, test: Rows) -> float:
        """Mean loss of other rows in the leaves of a tree, with the leaves' values from the training rows."""

    def gains(self, tree: HardTree) -> FloatArray:
        """What each node's split takes off the cost, (V,); 0 at a leaf."""
        at, gain = tree.node_of(self.rows.table, self.rows.n), np.zeros(tree.n_nodes)
        members = [np.flatnonzero(at == node) for node in range(tree.n_nodes)]
        for node in range(tree.n_nodes - 1, -1, -1):  # children come before parents
            if tree.feature[node] >= 0:
                sides = members[tree.left[node]], members[tree.right[node]]
                members[node] = np.sort(np.concatenate(sides))
                gain[node] = self.loss(members[node]) - sum(self.loss(side) for side in sides)
        return gain


class RelativeRiskSearch(TreeSearch):
    """The deviance of proportional hazards over a common Nelson-Aalen baseline (paper `surtree`, eq. 20)."""

    def __init__(self, rows: Rows, p: Any, leaf: str) -> None:
        super().__init__(rows, p, leaf)
        self.baseline = baseline_of(rows)
        self.hazard = exposure(self.baseline, rows)
        w = rows.weight
        self.statistics = relative_risk.statistics(rows.event, self.hazard, w)
        log_hazard = np.log(self.hazard, out=np.zeros(rows.n), where=rows.event)
        self.search = Search(
            relative_risk.TASK,
            rows.codes,
            rows.binarizer.n_codes,
            rows.binarizer.nominal,
            self.statistics,
            -w * rows.event * log_hazard,
            min_leaf=p.min_samples_leaf,
            complexity=p.complexity,
            memory_limit=p.memory_limit,
        )

    @classmethod
    def warm_up(cls) -> None:
        ready(relative_risk.TASK)

    def best(self, depth: int | None, leaves: int | None, seconds: float, progress: Progress | None) -> Found:
        assert depth is not None
        timer = StopSignal(seconds)
        solution = self._solve(depth, leaves, timer, progress)
        proven = solution.report.status == Status.OPTIMAL
        sizes = self._path(depth, solution, timer)[0] if proven else []
        return Found(self.tree_of(solution.tree), solution.report, tuple(sizes))

    def path(self, depth: int, leaves: int, seconds: float) -> tuple[list[SizedTree], Status]:
        timer = StopSignal(seconds)
        solution = self._solve(depth, leaves, timer, None)
        status = solution.report.status
        return self._path(depth, solution, timer) if status == Status.OPTIMAL else ([], status)

    def _path(self, depth: int, largest: Solution, timer: StopSignal) -> tuple[list[SizedTree], Status]:
        """Sizes up to that of the optimum, which more leaves do not improve; the cache keeps what they share."""
        sizes, status, n_leaves = [], Status.OPTIMAL, largest.tree.n_leaves
        for most in range(1, n_leaves):
            status = timer.status or Status.OPTIMAL  # small trees are solved without a look at the clock
            if status == Status.OPTIMAL:
                solution = self._solve(depth, most, timer, None)
                status = solution.report.status
            if status != Status.OPTIMAL:
                break
            sizes.append(SizedTree(most, solution.report.objective, self.tree_of(solution.tree)))
        return [*sizes, SizedTree(n_leaves, largest.report.objective, self.tree_of(largest.tree))], status

    def _solve(self, depth: int, leaves: int | None, timer: StopSignal, progress: Progress | None) -> Solution:
        return self.search.solve(depth, leaves, stop=timer, n_jobs=n_threads(self.p.n_jobs), progress=progress)

    def loss(self, rows: NDArray[np.int64]) -> float:
        return float(relative_risk.TASK.costs(self.statistics[rows].sum(axis=0, keepdims=True))[0])

    def tree_of(self, code_tree: CodeTree) -> HardTree:
        """The tree in the data's own units."""
        return with_risk(self.rows, branches_of_codes(code_tree, self.rows.binarizer), self.statistics)

    def held_out(self, tree: HardTree, test: Rows) -> float:
        """Mean of theta Lambda(t) - c log theta: minus the log-likelihood but for the part that no tree changes."""
        theta = tree.value[test.leaf_of(tree), 0]
        hazard = self.baseline(test.time)
        if test.entry is not None:
            hazard = hazard - self.baseline(test.entry)
        return float(np.average(theta * hazard - test.event * np.log(theta), weights=test.weight))


class IbsSearch(TreeSearch):
    """The integrated Brier score of Kaplan-Meier leaves, or of the leaves that minimise it (paper `osst`, eq. 4)."""

    def __init__(self, rows: Rows, p: Any, leaf: str, reference: FloatArray | None = None) -> None:
        super().__init__(rows, p, leaf)
        if rows.entry is not None:
            raise InvalidSurvivalDataError(
                'entry must be left out for objective="ibs", whose censoring weights know no late entry; '
                'take objective="relative_risk"'
            )
        self.score = IbsScore.from_columns(rows.time, rows.event, rows.weight)
        self.binary = rows.binarizer.binary_of(rows.codes)
        self.reference = reference
        hazard = exposure(baseline_of(rows), rows)
        self.statistics = relative_risk.statistics(rows.event, hazard, rows.weight)

    @classmethod
    def warm_up(cls) -> None:
        ready_ibs()

    def best(self, depth: int | None, leaves: int | None, seconds: float, progress: Progress | None) -> Found:
        solution = self._solve(depth, leaves, seconds, progress)
        return Found(self.tree_of(solution.plan), solution.report, tuple(self._sizes(solution)))

    def path(self, depth: int, leaves: int, seconds: float) -> tuple[list[SizedTree], Status]:
        solution = self._solve(depth, leaves, seconds, None)
        status = solution.report.status
        proven = status in (Status.OPTIMAL, Status.CONDITIONALLY_OPTIMAL)
        return (self._sizes(solution), Status.OPTIMAL) if proven else ([], status)

    def _solve(self, depth: int | None, leaves: int | None, seconds: float, progress: Progress | None) -> IbsSolution:
        limit = None if np.isinf(seconds) else max(seconds, 0.0)
        return solve_ibs(
            self.binary,
            self.rows.time,
            self.rows.event,
            weight=self.rows.weight,
            complexity=self.p.complexity,
            max_depth=depth,
            max_leaves=leaves,
            min_samples_leaf=self.p.min_samples_leaf,
            time_limit=limit,
            memory_limit=self.p.memory_limit,
            reference=self.reference,
            leaf="ipcw" if self.leaf == "ipcw" else "km",
            n_jobs=n_threads(self.p.n_jobs),
            progress=progress,
        )

    def _sizes(self, solution: IbsSolution) -> list[SizedTree]:
        trees = [(loss, self.tree_of(plan)) for loss, plan in solution.path]
        return [
            SizedTree(k + 1, loss + self.p.complexity * tree.n_leaves, tree) for k, (loss, tree) in enumerate(trees)
        ]

    def loss(self, rows: NDArray[np.int64]) -> float:
        return self.score.leaf_loss(rows, "ipcw" if self.leaf == "ipcw" else "km")

    def tree_of(self, plan: Plan | None) -> HardTree:
        """The tree in the data's own units."""
        return with_risk(self.rows, branches_of_plan(plan, self.rows.binarizer), self.statistics)

    def held_out(self, tree: HardTree, test: Rows) -> float:
        """Integrated Brier score of other rows, weighted by their own censoring curve."""
        leaf, at = self.rows.leaf_of(tree), test.leaf_of(tree)
        score = IbsScore.from_columns(test.time, test.event, test.weight)
        place = np.searchsorted(np.unique(self.rows.time), np.unique(test.time), side="right")
        total = 0.0
        for k in np.unique(at):
            curve = self.score.curve(np.flatnonzero(leaf == k), "ipcw" if self.leaf == "ipcw" else "km", monotone=True)
            total += score.loss(np.flatnonzero(at == k), np.concatenate([[1.0], curve])[place])
        return total


SEARCHES: dict[str, type[TreeSearch]] = {"relative_risk": RelativeRiskSearch, "ibs": IbsSearch}
"""What finds the trees of each objective."""
