"""What every optimal tree says of its search: objective, bound and status, and the same on disk."""

from __future__ import annotations

from typing import Any

from softsurv.data.binarize import Binarizer
from softsurv.estimators.separable.solve import SizedTree
from softsurv.results import FitReport, Status
from softsurv.trees.hard_tree import HardTree


class ExactTree:
    """Mixin of the estimators whose tree comes from an exact search."""

    tree_: HardTree
    report_: FitReport
    binarizer_: Binarizer
    path_: tuple[SizedTree, ...]

    @property
    def objective_(self) -> float:
        """Objective of the tree on the training rows, cost per leaf included."""
        return self.report_.objective

    @property
    def lower_bound_(self) -> float:
        """What no tree within the limits can fall below."""
        return self.report_.lower_bound

    @property
    def gap_(self) -> float:
        """Objective minus lower bound; 0 where the tree is proven optimal."""
        return self.report_.gap

    @property
    def status_(self) -> Status:
        """Why the search ended."""
        return self.report_.status

    def _search_state(self) -> dict[str, Any]:
        """Tree, splits, report and sizes as plain JSON values."""
        return {
            "tree": self.tree_.to_dict(),
            "binarizer": self.binarizer_.to_dict(),
            "report": self.report_.to_dict(),
            "path": [
                {"max_leaves": size.max_leaves, "objective": size.objective, "tree": size.tree.to_dict()}
                for size in self.path_
            ],
        }

    def _restore_search(self, meta: dict[str, Any]) -> None:
        """Set what :meth:`_search_state` gave."""
        self.tree_ = HardTree.from_dict(meta["tree"])
        self.binarizer_ = Binarizer.from_dict(meta["binarizer"])
        self.report_ = FitReport.from_dict(meta["report"])
        self.path_ = tuple(
            SizedTree(size["max_leaves"], size["objective"], HardTree.from_dict(size["tree"])) for size in meta["path"]
        )
