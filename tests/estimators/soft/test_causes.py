"""Soft trees whose leaves hold one hazard for each cause, and whose rows are stretches of a history."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from lifelines import LogLogisticAFTFitter, LogNormalAFTFitter, WeibullAFTFitter
from oracles.cut_rows import cut_rows

from softsurv import SoftSurvivalTree, load_model
from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.soft.parameters import SoftParameters
from softsurv.trees import incidence

LIFELINES = {"weibull": WeibullAFTFitter, "loglogistic": LogLogisticAFTFitter, "lognormal": LogNormalAFTFitter}
PENALTIES = {"l2": 0.3, "shrinkage": 10.0, "slope_shrinkage": 10.0}


def two_causes(n=1000, seed=0, entry=False):
    """Relapse is ten times as fast where x1 > 0.6, death where x2 > -0.4; x3 is noise."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x1", "x2", "x3"])
    relapse = 8 * rng.weibull(1.3, n) * np.where(X["x1"] > 0.6, 0.1, 1.0)
    death = 8 * rng.weibull(0.9, n) * np.where(X["x2"] > -0.4, 0.1, 1.0)
    left = rng.uniform(2, 20, n)
    start = rng.uniform(0, 1.0, n) if entry else np.zeros(n)
    time = np.minimum(np.minimum(relapse, death), left)
    cause = np.select([time == relapse, time == death], [1, 2], 0)
    seen = time > start
    late = {"entry": start[seen]} if entry else {}
    names = ["relapse", "death"]
    return survival_data(X[seen].reset_index(drop=True), time=time[seen], cause=cause[seen], cause_names=names, **late)


@pytest.fixture(scope="module")
def data():
    return two_causes()


@pytest.fixture(scope="module")
def fitted(data):
    return SoftSurvivalTree(depth=2, leaf="weibull", max_terms=1, **PENALTIES).fit(data)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("family", sorted(LIFELINES))
def test_the_likelihood_of_one_leaf_is_that_of_cause_specific_fits(family, late):
    data = two_causes(300, seed=3, entry=late)
    tree = SoftSurvivalTree(depth=0, leaf=family, l2=0.0).fit(data)
    frame = data.X.assign(time=data.time.numpy())
    how = {"entry_col": "entry"} if late else {}
    if late:
        frame["entry"] = data.entry.numpy()
    peers = 0.0
    for code in (1, 2):
        own = frame.assign(event=(data.cause == code).numpy())
        peers += LIFELINES[family]().fit(own, "time", "event", **how).log_likelihood_
    assert tree.log_likelihood(data).sum() == pytest.approx(peers, abs=1e-6 * abs(peers))


def test_each_cause_finds_its_own_split(fitted):
    assert fitted.encoded_names_ == ["x1", "x2", "x3"]
    rules = [rule for rule in fitted.tree_.rules if rule is not None]
    cuts = {rule.columns[0] for rule in rules}
    assert cuts == {0, 1}
    for column, truth in ((0, 0.6), (1, -0.4)):
        assert min(abs(rule.threshold - truth) for rule in rules if rule.columns == (column,)) < 0.05


@pytest.mark.parametrize(("given", "column"), [("relapse", 0), (2, 1), ({"death": 1.0, "relapse": 0.01}, 1)])
def test_rules_are_those_of_the_cause_of_interest(given, column, data):
    how = {"depth": 1, "leaf": "weibull", "max_terms": 1, **PENALTIES}
    tree = SoftSurvivalTree(**how, cause_weights=given).fit(data)
    assert tree.tree_.rules[0].columns == (column,)
    assert len(tree.cause_trees_) == 2
    assert np.isfinite(tree.log_likelihood(data)).all()
    plain, alike = (SoftSurvivalTree(**how, cause_weights=one).fit(data) for one in (None, {"relapse": 1, "death": 1}))
    assert plain.export_text() == alike.export_text()


def test_weights_of_causes_that_cannot_be_are_refused(data):
    with pytest.raises(InvalidParameterError, match="fairness compares the groups' curves of all events"):
        SoftSurvivalTree(depth=1, fairness=1.0, cause_weights="relapse").fit(data)
    with pytest.raises(InvalidParameterError, match="cause_weights needs data with causes, got 'relapse'"):
        SoftSurvivalTree(depth=1, leaf="weibull", cause_weights="relapse").fit(data.of_cause("relapse"))


def test_predictions_are_near_the_truth(fitted):
    X = pd.DataFrame({"x1": [2.0, 0.0], "x2": [-2.0, 1.0], "x3": [0.0, 0.0]})
    found = fitted.predict_cumulative_incidence(X, [2.0], cause="relapse")[:, 0]
    assert found[0] > 0.4
    assert found[1] < 0.2
    risk = fitted.predict(X, cause="death")
    assert risk[1] > risk[0]


@pytest.mark.parametrize("path", ["hbp", "soft"])
def test_states_sum_to_one_and_agree_with_survival(fitted, data, path):
    X, times = data.X.head(20), [0.0, 1e-6, 0.7, 3.0, 40.0]
    states = fitted.predict_state_probabilities(X, times, path=path)
    np.testing.assert_allclose(states.sum(-1), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(states[..., 0], fitted.predict_survival_function(X, times, path=path), atol=1e-12)
    middle = fitted.predict_median(X, path=path)
    at = np.diagonal(fitted.predict_survival_function(X, middle, path=path))
    np.testing.assert_allclose(at, 0.5, atol=1e-9)


def test_hazards_of_causes_add_up(fitted, data):
    X, times = data.X.head(9), np.array([0.3, 2.0])
    step = 1e-6
    ends = [fitted.predict_cumulative_hazard_function(X, times + side * step) for side in (1, -1)]
    slope = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(fitted.predict_hazard_function(X, times), slope, rtol=1e-6)


def test_a_saved_tree_predicts_the_same(fitted, data, tmp_path):
    fitted.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.cause_names_ == ("relapse", "death")
    X = data.X.head(30)
    np.testing.assert_array_equal(
        again.predict_cumulative_incidence(X, [1.0, 5.0]), fitted.predict_cumulative_incidence(X, [1.0, 5.0])
    )
    assert again.export_text() == fitted.export_text()
    assert str(again.summary()) == str(fitted.summary())


def test_text_and_summary_tell_the_causes(fitted):
    text = fitted.export_text()
    assert "relapse" in text
    assert "Each leaf holds a hazard for each cause: relapse weibull, death weibull." in text
    summary = fitted.summary()
    assert list(summary.effects.index.get_level_values("cause").unique()) == ["relapse", "death"]
    assert np.isfinite(summary.effects["standard_error"]).all()
    assert {"shape of relapse", "shape of death"} <= set(summary.leaves.columns)
    assert summary.measure == "relapse: hazard ratio; death: hazard ratio"
    assert fitted.feature_importances_.sum() == pytest.approx(1.0)


def test_families_are_chosen_for_each_cause(data):
    tree = SoftSurvivalTree(depth=0).fit(data)
    assert tree.candidate_.family.split(", ") == [one.family.name for one in tree.cause_trees_]
    assert len(tree.cause_trees_) == 2


def test_the_usual_family_of_causes_has_proportional_hazards():
    given = SoftParameters(**SoftSurvivalTree().get_params(deep=False))
    assert given.families_of(2)[0].name == "weibull"
    assert given.families_of(1) == given.families
    assert sorted(f.name for f in given.families_of(2)) == sorted(f.name for f in given.families)


def test_cuts_of_constant_histories_change_nothing():
    data = two_causes(200, seed=5)
    cut = cut_rows(data)
    apart, whole = (SoftSurvivalTree(depth=1).fit(rows) for rows in (cut, data))
    assert apart.export_text() == whole.export_text()
    assert apart.candidate_ == whole.candidate_
    assert apart.log_likelihood(cut).sum() == pytest.approx(whole.log_likelihood(data).sum(), abs=1e-10)
    grid = [0.5, 2.0, 9.0]
    np.testing.assert_allclose(
        apart.predict_cumulative_incidence(data.X, grid), whole.predict_cumulative_incidence(data.X, grid), atol=1e-10
    )
    np.testing.assert_allclose(apart.censoring_(data.time.numpy()), whole.censoring_(data.time.numpy()), atol=1e-12)


def changing(n=150, seed=2):
    """Two rows a subject; the hazard is five times as high while x is 1."""
    rng = np.random.default_rng(seed)
    switch = rng.uniform(0.2, 2.0, n)
    first, late = rng.exponential(2.0, n), rng.exponential(0.4, n)
    dies_early = first < switch
    stop = np.where(dies_early, first, switch + late)
    ends = np.minimum(stop, 4.0)
    one = pd.DataFrame(
        {"id": range(n), "start": 0.0, "stop": np.minimum(ends, switch), "x": 0.0, "z": rng.normal(size=n)}
    )
    one["event"] = dies_early & (stop <= 4.0)
    two = one[~dies_early].assign(start=switch[~dies_early], stop=ends[~dies_early], x=1.0)
    two["event"] = (stop <= 4.0)[~dies_early]
    return pd.concat([one, two], ignore_index=True).query("stop > start")


def test_covariates_that_change_are_rows_of_one_subject():
    rows = changing()
    columns = {"start": "start", "stop": "stop", "event": "event", "id": "id"}
    tree = SoftSurvivalTree(depth=1, leaf="exponential", **PENALTIES).fit(rows, **columns)
    assert "x" in tree.export_text()
    path = pd.DataFrame({"id": [1, 1], "start": [0.0, 1.0], "stop": [1.0, 3.0], "x": [0.0, 1.0], "z": [0.0, 0.0]})
    given = {"start": "start", "stop": "stop", "id": "id"}
    alive = tree.predict_path(path, **given, times=[0.5, 1.0, 2.0])[0]
    rate = -np.diff(np.log(alive)) / [0.5, 1.0]
    assert rate[1] > 2.5 * rate[0]
    stays = tree.predict_survival_function(path[["x", "z"]].head(1), [1.0])[0, 0]
    assert alive[1] == pytest.approx(stays, rel=1e-9)


def test_folds_keep_subjects_whole(monkeypatch):
    from softsurv.sparse import choose

    found = []
    make = choose.make_folds
    monkeypatch.setattr(choose, "make_folds", lambda *given: found.append((given[0], make(*given))) or found[-1][1])
    columns = {"start": "start", "stop": "stop", "event": "event", "id": "id"}
    SoftSurvivalTree(depth=0, leaf="exponential").fit(changing(), **columns)
    (data, fold), subject = found[0], found[0][0].subject.numpy()
    assert data.n > data.n_subjects
    for mask in fold.masks[:-1]:
        assert not set(subject[mask > 0]) & set(subject[mask == 0])


DENSE = {"max_terms": None, "leaf": "weibull", "l2": 0.3, "shrinkage": 3.0, "routing_l2": 0.3, "n_restarts": 2}


@pytest.fixture(scope="module")
def dense(data):
    return SoftSurvivalTree(depth=2, **DENSE).fit(data)


def test_dense_trees_hold_a_hazard_for_each_cause(dense, data, tmp_path):
    assert len(dense.cause_trees_) == 2
    assert dense.cause_trees_[0] is dense.tree_
    text = dense.export_text()
    assert "Each leaf holds a hazard for each cause: relapse weibull, death weibull." in text
    assert "points" in text
    X, times = data.X.head(20), [0.0, 0.7, 3.0, 40.0]
    for path in ("hbp", "soft"):
        states = dense.predict_state_probabilities(X, times, path=path)
        np.testing.assert_allclose(states.sum(-1), 1.0, rtol=0, atol=1e-12)
        np.testing.assert_allclose(states[..., 0], dense.predict_survival_function(X, times, path=path), atol=1e-12)
    assert np.isfinite(dense.summary().effects["standard_error"]).all()
    assert dense.feature_importances_.argmin() == 2
    dense.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_cumulative_incidence(X, times), states_of(dense, X, times))
    scores = dense.evaluate_starts(data.X, data.y)
    assert len(scores) == 2


@pytest.mark.parametrize("causes", [False, True])
def test_the_mixture_of_leaves_has_a_curve_soon_after_time_zero(data, causes):
    """Shares in float32 sum to 1 but for rounding: survival above 1 gave nan."""
    part = data.take(np.arange(200))
    how = {"depth": 3, "leaf": "weibull", "max_terms": None, "n_restarts": 1, "dtype": "float32"}
    tree = SoftSurvivalTree(**how, l2=0.1, shrinkage=1.0, routing_l2=0.01)
    tree.fit(part if causes else part.of_cause("relapse"))
    tree.tree_.routing.data = torch.randn(tree.tree_.routing.shape, generator=torch.Generator().manual_seed(0))
    survival = tree.predict_survival_function(data.X, np.geomspace(1e-12, 1e-3, 12), path="soft")
    np.testing.assert_allclose(survival[:, 0], 1.0, rtol=0, atol=1e-6)
    assert np.isfinite(survival).all()


def states_of(tree, X, times):
    return tree.predict_cumulative_incidence(X, times)


def test_a_dense_leaf_is_the_single_leaf_of_rules(data):
    dense, rules = (SoftSurvivalTree(depth=0, leaf="weibull", l2=0.3, max_terms=terms).fit(data) for terms in (None, 1))
    np.testing.assert_allclose(dense.log_likelihood(data), rules.log_likelihood(data), atol=1e-3)
    assert dense.log_likelihood(data).sum() == pytest.approx(rules.log_likelihood(data).sum(), rel=1e-7)


@pytest.mark.parametrize(
    "arguments",
    [{"solver": "nodec"}, {"init": "exact"}, {"l1": 0.3}, {"leaf": "spline_ph"}],
)
def test_dense_trees_of_causes_are_made_in_every_way(arguments, data):
    tree = SoftSurvivalTree(depth=1, **(DENSE | arguments)).fit(data)
    flat = SoftSurvivalTree(depth=0, leaf="weibull", l2=0.3, max_terms=None).fit(data)
    assert tree.log_likelihood(data).sum() > flat.log_likelihood(data).sum()
    assert tree.evaluate(data)["causes"]["relapse"]["concordance"] > 0.6


def test_the_papers_settings_take_causes(data):
    tree = SoftSurvivalTree(depth=1, leaf="weibull", preset="paper", max_iter=2).fit(data)
    assert len(tree.cause_trees_) == 2
    assert tree.evaluate(data)["causes"]["death"]["concordance"] > 0.6


def test_dense_trees_choose_their_size_by_subjects(monkeypatch):
    from softsurv.soft import selection

    rows, seen = changing(), []
    of = selection.InnerFolds.of.__func__
    monkeypatch.setattr(
        selection.InnerFolds,
        "of",
        classmethod(
            lambda cls, data, family, folds, *rest: seen.append((data, folds)) or of(cls, data, family, folds, *rest)
        ),
    )
    columns = {"start": "start", "stop": "stop", "id": "id", "cause": "event"}
    rows["event"] = np.where(rows["event"], np.where(rows["z"] > 0, "late", "early"), "")
    tree = SoftSurvivalTree(depth=1, leaf="exponential", max_terms=None, routing_l2=0.3).fit(rows, **columns)
    assert tree.cause_names_ == ("early", "late")
    (data, folds), subject = seen[0], seen[0][0].subject.numpy()
    assert len(folds) == 5
    for train in folds:
        held = np.setdiff1d(np.arange(data.n), train)
        assert not set(subject[train]) & set(subject[held])


def test_fairness_brings_the_groups_of_causes_together(data):
    group = np.where(data.X["x1"] + 0.3 * data.X["x3"] > 0, "a", "b")
    known = {"time": data.time.numpy(), "cause": data.cause.numpy(), "cause_names": data.cause_names}
    rows = survival_data(data.X, group=group, **known)
    how = DENSE | {"depth": 1, "n_restarts": 1}
    plain, fair = (SoftSurvivalTree(**how, fairness=rho).fit(rows) for rho in (0.0, 30.0))
    times = [0.3, 1.0, 2.0]

    def gap(tree):
        curves = tree.predict_survival_function(data.X, times)
        return np.abs(curves[group == "a"].mean(0) - curves[group == "b"].mean(0)).mean()

    assert gap(fair) < 0.5 * gap(plain)


def test_other_causes_than_in_training_are_refused(fitted):
    other = survival_data({"x1": [0.0], "x2": [0.0], "x3": [0.0]}, time=[1.0], cause=[1], cause_names=["a", "b"])
    with pytest.raises(InvalidSurvivalDataError, match=r"cause must have the names \['relapse', 'death'\]"):
        fitted.log_likelihood(other)


def test_a_median_may_be_much_earlier_than_every_time():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": np.r_[rng.normal(size=200), 8.0]})  # one row far outside
    time = rng.weibull(0.4, 201) * np.exp(-2.0 * X["a"].clip(-2, 2)) + 1e-3
    cause = 1 + (rng.random(201) < 0.3)
    how = {"depth": 0, "leaf": "weibull", "max_terms": 1, "l2": 1e-3}
    tree = SoftSurvivalTree(**how).fit(X.head(200), time=time[:200], cause=cause[:200])
    with pytest.warns(DataWarning, match="far outside"):
        median = tree.predict_median(X.tail(1))
    with pytest.warns(DataWarning, match="far outside"):
        survival = tree.predict_survival_function(X.tail(1), median)
    assert 0 < median[0] < 1e-8 * tree.horizon_
    assert survival[0, 0] == pytest.approx(0.5, abs=1e-9)


def test_incidences_over_ages_are_those_of_a_fine_grid(monkeypatch):
    """Rows that enter late at ages of 50 to 65: the grid's steps of fixed ratios are more than half a year there."""
    rng = np.random.default_rng(0)
    X, entry = pd.DataFrame({"x": rng.normal(size=300)}), 50 + rng.uniform(0, 9, 300)
    relapse, death = entry + rng.exponential(6 * np.exp(-0.3 * X["x"])), entry + 7 * rng.weibull(2, 300)
    time = np.minimum(np.minimum(relapse, death), 65.0)
    cause = np.select([time == 65.0, relapse < death], [0, 1], 2)
    tree = SoftSurvivalTree(depth=0, leaf="spline_ph").fit(X, time=time, cause=cause, entry=entry)
    path = {"start": np.full(3, 50.5), "stop": np.full(3, 65.0), "times": [52.0, 58.0, 65.0], "cause": 1}
    found = tree.predict_path(X[:3], **path)
    monkeypatch.setattr(incidence, "POINTS_PER_DECADE", 40 * incidence.POINTS_PER_DECADE)
    np.testing.assert_allclose(found, tree.predict_path(X[:3], **path), rtol=0, atol=1e-5)
