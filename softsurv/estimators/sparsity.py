"""How few features a soft tree needs: a path of group-lasso strengths against the held-out likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from softsurv.data.partition import stratified_folds
from softsurv.data.readers import survival_data
from softsurv.estimators.soft import SoftSurvivalTree

STRENGTHS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""From no penalty to where most trees name no feature; in units of 1 / sqrt(rows), as ``l1`` is."""


def sparsity_path(
    estimator: SoftSurvivalTree,
    X: Any,
    y: Any = None,
    *,
    l1: Sequence[float] = STRENGTHS,
    n_splits: int = 5,
    seed: int = 0,
    **columns: Any,
) -> pd.DataFrame:
    """Cross-validate a soft tree along strengths of the group lasso.

    Parameters
    ----------
    estimator : SoftSurvivalTree
        Its other arguments are kept; give depth and penalties, or they are chosen anew in every fold.
    X, y, **columns
        As in ``fit``.
    l1 : sequence of float
    n_splits, seed : int
        Event-stratified folds.

    Returns
    -------
    DataFrame
        One row for each strength: ``l1``, ``n_features`` (mean number of raw features named), ``log_likelihood``
        (mean per held-out row), its standard error over folds, and ``harrell_c``.
    """
    data = survival_data(X, y, **columns)
    rows = []
    for strength in l1:
        folds = []
        for fit, held in stratified_folds(data.event.numpy(), n_splits, seed):
            tree = clone(estimator).set_params(l1=float(strength)).fit(data.take(fit))
            test = data.take(held)
            total = test.n if test.weight is None else float(test.weight.sum())
            folds.append(
                (
                    np.count_nonzero(tree.feature_importances_),
                    tree.log_likelihood(test).sum() / total,
                    tree.score(test),
                )
            )
        named, likelihood, concordance = np.array(folds, dtype=float).T
        rows.append(
            {
                "l1": float(strength),
                "n_features": named.mean(),
                "log_likelihood": likelihood.mean(),
                "log_likelihood_se": likelihood.std(ddof=1) / n_splits**0.5,
                "harrell_c": concordance.mean(),
            }
        )
    return pd.DataFrame(rows)
