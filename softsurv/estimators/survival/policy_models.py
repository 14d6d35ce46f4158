"""Cross-fitted models behind the scores of a survival policy: survival under each treatment, and propensities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import has_fit_parameter

from softsurv.arrays import BoolArray, FloatArray
from softsurv.cox import fit_cox
from softsurv.data.preprocess import Preprocessor
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError, warn
from softsurv.estimators.survival.policy_scores import CoxCurves, Curves
from softsurv.exact.objectives.relative_risk import one_subject
from softsurv.nonparametric import kaplan_meier
from softsurv.stopping import StopSignal

Codes = NDArray[np.integer]

RIDGE = 0.1
"""Ridge of the default Cox models, which makes them fit even where a column is constant in a treatment and fold."""

MOST_TIMES, LEAST_TIMES = 300, 30
"""Most and least number of times at which survival is predicted. Of more event times the most are taken, with equal
numbers of events between them. A short time limit leaves fewer, but not fewer than the least."""


def folds_of(treatment: Codes, event: BoolArray, n_folds: int, seed: int) -> list[tuple[Codes, Codes]]:
    """Training and held-out rows of every fold, with equal shares of each treatment and of events in each."""
    strata = 2 * treatment + event
    least = int(np.bincount(strata)[np.unique(strata)].min())
    if least < n_folds:
        raise InvalidSurvivalDataError(
            f"every treatment must have at least {n_folds} events and {n_folds} censored rows (or none) for "
            f"{n_folds}-fold cross-fitting, got {least}; lower n_folds or merge treatments"
        )
    split = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros((len(strata), 1)), strata)
    return [(train, held_out) for train, held_out in split]


def propensities(
    frame: pd.DataFrame, treatment: Codes, weight: FloatArray, folds: list[tuple[Codes, Codes]], stop: StopSignal
) -> FloatArray:
    """Probability of every treatment for every row (N, K), by logistic regression on the other folds.

    If the time is up before a regression begins, the shares of the treatments are taken instead.
    """
    k, weight = int(treatment.max()) + 1, weight / one_subject(weight)  # the penalty is one of subjects
    out, left_out = np.empty((len(treatment), k)), 0
    for train, held_out in folds:
        if stop.exhausted:
            share = np.bincount(treatment[train], weight[train], k)
            out[held_out], left_out = share / share.sum(), left_out + 1
            continue
        encode = Preprocessor().fit(frame.iloc[train])
        model = LogisticRegression(max_iter=1000)
        model.fit(_features(encode, frame.iloc[train]), treatment[train], sample_weight=weight[train])
        out[held_out] = model.predict_proba(_features(encode, frame.iloc[held_out]))
    _warn_of_time(left_out, len(folds), "propensity models; shares of the treatments stand for them")
    return out


def _warn_of_time(left_out: int, wanted: int, words: str) -> None:
    """Warn of the models that there was no time to fit."""
    if left_out:
        warn(
            f"time_limit ended before {left_out} of {wanted} {words}; raise time_limit, or pass what is known",
            ConvergenceWarning,
        )


def survival_curves(
    frame: pd.DataFrame,
    time: FloatArray,
    event: BoolArray,
    treatment: Codes,
    weight: FloatArray,
    horizon: float,
    model: Any,
    folds: list[tuple[Codes, Codes]],
    stop: StopSignal | None = None,
    most_times: int | None = None,
) -> list[Curves] | list[CoxCurves]:
    """Predicted survival of every row under each treatment, from models of the other folds, one per treatment.

    The default Cox models check the time limit at every step. A ``model`` of the user cannot be stopped; if the time is
    up before it begins, the Kaplan-Meier curve of the treatment is taken instead. It gets the weights if these differ,
    and must then take them.
    """
    weight = weight / one_subject(weight)  # the penalty is one of subjects
    stop = StopSignal() if stop is None else stop
    times = grid_of(time[event & (time <= horizon)], most_times)
    n_treatments = int(treatment.max()) + 1
    if model is None:
        return _cox_curves(frame, time, event, treatment, weight, times, folds, stop)
    curves, left_out = [], 0
    for a in range(n_treatments):
        values = np.empty((len(time), len(times)))
        for train, held_out in folds:
            here = train[treatment[train] == a]
            if stop.exhausted:
                curve = kaplan_meier(time[here], event[here], weight[here])
                values[held_out], left_out = curve(times), left_out + 1
                continue
            fitted = clone(model).fit(frame.iloc[here], (event[here], time[here]), **_weights_of(model, weight, here))
            values[held_out] = np.asarray(fitted.predict_survival_function(frame.iloc[held_out], times))
        curves.append(Curves(times, np.clip(values, 0.0, 1.0)))
    _warn_of_time(left_out, n_treatments * len(folds), "survival models; Kaplan-Meier curves stand for them")
    return curves


def _weights_of(model: Any, weight: FloatArray, here: Codes) -> dict[str, FloatArray]:
    """The argument with the weights of some rows; none where all rows weigh the same."""
    if (weight == weight[0]).all():
        return {}
    if not has_fit_parameter(model, "sample_weight"):
        raise InvalidParameterError(
            f"survival_model must take sample_weight in fit, since the rows have different weights, got {model!r}"
        )
    return {"sample_weight": weight[here]}


def _cox_curves(
    frame: pd.DataFrame, time: FloatArray, event: BoolArray, treatment: Codes, weight: FloatArray, times: FloatArray,
    folds: list[tuple[Codes, Codes]], stop: StopSignal,
) -> list[CoxCurves]:  # fmt: skip
    """Curves of all rows under each treatment by Cox models with a small ridge penalty.

    If the time is up before the models of a fold begin, these use no features.
    """
    n_treatments = int(treatment.max()) + 1
    fold, log_risk = np.empty(len(time), dtype=np.int64), np.empty((n_treatments, len(time)))
    hazard, cut_off = np.empty((n_treatments, len(folds), len(times))), 0
    for number, (train, held_out) in enumerate(folds):
        seen, unseen = np.zeros((len(train), 0)), np.zeros((len(held_out), 0))
        if not stop.exhausted:
            encode = Preprocessor().fit(frame.iloc[train])
            seen, unseen = _features(encode, frame.iloc[train]), _features(encode, frame.iloc[held_out])
        fold[held_out] = number
        for a in range(n_treatments):
            given = treatment[train] == a
            here = train[given]
            cox = fit_cox(seen[given], time[here], event[here], RIDGE, stop, weight[here])
            log_risk[a, held_out], hazard[a, number] = cox.log_risk(unseen), cox.hazard_at(times)
            cut_off += not cox.converged and stop.exhausted
    _warn_of_time(cut_off, n_treatments * len(folds), "Cox models were fitted to the end")
    return [CoxCurves(times, hazard[a], fold, log_risk[a]) for a in range(n_treatments)]


def grid_of(event_times: FloatArray, most: int | None = None) -> FloatArray:
    """At most ``most`` event times, `MOST_TIMES` by default: a table of rows by all times may be too large."""
    times, most = np.unique(event_times), MOST_TIMES if most is None else most
    if len(times) <= most:
        return times
    return np.unique(np.quantile(event_times, np.linspace(0.0, 1.0, most), method="inverted_cdf"))


def _features(encode: Preprocessor, frame: pd.DataFrame) -> FloatArray:
    """Features (N, P); a column of zeros where there are none, as the models need one."""
    table = np.asarray(encode.transform(frame), dtype=float)
    return table if table.shape[1] else np.zeros((len(frame), 1))
