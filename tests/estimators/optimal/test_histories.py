"""Exact trees of event histories: against enumeration, plain estimators and each other."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import fuzz_pareto
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from softsurv import OptimalSurvivalTree, load_model
from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.optimal.leaves import CauseCurves
from softsurv.nonparametric import nelson_aalen

PLAIN = {"shrinkage": 0, "tune": None, "min_samples_leaf": 1}


@pytest.fixture(scope="module")
def two_causes():
    """Cause a depends on x, cause b on z."""
    rng = np.random.default_rng(3)
    n = 600
    X = pd.DataFrame({"x": rng.random(n).round(2), "z": rng.random(n).round(2), "noise": rng.random(n).round(1)})
    a = rng.exponential(np.where(X["x"] > 0.5, 1.0, 6.0))
    b = rng.exponential(np.where(X["z"] > 0.5, 1.5, 9.0))
    censored = rng.exponential(6.0, n)
    time = np.minimum(np.minimum(a, b), censored).round(3) + 0.001
    cause = np.select([censored <= np.minimum(a, b), a < b], ["", "a"], "b")
    return survival_data(X, time=time, cause=cause)


def deviance(data, rows, weights):
    """Cost of some rows as one leaf, by plain sums."""
    time = data.time.numpy()
    total = 0.0
    for k, weight in enumerate(weights, start=1):
        event = data.cause.numpy() == k
        hazard = nelson_aalen(time, event)(time)
        hazard = np.where(hazard > 0, hazard, 1 / (data.n + 1))
        events = event[rows].sum()
        if events:
            total -= weight * events * np.log(events / hazard[rows].sum())
            total -= weight * np.log(hazard[rows][event[rows]]).sum()
    return total


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(2, 3),
    st.integers(1, 3),
    st.sampled_from([1, 3]),
    st.sampled_from([0.0, 0.3]),
    st.booleans(),
)
def test_optimum_of_several_causes_is_that_of_all_trees(seed, n_causes, depth, least, complexity, weighed):
    rng = np.random.default_rng(seed)
    columns, _ = fuzz_pareto.table(rng, 30, 4)
    columns = np.vstack([columns, rng.random((n_causes, columns.shape[1])) < 0.5])
    n = len(columns)
    cause = np.concatenate([rng.integers(0, n_causes + 1, n - n_causes), np.arange(1, n_causes + 1)])
    data = survival_data(columns.astype(float), time=rng.integers(1, 20, n).astype(float), cause=cause)
    weights = [1.0, 0.25, 2.0][:n_causes] if weighed else [1.0] * n_causes

    def leaf(rows):
        return np.array([[deviance(data, rows, weights), 1.0]])

    trees = fuzz_pareto.all_trees(columns, depth, leaf, lambda rows: len(rows) >= least)
    expected = (trees[:, 0] + complexity * trees[:, 1]).min()
    tree = OptimalSurvivalTree(
        max_depth=depth, min_samples_leaf=least, complexity=complexity, tune=None,
        cause_weights=dict(enumerate(weights, start=1)) if weighed else None,
    ).fit(data)  # fmt: skip
    assert tree.objective_ == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert tree.gap_ == pytest.approx(0.0, abs=1e-7)


def test_one_cause_is_the_tree_of_one_event(two_causes):
    """With one cause alone counting, splits and objective are those of the events of that cause."""
    alone = OptimalSurvivalTree(max_depth=2, **PLAIN).fit(two_causes.of_cause("a"))
    both = OptimalSurvivalTree(max_depth=2, cause_weights="a", **PLAIN).fit(two_causes)
    assert both.objective_ == pytest.approx(alone.objective_, rel=1e-12)
    assert_allclose(both.apply(two_causes.X), alone.apply(two_causes.X))
    assert_allclose(both.tree_.value[:, 0], alone.tree_.value[:, 0])


def test_each_cause_finds_its_own_feature(two_causes):
    tree = OptimalSurvivalTree(max_depth=2).fit(two_causes)
    asked = {tree.tree_.sources[f].name for f in tree.tree_.feature if f >= 0}
    assert asked == {"x", "z"}
    for cause, feature in (("a", "x"), ("b", "z")):
        alone = OptimalSurvivalTree(max_depth=1, cause_weights=cause).fit(two_causes)
        assert alone.tree_.sources[alone.tree_.feature[0]].name == feature
    assert "events" in tree.export_text()
    assert "(a " in tree.export_text()


def test_leaves_without_shrinkage_are_aalen_johansen(two_causes):
    """By a plain loop over the event times."""
    tree = OptimalSurvivalTree(max_depth=1, **PLAIN).fit(two_causes)
    time, cause, leaf = two_causes.time.numpy(), two_causes.cause.numpy(), tree.apply(two_causes.X)
    for k in range(tree.tree_.n_leaves):
        some = leaf == k
        free, risen = 1.0, np.zeros(2)
        for t in np.unique(time[some & (cause > 0)]):
            at_risk = (some & (time >= t)).sum()
            died = np.array([(some & (time == t) & (cause == c)).sum() for c in (1, 2)])
            risen += free * died / at_risk
            free *= 1 - died.sum() / at_risk
            states = tree.predict_state_probabilities(two_causes.X[some][:1], [t])[0, 0]
            assert_allclose(states, [free, *risen], atol=1e-12)


def test_incidences_are_probabilities_where_all_events_are_of_one_cause():
    """A sum of hundreds of shares passes 1 by rounding; the measures refuse what is no probability."""
    hazards = np.zeros((2, 1, 400))
    hazards[0, 0] = 1.0 / np.arange(400, 0, -1)  # one event at each time, none censored
    for drop in range(1, 40):
        curves = CauseCurves.of_hazards(np.arange(1.0, 400.0 - drop + 1), hazards[:, :, drop:])
        assert curves.incidence(np.array([0]), np.array([1000.0])).max() <= 1.0


def test_the_text_tells_rare_causes_apart():
    """Few failures of many units: two decimals would show 0.00 for every cause of every leaf."""
    hot = np.arange(4000) % 2
    time, cause = np.full(4000, 9.0), np.full(4000, "", dtype=object)
    time[:8], cause[:8] = 5.0, ["seal", "motor", "", "motor", "", "motor", "", "motor"]
    tree = OptimalSurvivalTree(max_depth=1, shrinkage=0, min_samples_leaf=1)
    tree.fit(pd.DataFrame({"hot": hot}), time=time, cause=cause)
    assert tree.tree_.n_leaves == 2
    assert "by 5 motor 0.00, seal 0.0005" in tree.export_text()
    assert "by 5 motor 0.002, seal 0.00" in tree.export_text()


def test_probabilities_sum_to_one_and_agree_with_each_other(two_causes):
    tree = OptimalSurvivalTree().fit(two_causes)
    X, times = two_causes.X[:50], np.linspace(0.0, 12.0, 40)
    states = tree.predict_state_probabilities(X, times)
    assert_allclose(states.sum(-1), 1.0, atol=1e-12)
    assert_allclose(tree.predict_survival_function(X, times), states[..., 0], atol=1e-12)
    assert_allclose(tree.predict_cumulative_incidence(X, times, "b"), states[..., 2], atol=1e-15)
    assert (np.diff(states[..., 1:], axis=1) >= 0).all()
    lost = tree.predict_restricted_time_lost(X, 5.0)
    assert_allclose(lost.sum(1) + tree.predict_expectation(X, 5.0), 5.0, atol=1e-10)
    half = tree.predict_quantile(X, 0.2, "a")
    finite = np.isfinite(half)
    reached = np.array(
        [tree.predict_cumulative_incidence(X[k : k + 1], [half[k]], "a")[0, 0] for k in np.flatnonzero(finite)]
    )
    assert (reached >= 0.2 - 1e-12).all()
    assert_allclose(tree.predict_path(X, np.zeros(50), np.ones(50), times=times, cause=1), states[..., 1], atol=1e-10)


def test_saved_trees_keep_their_causes(two_causes, tmp_path):
    tree = OptimalSurvivalTree(max_depth=2).fit(two_causes)
    tree.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.export_text() == tree.export_text()
    assert_allclose(again.predict_cumulative_incidence(two_causes.X), tree.predict_cumulative_incidence(two_causes.X))
    assert tree.to_dict()["leaves"][0]["events_by_cause"] == tree.leaf_table_.cause_events[0].tolist()


def cut(data, rng):
    """The same subjects, each history cut at random places."""
    time, event = data.time.numpy(), data.event.numpy()
    rows, start, stop, happened, who = [], [], [], [], []
    for k in range(data.n):
        at = np.concatenate([[0.0], np.sort(rng.uniform(0, time[k], rng.integers(0, 3))), [time[k]]])
        for a, b in pairwise(at):
            rows.append(k)
            start.append(a)
            stop.append(b)
            happened.append(bool(event[k]) and b == time[k])
            who.append(k)
    return survival_data(data.X.iloc[rows].reset_index(drop=True), start=start, stop=stop, event=happened, id=who)


def test_rows_that_only_cut_a_history_change_nothing(two_causes):
    whole = two_causes.of_cause(1)
    pieces = cut(whole, np.random.default_rng(0))
    assert pieces.n > whole.n
    one, many = (OptimalSurvivalTree().fit(data) for data in (whole, pieces))
    assert many.objective_ == pytest.approx(one.objective_, rel=1e-10)
    assert_allclose(many.predict(whole.X), one.predict(whole.X), rtol=1e-10)
    times = np.linspace(0.1, 5, 20)
    assert_allclose(
        many.predict_survival_function(whole.X, times), one.predict_survival_function(whole.X, times), atol=1e-10
    )
    assert many.leaf_table_.n.tolist() == one.leaf_table_.n.tolist()
    assert many.export_text() == one.export_text()


def test_a_path_changes_leaves_as_its_covariates_do(two_causes):
    tree = OptimalSurvivalTree(max_depth=1, cause_weights="a").fit(two_causes)
    path = pd.DataFrame({"x": [0.1, 0.9], "z": [0.5, 0.5], "noise": [0.5, 0.5]})
    times = np.array([0.5, 1.0, 2.0])
    along = tree.predict_path(path, [0.0, 1.0], [1.0, 3.0], ["s", "s"], times)[0]
    stayed = tree.predict_survival_function(path, times)
    assert_allclose(along[:2], stayed[0, :2], atol=1e-12)
    assert_allclose(along[2], stayed[0, 1] * stayed[1, 2] / stayed[1, 1], atol=1e-12)


def test_a_path_from_0_counts_the_events_at_time_0():
    """Who begins at 0 is at risk of them, as in the curves; who begins later is not."""
    time, X = np.array([0.0, 0.0, 1.0, 2.0, 2.0]), pd.DataFrame({"x": np.arange(5.0)})
    with pytest.warns(DataWarning, match="time is 0"):
        data = survival_data(X, time=time, cause=["a", "", "b", "a", "b"])
    tree = OptimalSurvivalTree(max_depth=0, shrinkage=0).fit(data)
    times, path = [0.0, 1.0, 2.0], X.head(2)
    survival = tree.predict_path(path, [0.0, 1.0], [1.0, 2.0], times=times)
    assert_allclose(survival, [[4 / 5, 4 / 5 * 2 / 3, 0.0], [1.0, 1.0, 0.0]], atol=1e-12)
    incidence = tree.predict_path(path, [0.0, 1.0], [1.0, 2.0], times=times, cause="a")
    assert_allclose(incidence, [[1 / 5, 1 / 5, 1 / 5 + 4 / 15], [0.0, 0.0, 1 / 2]], atol=1e-12)
    one = tree.predict_path(path, [0.0, 1.0], [1.0, 2.0], [7, 7], times)[0]
    assert_allclose(one, tree.predict_survival_function(path, times)[0], atol=1e-12)


def test_mean_counts_of_recurrent_events():
    """A leaf's curve is the Nelson-Aalen mean count of its rows, by a plain loop."""
    rng = np.random.default_rng(1)
    rows = []
    for who in range(80):
        treated, now, end = who % 2, 0.0, rng.uniform(5, 10)
        while now < end:
            gap = rng.exponential(4.0 if treated else 1.5)
            rows.append((who, treated, now, min(now + gap, end), now + gap < end))
            now += gap
    table = pd.DataFrame(rows, columns=["who", "treated", "from", "to", "again"])
    how = {"start": "from", "stop": "to", "event": "again", "id": "who", "recurrent": True}
    tree = OptimalSurvivalTree(max_depth=1, **PLAIN).fit(table, **how)
    assert tree.predict_mean_count(pd.DataFrame({"treated": [0, 1]}), [5.0])[:, 0] == pytest.approx(
        [np.sum([1 / ((part["from"] < t) & (part["to"] >= t)).sum() for t in part["to"][part["again"]] if t <= 5])
         for _, part in table.groupby("treated")]
    )  # fmt: skip
    assert "mean count" in tree.export_text()
    with pytest.raises(InvalidParameterError, match="leaf must be 'auto' with recurrent events, got 'km'"):
        OptimalSurvivalTree(leaf="km").fit(table, **how)


def test_what_causes_do_not_go_with_is_said(two_causes):
    with pytest.raises(InvalidParameterError, match="objective must be 'relative_risk' with competing causes"):
        OptimalSurvivalTree("ibs").fit(two_causes)
    with pytest.raises(InvalidParameterError, match="cause_weights needs data with causes"):
        OptimalSurvivalTree(cause_weights="a").fit(two_causes.of_cause("a"))
    with pytest.raises(InvalidSurvivalDataError, match=r"one of the names \['a', 'b'\], got 'c'"):
        OptimalSurvivalTree(cause_weights="c").fit(two_causes)
    with pytest.raises(InvalidParameterError, match="cause_weights must map causes to weights"):
        OptimalSurvivalTree(cause_weights=[1.0, 2.0]).fit(two_causes)
    with pytest.raises(InvalidParameterError, match="mean counts need a tree of recurrent events"):
        OptimalSurvivalTree(max_depth=1).fit(two_causes).predict_mean_count(two_causes.X)


@pytest.mark.skipif(
    not (Path(os.environ.get("SOFTSURV_DATA", "")) / "event-history").is_dir(), reason="needs the event histories"
)
def test_a_single_leaf_is_the_reference_of_survfit():
    """State probabilities by sex at 60, 120 and 240 months, from R's survfit."""
    folder = Path(os.environ["SOFTSURV_DATA"]) / "event-history"
    table = pd.read_csv(folder / "mgus2.csv")
    reference = pd.read_csv(folder / "reference_aalen_johansen_mgus2.csv")
    for sex, part in table.groupby("sex"):
        tree = OptimalSurvivalTree(max_depth=0, **PLAIN).fit(part[["age"]], time=part["etime"], cause=part["cause"])
        expected = reference[reference["sex"] == f"sex={sex}"]
        found = tree.predict_state_probabilities(part[["age"]][:1], expected["time"].to_numpy())[0]
        assert_allclose(found, expected.iloc[:, -3:].to_numpy(), atol=1e-8)
