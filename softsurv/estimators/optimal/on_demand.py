"""Tables of a fitted optimal tree beside its splits. Each is worked out when it is asked for."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.estimators.optimal.leaves import LeafCurves, leaf_curves
from softsurv.estimators.optimal.parameters import HISTORIES
from softsurv.estimators.optimal.rows import Rows
from softsurv.estimators.optimal.tree_search import FoundTree, TreeSearch
from softsurv.estimators.shared.exact_tree import SizedTree
from softsurv.nonparametric import median
from softsurv.trees.leaf_table import LeafTable, leaf_table


class TreeParts:
    """Leaf curves, leaf table, importances and the path of sizes of a fitted tree.

    Until a part has been asked for, the training rows and the search are kept. Neither is pickled: a copy in another
    process has the path of sizes only if it was asked for before.
    """

    def __init__(self, rows: Rows, search: TreeSearch, found: FoundTree, leaf: str) -> None:
        self._rows, self._search, self._found, self._leaf = rows, search, found, leaf

    @classmethod
    def known(cls, curves: LeafCurves, table: LeafTable, importances: FloatArray) -> TreeParts:
        """The parts of a saved tree; its path is set by whoever has read it."""
        parts = cls.__new__(cls)
        parts.__dict__.update(curves=curves, leaf_table=table, importances=importances)
        return parts

    @cached_property
    def curves(self) -> LeafCurves:
        """What each leaf predicts."""
        return leaf_curves(self._rows, self._found.tree, self._leaf, self._search.shrinkage)

    @cached_property
    def leaf_table(self) -> LeafTable:
        """Rows and events of each leaf, with the curve and the median that it predicts."""
        rows, tree = self._rows, self._found.tree
        leaf = rows.leaf_of(tree)
        recurrent = self._leaf == HISTORIES["recurrent"]
        seen = leaf_table(leaf, rows.time, rows.event, tree.n_leaves, rows.weight, rows.entry, recurrent=recurrent)
        seen = seen.with_history(leaf, rows.cause, rows.cause_names, rows.subject)
        curves = self.curves.survival
        medians = np.array([median(curve) for curve in curves])
        observed = medians == seen.median  # another one has no interval
        lower, upper = (np.where(observed, end, np.nan) for end in (seen.median_lower, seen.median_upper))
        return replace(seen, curves=curves, median=medians, median_lower=lower, median_upper=upper)

    @cached_property
    def importances(self) -> FloatArray:
        """Share of each raw column in what the splits take off the objective."""
        tree = self._found.tree
        total = dict.fromkeys(self._rows.binarizer.filler_.input_names_, 0.0)
        for node, gain in enumerate(self._search.gains(tree)):
            if tree.feature[node] >= 0:
                total[tree.sources[tree.feature[node]].name] += gain
        # a Kaplan-Meier leaf does not minimise the Brier score: a split that only prepares others may cost something
        gains = np.maximum(list(total.values()), 0.0)
        return gains / gains.sum() if gains.sum() > 0 else gains

    @cached_property
    def path(self) -> tuple[SizedTree, ...]:
        """Best trees with at most 1, 2, ... leaves."""
        if not hasattr(self, "_found"):
            raise AttributeError(
                "path_ was not worked out before this tree was pickled, which leaves the search behind; "
                "read path_ before, or fit again"
            )
        found = self._found
        return found.path() or (SizedTree(found.tree.n_leaves, found.report.objective, found.tree),)

    def __getstate__(self) -> dict[str, Any]:
        """The parts without training rows and search."""
        known = {name: getattr(self, name) for name in ("curves", "leaf_table", "importances")}
        return known | ({"path": self.path} if "path" in self.__dict__ else {})
