"""Solvers of the AUC of the ROC convex hull and of its leftmost part."""

from __future__ import annotations

from softsurv.errors import InvalidParameterError
from softsurv.estimators.separable.class_objectives import ClassOptions, register
from softsurv.estimators.separable.classifier import Classes
from softsurv.estimators.separable.limits import SearchLimits
from softsurv.estimators.separable.measures import error_search
from softsurv.estimators.separable.solve import SizedCodeTree, Solved
from softsurv.estimators.shared.checks import number
from softsurv.estimators.shared.inputs import BinnedRows
from softsurv.exact.whole_trees.auc import AucResult, AucSearch
from softsurv.results import FitReport, Status


def solve_auc(rows: BinnedRows, classes: Classes, limits: SearchLimits, share: float) -> Solved:
    """The tree with the least area over its ROC convex hull, up to a false-positive rate, as a mean miss rate."""
    if classes.k != 2:
        raise InvalidParameterError(f"AUC is for two classes, got {classes.k}; take 'accuracy'")
    search = error_search(rows, classes.label, limits)

    def best(leaves: int) -> AucResult:
        return AucSearch(search, share, limits.complexity, leaves, search.room / 2).solve(stop)

    with limits.stop as stop:
        result = best(limits.most_leaves)
        largest, path = sized(result.tree.tree.n_leaves, result), list[SizedCodeTree]()
        if limits.path and result.status == Status.OPTIMAL:
            for most in range(1, largest.max_leaves):
                smaller = best(most)
                if smaller.status != Status.OPTIMAL:
                    break
                path.append(sized(most, smaller))
            path.append(largest)
    report = FitReport(
        result.status, result.loss, result.bound, stop.seconds, (result.loss,), {"expanded": result.expanded}
    )
    return Solved(largest.tree, largest.label, report, tuple(path))


def sized(most: int, result: AucResult) -> SizedCodeTree:
    """The tree of a search with at most so many leaves."""
    return SizedCodeTree(most, result.loss, result.tree.tree, result.tree.label)


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
