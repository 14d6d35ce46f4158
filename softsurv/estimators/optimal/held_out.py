"""Rows that a search has not seen, and how well its trees do on them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.estimators.optimal.leaves import held_out_losses, leaf_curves
from softsurv.estimators.optimal.rows import Rows, went_through
from softsurv.estimators.optimal.shrinkage import with_risk
from softsurv.estimators.optimal.tree_search import TreeSearch
from softsurv.exact.objectives import relative_risk
from softsurv.trees.hard_tree import HardTree


class HeldOutRows:
    """The rows held out of a fold, judged by what the training rows of its search say.

    Parameters
    ----------
    search : TreeSearch
        Over the training rows.
    rows : Rows (N)
        The others, coded as the training rows are.
    """

    def __init__(self, search: TreeSearch, rows: Rows) -> None:
        self.search, self.rows = search, rows

    @cached_property
    def statistics(self) -> FloatArray:
        """Events of each row, and the hazard of the training rows that it met, both weighted, by cause (N, 2 K)."""
        pairs, weight = zip(self.rows.by_cause, self.search.baselines, strict=True), self.rows.weight
        return np.hstack([relative_risk.statistics(one.event, went_through(h, one), weight) for one, h in pairs])

    def losses(
        self, tree: HardTree, strengths: Sequence[float], score: str, leaf_sums: FloatArray | None = None
    ) -> list[float]:
        """Mean loss in the leaves of a tree, one number for each strength of shrinkage.

        Minus the log-likelihood of relative risks over the training baseline but for the part that no tree changes,
        the integrated Brier score, or the share of discordant pairs.

        Parameters
        ----------
        tree : HardTree
        strengths : sequence of float (S,)
        score : {"likelihood", "ibs", "concordance"}
        leaf_sums : (L, 2 K), optional
            What :meth:`TreeSearch.leaf_sums` gives for the tree, where it is known already.
        """
        search, leaf = self.search, self.rows.leaf_of(tree)
        sums = search.leaf_sums(tree) if leaf_sums is None else leaf_sums
        shrunk = [with_risk(search.rows, tree, sums, strength) for strength in strengths]
        if score != "likelihood":
            curves = [
                leaf_curves(search.rows, one, search.leaf, strength)
                for one, strength in zip(shrunk, strengths, strict=True)
            ]
            return held_out_losses(curves, leaf, self.rows, score)
        seen = np.stack([np.bincount(leaf, column, tree.n_leaves) for column in self.statistics.T], axis=1)
        events, expected = seen[:, ::2], seen[:, 1::2]  # (L, K)
        total = float(self.rows.weight.sum())
        by_cause = [(one.value * expected - events * np.log(one.value)).sum(axis=0) for one in shrunk]
        return [float(loss @ search.cause_weights) / total for loss in by_cause]
