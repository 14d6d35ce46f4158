"""The models that softsurv's trees are compared with, on encoded features.

- ``cox``, ``km``: Cox regression and one Kaplan-Meier curve, as in _sst_benchmarks.py.
- ``forest``: scikit-survival's random survival forest, 100 trees, at least 15 rows a leaf.
- ``coxnet``: scikit-survival's Cox regression with a penalty that is nearly a ridge (``l1_ratio`` of .05), its strength
  by concordance in five inner folds.
- ``sktree``: scikit-survival's survival tree; depth and rows per leaf by concordance in five inner folds.
- ``rpart``, ``rpart_min``, ``ctree``: by survset_peers.R; Kaplan-Meier curves in the leaves. rpart is pruned by the
  rule of one standard error, rpart_min to the least cross-validated error.
- ``boost``: SurvivalBoost of `hazardous` with its defaults.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from _r_trees import R_PACKAGES, grow, kaplan_meier_curves, log_hazard, missing_r
from _sst_benchmarks import benchmark_curves, steps
from _survset_models import Fitted, Stopwatch
from numpy.typing import NDArray
from sksurv.linear_model import CoxnetSurvivalAnalysis
from sksurv.metrics import concordance_index_censored

from softsurv import SurvivalData
from softsurv.data.partition import stratified_folds
from softsurv.data.preprocess import Preprocessor

FOREST_TIMES = 300
"""Distinct times that the forest is given where there are more: each leaf stores one curve over all of them."""

COXNET_L1 = 0.05
"""Share of the penalty that is on the sizes of slopes, the rest on their squares: without one there is no path."""

TREE_DEPTHS, TREE_LEAVES = (1, 2, 3, 4, 5, 6), (5, 15, 40)
Fit = Callable[[SurvivalData, SurvivalData, int], Fitted]


def fit_peer(name: str, raw_train: SurvivalData, raw_test: SurvivalData, seed: int) -> Fitted:
    """Fit a peer; features are imputed, one-hot encoded and scaled as learned on the training rows."""
    encoder = Preprocessor().fit(raw_train.X)
    train, test = (part.with_features(encoder.transform(part.X)) for part in (raw_train, raw_test))
    return PEERS[name](train, test, seed)


def missing(name: str) -> str | None:
    """Why a peer cannot be had here, in a sentence; None where it can."""
    if name in R_PACKAGES:
        return missing_r(name)
    if name == "boost" and find_spec("hazardous") is None:
        return "boost is left out: hazardous is not installed (pip install --no-deps hazardous)."
    return None


# -- regressions, forest, boosting -----------------------------------------------------------------------------------
def fit_benchmark(name: str, train: SurvivalData, test: SurvivalData, seed: int) -> Fitted:
    """A model of _sst_benchmarks.py."""
    clock = Stopwatch()
    curves = benchmark_curves(name, train, test, seed)
    return Fitted(curves, None, {}, *clock.read())


def fit_forest(train: SurvivalData, test: SurvivalData, seed: int) -> Fitted:
    """The forest of _sst_benchmarks.py, on a coarser clock where there are many times."""
    clock = Stopwatch()
    curves = benchmark_curves("forest", coarser(train, FOREST_TIMES), test, seed)
    return Fitted(curves, None, {}, *clock.read())


def coarser(data: SurvivalData, limit: int) -> SurvivalData:
    """The rows with at most ``limit`` distinct times: each time moves up to the next quantile of the event times."""
    time, event = data.time.numpy(), data.event.numpy()
    if len(np.unique(time)) <= limit:
        return data
    grid = np.unique(np.append(np.quantile(time[event], np.linspace(0, 1, limit - 1), method="higher"), time.max()))
    moved = grid[np.searchsorted(grid, time)]
    return SurvivalData(data.X, time=moved, event=event, name=data.name)


def fit_boost(train: SurvivalData, test: SurvivalData, seed: int) -> Fitted:
    """Gradient boosting of the incidence."""
    from hazardous import SurvivalBoost

    clock = Stopwatch()
    outcome = pd.DataFrame({"event": train.event.numpy().astype(int), "duration": train.time.numpy()})
    model = SurvivalBoost(random_state=seed, show_progressbar=False).fit(train.x.numpy(), outcome)
    spent = clock.read()

    def curves(at: NDArray) -> NDArray:
        survival = np.asarray(model.predict_survival_function(test.x.numpy(), times=at))
        return log_hazard(survival)

    return Fitted(curves, None, {}, *spent)


def fit_coxnet(train: SurvivalData, test: SurvivalData, seed: int) -> Fitted:
    """scikit-survival's penalised Cox regression, tuned."""
    clock = Stopwatch()
    x, y = train.x.numpy(), train.y
    make = partial(CoxnetSurvivalAnalysis, l1_ratio=COXNET_L1, max_iter=10_000)
    alphas = make(alpha_min_ratio=0.01, n_alphas=20).fit(x, y).alphas_
    scores = np.zeros(len(alphas))
    for fit, held in stratified_folds(train.event.numpy(), 5, seed):
        model = make(alphas=alphas).fit(x[fit], y[fit])
        for k, alpha in enumerate(model.alphas_):
            risk = model.predict(x[held], alpha=alpha)
            scores[k] += concordance_index_censored(train.event.numpy()[held], train.time.numpy()[held], risk)[0]
    model = make(alphas=[alphas[int(scores.argmax())]], fit_baseline_model=True).fit(x, y)
    spent = clock.read()
    functions = model.predict_cumulative_hazard_function(test.x.numpy())
    return Fitted(steps(functions[0].x, np.array([one.a * one.y for one in functions])), None, {}, *spent)


# -- trees -----------------------------------------------------------------------------------------------------------
def fit_sktree(train: SurvivalData, test: SurvivalData, seed: int) -> Fitted:
    """scikit-survival's tree, tuned."""
    from sksurv.tree import SurvivalTree

    clock = Stopwatch()
    x, y = train.x.numpy(), train.y
    folds = stratified_folds(train.event.numpy(), 5, seed)

    def score(depth: int, rows: int) -> float:
        tree = SurvivalTree(max_depth=depth, min_samples_leaf=rows, random_state=seed, low_memory=True)
        return float(np.mean([tree.fit(x[fit], y[fit]).score(x[held], y[held]) for fit, held in folds]))

    depth, rows = max(itertools.product(TREE_DEPTHS, TREE_LEAVES), key=lambda pair: score(*pair))
    tree = SurvivalTree(max_depth=depth, min_samples_leaf=rows, random_state=seed).fit(x, y)
    spent = clock.read()
    curves = steps(tree.unique_times_, tree.predict_cumulative_hazard_function(test.x.numpy(), return_array=True))
    facts = axis_parallel(int(tree.tree_.n_leaves), int(tree.tree_.max_depth))
    return Fitted(curves, tree.tree_.apply(test.x.numpy().astype(np.float32)), facts, *spent)


def fit_r(method: str, train: SurvivalData, test: SurvivalData, seed: int) -> Fitted:
    """A tree of R; seconds are those of its fit, without the start of R and the files."""
    grown = grow(method, train, test, seed)
    curves = kaplan_meier_curves(train, grown.leaf_train, grown.leaf_test)
    told = axis_parallel(int(grown.facts["n_leaves"]), int(grown.facts["depth"]))
    return Fitted(curves, grown.leaf_test, told, grown.facts["seconds"], grown.facts["cpu_seconds"])


def axis_parallel(n_leaves: int, depth: int) -> dict[str, Any]:
    """Facts of a tree with one feature in a split."""
    return {"n_leaves": n_leaves, "depth": depth, "terms": 1.0 if n_leaves > 1 else None}


PEERS: dict[str, Fit] = {
    "km": lambda *fold: fit_benchmark("km", *fold),
    "cox": lambda *fold: fit_benchmark("cox", *fold),
    "rpart": lambda *fold: fit_r("rpart", *fold),
    "rpart_min": lambda *fold: fit_r("rpart_min", *fold),
    "ctree": lambda *fold: fit_r("ctree", *fold),
    "coxnet": fit_coxnet,
    "sktree": fit_sktree,
    "forest": fit_forest,
    "boost": fit_boost,
}
