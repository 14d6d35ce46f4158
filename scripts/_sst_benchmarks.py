"""The models that paper `sst` and we compare soft trees with, fitted on encoded features.

``km`` is one Kaplan-Meier curve, ``cox`` Cox regression, ``forest`` scikit-survival's random survival forest of 100
trees, ``tree2`` to ``tree5`` its survival tree of that depth (SkSurv in the paper), ``rpart2`` to ``rpart5`` and
``ctree2`` to ``ctree5`` R's (RPART and CTree; `survset_peers.R`), with the defaults of each.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from _r_trees import grow, kaplan_meier_curves

from softsurv import SurvivalData
from softsurv.nonparametric import kaplan_meier

TINY = 1e-12
"""Cumulative hazard where a step estimate is 0: ranks by the model, which is 0 only before its first step."""

Curves = Callable[[np.ndarray], np.ndarray]


def steps(times: np.ndarray, hazard: np.ndarray) -> Curves:
    """Log H of step estimates: times (K,), hazard (n, K)."""

    def curves(at: np.ndarray) -> np.ndarray:
        position = np.searchsorted(times, at, side="right") - 1
        return np.log(np.where(position >= 0, np.maximum(hazard[:, np.maximum(position, 0)], TINY), TINY))

    return curves


def benchmark_curves(method: str, train: SurvivalData, test: SurvivalData, seed: int) -> Curves:
    """Fit one of the models; curves of the test rows."""
    return fitted_curves(method, train, test, seed)[1]


def fitted_curves(method: str, train: SurvivalData, test: SurvivalData, seed: int) -> tuple[Curves, Curves]:
    """Fit one of the models; curves of the training rows, and of the test rows."""
    if of_r := re.fullmatch(r"(rpart|ctree)(\d)", method):
        grown = grow(of_r[1], train, test, seed, int(of_r[2]))
        leaves = (grown.leaf_train, grown.leaf_test)
        of_train, of_test = (kaplan_meier_curves(train, grown.leaf_train, leaf) for leaf in leaves)
        return of_train, of_test
    of = _fit(method, train, seed)
    return of(train), of(test)


def _fit(method: str, train: SurvivalData, seed: int) -> Callable[[SurvivalData], Curves]:
    """A fitted model as a function from rows to their curves."""
    if method == "km":
        curve = kaplan_meier(train.time.numpy(), train.event.numpy())
        hazard = -np.log(np.maximum(curve.values, 1e-300))
        return lambda part: steps(curve.times, np.tile(hazard, (part.n, 1)))
    if method == "cox":
        return _cox(train)
    if method == "forest":
        from sksurv.ensemble import RandomSurvivalForest

        model = RandomSurvivalForest(n_estimators=100, min_samples_leaf=15, random_state=seed, n_jobs=1)
    else:
        from sksurv.tree import SurvivalTree

        model = SurvivalTree(max_depth=int(method.removeprefix("tree")), random_state=seed)
    model.fit(train.x.numpy(), train.y)
    times = model.unique_times_
    return lambda part: steps(times, model.predict_cumulative_hazard_function(part.x.numpy(), return_array=True))


def _cox(train: SurvivalData) -> Callable[[SurvivalData], Curves]:
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    model = CoxPHSurvivalAnalysis(alpha=0.1).fit(train.x.numpy(), train.y)
    baseline = model.cum_baseline_hazard_
    log_baseline = steps(baseline.x, baseline.y[None])

    def of(part: SurvivalData) -> Curves:
        score = model.predict(part.x.numpy())
        return lambda at: log_baseline(at) + score[:, None]

    return of
