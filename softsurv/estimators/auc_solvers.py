"""Solvers of the AUC of the ROC convex hull and of its leftmost part."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.errors import InvalidParameterError
from softsurv.estimators.checks import number
from softsurv.estimators.pareto_solvers import error_search
from softsurv.estimators.solvers import CodedRows, Limits, Solved, register
from softsurv.exact.whole_trees.auc import AucSearch
from softsurv.results import FitReport
from softsurv.stopping import StopSignal


def solve_auc(rows: CodedRows, label: NDArray[np.int64], limits: Limits, share: float) -> Solved:
    """The tree with the least area over its ROC convex hull, up to a false-positive rate, as a mean miss rate."""
    if label.max(initial=0) != 1:
        raise InvalidParameterError(f"AUC is for two classes, got {int(label.max(initial=0)) + 1}; take 'accuracy'")
    search = error_search(rows, label, limits)
    with StopSignal(limits.seconds) as stop:
        result = AucSearch(search, share, limits.complexity, limits.leaves, limits.memory_limit / 2).solve(stop)
    report = FitReport(
        result.status, result.loss, result.bound, stop.seconds, (result.loss,), {"expanded": result.expanded}
    )
    return Solved(result.tree.tree, result.tree.label, report)


@register("auc")
def solve_whole(rows: CodedRows, label: NDArray[np.int64], limits: Limits, p: Any) -> Solved:
    """One minus the AUC of the convex hull."""
    return solve_auc(rows, label, limits, 1.0)


@register("partial_auc")
def solve_partial(rows: CodedRows, label: NDArray[np.int64], limits: Limits, p: Any) -> Solved:
    """Mean miss rate over false-positive rates up to ``false_positive_rate``: one minus the mean height of the hull."""
    number("false_positive_rate", p.false_positive_rate, 0.0)
    if not 0 < p.false_positive_rate <= 1:
        raise InvalidParameterError(f"false_positive_rate must be in (0, 1], got {p.false_positive_rate!r}")
    return solve_auc(rows, label, limits, float(p.false_positive_rate))
