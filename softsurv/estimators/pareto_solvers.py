"""Solvers of the two-class objectives that are no sums: F1 and Matthews correlation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray
from softsurv.errors import InvalidParameterError
from softsurv.estimators.solvers import CodedRows, Limits, SizedCodeTree, Solved, register
from softsurv.exact.objectives.linear import ERRORS
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.whole_trees.measures import MEASURES, maximise
from softsurv.results import FitReport, Status
from softsurv.stopping import StopSignal


def error_search(rows: CodedRows, label: NDArray[np.int64], limits: Limits) -> VectorSearch:
    """The search whose objectives are (false negatives, false positives)."""
    statistics = np.where(np.arange(2) == label[:, None], rows.weight[:, None], 0.0)
    least, size = least_leaf(rows, limits)
    return VectorSearch(
        ERRORS, rows.codes, rows.n_codes, rows.nominal, statistics, limits.depth,
        min_leaf=least, size=size, memory_limit=limits.memory_limit, n_jobs=limits.n_jobs,
    )  # fmt: skip


def least_leaf(rows: CodedRows, limits: Limits) -> tuple[float, FloatArray | None]:
    """The least size of a leaf, in rows or, where that is asked, in weight."""
    if limits.min_weight > 0:
        return limits.min_weight * float(rows.weight.sum()), rows.weight
    return limits.min_leaf, None


def solve_measure(name: str, rows: CodedRows, label: NDArray[np.int64], limits: Limits) -> Solved:
    """The best tree by a measure of the two error counts; see `softsurv.exact.whole_trees.measures`."""
    if label.max(initial=0) > 1:
        raise InvalidParameterError(
            f"objective {name!r} is for two classes, got {int(label.max()) + 1}; take 'accuracy' or 'balanced_accuracy'"
        )
    search = error_search(rows, label, limits)
    most = min(limits.leaves or 1 << limits.depth, 1 << limits.depth)
    every = limits.path or limits.complexity > 0
    sizes: list[SizedCodeTree] = []
    bound, value = np.inf, -np.inf
    with StopSignal(limits.seconds) as stop:
        for leaves in range(1 if every else most, most + 1):
            best = maximise(name, search, stop, leaves)
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
    bound = chosen.objective if status == Status.OPTIMAL else min(bound, chosen.objective)
    details = {"corners": [one.v.tolist() for one in best.corners]}
    report = FitReport(status, chosen.objective, bound, stop.seconds, (chosen.objective,), details)
    return Solved(chosen.tree, chosen.label, report, tuple(sizes) if limits.path else ())


def _register(name: str) -> None:
    @register(name)
    def solve(rows: CodedRows, label: NDArray[np.int64], limits: Limits, p: Any) -> Solved:
        return solve_measure(name, rows, label, limits)


for _name in MEASURES:
    _register(_name)
