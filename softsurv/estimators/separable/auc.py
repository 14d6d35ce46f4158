"""Solvers of the AUC of the ROC convex hull and of its leftmost part."""

from __future__ import annotations

from softsurv.errors import InvalidParameterError
from softsurv.estimators.separable.class_objectives import ClassOptions, register
from softsurv.estimators.separable.classifier import Classes
from softsurv.estimators.separable.limits import SearchLimits
from softsurv.estimators.separable.measures import error_search
from softsurv.estimators.separable.solve import Solved
from softsurv.estimators.shared.checks import number
from softsurv.estimators.shared.inputs import BinnedRows
from softsurv.exact.whole_trees.auc import AucSearch
from softsurv.results import FitReport


def solve_auc(rows: BinnedRows, classes: Classes, limits: SearchLimits, share: float) -> Solved:
    """The tree with the least area over its ROC convex hull, up to a false-positive rate, as a mean miss rate."""
    if classes.k != 2:
        raise InvalidParameterError(f"AUC is for two classes, got {classes.k}; take 'accuracy'")
    search = error_search(rows, classes.label, limits)
    with limits.stop as stop:
        result = AucSearch(search, share, limits.complexity, limits.leaves, search.room / 2).solve(stop)
    report = FitReport(
        result.status, result.loss, result.bound, stop.seconds, (result.loss,), {"expanded": result.expanded}
    )
    return Solved(result.tree.tree, result.tree.label, report)


@register("auc", reads_class_weight=False)
def solve_whole(rows: BinnedRows, classes: Classes, limits: SearchLimits, options: ClassOptions) -> Solved:
    """One minus the AUC of the convex hull."""
    return solve_auc(rows, classes, limits, 1.0)


@register("partial_auc", reads_class_weight=False)
def solve_partial(rows: BinnedRows, classes: Classes, limits: SearchLimits, options: ClassOptions) -> Solved:
    """Mean miss rate over false-positive rates up to ``false_positive_rate``: one minus the mean height of the hull."""
    number("false_positive_rate", options.false_positive_rate, 0.0)
    if not 0 < options.false_positive_rate <= 1:
        raise InvalidParameterError(f"false_positive_rate must be in (0, 1], got {options.false_positive_rate!r}")
    return solve_auc(rows, classes, limits, float(options.false_positive_rate))
