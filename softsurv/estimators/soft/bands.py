"""Confidence bands of a soft tree's predicted curves and quantiles: a mixin of the fitted estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import FloatArray
from softsurv.errors import InvalidParameterError
from softsurv.estimators.shared.checks import confidence, one_kind_of_event
from softsurv.estimators.shared.intervals import QuantileIntervals
from softsurv.estimators.shared.tables import check_room, row_blocks


class CurveBands(QuantileIntervals):
    """Mixin of `SoftSurvivalTree`: `predict_survival_interval`, and `predict_quantile_interval` beside."""

    def predict_survival_interval(
        self: Any, X: Any, times: ArrayLike | None = None, *, level: float = 0.95
    ) -> tuple[FloatArray, FloatArray]:
        """Pointwise confidence limits of the survival curve of each row's leaf.

        Parameters
        ----------
        X : table of n rows
        times : array_like (T,), optional
            ``unique_times_`` by default.
        level : float
            Confidence at each time, in (0, 1).

        Returns
        -------
        lower, upper : ndarray (n, T)

        Raises
        ------
        InvalidParameterError
            Where the fit has no standard errors (see ``summary``), or with competing causes.

        Notes
        -----
        Delta method on the scale of the linear predictor, from the inverse Hessian of the penalised likelihood. The
        limits do not account for the choice of the rules, nor for the bias that a strong penalty gives to the curve.
        """
        from softsurv.trees.curve_bands import survival_band

        prepared, share, covariance = self._checked(X, {}), confidence(level), self._known_covariance()
        grid = self._grid(times)
        tree, leaf, later = self.tree_, self._leaf(prepared), grid > 0
        check_room(len(leaf), len(grid), 2)
        limits = np.ones((2, len(leaf), len(grid)))
        if later.any():
            for rows in row_blocks(len(leaf), len(grid)):
                limits[:, rows, later] = survival_band(
                    tree, covariance, leaf[rows], prepared.x[rows], grid[later], share
                )
        return limits[0], limits[1]

    def _quantile_limits(self: Any, prepared: Any, share: float, level: float) -> tuple[FloatArray, FloatArray]:
        """Limits of the times by which so large a share has had the event, (n,) and (n,)."""
        from softsurv.trees.curve_bands import quantile_limits

        covariance, times = self._known_covariance(), self._quantile(prepared, 1 - share)
        tree, leaf = self.tree_, self._leaf(prepared)
        limits = np.empty((2, len(leaf)))
        for k in np.unique(leaf):
            rows, number = np.flatnonzero(leaf == k), int(tree.used_leaves[k])
            limits[:, rows] = quantile_limits(tree, number, covariance[k], prepared.x[rows], times[rows], level)
        return limits[0], limits[1]

    def _known_covariance(self: Any) -> FloatArray:
        """The covariance of the leaves' parameters; refuses fits that have none, and competing causes."""
        one_kind_of_event(self.cause_names_)
        covariance: FloatArray | None = self.covariance_
        if covariance is None:
            raise InvalidParameterError(
                "this fit has no standard errors, so its curves have no limits; summary() says which fits have none"
            )
        return covariance
