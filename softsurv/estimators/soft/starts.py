"""The trees of all starts of a dense soft tree, and their scores: a mixin of the fitted estimator."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import pandas as pd

from softsurv.errors import InvalidParameterError

if TYPE_CHECKING:
    from softsurv.soft.fit import FittedStarts
    from softsurv.trees.soft_tree import SoftTree


class SoftStarts:
    """Mixin of `SoftSurvivalTree`: `evaluate_starts`."""

    tree_: SoftTree

    def _keep_starts(self, starts: FittedStarts | None) -> None:
        """Keep the trees of a dense fit; a tree of rules has one start."""
        self._starts = starts

    def evaluate_starts(self, X: Any, y: Any = None, **options: Any) -> pd.DataFrame:
        """Scores of the tree of every start, as ``evaluate`` gives them for the best.

        Parameters
        ----------
        X, y, **options
            As in ``evaluate``.

        Returns
        -------
        DataFrame
            One row for each start: ``objective`` on the training rows, then the entries of ``evaluate``. Column means
            are what paper `sst` reports.

        Raises
        ------
        InvalidParameterError
            If this is a tree of rules, or a model from a file: only the tree that predicts is saved.
        """
        starts: FittedStarts | None = getattr(self, "_starts", None)
        if starts is None:
            raise InvalidParameterError(
                "evaluate_starts needs the starts of a dense tree that was fitted in this session; fit again with "
                'max_terms=None or preset="paper"'
            )
        rows = []
        causes = starts.causes or [()] * len(starts.trees)
        for tree, of_causes, objective in zip(starts.trees, causes, starts.objectives, strict=True):
            one: Any = copy(self)
            one.tree_, one.cause_trees_ = tree, of_causes
            rows.append({"objective": objective} | one.evaluate(X, y, **options))
        return pd.DataFrame(rows)
