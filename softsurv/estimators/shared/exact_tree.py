"""What every optimal tree says of its search: objective, bound and status, and the same on disk."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from softsurv.arrays import FloatArray
from softsurv.data.binarize import Binarizer
from softsurv.data.rules import fills_text
from softsurv.errors import warn
from softsurv.estimators.shared.exports import Exports
from softsurv.results import FitReport, Status, how_it_ended
from softsurv.trees.hard_sql import hard_tree_sql
from softsurv.trees.hard_tree import HardTree

PROVEN = (Status.OPTIMAL, Status.CONDITIONALLY_OPTIMAL)
"""How a search ends that proves its tree optimal."""


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
    leaf_sums : ndarray (L, K), optional
        Statistics of the training rows of each leaf, where the search has them.
    """

    max_leaves: int
    objective: float
    tree: HardTree
    leaf_sums: FloatArray | None = field(default=None, repr=False, compare=False)


class Proven:
    """Mixin of the estimators whose splits come from an exact search: what the search has proven."""

    report_: FitReport

    @property
    def _search_report(self) -> FitReport:
        """How the search ended."""
        return self.report_

    @property
    def objective_(self) -> float:
        """Objective of the search for the tree on the training rows, cost per leaf included."""
        return self._search_report.objective

    @property
    def lower_bound_(self) -> float:
        """Lower bound: no tree within the limits has a smaller objective."""
        return self._search_report.lower_bound

    @property
    def gap_(self) -> float:
        """Objective minus lower bound; 0 where the tree is proven optimal."""
        return self._search_report.gap

    @property
    def status_(self) -> Status:
        """Why the search ended."""
        return self._search_report.status


class ExactTree(Exports, Proven):
    """Mixin of the estimators whose tree is the one that an exact search has found."""

    tree_: HardTree
    binarizer_: Binarizer
    path_: tuple[SizedTree, ...]

    @abstractmethod
    def leaf_lines(self) -> list[str]:
        """What is printed of each leaf."""

    def export_text(self) -> str:
        """The tree as text: rules in the data's own units, what each leaf says, and how missing values are read."""
        check_is_fitted(self, "tree_")
        return "\n".join([self.tree_.export_text(self.leaf_lines()), *self._reading_notes()])

    def _reading_notes(self) -> list[str]:
        """Sentences below the tree: the value that a rule takes for the missing values of its feature."""
        tree, incomplete = self.tree_, self.binarizer_.filler_.incomplete_
        asked = dict.fromkeys(tree.sources[k] for k in tree.feature[tree.feature >= 0].tolist())
        fills = {one.name: one.fill for one in asked if one.fill is not None and one.name in incomplete}
        return [fills_text(fills, fills)] if fills else []

    def export_dot(self) -> str:
        """The tree in Graphviz's language."""
        check_is_fitted(self, "tree_")
        return self.tree_.export_dot(self.leaf_lines())

    def _leaf_in_python(self, name: str) -> str:
        return self.tree_.to_python(name, self.leaf_lines())

    def _leaf_in_sql(self, quote: str) -> str:
        return hard_tree_sql(self.tree_, quote)

    def _search_state(self) -> dict[str, Any]:
        """Tree, splits, report and sizes as plain JSON values."""
        return {
            "tree": self.tree_.to_dict(),
            "binarizer": self.binarizer_.to_dict(),
            "report": self.report_.to_dict(),
            "path": [
                {"max_leaves": size.max_leaves, "objective": size.objective, "tree": size.tree.to_dict()}
                for size in getattr(self, "path_", ())  # a pickled copy may not have it
            ],
        }

    def _restore_search(self, meta: dict[str, Any]) -> None:
        """Set what :meth:`_search_state` gave."""
        self.tree_ = HardTree.from_dict(meta["tree"])
        self.binarizer_ = Binarizer.from_dict(meta["binarizer"])
        self.report_ = FitReport.from_dict(meta["report"])
        if sizes := meta["path"]:
            self.path_ = tuple(SizedTree(s["max_leaves"], s["objective"], HardTree.from_dict(s["tree"])) for s in sizes)


def warn_unless_proven(report: FitReport) -> None:
    """Warn where a search was cut off, and say what to do."""
    if report.status in (*PROVEN, Status.CONTINUED):
        return
    limit = "memory_limit" if report.status is Status.MEMORY_LIMIT else "time_limit"
    warn(
        f"{how_it_ended('the search', report.status)} with objective {report.objective:.6g} "
        f"and lower bound {report.lower_bound:.6g}"
        + ("" if report.status is Status.INTERRUPTED else f"; raise {limit}, or lower max_depth or thresholds"),
        ConvergenceWarning,
    )
