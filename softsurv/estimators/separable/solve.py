"""From binned rows and limits to the best tree for an additive objective, with a label for each leaf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from softsurv.arrays import FloatArray
from softsurv.estimators.separable.limits import SearchLimits
from softsurv.estimators.shared.inputs import BinnedRows
from softsurv.estimators.shared.progress import search_bar
from softsurv.exact.rashomon.problem import SearchProblem
from softsurv.exact.split_costs import SplitCosts
from softsurv.exact.task import Task
from softsurv.exact.tree import CodeTree, Solution
from softsurv.results import FitReport, Status


@dataclass(frozen=True)
class SizedCodeTree:
    """The best tree with at most some number of leaves, with its objective and the label of each leaf (L,)."""

    max_leaves: int
    objective: float
    tree: CodeTree
    label: NDArray[Any]


@dataclass(frozen=True)
class Solved:
    """Outcome of a solver.

    Attributes
    ----------
    tree : CodeTree
    label : (L,)
        What each leaf answers, leaves from left to right.
    report : FitReport
        Objective, bound and status, in the unit of the objective.
    path : tuple of SizedCodeTree
        Best trees by number of leaves, the largest last; empty where they were not asked for.
    """

    tree: CodeTree
    label: NDArray[Any]
    report: FitReport
    path: tuple[SizedCodeTree, ...] = ()


def solve_task(
    task: Task,
    statistics: FloatArray,
    rows: BinnedRows,
    limits: SearchLimits,
    *,
    label_of: Callable[[FloatArray], NDArray[Any]],
    offset: FloatArray | None = None,
    weight: FloatArray | None = None,
    scale: float = 1.0,
    shift: float = 0.0,
    split_costs: SplitCosts | None = None,
) -> Solved:
    """Solve an additive task exactly.

    Parameters
    ----------
    task : Task
    statistics : (N, K)
    rows, limits
    label_of : callable
        Labels (L,) of leaves from their sums (L, K).
    offset : (N,), optional
        As in `Search`.
    weight : (N,), optional
        What the share of weight per leaf refers to; that of the rows by default.
    scale : float
        The objective is the summed cost divided by this, plus ``shift``; the sum of the weights makes it a mean.
    shift : float
    split_costs : SplitCosts, optional
        Prices of splits; the sums of a leaf then end with its weight.
    """
    problem = problem_of(task, statistics, rows, limits, offset=offset, weight=weight, scale=scale)
    search = problem.search(limits.room.left, split_costs=split_costs)
    limits.room.check(search.held)
    stop = limits.stop
    search.warm_up(limits.depth, stop)

    def sized(most: int, solution: Solution) -> SizedCodeTree:
        tree = solution.tree
        return SizedCodeTree(most, solution.report.objective / scale + shift, tree, label_of(tree.sums[tree.leaves]))

    with search_bar(limits.progress) as bar:

        def solve(leaves: int | None) -> Solution:
            return search.solve(limits.depth, leaves, stop=stop, n_jobs=limits.n_jobs, progress=bar)

        best = solve(limits.leaves)
        largest = sized(best.tree.n_leaves, best)
        path = []
        if limits.path and best.report.status == Status.OPTIMAL:
            for most in range(1, largest.max_leaves):
                solution = solve(most)
                if solution.report.status != Status.OPTIMAL or stop.exhausted:
                    break
                path.append(sized(most, solution))
            path.append(largest)
    report = replace(in_unit(best.report, scale, shift), seconds=stop.seconds)
    return Solved(largest.tree, largest.label, report, tuple(path))


def problem_of(
    task: Task,
    statistics: FloatArray,
    rows: BinnedRows,
    limits: SearchLimits,
    *,
    offset: FloatArray | None = None,
    weight: FloatArray | None = None,
    scale: float = 1.0,
) -> SearchProblem:
    """Rows, objective and limits of a leaf; arguments as `solve_task` has them."""
    weight = rows.weight if weight is None else weight
    by_weight = limits.min_weight > 0.0
    return SearchProblem(
        task,
        rows.codes,
        rows.n_codes,
        rows.nominal,
        statistics,
        offset,
        min_leaf=limits.min_weight * float(weight.sum()) if by_weight else limits.min_leaf,
        size=weight if by_weight else None,
        complexity=limits.complexity * scale,
    )


def in_unit(report: FitReport, scale: float, shift: float = 0.0) -> FitReport:
    """A report whose objective was multiplied by ``scale``, in its own unit."""
    return FitReport(
        report.status,
        report.objective / scale + shift,
        report.lower_bound / scale + shift,
        report.seconds,
        tuple(value / scale + shift for value in report.trace),
        report.details,
    )
