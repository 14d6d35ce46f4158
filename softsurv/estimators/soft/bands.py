"""Confidence bands of a soft tree's predicted curves: a mixin of the fitted estimator."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import FloatArray
from softsurv.errors import InvalidParameterError


class CurveBands:
    """Mixin of `SoftSurvivalTree`: `predict_survival_interval`."""

    def predict_survival_interval(
        self, X: Any, times: ArrayLike | None = None, *, level: float = 0.95
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

        prepared = self._checked(X, {})  # type: ignore[attr-defined]
        if not isinstance(level, numbers.Real) or not 0 < level < 1:
            raise InvalidParameterError(f"level must be between 0 and 1, got {level!r}; 0.95 is usual")
        if self.cause_names_:
            raise InvalidParameterError(
                "confidence limits are there for one kind of event, and this tree was fitted to several; "
                "fit a tree to data.of_cause(...)"
            )
        covariance = self.covariance_
        if covariance is None:
            raise InvalidParameterError(
                "this fit has no standard errors, so its curves have no limits; summary() says which fits have none"
            )
        grid = self._grid(times)
        tree, leaf, later = self.tree_, self._leaf(prepared), grid > 0
        limits = np.ones((2, len(leaf), len(grid)))
        if later.any():
            limits[:, :, later] = survival_band(tree, covariance, leaf, prepared.x, grid[later], float(level))
        return limits[0], limits[1]
