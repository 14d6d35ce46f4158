"""Scores by restricted mean survival, policy trees on them, and limits on how many are treated."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.separable.capacity_policy import OptimalCapacityPolicyTree
from softsurv.estimators.survival.policy import OptimalSurvivalPolicyTree
from softsurv.estimators.survival.policy_scores import (
    Curves,
    remaining_means,
    restricted_mean_scores,
    weighted_outcome,
)
from softsurv.nonparametric import StepFunction, censoring_survival, kaplan_meier, restricted_mean
from softsurv.results import Status

HORIZON = 2.0


def trial(n, seed, *, confounded=False):
    """Exponential times: treatment 1 helps where x0 > 0 and harms elsewhere; independent censoring."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    chance = 1 / (1 + np.exp(-1.5 * x[:, 1])) if confounded else np.full(n, 0.5)
    treatment = (rng.random(n) < chance).astype(int)
    rate = rates(x)[np.arange(n), treatment]
    event_time, censored = rng.exponential(1 / rate), rng.exponential(3.0, n)
    time = np.minimum(event_time, censored)
    return pd.DataFrame(x, columns=["a", "b", "c"]), time, event_time <= censored, treatment, chance, rate


def rates(x):
    base = np.exp(0.5 * x[:, 1])
    return np.column_stack([base, base * np.where(x[:, 0] > 0, 0.4, 2.0)])


def true_means(x):
    r = rates(x)
    return (1 - np.exp(-r * HORIZON)) / r


@settings(deadline=None)
@given(st.integers(0, 1000), st.floats(0.3, 3.0))
def test_weights_of_a_constant_outcome_sum_to_one(seed, horizon):
    """With m(s) = E[min(T, L) | T > s] of a curve that stays at 1, psi is L in every row: 1/G telescopes."""
    rng = np.random.default_rng(seed)
    time, event = np.ceil(rng.exponential(1.0, 40) * 5) / 5, rng.random(40) < 0.5
    time[0], event[0] = 4.0, True
    never = Curves(np.array([50.0]), np.ones((40, 1)))
    psi = weighted_outcome(time, event & (time > 50), horizon, censoring_survival(time, event & (time > 50)), never)
    kept = censoring_survival(time, event & (time > 50)).left_limit(horizon) > 0
    if kept:
        np.testing.assert_allclose(psi, horizon)


def test_remaining_mean_of_an_exponential():
    times = np.linspace(0.001, 3, 3000)
    curves = Curves(times, np.exp(-0.7 * times)[None, :])
    at = np.array([0.0, 0.5, 1.9])
    expected = at + (1 - np.exp(-0.7 * (HORIZON - at))) / 0.7
    np.testing.assert_allclose(remaining_means(curves, HORIZON, at)[0], expected, atol=2e-3)


def test_remaining_mean_at_zero_is_the_restricted_mean():
    time, event = np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, True])
    curve = kaplan_meier(time, event)
    mean = remaining_means(Curves(curve.times, curve.values[None, :]), 3.5, np.zeros(1))
    assert mean[0, 0] == pytest.approx(restricted_mean(curve, 3.5))


def test_ipcw_mean_is_the_restricted_mean_of_kaplan_meier():
    rng = np.random.default_rng(0)
    time, event = rng.exponential(1.0, 200), rng.random(200) < 0.6
    psi = weighted_outcome(time, event, 1.2, censoring_survival(time, event), None)
    assert psi.mean() == pytest.approx(restricted_mean(kaplan_meier(time, event), 1.2), rel=1e-9)


@pytest.mark.parametrize("wrong", ["nothing", "survival", "propensity"])
def test_scores_are_doubly_robust(wrong):
    """The mean score is the mean potential outcome, with a wrong survival model or a wrong propensity, not both."""
    frame, time, event, treatment, chance, _ = trial(6000, 1, confounded=True)
    x = frame.to_numpy()
    times = np.linspace(0.02, 2.0, 100)
    curves = []
    for a in range(2):
        rate = rates(x)[:, a] if wrong != "survival" else np.full(len(x), 0.3)
        curves.append(Curves(times, np.exp(-rate[:, None] * times)))
    known = np.column_stack([1 - chance, chance]) if wrong != "propensity" else np.full((len(x), 2), 0.5)
    scores = restricted_mean_scores("doubly_robust", time, event, treatment, HORIZON, known, curves)
    np.testing.assert_allclose(scores.mean(axis=0), true_means(x).mean(axis=0), atol=0.05)
    both = [Curves(times, np.exp(-0.3 * times)[None].repeat(len(x), 0))] * 2
    naive = restricted_mean_scores("doubly_robust", time, event, treatment, HORIZON, np.full((len(x), 2), 0.5), both)
    assert np.abs(naive.mean(axis=0) - true_means(x).mean(axis=0)).max() > 0.08


@pytest.mark.parametrize("method", ["doubly_robust", "direct", "ips"])
def test_tree_finds_who_benefits(method):
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


def test_estimated_propensities_and_a_model_of_ones_own():
    from softsurv import OptimalSurvivalTree

    frame, time, event, treatment, _, _ = trial(600, 5, confounded=True)
    tree = OptimalSurvivalPolicyTree(HORIZON, max_depth=1, survival_model=OptimalSurvivalTree(max_depth=1)).fit(
        frame, (event, time), treatment=treatment
    )
    value = true_means(frame.to_numpy())[np.arange(600), tree.predict(frame)].mean()
    assert value > true_means(frame.to_numpy()).mean(axis=0).max()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 1.0])
def test_capacity_tree_is_the_best_of_all(seed, share):
    """Against every tree of depth two with every treatment in every leaf."""
    rng = np.random.default_rng(seed)
    x = (rng.random((14, 3)) < 0.5).astype(int)
    scores = rng.normal(size=(14, 3))
    tree = OptimalCapacityPolicyTree({2: share, 1: 0.6}, max_depth=2).fit(x, scores=scores)

    def choices(rows, depth):
        found = {(scores[rows, k].sum().round(9), len(rows) * (k == 1), len(rows) * (k == 2)) for k in range(3)}
        for column in x.T if depth else ():
            one, other = rows[column[rows] == 1], rows[column[rows] == 0]
            if len(one) and len(other):
                pairs = ((a, b) for a in choices(one, depth - 1) for b in choices(other, depth - 1))
                found |= {(round(a[0] + b[0], 9), a[1] + b[1], a[2] + b[2]) for a, b in pairs}
        return found

    possible = choices(np.arange(14), 2)
    best = max(v for v, ones, twos in possible if ones <= 0.6 * 14 + 1e-9 and twos <= share * 14 + 1e-9)
    assert tree.status_ == Status.OPTIMAL
    assert -tree.objective_ * 14 == pytest.approx(best)
    assert tree.share_[2] <= share + 1e-9
    assert tree.policy_value(x, scores) == pytest.approx(-tree.objective_)


def test_capacity_with_fewer_leaves_and_a_cost_per_leaf():
    rng = np.random.default_rng(2)
    x = (rng.random((60, 4)) < 0.5).astype(int)
    scores = np.column_stack([np.zeros(60), x[:, 0] - 0.5 + 0.3 * rng.normal(size=60)])
    free = OptimalCapacityPolicyTree({1: 0.3}, max_depth=2).fit(x, scores=scores)
    few = OptimalCapacityPolicyTree({1: 0.3}, max_depth=2, max_leaves=2).fit(x, scores=scores)
    dear = OptimalCapacityPolicyTree({1: 0.3}, max_depth=2, complexity=10.0).fit(x, scores=scores)
    assert few.tree_.n_leaves <= 2
    assert few.objective_ >= free.objective_ - 1e-9
    assert dear.tree_.n_leaves == 1
    assert dear.share_[1] == 0.0


def test_survival_policy_under_capacity():
    frame, time, event, treatment, _, _ = trial(800, 8)
    tree = OptimalSurvivalPolicyTree(HORIZON, max_depth=2, capacity={1: 0.25}).fit(
        frame, (event, time), treatment=treatment, propensity=[0.5, 0.5]
    )
    assert tree.share_[1] <= 0.25 + 1e-9
    assert tree.predict(frame).mean() == pytest.approx(tree.share_[1])


def test_without_features_all_rows_get_the_better_treatment():
    frame, time, event, treatment, _, _ = trial(300, 2)
    for none in (frame * 0, frame[[]]):
        tree = OptimalSurvivalPolicyTree(HORIZON, max_depth=2).fit(none, (event, time), treatment=treatment)
        assert tree.tree_.n_leaves == 1
        assert tree.label_[0] == tree.scores_.mean(axis=0).argmax()


def test_wrong_arguments_are_met_by_a_remedy():
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
    with pytest.raises(InvalidParameterError, match="are followed"):
        OptimalSurvivalPolicyTree(1e6, max_depth=1).fit(
            frame, (event & (time < 1), np.minimum(time, 1.0)), treatment=treatment
        )
    with pytest.raises(InvalidParameterError, match="capacity must name"):
        OptimalCapacityPolicyTree({"x": 0.5}).fit(frame, scores=np.zeros((100, 2)))
    with pytest.raises(InvalidParameterError, match="at most 1, got 2"):
        OptimalCapacityPolicyTree({1: 2.0}).fit(frame, scores=np.zeros((100, 2)))
    with pytest.raises(InvalidParameterError, match="at least one tree without splits"):
        OptimalCapacityPolicyTree({0: 0.5, 1: 0.5}).fit(frame, scores=np.zeros((100, 2)))
    with pytest.warns(DataWarning, match="propensity below"):
        fit(frame, (event, time), treatment=treatment, propensity=[0.001, 0.999])


def test_step_function_without_censoring_gives_plain_means():
    time, event = np.array([0.5, 1.0, 3.0]), np.ones(3, bool)
    psi = weighted_outcome(time, event, 2.0, StepFunction(np.array([9.0]), np.array([1.0]), 1.0), None)
    np.testing.assert_allclose(psi, [0.5, 1.0, 2.0])
