"""Scores of treatments by restricted mean survival."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv.estimators.survival.policy_scores import (
    CoxCurves,
    Curves,
    RemainingMeans,
    mean_to,
    restricted_mean_scores,
    weighted_outcome,
)
from softsurv.nonparametric import StepFunction, censoring_survival, kaplan_meier, restricted_mean

HORIZON = 2.0


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
    means = RemainingMeans(curves, HORIZON)
    np.testing.assert_allclose(means.pieces[0, means.piece_of(at)], expected, atol=2e-3)


def test_remaining_mean_at_zero_is_the_restricted_mean():
    time, event = np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, True])
    curve = kaplan_meier(time, event)
    curves = Curves(curve.times, curve.values[None, :])
    assert mean_to(curves, 3.5)[0] == pytest.approx(restricted_mean(curve, 3.5))
    assert RemainingMeans(curves, 3.5).pieces[0, 0] == pytest.approx(restricted_mean(curve, 3.5))


def augmented_by_definition(time, event, horizon, censoring, curves):
    """psi of the module's formula, one row and one jump of the censoring curve at a time."""

    def survival(row, s):
        k = np.searchsorted(curves.times, s, side="right")
        return 1.0 if k == 0 else curves.values[row, k - 1]

    def mean(row, s):
        here = survival(row, s)
        if here <= 0:
            return s
        edges = np.unique([s, horizon, *curves.times[(curves.times > s) & (curves.times < horizon)]])
        return s + sum(survival(row, a) * (b - a) for a, b in itertools.pairwise(edges)) / here

    psi = []
    for row, end in enumerate(np.minimum(time, horizon)):
        complete = event[row] or time[row] >= horizon
        value = end / censoring.left_limit(end) if complete else 0.0
        for jump in censoring.times[censoring.times < horizon]:
            after, before = censoring(jump), censoring.left_limit(jump)
            if 0 < after < before:
                censored = not complete and end == jump
                at_risk = end > jump or censored
                value += (censored - at_risk * (1 - after / before)) * mean(row, jump) / after
        psi.append(value)
    return psi


@settings(deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.booleans(), st.sampled_from([0.4, 1.0, 2.5]))
def test_augmented_outcomes_follow_their_formula(seed, tied, ends_at_zero, horizon):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    time, event = rng.exponential(size=n) + 0.01, rng.random(n) < rng.choice([0.2, 0.7])
    time = np.ceil(5 * time) / 5 if tied else time
    times = np.unique(rng.choice(time, 6))
    values = np.sort(rng.random((n, len(times))), axis=1)[:, ::-1].copy()
    if ends_at_zero:
        values[:, len(times) // 2 :] = 0.0
    censoring = censoring_survival(time, event)
    if censoring.left_limit(horizon) > 0:
        curves = Curves(times, values)
        expected = augmented_by_definition(time, event, horizon, censoring, curves)
        np.testing.assert_allclose(weighted_outcome(time, event, horizon, censoring, curves), expected, atol=1e-9)


def test_curves_of_cox_models_are_worked_out_in_parts(monkeypatch):
    """One model a fold: S = exp(-hazard exp(risk)), by rows, in one part or in many."""
    rng = np.random.default_rng(2)
    times, hazard = np.array([0.5, 1.0, 1.5]), np.cumsum(rng.random((2, 3)), axis=1)
    fold, risk = rng.integers(0, 2, 9), rng.normal(size=9)
    curves = CoxCurves(times, hazard, fold, risk)
    table = np.array([np.exp(-hazard[f] * np.exp(r)) for f, r in zip(fold, risk, strict=True)])
    np.testing.assert_allclose(curves.worked_out().values, table)
    np.testing.assert_allclose(curves.take(fold == 1).worked_out().values, table[fold == 1])
    at_once = mean_to(curves, 2.0)
    monkeypatch.setattr("softsurv.estimators.survival.policy_scores.CHUNK", 8)
    np.testing.assert_allclose(mean_to(curves, 2.0), at_once)
    np.testing.assert_allclose(at_once, 0.5 + 0.5 * table.sum(axis=1))


def test_a_risk_beyond_floats_leaves_survival_1_before_the_first_event():
    """Infinity times a hazard of 0 was no number, and neither was the score of a leaf that held the row."""
    curves = CoxCurves(np.array([1.0, 2.0]), np.array([[0.0, 0.1]]), np.array([0, 0]), np.array([1000.0, 0.0]))
    assert curves.worked_out().values.tolist() == [[1.0, 0.0], [1.0, np.exp(-0.1)]]
    assert mean_to(curves, 3.0).tolist() == pytest.approx([2.0, 2.0 + np.exp(-0.1)])


@pytest.mark.parametrize("chunk", [8, 400_000])
def test_rows_with_one_curve_are_scored_as_rows_with_their_own(chunk, monkeypatch):
    """Cox models without effects have one curve for each fold, which is worked out once."""
    monkeypatch.setattr("softsurv.estimators.survival.policy_scores.CHUNK", chunk)
    rng = np.random.default_rng(3)
    time, event = np.ceil(8 * rng.exponential(1.0, 60)) / 8, rng.random(60) < 0.5
    times, hazard = np.array([0.25, 0.75, 1.5]), np.cumsum(rng.random((3, 3)), axis=1)
    shared = CoxCurves(times, hazard, rng.integers(0, 3, 60), rng.integers(0, 2, 60) / 2.0)
    table, which = shared.distinct()
    assert len(table) == 6
    np.testing.assert_array_equal(table.worked_out().values[which], shared.worked_out().values)
    censoring = censoring_survival(time, event)
    np.testing.assert_allclose(mean_to(shared, HORIZON), mean_to(shared.worked_out(), HORIZON), rtol=1e-13)
    np.testing.assert_allclose(
        weighted_outcome(time, event, HORIZON, censoring, shared),
        weighted_outcome(time, event, HORIZON, censoring, shared.worked_out()),
        rtol=1e-12,
    )


def test_ipcw_mean_is_the_restricted_mean_of_kaplan_meier():
    rng = np.random.default_rng(0)
    time, event = rng.exponential(1.0, 200), rng.random(200) < 0.6
    psi = weighted_outcome(time, event, 1.2, censoring_survival(time, event), None)
    assert psi.mean() == pytest.approx(restricted_mean(kaplan_meier(time, event), 1.2), rel=1e-9)


@pytest.mark.parametrize("wrong", ["nothing", "survival", "propensity"])
def test_scores_are_doubly_robust(true_means, rates, trial, wrong):
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


def test_step_function_without_censoring_gives_plain_means():
    time, event = np.array([0.5, 1.0, 3.0]), np.ones(3, bool)
    psi = weighted_outcome(time, event, 2.0, StepFunction(np.array([9.0]), np.array([1.0]), 1.0), None)
    np.testing.assert_allclose(psi, [0.5, 1.0, 2.0])
