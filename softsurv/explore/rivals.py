"""Other models beside softsurv's trees: one way to fit them and to ask for their curves."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from softsurv.arrays import FloatArray
from softsurv.data.preprocess import Preprocessor
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError, need_docstrings
from softsurv.estimators.baselines import AalenJohansenBaseline, Baseline, CauseSpecificCox
from softsurv.estimators.shared.base import SurvivalTreeBase
from softsurv.metrics.evaluate import evaluate_with_censoring, outcome, times_known, training_censoring
from softsurv.metrics.predicted import log_hazard_of
from softsurv.nonparametric import kaplan_meier

TIME, EVENT = "(time)", "(event)"
"""Outcome columns in the tables that lifelines is given."""

EXTRA_FIELDS = ("entry", "upper", "weight", "cause", "subject")
"""What `SurvivalData` may hold and other libraries' models are not given."""

COX_RIDGE = 1e-3
"""So small a ridge changes no digit that is shown, and lets Cox regression converge where columns are collinear."""


class KaplanMeier(BaseEstimator):
    """One Kaplan-Meier curve for all rows: what can be said without features."""

    def fit(self, X: Any, y: Any) -> KaplanMeier:
        """Estimate the curve; ``y`` as in scikit-survival."""
        self.curve_ = kaplan_meier(y["time"], y["event"])
        return self

    def predict_survival_function(self, X: Any, times: FloatArray) -> FloatArray:
        """The curve for each row, (n, T)."""
        return np.tile(self.curve_(times), (len(X), 1))


def _soft() -> Any:
    from softsurv.estimators.soft.tree import SoftSurvivalTree

    return SoftSurvivalTree()


def _optimal() -> Any:
    from softsurv.estimators.optimal.tree import OptimalSurvivalTree

    return OptimalSurvivalTree()


def _cox() -> Any:
    need_docstrings()
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    return CoxPHSurvivalAnalysis(alpha=COX_RIDGE)


def _forest() -> Any:
    need_docstrings()
    from sksurv.ensemble import RandomSurvivalForest

    return RandomSurvivalForest(min_samples_leaf=15, random_state=0)


def _boosting() -> Any:
    need_docstrings()
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis

    return GradientBoostingSurvivalAnalysis(random_state=0)


def _single_tree() -> Any:
    need_docstrings()
    from sksurv.tree import SurvivalTree

    return SurvivalTree(max_depth=3, min_samples_leaf=15, random_state=0)


NAMED: dict[str, Callable[[], Any]] = {
    "soft": _soft,
    "optimal": _optimal,
    "cox": _cox,
    "forest": _forest,
    "boosting": _boosting,
    "greedy_tree": _single_tree,
    "kaplan_meier": KaplanMeier,
    "cause_specific_cox": CauseSpecificCox,
    "aalen_johansen": AalenJohansenBaseline,
}
"""Models that go by a name: softsurv's trees, scikit-survival's models, one curve for all rows, and baselines that take
causes, weights, late entry and subjects with several rows."""

OF_HISTORIES = {"cox": "cause_specific_cox", "kaplan_meier": "aalen_johansen"}
"""What a name stands for where rows hold more than a time and an event."""

WITHOUT_PENALTY = ("cox", "cause_specific_cox")
"""Regressions that have no solution where features outnumber rows."""

HISTORIES = ("cause", "subject", "entry", "weight")
"""Fields that make rows such a history."""


def rows_of_a_fold(data: SurvivalData, n_folds: int) -> int:
    """About how many rows a fold trains on."""
    return data.n - math.ceil(data.n / n_folds)


def made(model: Any, data: SurvivalData, rows: int | None = None) -> Any:
    """A model as it is, or the one of a name that these rows can be given to, ``rows`` of them at a time."""
    rows = data.n if rows is None else rows
    if not isinstance(model, str):
        return model
    if model not in NAMED:
        raise InvalidParameterError(f"models must be estimators, or names out of {', '.join(NAMED)}; got {model!r}")
    if model in WITHOUT_PENALTY and data.X.shape[1] > rows:
        raise InvalidParameterError(
            f"{model} cannot be fitted to more features than rows, got {data.X.shape[1]} features and {rows} rows to "
            "train on; leave it out, or give a model with a penalty, such as scikit-survival's "
            "CoxnetSurvivalAnalysis(fit_baseline_model=True)"
        )
    more = any(getattr(data, name) is not None for name in HISTORIES)
    return NAMED[OF_HISTORIES.get(model, model) if more else model]()


def measured(model: Any, train: SurvivalData, test: SurvivalData, **options: Any) -> dict[str, Any]:
    """A fresh copy of the model fitted on ``train``: measures of ``test``; nan for those that need curves it lacks."""
    if isinstance(model, SurvivalTreeBase | Baseline):
        result: dict[str, Any] = clone(model).fit(train).evaluate(test, **options)
        return result
    for field in EXTRA_FIELDS:
        if getattr(train, field, None) is not None:
            instead = "SoftSurvivalTree" if field == "upper" else "CauseSpecificCox"
            raise InvalidSurvivalDataError(
                f"{type(model).__name__} is compared on right-censored rows of weight 1, got {field}; leave out "
                f"{field} or the model, or take softsurv's {instead}"
            )
    curves, has_curves = _fitted_curves(model, train, test)
    found = evaluate_with_censoring(training_censoring(train), **outcome(test), log_cumulative_hazard=curves, **options)
    return found if has_curves else found | {"ibs": float("nan")}


def _fitted_curves(model: Any, train: SurvivalData, test: SurvivalData) -> tuple[Any, bool]:
    """Log H of the test rows at any times, and whether it comes from curves rather than from a risk alone."""
    X, X_test = train.X, test.X
    if not isinstance(model, Pipeline):  # a pipeline encodes by itself
        encoder = Preprocessor(drop_first=True).fit(X)
        X, X_test = encoder.transform(X), encoder.transform(X_test)
    if type(model).__module__.split(".")[0] == "lifelines":
        return _lifelines_curves(model, X, X_test, train)
    y = train.y
    if not isinstance(model, KaplanMeier):
        y["time"] = _above_zero(y["time"])
    fitted = clone(model).fit(X, y)
    if isinstance(model, KaplanMeier):
        return log_hazard_of(lambda at: fitted.predict_survival_function(X_test, at)), True
    if hasattr(fitted, "predict_survival_function"):
        return log_hazard_of(fitted.predict_survival_function(X_test)), True
    inner = fitted.steps[-1][1] if isinstance(fitted, Pipeline) else fitted
    sign = 1.0 if getattr(inner, "_predict_risk_score", True) else -1.0  # as scikit-survival's own score reads it
    risk = sign * np.asarray(fitted.predict(X_test), dtype=float)
    return lambda at: np.tile(risk[:, None], (1, len(at))), False


def _above_zero(time: FloatArray) -> FloatArray:
    """Times (N,) with half the smallest positive one for 0, as in soft trees: many models refuse a time of 0."""
    return np.where(time > 0, time, time[time > 0].min() / 2)


def _lifelines_curves(model: Any, X: pd.DataFrame, X_test: pd.DataFrame, train: SurvivalData) -> tuple[Any, bool]:
    """A regression of lifelines, fitted on a copy."""
    if "duration_col" not in signature(model.fit).parameters:
        raise InvalidParameterError(f"models of lifelines must be regressions, got {type(model).__name__}")
    time, event = times_known(train)
    table = X.assign(**{TIME: _above_zero(time), EVENT: event})
    fitted = copy.deepcopy(model).fit(table, duration_col=TIME, event_col=EVENT)
    return log_hazard_of(
        lambda at: np.clip(fitted.predict_survival_function(X_test, times=at).to_numpy().T, 0.0, 1.0)
    ), True
