"""What a fitted `OptimalSurvivalTree` keeps for the trees near the optimum."""

from __future__ import annotations

from copy import copy
from typing import Any

from softsurv.errors import InvalidParameterError
from softsurv.estimators.optimal.search import RelativeRiskSearch
from softsurv.estimators.optimal.tree_search import FoundTree
from softsurv.estimators.rashomon import NearSource, refuse_objective, rows_are_gone
from softsurv.exact.tree import CodeTree
from softsurv.results import FitReport


def near_source(tree: Any) -> NearSource:
    """The search of the last fit, as long as the training rows are there."""
    search = getattr(tree._parts, "_search", None)
    if not isinstance(search, RelativeRiskSearch):  # arguments may have changed since the fit
        refuse_objective(tree.objective if search is None else "ibs", ("relative_risk",))
        raise rows_are_gone()
    rows = search.rows
    if any(column.ordered for column in rows.binarizer.columns_):
        raise InvalidParameterError("a Rashomon set needs level_sets=False, got True; fit without sets of levels")

    def fitted(code_tree: CodeTree, report: FitReport) -> Any:
        """A copy of the estimator with another tree."""
        other = copy(tree)
        other._keep(rows, search, FoundTree(search.tree_of(code_tree), report))
        other.__dict__.pop("calibration_", None)  # it belongs to the leaves of the first tree
        return other

    columns = tuple(column.name for column in rows.binarizer.columns_)
    names = tuple(rows.binarizer.filler_.input_names_)
    return NearSource(search.problem, *search.limits, 1.0, columns, names, fitted)
