"""The contract between estimators and exact solvers: coded rows and limits in, a tree with a label per leaf out.

A *solver* of `OptimalClassificationTree` is a function

    solver(rows: CodedRows, label: (N,) int, limits: Limits, estimator) -> Solved

registered under the name of an objective with `register`. It reads further arguments off the estimator. `solve_task`
is the solver of every task that the engine takes; `classification.py` registers the additive objectives with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray
from softsurv.errors import InvalidParameterError
from softsurv.exact.compile import ready
from softsurv.exact.prepare import check_weights
from softsurv.exact.search import Progress, Search, Solution
from softsurv.exact.split_costs import SplitCosts
from softsurv.exact.task import Task
from softsurv.exact.tree import CodeTree
from softsurv.results import FitReport, Status
from softsurv.stopping import StopSignal
from softsurv.trees.hard_tree import HardTree


@dataclass(frozen=True)
class CodedRows:
    """Training rows as the engine takes them.

    Attributes
    ----------
    codes : (N, P) int32
        Bin of each row on each feature.
    n_codes : (P,) int
        Bins of each feature.
    nominal : (P,) bool
        Features of which one level is split from the rest; the others are ordered.
    weight : (N,)
        Case weights > 0.
    sources : tuple of str (P,)
        The raw column of each feature.
    """

    codes: NDArray[np.int32]
    n_codes: NDArray[np.int32]
    nominal: NDArray[np.bool_]
    weight: FloatArray
    sources: tuple[str, ...]

    def __post_init__(self) -> None:
        check_weights(self.weight)

    @property
    def n(self) -> int:
        """N."""
        return len(self.codes)


@dataclass(frozen=True)
class Limits:
    """What a tree may be, and what finding it may take.

    Attributes
    ----------
    depth : int
    leaves : int or None
        ``2**depth`` where None.
    min_leaf : int
        Least rows per leaf.
    min_weight : float
        Least share of the total weight per leaf; not together with ``min_leaf``.
    complexity : float
        Cost per leaf, in the unit of the objective.
    seconds : float
        Time for the search, compilation apart; ``inf`` for as long as it takes.
    n_jobs : int
        Threads.
    memory_limit : float
        Bytes.
    progress : callable or None
    path : bool
        Whether the best trees with fewer leaves are wanted too.
    """

    depth: int
    leaves: int | None
    min_leaf: int
    min_weight: float
    complexity: float
    seconds: float
    n_jobs: int = 1
    memory_limit: float = 1e9
    progress: Progress | None = None
    path: bool = False


@dataclass(frozen=True)
class SizedTree:
    """The best tree with at most some number of leaves.

    Attributes
    ----------
    max_leaves : int
        The limit; the tree may have fewer leaves where more do not help.
    objective : float
        Cost per leaf included.
    tree : HardTree
    """

    max_leaves: int
    objective: float
    tree: HardTree


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
    attributes : dict
        Further fitted attributes for the estimator, such as ``front_``.
    """

    tree: CodeTree
    label: NDArray[Any]
    report: FitReport
    path: tuple[SizedCodeTree, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)


Solver = Callable[[CodedRows, NDArray[np.int64], Limits, Any], Solved]

CLASSIFIERS: dict[str, Solver] = {}
"""The solver of each classification objective."""


def register(name: str) -> Callable[[Solver], Solver]:
    """Make a function the solver of a classification objective."""

    def add(solver: Solver) -> Solver:
        if name in CLASSIFIERS:
            raise InvalidParameterError(f"objective {name!r} has a solver already; choose another name")
        CLASSIFIERS[name] = solver
        return solver

    return add


def solve_task(
    task: Task,
    statistics: FloatArray,
    rows: CodedRows,
    limits: Limits,
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
        Of a task with ``branching``; the sums of a leaf then have its weight behind.
    """
    weight = rows.weight if weight is None else weight
    by_weight = limits.min_weight > 0.0
    search = Search(
        task,
        rows.codes,
        rows.n_codes,
        rows.nominal,
        statistics,
        offset,
        min_leaf=limits.min_weight * float(weight.sum()) if by_weight else limits.min_leaf,
        size=weight if by_weight else None,
        complexity=limits.complexity * scale,
        memory_limit=limits.memory_limit,
        split_costs=split_costs,
    )
    ready(search.task)  # compilation is not counted
    stop = StopSignal(limits.seconds)

    def solve(leaves: int | None) -> Solution:
        return search.solve(limits.depth, leaves, stop=stop, n_jobs=limits.n_jobs, progress=limits.progress)

    def sized(most: int, solution: Solution) -> SizedCodeTree:
        tree = solution.tree
        return SizedCodeTree(most, solution.report.objective / scale + shift, tree, label_of(tree.sums[tree.leaves]))

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
