"""Solvers of the two-class objectives that are no sums: F1 and Matthews correlation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidParameterError
from softsurv.estimators.separable.class_objectives import ClassOptions, register
from softsurv.estimators.separable.classifier import Classes
from softsurv.estimators.separable.limits import SearchLimits
from softsurv.estimators.separable.solve import SizedCodeTree, Solved
from softsurv.estimators.shared.inputs import BinnedRows
from softsurv.exact.objectives.linear import ERRORS
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.whole_trees.measures import EPSILON, MEASURES, maximise
from softsurv.results import FitReport, Status


def error_search(
    rows: BinnedRows, label: IntArray, limits: SearchLimits, *, count: bool = False, cuts: bool = False
) -> VectorSearch:
    """The search whose objectives are (false negatives, false positives), and leaves where these ``count``.

    ``cuts``: only best trees will be asked for, which may then be sought cut by cut.
    """
    goals = ERRORS.with_most_leaves(limits.most_leaves) if count else ERRORS
    statistics = np.where(np.arange(2) == label[:, None], rows.weight[:, None], 0.0)
    least, size = least_leaf(rows, limits)
    search = VectorSearch(
        goals, rows.codes, rows.n_codes, rows.nominal, statistics, limits.depth,
        min_leaf=least, size=size, memory_limit=limits.room.left, n_jobs=limits.n_jobs, stop=limits.stop,
        cuts=cuts,
    )  # fmt: skip
    limits.room.check(search.held)
    return search


def least_leaf(rows: BinnedRows, limits: SearchLimits) -> tuple[float, FloatArray | None]:
    """The least size of a leaf, in rows or, where that is asked, in weight."""
    if limits.min_weight > 0:
        return limits.min_weight * float(rows.weight.sum()), rows.weight
    return limits.min_leaf, None


def solve_measure(name: str, rows: BinnedRows, classes: Classes, limits: SearchLimits) -> Solved:
    """The best tree by a measure of the two error counts; see `softsurv.exact.whole_trees.measures`."""
    if classes.k != 2:
        raise InvalidParameterError(
            f"objective {name!r} is for two classes, got {classes.k}; take 'accuracy' or 'balanced_accuracy'"
        )
    search = error_search(rows, classes.label, limits, cuts=True)
    most, every = limits.most_leaves, limits.path or limits.complexity > 0
    sizes: list[SizedCodeTree] = []
    bound, value = np.inf, -np.inf
    with limits.stop as stop:
        for leaves in range(1 if every else most, most + 1):
            best = maximise(name, search, stop, leaves, changed=leaves == most)
            tree, status = best.candidate.tree, best.status
            bound = min(bound, 1 - best.bound + limits.complexity * leaves)
            if best.value > value or not sizes:
                value = best.value
                objective = 1 - value + limits.complexity * tree.tree.n_leaves
                sizes.append(SizedCodeTree(leaves, objective, tree.tree, tree.label))
            if status != Status.OPTIMAL:
                bound = min(bound, limits.complexity * leaves) if leaves < most else bound
                break
            if value >= 1.0:
                break
    chosen = min(sizes, key=lambda size: size.objective)
    if bound >= chosen.objective - EPSILON:  # proven, whatever ended the search
        status = Status.OPTIMAL
    bound = chosen.objective if status == Status.OPTIMAL else bound
    details = {"corners": [one.v.tolist() for one in best.corners]}
    report = FitReport(status, chosen.objective, bound, stop.seconds, (chosen.objective,), details)
    return Solved(chosen.tree, chosen.label, report, path_to(chosen, sizes) if limits.path else ())


def path_to(largest: SizedCodeTree, sizes: Sequence[SizedCodeTree]) -> tuple[SizedCodeTree, ...]:
    """The best of the trees with at most 1, 2, ... leaves, cost of the leaves included, up to the largest."""
    path = []
    for most in range(1, largest.max_leaves):
        small = [size for size in sizes if size.max_leaves <= most]
        path.append(replace(min(small, key=lambda size: size.objective), max_leaves=most))
    return (*path, largest)


def _register(name: str) -> None:
    @register(name, reads_class_weight=False)
    def solve(rows: BinnedRows, classes: Classes, limits: SearchLimits, options: ClassOptions) -> Solved:
        return solve_measure(name, rows, classes, limits)


for _name in MEASURES:
    _register(_name)
