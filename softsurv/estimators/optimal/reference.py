"""Survival curves of a reference model at the training rows, whose losses then act as lower bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.preprocess import Preprocessor
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.estimators.shared.base import SurvivalTreeBase
from softsurv.nonparametric import StepFunction


def reference_curves(model: Any, data: SurvivalData, order: IntArray) -> FloatArray:
    """Survival probabilities (N, T) of a reference at the distinct training times.

    Parameters
    ----------
    model : array (N, T), or estimator with ``predict_survival_function``
        A fitted one is asked as it is: for the raw columns if it knows their names, else for the columns that
        `Preprocessor` makes of them. One that is not fitted is cloned and fitted to the training rows first, so that
        it can be cloned and cross-validated along with the tree.
    data : SurvivalData (N)
    order : (N,) int
        The row that each of them was when the array was made.
    """
    if isinstance(model, np.ndarray | pd.DataFrame):
        curves = np.asarray(model, dtype=float)
        return curves[order] if len(curves) == len(order) else curves  # the search says what is wrong with the others
    if not hasattr(model, "predict_survival_function"):
        raise InvalidParameterError(
            "reference must be an array (N, T) of survival probabilities or a model with predict_survival_function, "
            f"got {type(model).__name__}"
        )
    grid = np.unique(data.time.numpy())
    raw = isinstance(model, SurvivalTreeBase)
    X = data.X if raw else Preprocessor().fit_transform(data.X)
    try:
        check_is_fitted(model)
    except NotFittedError:
        model = clone(model).fit(X, data.y)
    else:
        names = getattr(model, "feature_names_in_", None)
        if names is not None and set(names) <= set(data.X.columns):
            X = data.X[list(names)]
    if raw:
        return model.predict_survival_function(X, grid)
    curves = model.predict_survival_function(X)
    # evaluated here, as scikit-survival refuses times outside of the training range
    return np.array([StepFunction(curve.x, curve.a * curve.y + curve.b, 1.0)(grid) for curve in curves])
