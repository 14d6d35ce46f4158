"""Scores of treatments by restricted mean survival."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv.estimators.survival.policy_scores import (
    Curves,
    remaining_means,
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
