"""Cut-offs of conformal lower bounds: a slow twin, the promise without a model, and who counts as followed."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from softsurv.metrics.conformal import followed_weight, lower_cutoff


def slow_cutoff(score, weight, alpha):
    best = 0.0
    for candidate in score:
        below = sum(w for s, w in zip(score, weight, strict=True) if s < candidate)
        if below + 1 <= alpha * (sum(weight) + 1) + 1e-9:
            best = max(best, candidate)
    return best


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from([0.05, 0.1, 0.5]))
def test_cutoff_is_that_of_its_definition(seed, n, alpha):
    rng = np.random.default_rng(seed)
    score, weight = rng.integers(0, 8, n) / 8, rng.random(n)
    assert lower_cutoff(score, weight, alpha) == slow_cutoff(score, weight, alpha)


def test_equal_weights_give_the_order_statistic_of_conformal_prediction():
    score = np.random.default_rng(0).random(99)
    assert lower_cutoff(score, np.ones(99), 0.1) == np.sort(score)[9]
    assert lower_cutoff(score[:8], np.ones(8), 0.1) == 0.0  # nine rows are needed
    assert lower_cutoff(score[:9], np.ones(9), 0.1) == score[:9].min()


def test_the_promise_holds_for_a_new_row():
    """Each of n + 1 exchangeable rows in turn is the new one: at most alpha of them lie below."""
    score = np.random.default_rng(1).random(60)
    below = [score[k] < lower_cutoff(np.delete(score, k), np.ones(59), 0.2) for k in range(60)]
    assert np.mean(below) <= 0.2


def test_rows_count_with_the_probability_of_being_followed():
    rng = np.random.default_rng(2)
    died, censored = rng.exponential(2.0, 20_000), rng.exponential(3.0, 20_000)
    weight = followed_weight(np.minimum(died, censored), died <= censored, 1.5)
    early = died < 1.5
    # the weighted rows that die before the cut-off are as many as those with a censoring time after it
    assert_allclose(weight[early & (died <= censored)].sum(), (early & (censored >= 1.5)).sum(), rtol=0.03)
    assert_allclose(weight.sum(), (censored >= 1.5).sum(), rtol=0.03)


def test_events_before_the_common_end_of_a_study_count_as_followed_to_it():
    """By hand: of six and of four at risk after the events at 2 and 4 one each is censored, so G(5-) = 5/6 * 3/4."""
    time = np.array([1.0, 2.0, 2.0, 4.0, 4.0, 5.0, 5.0, 5.0])
    event = np.array([True, True, False, True, False, True, False, False])
    expected = [0.625, 0.625, 0.0, 0.75, 0.0, 1.0, 1.0, 1.0]
    assert_allclose(followed_weight(time, event, 5.0), expected, rtol=1e-12)
    assert_allclose(followed_weight(time, event, 4.0), [5 / 6, 5 / 6, 0.0, *[1.0] * 5], rtol=1e-12)
