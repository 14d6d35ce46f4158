"""Solvers of the two-class objectives that are no sums: F1 and Matthews correlation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidParameterError
from softsurv.estimators.inputs import BinnedRows
from softsurv.estimators.separable.class_objectives import ClassOptions, register
from softsurv.estimators.separable.classifier import Classes
from softsurv.estimators.separable.limits import SearchLimits
from softsurv.estimators.separable.solve import SizedCodeTree, Solved
from softsurv.exact.clock import Clock
from softsurv.exact.compile import ready
from softsurv.exact.pareto.clock import limited
from softsurv.exact.pareto.measures import MEASURES, Best, Candidate, SearchOracle, maximise
from softsurv.exact.pareto.search import ParetoSearch
from softsurv.exact.pareto.task import linear_task
from softsurv.exact.pareto.tree import SplitTree, split_columns
from softsurv.exact.search import Search
from softsurv.exact.tasks import label_costs
from softsurv.exact.tree import CodeTree
from softsurv.results import FitReport, Status

TASK = linear_task(2, 2, 2, (False, False))
PARAMS = np.array([[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]])
"""Statistics are the weights of negatives and positives; a leaf called negative has false negatives, and so on."""


def error_search(rows: BinnedRows, label: IntArray, limits: SearchLimits) -> tuple[ParetoSearch, list[Any]]:
    """The search whose objectives are (false negatives, false positives), and the splits of its columns."""
    columns, splits = split_columns(rows.codes, rows.n_codes, rows.nominal)
    statistics = np.where(np.arange(2) == label[:, None], rows.weight[:, None], 0.0)
    least, size = least_leaf(rows, limits)
    search = ParetoSearch(
        TASK, columns, statistics, PARAMS, limits.depth, min_leaf=least, size=size, memory_limit=limits.memory_limit
    )
    return search, splits


def least_leaf(rows: BinnedRows, limits: SearchLimits) -> tuple[float, FloatArray | None]:
    """The least size of a leaf, in rows or, where that is asked, in weight."""
    if limits.min_weight > 0:
        return limits.min_weight * float(rows.weight.sum()), rows.weight
    return limits.min_leaf, None


class SizedOracle:
    """Weighted misclassification with a limit on leaves, by the engine of additive tasks."""

    def __init__(self, rows: BinnedRows, label: IntArray, limits: SearchLimits, clock: Clock) -> None:
        self.rows, self.label, self.limits, self.clock = rows, label, limits, clock

    def minimise(self, w: FloatArray, upper: float) -> tuple[float, list[Candidate], Status]:
        """As `measures.Oracle`."""
        least, size = least_leaf(self.rows, self.limits)
        costs = label_costs.from_matrix(self.label, np.array([[0.0, w[1]], [w[0], 0.0]]), self.rows.weight)
        search = Search(
            label_costs.TASK, self.rows.codes, self.rows.n_codes, self.rows.nominal, costs,
            min_leaf=least, size=size, memory_limit=self.limits.memory_limit,
        )  # fmt: skip
        solution = search.solve(self.limits.depth, self.limits.leaves, clock=self.clock, n_jobs=self.limits.n_jobs)
        report = solution.report
        if report.status != Status.OPTIMAL or report.objective >= upper - 1e-9 * (1 + abs(upper)):
            return report.lower_bound, [], report.status
        sums = solution.tree.sums[solution.tree.leaves]
        label = label_costs.best_label(sums)
        errors = np.array([sums[label == k, k].sum() for k in range(2)]) / w
        return report.objective, [Candidate(errors, (solution.tree, label))], report.status


def solve_measure(name: str, rows: BinnedRows, classes: Classes, limits: SearchLimits) -> Solved:
    """The best tree by a measure of the two error counts; see `softsurv.exact.pareto.measures`."""
    label = classes.label
    if classes.k > 2:
        raise InvalidParameterError(
            f"objective {name!r} is for two classes, got {classes.k}; take 'accuracy' or 'balanced_accuracy'"
        )
    if not (limits.path or limits.complexity > 0 or limits.limits_leaves):
        search, splits = error_search(rows, label, limits)
        with limited(limits.seconds) as clock:
            best = _best(name, SearchOracle(search, clock), rows, label)
        tree, labels = _read(best.candidate, splits)
        return Solved(tree, labels, _report(best, 0.0, 1, clock))
    ready(label_costs.TASK)  # compilation is not counted
    with limited(limits.seconds) as clock:
        return _by_size(name, rows, label, limits, clock)


def _by_size(name: str, rows: BinnedRows, label: IntArray, limits: SearchLimits, clock: Clock) -> Solved:
    """The best tree for every number of leaves, and of those the one that is worth its leaves."""
    most = limits.most_leaves
    sizes: list[SizedCodeTree] = []
    bound, status, value = np.inf, Status.OPTIMAL, -np.inf
    for leaves in range(1, most + 1):
        if leaves < most and limits.complexity == 0 and not limits.path:
            continue
        best = _best(name, SizedOracle(rows, label, replace(limits, leaves=leaves), clock), rows, label)
        tree, labels = _read(best.candidate, [])
        bound = min(bound, 1 - best.bound + limits.complexity * leaves)
        if best.value > value or not sizes:
            value = best.value
            sizes.append(SizedCodeTree(leaves, 1 - value + limits.complexity * tree.n_leaves, tree, labels))
        status = best.status
        if status != Status.OPTIMAL:
            bound = min(bound, 0.0 + limits.complexity * leaves)
            break
        if value >= 1.0:
            break
    chosen = min(sizes, key=lambda size: size.objective)
    bound = chosen.objective if status == Status.OPTIMAL else min(bound, chosen.objective)
    report = FitReport(status, chosen.objective, bound, clock.seconds, (chosen.objective,))
    return Solved(chosen.tree, chosen.label, report, tuple(sizes) if limits.path else ())


def constant_trees(negatives: float, positives: float) -> tuple[Candidate, Candidate]:
    """The two trees without a split, with their (false negatives, false positives)."""
    return (
        Candidate(np.array([0.0, negatives]), SplitTree(label=1)),
        Candidate(np.array([positives, 0.0]), SplitTree(label=0)),
    )


def _best(name: str, oracle: Any, rows: BinnedRows, label: IntArray) -> Best:
    """The best tree by a measure, starting from the two constant ones."""
    negatives, positives = np.bincount(label, rows.weight, 2)
    return maximise(name, oracle, positives, negatives, constant_trees(negatives, positives))


def _read(candidate: Candidate, splits: list[Any]) -> tuple[CodeTree, IntArray]:
    """The tree on codes with the label of each leaf, whichever engine found it."""
    if isinstance(candidate.tree, SplitTree):
        return candidate.tree.code_tree(splits), np.array([leaf.label for leaf in candidate.tree.leaves])
    tree, label = candidate.tree
    return tree, label


def _report(best: Best, complexity: float, leaves: int, clock: Clock) -> FitReport:
    """One minus the measure, with its bound."""
    objective = 1 - best.value + complexity * leaves
    details = {"corners": [one.v.tolist() for one in best.corners]}
    return FitReport(best.status, objective, min(1 - best.bound, objective), clock.seconds, (objective,), details)


def _register(name: str) -> None:
    @register(name)
    def solve(rows: BinnedRows, classes: Classes, limits: SearchLimits, options: ClassOptions) -> Solved:
        return solve_measure(name, rows, classes, limits)


for _name in MEASURES:
    _register(_name)
