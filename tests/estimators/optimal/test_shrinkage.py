"""Leaves that borrow from the nodes above: by their definitions, and as they are printed, drawn and predicted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sksurv.util import Surv

from softsurv import OptimalSurvivalTree, SurvivalData, load_dataset, load_model
from softsurv.estimators.optimal.shrinkage import node_rows, places, risk_set
from softsurv.exact.objectives.brier import IbsScore
from softsurv.nonparametric import kaplan_meier, median, nelson_aalen

KINDS = [("relative_risk", "adaptive"), ("relative_risk", "nelson_aalen"), ("relative_risk", "km"), ("ibs", "ipcw")]


def paths(tree):
    """Nodes from the root to each leaf, the leaf's own node last."""
    return [[*(node for node, _ in tree.path(k)), int(np.flatnonzero(tree.leaf == k)[0])] for k in range(tree.n_leaves)]


def passed(tree, leaf, node):
    """Rows that pass a node."""
    return np.isin(leaf, [k for k, path in enumerate(paths(tree)) if node in path])


def test_rows_of_nodes_are_those_that_pass(rows):
    X, y = rows
    model = OptimalSurvivalTree(max_depth=3).fit(X, y)
    known = model._parts._rows
    members, leaf = node_rows(model.tree_, model.tree_.node_of(known.table, known.n)), known.leaf_of(model.tree_)
    assert len(members) == model.tree_.n_nodes
    for node, some in enumerate(members):
        assert some.tolist() == np.flatnonzero(passed(model.tree_, leaf, node)).tolist()


@pytest.mark.parametrize("entering", [False, True])
def test_who_is_at_risk_is_counted_as_by_the_definition(rows, entering):
    """At times of events, with weights; rows are censored before the first, between them and after the last."""
    X, y = rows
    entry = np.where(X["x"] > 0, 0.5 * y["time"], 0.0) if entering else None
    weight = np.random.default_rng(0).integers(1, 5, len(y)).astype(float)
    model = OptimalSurvivalTree(max_depth=1).fit(X, y, sample_weight=weight, entry=entry)
    known, some = model._parts._rows, np.arange(0, len(y), 2)
    times = np.unique(known.time[known.event])[1:-1]
    inner = replace(known, event=known.event & np.isin(known.time, times))
    died, at_risk = risk_set(inner, some, times, places(inner, times))
    for j, t in enumerate(times):
        there = inner.time[some] >= t
        if entering:
            there &= (inner.entry[some] < t) | (inner.entry[some] == 0)
        assert at_risk[j] == inner.weight[some][there].sum()
        assert died[j] == inner.weight[some][(inner.time[some] == t) & inner.event[some]].sum()


@pytest.mark.parametrize("entry", [0.0, 0.05])
def test_where_all_who_are_left_die_none_stays(entry):
    """Sums of weights in another order left a share of 1e-17, which then lived for ever."""
    rng = np.random.default_rng(0)
    time, weight = np.round(rng.uniform(0.1, 2, 90), 1), rng.uniform(0.1, 3, 90)
    X = pd.DataFrame({"x": rng.integers(0, 2, 90)})
    data = SurvivalData(X, time, np.ones(90, dtype=bool), entry=np.full(90, entry), weight=weight)
    tree = OptimalSurvivalTree(max_depth=1, leaf="km", shrinkage=0, min_samples_leaf=5).fit(data)
    assert (tree.predict_survival_function(X, [2.0]) == 0).all()
    assert (tree.predict_conditional_survival(X, after=2.0, times=[2.5]) == 0).all()


@pytest.mark.parametrize("strength", [1.0, 10.0, 300.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_relative_risks_are_pulled_along_the_path(rows, strength, weighted):
    X, y = rows
    weight = np.where(X["x"] > 0, 2.0, 1.0) if weighted else np.ones(len(y))
    model = OptimalSurvivalTree(max_depth=3, shrinkage=strength).fit(X, y, sample_weight=weight)
    baseline = nelson_aalen(y["time"], y["event"], weight)(y["time"])
    hazard = np.where(baseline > 0, baseline, 1 / (weight.sum() + 1))
    leaf = model.apply(X)
    for k, path in enumerate(paths(model.tree_)):
        theta = 1.0
        for node in path:
            here = passed(model.tree_, leaf, node)
            events, expected = (weight * y["event"])[here].sum(), (weight * hazard)[here].sum()
            theta = (events + strength * theta) / (expected + strength)
        assert model.tree_.value[k, 0] == pytest.approx(theta)
    assert model.objective_ == OptimalSurvivalTree(max_depth=3, shrinkage=0).fit(X, y, sample_weight=weight).objective_


@pytest.mark.parametrize("entering", [False, True])
def test_hazards_are_pulled_along_the_path(rows, entering):
    X, y = rows
    entry = np.where(X["x"] > 0.3, 0.5 * y["time"], 0.0) if entering else np.zeros(len(y))
    model = OptimalSurvivalTree(max_depth=2, leaf="km", shrinkage=8.0).fit(X, y, entry=entry)
    leaf, times = model.apply(X), np.unique(y["time"])
    for k, path in enumerate(paths(model.tree_)):
        survival, prior, above = [], None, np.ones(len(y), bool)
        for node in path:
            here, hazard = passed(model.tree_, leaf, node), []
            subjects = 8.0 * above.sum() / y["event"][above].sum()  # among whom eight events happened in the parent
            for j, t in enumerate(times):
                at_risk = (here & (y["time"] >= t) & ((entry < t) | (entry == 0))).sum()
                died = (here & (y["time"] == t) & y["event"]).sum()
                if prior is None:
                    hazard.append(died / at_risk)
                else:
                    hazard.append((died + subjects * prior[j]) / (at_risk + subjects))
            prior, above = hazard, here
        survival = np.cumprod(1 - np.array(prior))
        row = np.flatnonzero(leaf == k)[:1]
        assert_allclose(model.predict_survival_function(X.iloc[row], times)[0], survival, atol=1e-12)


def test_the_curve_of_least_score_counts_the_subjects_that_it_borrows(rows):
    X, y = rows
    model = OptimalSurvivalTree("ibs", max_depth=1, leaf="ipcw", shrinkage=6.0).fit(X, y)
    leaf, score, times = model.apply(X), IbsScore.from_columns(y["time"], y["event"]), np.unique(y["time"])
    root = score.curve(np.arange(len(y)), "ipcw", monotone=True)
    everyone = np.add(*score.curve_weights(np.arange(len(y)))) / len(y)
    for k in range(2):
        here = np.flatnonzero(leaf == k)
        subjects = 6.0 * len(y) / y["event"].sum()

        def cost(curve, here=here, subjects=subjects):
            borrowed = subjects * np.sum(score.grid().dt * everyone * (curve - root) ** 2)
            return score.loss(here, curve) + borrowed

        curve = model.predict_survival_function(X.iloc[here[:1]], times)[0]
        rng = np.random.default_rng(k)
        for size in (1e-3, 1e-2, 0.1):
            for _ in range(20):
                other = np.minimum.accumulate(np.clip(curve + size * rng.normal(size=curve.size), 0, 1))
                assert cost(curve) <= cost(other) + 1e-12


@pytest.mark.parametrize(("objective", "leaf"), KINDS)
def test_strong_shrinkage_makes_leaves_equal_and_none_leaves_them_alone(rows, objective, leaf):
    X, y = rows
    settings = {"objective": objective, "leaf": leaf, "max_depth": 2}
    grid = np.unique(y["time"])
    pulled = OptimalSurvivalTree(**settings, shrinkage=1e9).fit(X, y).predict_survival_function(X, grid)
    assert np.ptp(pulled, axis=0).max() < 1e-5
    alone = OptimalSurvivalTree(**settings, shrinkage=0).fit(X, y).predict_survival_function(X, grid)
    between = OptimalSurvivalTree(**settings, shrinkage=20).fit(X, y).predict_survival_function(X, grid)
    assert np.ptp(between, axis=0).mean() < np.ptp(alone, axis=0).mean()


@pytest.mark.parametrize(("objective", "leaf"), KINDS)
def test_what_is_printed_and_drawn_is_what_is_predicted(rows, objective, leaf):
    X, y = rows
    model = OptimalSurvivalTree(objective, max_depth=3, leaf=leaf).fit(X, y)
    grid, at = np.unique(y["time"]), model.apply(X)
    survival = model.predict_survival_function(X, grid)
    for k, line in enumerate(model.leaf_lines()):
        row = np.flatnonzero(at == k)[0]
        assert_allclose(model.leaf_table_.curves[k](grid), survival[row])
        middle = model.predict_median(X)[row]
        assert model.leaf_table_.median[k] == middle == median(model.leaf_table_.curves[k])
        assert (f"median {middle:.4g}" if np.isfinite(middle) else "median not reached") in line
        ranked = "relative risk" if leaf in ("adaptive", "nelson_aalen") else "time lost"
        assert f"{ranked} {model.predict(X)[row]:.4g}" in line


def crossing(n=600, seed=0):
    """Three groups: two with proportional hazards; in the third everything happens late."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["low", "high", "late"], n)
    time = rng.exponential(np.where(group == "low", 8.0, 2.0))
    time = np.where(group == "late", 6.0 + 0.5 * rng.random(n), time)
    end = rng.uniform(4, 20, n)
    return pd.DataFrame({"group": group}), Surv.from_arrays(time <= end, np.minimum(time, end))


def test_a_leaf_whose_events_come_at_other_times_has_a_curve_of_its_own(tmp_path):
    X, y = crossing()
    model = OptimalSurvivalTree(max_depth=2).fit(X, y)
    late = int(model.apply(pd.DataFrame({"group": ["late"]}))[0])
    assert model.curves_.own[late]
    assert "a curve of its own" in model.leaf_lines()[late]
    here = model.apply(X) == late
    times = np.array([3.0, 5.5, 6.3])
    own = kaplan_meier(y["time"][here], y["event"][here])(times)
    common = OptimalSurvivalTree(max_depth=2, leaf="nelson_aalen").fit(X, y)
    row = pd.DataFrame({"group": ["late"]})
    distance = [np.abs(one.predict_survival_function(row, times)[0] - own).max() for one in (model, common)]
    assert distance[0] < 0.15 < distance[1]
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.curves_.own == model.curves_.own
    assert again.shrinkage_ == model.shrinkage_ == 10.0
    assert again.leaf_lines() == model.leaf_lines()


def test_proportional_hazards_keep_the_common_baseline():
    n_own = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"x": rng.integers(0, 2, 400)})
        time = rng.weibull(1.5, 400) * np.where(X["x"] == 1, 1.0, 2.0)
        end = rng.uniform(0.5, 3, 400)
        model = OptimalSurvivalTree(max_depth=1).fit(X, (time <= end, np.minimum(time, end)))
        n_own += sum(model.curves_.own)
    assert n_own == 0  # 40 leaves at a level of .001


@pytest.mark.parametrize("name", ["veterans", "gbsg2"])
def test_defaults_leave_no_leaf_of_a_few_rows(name):
    data = load_dataset(name)
    model = OptimalSurvivalTree().fit(data)
    assert 1 < model.tree_.n_leaves <= 8
    assert model.leaf_table_.n.min() >= 5 * data.n / data.n_events
    assert model.tree_.value.max() < 5


def test_a_leaf_without_events_takes_no_more_events_from_above_than_others():
    """Forty subjects who all survive, beside sixty who die: one event is taken, not as many as the sixty have."""
    rng = np.random.default_rng(0)
    safe = np.arange(100) < 40
    time = np.where(safe, 5.0, rng.exponential(1.0, 100).clip(0.01, 4.9))
    y = Surv.from_arrays(~safe, time)
    model = OptimalSurvivalTree(max_depth=1, leaf="km", shrinkage=1.0, min_samples_leaf=5).fit({"safe": safe}, y)
    ends = model.predict_survival_function({"safe": [True, False]}, np.array([4.9]))[:, 0]
    assert ends[0] > 0.9
    assert ends[1] < 0.1
