"""Survival policy trees: who benefits, limits on how many are treated, arguments."""

import numpy as np
import pandas as pd
import pytest

from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.separable.capacity_policy import OptimalCapacityPolicyTree
from softsurv.estimators.survival.policy import OptimalSurvivalPolicyTree
from softsurv.results import Status

HORIZON = 2.0


@pytest.mark.parametrize("method", ["doubly_robust", "direct", "ips"])
def test_tree_finds_who_benefits(trial, method):
    frame, time, event, treatment, _, _ = trial(1500, 3)
    tree = OptimalSurvivalPolicyTree(HORIZON, method, max_depth=1, thresholds=[0.0]).fit(
        frame, (event, time), treatment=np.where(treatment == 1, "new", "old"), propensity=[0.5, 0.5]
    )
    assert tree.status_ == Status.OPTIMAL
    if method != "direct":  # Cox models per treatment know no interaction that changes sign
        assert tree.tree_.sources[tree.tree_.feature[0]].name == "a"
        assert tree.predict(pd.DataFrame({"a": [-1.0, 1.0], "b": 0.0, "c": 0.0})).tolist() == ["old", "new"]
    assert tree.scores_.shape == (1500, 2)
    chosen = tree.scores_[np.arange(1500), tree.label_[tree.apply(frame)]].mean()
    assert tree.objective_ == pytest.approx(-chosen)


def test_estimated_propensities_and_a_model_of_ones_own(true_means, trial):
    from softsurv import OptimalSurvivalTree

    frame, time, event, treatment, _, _ = trial(600, 5, confounded=True)
    tree = OptimalSurvivalPolicyTree(HORIZON, max_depth=1, survival_model=OptimalSurvivalTree(max_depth=1)).fit(
        frame, (event, time), treatment=treatment
    )
    value = true_means(frame.to_numpy())[np.arange(600), tree.predict(frame)].mean()
    assert value > true_means(frame.to_numpy()).mean(axis=0).max()


def test_survival_policy_under_capacity(trial):
    frame, time, event, treatment, _, _ = trial(800, 8)
    tree = OptimalSurvivalPolicyTree(HORIZON, max_depth=2, capacity={1: 0.25}).fit(
        frame, (event, time), treatment=treatment, propensity=[0.5, 0.5]
    )
    assert tree.share_[1] <= 0.25 + 1e-9
    assert tree.predict(frame).mean() == pytest.approx(tree.share_[1])


def test_without_features_all_rows_get_the_better_treatment(trial):
    frame, time, event, treatment, _, _ = trial(300, 2)
    for none in (frame * 0, frame[[]]):
        tree = OptimalSurvivalPolicyTree(HORIZON, max_depth=2).fit(none, (event, time), treatment=treatment)
        assert tree.tree_.n_leaves == 1
        assert tree.label_[0] == tree.scores_.mean(axis=0).argmax()


@pytest.mark.parametrize("form", ["pair", "frame"])
def test_rows_of_a_fold_keep_their_index(trial, form):
    frame, time, event, treatment, _, _ = trial(300, 2)
    fold, fit = np.random.default_rng(0).permutation(300)[:200], OptimalSurvivalPolicyTree(HORIZON, max_depth=1).fit
    expected = fit(frame.to_numpy()[fold], (event[fold], time[fold]), treatment=treatment[fold])
    outcome = pd.DataFrame({"event": event, "time": time}).loc[fold]
    y = outcome if form == "frame" else (outcome["event"], outcome["time"])
    tree = fit(frame.loc[fold], y, treatment=pd.Series(treatment)[fold])
    assert tree.objective_ == expected.objective_


def test_wrong_arguments_are_met_by_a_remedy(trial):
    frame, time, event, treatment, _, _ = trial(100, 0)
    fit = OptimalSurvivalPolicyTree(HORIZON, max_depth=1).fit
    with pytest.raises(InvalidParameterError, match="horizon must be"):
        OptimalSurvivalPolicyTree().fit(frame, (event, time), treatment=treatment)
    with pytest.raises(InvalidParameterError, match="treatment must say"):
        fit(frame, (event, time))
    with pytest.raises(InvalidParameterError, match="at least two values"):
        fit(frame, (event, time), treatment=np.zeros(100))
    with pytest.raises(InvalidSurvivalDataError, match=r"every treatment, got none for drug; merge .*method=\"ips\""):
        fit(frame, (event & (treatment == 0), time), treatment=np.where(treatment, "drug", "none"))
    with pytest.raises(InvalidSurvivalDataError, match="sum to one"):
        fit(frame, (event, time), treatment=treatment, propensity=[0.5, 0.2])
    with pytest.raises(InvalidParameterError, match="when all of treatment 'drug' are censored"):
        OptimalSurvivalPolicyTree(1e6, max_depth=1).fit(
            frame, (event & (time < 1), np.minimum(time, 1.0)), treatment=np.where(treatment, "drug", "none")
        )
    for wrong in ({"overlap": 2.0}, {"random_state": -1}, {"random_state": 1.5}, {"random_state": None}):
        with pytest.raises(InvalidParameterError, match=f"{next(iter(wrong))} must be"):
            OptimalSurvivalPolicyTree(HORIZON, **wrong).fit(frame, (event, time), treatment=treatment)
    with pytest.raises(InvalidSurvivalDataError, match="treatment must hold numbers or text alone, got int and str"):
        fit(frame, (event, time), treatment=np.array([1, "a"] * 50, dtype=object))
    with pytest.raises(InvalidParameterError, match="capacity must name"):
        OptimalCapacityPolicyTree({"x": 0.5}).fit(frame, scores=np.zeros((100, 2)))
    with pytest.raises(InvalidParameterError, match="at most 1, got 2"):
        OptimalCapacityPolicyTree({1: 2.0}).fit(frame, scores=np.zeros((100, 2)))
    with pytest.raises(InvalidParameterError, match="capacity must leave a treatment"):
        OptimalCapacityPolicyTree({0: 0.5, 1: 0.5}).fit(frame, scores=np.zeros((100, 2)))
    with pytest.warns(DataWarning, match="propensity below"):
        fit(frame, (event, time), treatment=treatment, propensity=[0.001, 0.999])


def test_the_score_is_the_estimated_time_of_the_policy(trial, true_means):
    frame, time, event, treatment, _, _ = trial(1500, 3)
    half, rest = np.arange(1500) < 750, np.arange(1500) >= 750
    tree = OptimalSurvivalPolicyTree(HORIZON, max_depth=1, complexity=0.01)
    weight = np.random.default_rng(1).choice([0.0, 1.0, 2.0], 750)
    told = {"treatment": treatment[half], "propensity": [0.5, 0.5], "sample_weight": weight}
    tree.fit(frame[half], (event[half], time[half]), **told)
    value = 0.01 * tree.tree_.n_leaves - tree.objective_
    assert tree.score(frame[half], (event[half], time[half]), **told) == pytest.approx(value)
    held_out = tree.score(frame[rest], (event[rest], time[rest]), treatment=treatment[rest], propensity=[0.5, 0.5])
    truth = true_means(frame[rest].to_numpy())[np.arange(750), tree.predict(frame[rest])].mean()
    assert held_out == pytest.approx(truth, abs=0.1)  # two standard errors


def test_a_score_needs_the_treatments_of_training(trial, monkeypatch):
    frame, time, event, treatment, _, _ = trial(300, 2)
    tree = OptimalSurvivalPolicyTree(HORIZON, max_depth=1).fit(frame, (event, time), treatment=treatment)
    with pytest.raises(InvalidParameterError, match=r"treatment must say .* enable_metadata_routing is set"):
        tree.score(frame, (event, time))
    with pytest.raises(InvalidSurvivalDataError, match=r"take the values of training, \[0, 1\], got \[1, 2\]"):
        tree.score(frame, (event, time), treatment=treatment + 1)
    monkeypatch.delattr("softsurv.estimators.survival.policy_rewards.RestrictedMeanScoring.rewards")  # no model before
    same = treatment == 1
    with pytest.raises(InvalidSurvivalDataError, match=r"take the values of training, \[0, 1\], got \[1\]: each has a"):
        tree.score(frame[same], (event[same], time[same]), treatment=treatment[same])
    with pytest.raises(ValueError, match="feature names should match"):
        tree.score(frame.add_prefix("other "), (event, time), treatment=treatment)
    with pytest.raises(InvalidParameterError, match="horizon must be the time"):
        tree.set_params(horizon=None).score(frame, (event, time), treatment=treatment)
