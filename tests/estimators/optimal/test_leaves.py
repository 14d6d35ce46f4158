"""What the leaves of OptimalSurvivalTree predict."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sksurv.util import Surv

from softsurv import OptimalSurvivalTree
from softsurv.exact.objectives.brier import IbsScore
from softsurv.nonparametric import StepFunction, kaplan_meier, nelson_aalen, quantile, restricted_mean

KINDS = [("relative_risk", "nelson_aalen"), ("relative_risk", "km"), ("ibs", "km"), ("ibs", "ipcw")]
TIMES = np.array([0.0, 0.3, 2.0, 8.0, 30.0])


def curves_of(tree, y, leaf):
    """Survival curves of the leaves by their definitions."""
    if tree.leaf_ == "nelson_aalen":
        baseline = nelson_aalen(y["time"], y["event"])
        hazard = np.where(baseline(y["time"]) > 0, baseline(y["time"]), 1 / (len(y) + 1))
        out = []
        for k in range(tree.tree_.n_leaves):
            es, hs = y["event"][leaf == k].sum(), hazard[leaf == k].sum()
            theta = es / hs if es else 0.5 / hs
            out.append(StepFunction(baseline.times, np.exp(-theta * baseline.values), 1.0))
        return out
    if tree.leaf_ == "km":
        return [kaplan_meier(y["time"][leaf == k], y["event"][leaf == k]) for k in range(tree.tree_.n_leaves)]
    score = IbsScore.from_columns(y["time"], y["event"])
    return [
        StepFunction(np.unique(y["time"]), score.curve(np.flatnonzero(leaf == k), "ipcw", monotone=True), 1.0)
        for k in range(tree.tree_.n_leaves)
    ]


@pytest.mark.parametrize(("objective", "kind"), KINDS)
def test_predictions_are_those_of_the_leaf(trees, rows, objective, kind):
    X, y = rows
    tree = trees(objective, kind)
    leaf = tree.apply(X)
    assert np.array_equal(np.unique(leaf), np.arange(tree.tree_.n_leaves))
    curves = curves_of(tree, y, leaf)
    grid = np.sort(np.concatenate([TIMES, np.unique(y["time"]), np.unique(y["time"]) - 1e-9]))
    grid = grid[grid >= 0]
    expected = np.array([curves[k](grid) for k in leaf])
    assert_allclose(tree.predict_survival_function(X, grid), expected, atol=1e-12)
    with np.errstate(divide="ignore"):
        assert_allclose(tree.predict_cumulative_hazard_function(X, grid), -np.log(expected), atol=1e-12)
    for share in (0.1, 0.25, 0.5, 0.9):
        assert np.array_equal(tree.predict_quantile(X, share), [quantile(curves[k], share) for k in leaf])
    for horizon in (3.0, tree.horizon_):
        area = [restricted_mean(curves[k], horizon) for k in leaf]
        assert_allclose(tree.predict_expectation(X, horizon), area, rtol=1e-12)
    if kind == "nelson_aalen":
        assert_allclose(tree.predict(X), tree.tree_.value[leaf, 0])
    else:
        assert_allclose(tree.predict(X), tree.horizon_ - tree.predict_expectation(X))


@pytest.mark.parametrize(("objective", "kind"), KINDS)
def test_the_hazard_adds_up_to_the_cumulative_hazard_at_the_steps(trees, rows, objective, kind):
    X, _ = rows
    tree = trees(objective, kind)
    steps = np.unique(np.concatenate([hazard.times for hazard in tree.curves_.hazards]))
    grid = np.concatenate([[0.0], steps])
    middle = 0.5 * (grid[1:] + grid[:-1])
    area = np.cumsum(tree.predict_hazard_function(X, middle) * np.diff(grid), axis=1)
    cumulative = tree.predict_cumulative_hazard_function(X, steps)
    for k, hazard in enumerate(tree.curves_.hazards):
        row = np.flatnonzero(tree.apply(X) == k)[0]
        at = np.isin(steps, hazard.times) & np.isfinite(cumulative[row])
        assert_allclose(area[row, at], cumulative[row, at], rtol=1e-9)
    assert np.all(tree.predict_hazard_function(X, [tree.horizon_ + 1]) == 0)


def test_a_leaf_without_events_has_half_an_event():
    X = pd.DataFrame({"x": [0.0] * 6 + [1.0] * 6})
    y = Surv.from_arrays([True] * 6 + [False] * 6, [1.0, 2, 3, 4, 5, 6] * 2)
    tree = OptimalSurvivalTree(max_depth=1, min_samples_leaf=1, shrinkage=0.0).fit(X, y)
    hazard = nelson_aalen(y["time"], y["event"])(y["time"])
    assert tree.leaf_table_.events.tolist() == [6, 0]
    assert_allclose(tree.tree_.value[:, 0], [6 / hazard[:6].sum(), 0.5 / hazard[6:].sum()])
    assert 0 < tree.predict_survival_function(X, [6.0])[-1, 0] < 1


def test_a_curve_of_its_own_is_pulled_to_the_common_one_as_a_product_limit():
    """All rows of one leaf fail at one time, the others' times are spread: by hand from the rows of the leaf."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"fixed": np.repeat([0, 1], 100)})
    time = np.where(X["fixed"] == 1, 5.0, rng.exponential(6.0, 200).round(2) + 0.01)
    y = Surv.from_arrays(np.ones(200, dtype=bool), time)
    tree = OptimalSurvivalTree(max_depth=1, shrinkage=4.0).fit(X, y)
    leaf = tree.apply(X)[-1]
    assert tree.curves_.own[leaf]
    baseline = nelson_aalen(time, np.ones(200, dtype=bool))
    prior = tree.tree_.value[leaf, 0] * np.diff(baseline.values, prepend=0.0)  # four subjects survive as it says
    at_risk = np.where(baseline.times <= 5, 100.0, 0.0)
    died = np.where(baseline.times == 5, 100.0, 0.0)
    survival = np.cumprod(1 - (died + 4 * np.minimum(prior, 1)) / (at_risk + 4))
    assert_allclose(tree.predict_survival_function(X.iloc[-1:], baseline.times)[0], survival, atol=1e-12)
    assert survival[baseline.times == 5] < 0.04


def test_step_functions_and_scores(trees, rows):
    X, y = rows
    tree = trees()
    curve = tree.predict_survival_function(X.iloc[:3], return_array=False)[0]
    assert_allclose(curve(tree.unique_times_), tree.predict_survival_function(X.iloc[:1])[0])
    result = tree.evaluate(X, y)
    assert result["harrell_c"] == tree.score(X, y) > 0.6
    assert 0 < result["ibs"] < 0.25


def test_leaves_count_the_rows(trees, rows):
    X, y = rows
    tree = trees()
    assert tree.leaf_table_.n.tolist() == np.bincount(tree.apply(X)).tolist()
    assert tree.leaf_table_.events.sum() == y["event"].sum()


def test_conditional_survival_where_nobody_is_left(rows):
    X, y = rows
    y = y.copy()
    y["event"] = True
    tree = OptimalSurvivalTree(max_depth=1, leaf="km").fit(X, y)
    after = y["time"].max() + 1
    assert_allclose(tree.predict_conditional_survival(X[:2], after, [0.0, after, after + 1]), [[1, 1, 0]] * 2)


def test_a_path_shares_a_last_step_at_which_all_fail_by_the_causes_events():
    table = pd.DataFrame({"x": [0, 0, 0, 1, 1], "time": [1.0, 2.0, 2.0, 3.0, 3.0], "cause": [0, 1, 2, 2, 2]})
    table = pd.concat([table, table.iloc[[2]]])  # at time 2 one of x = 0 fails by cause 1, two by cause 2, none is left
    tree = OptimalSurvivalTree(max_depth=1, min_samples_leaf=1, shrinkage=0).fit(table, time="time", cause="cause")
    X, times = table[["x"]], [1.0, 2.0, 3.0]
    for cause, last in ((1, 1 / 3), (2, 2 / 3)):
        along = tree.predict_path(X, np.zeros(6), np.ones(6), times=times, cause=cause)
        assert_allclose(along, tree.predict_cumulative_incidence(X, times, cause), atol=1e-12)
        assert_allclose(along[0], [0.0, last, last])
