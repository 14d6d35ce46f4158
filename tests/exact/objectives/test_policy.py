"""Scores of treatments and what each treatment loses."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv.errors import InvalidParameterError
from softsurv.exact.objectives.policy import METHODS, lost_rewards, treatment_scores


def test_treatment_scores():
    outcome, given_, chance = np.array([1.0, 0.0]), np.array([0, 1]), np.array([0.5, 0.25])
    predicted = np.array([[0.4, 0.2], [0.6, 0.8]])
    ips = treatment_scores("ips", outcome, given_, 2, chance, None)
    robust = treatment_scores("doubly_robust", outcome, given_, 2, chance, predicted)
    np.testing.assert_allclose(treatment_scores("direct", outcome, given_, 2, None, predicted), predicted)
    np.testing.assert_allclose(ips, [[2.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(robust, [[0.4 + 0.6 / 0.5, 0.2], [0.6, 0.8 - 0.8 / 0.25]])
    np.testing.assert_allclose(lost_rewards(predicted, np.array([1.0, 2.0])), [[0.0, 0.2], [0.4, 0.0]])
    with pytest.raises(InvalidParameterError, match="propensity must be given"):
        treatment_scores("ips", outcome, given_, 2, None, None)


@pytest.mark.parametrize("method", METHODS)
def test_scores_are_unbiased_where_the_propensity_is_true(method):
    """Over all treatments that may have been given, the mean score is the outcome of each."""
    outcomes, chance = np.array([[1.0, 3.0, -2.0]]), np.array([0.2, 0.5, 0.3])
    predicted = outcomes if method == "direct" else np.array([[9.0, -4.0, 0.5]])
    mean = np.zeros((1, 3))
    for given in range(3):
        scores = treatment_scores(method, outcomes[:, given], np.array([given]), 3, chance[[given]], predicted)
        mean += chance[given] * scores
    np.testing.assert_allclose(mean, outcomes)


def test_what_a_method_needs_must_be_given():
    y, treatment = np.ones(1), np.zeros(1, int)
    with pytest.raises(InvalidParameterError, match=r"predicted must be given for method='direct'.* take method='ips'"):
        treatment_scores("direct", y, treatment, 2, None, None)
    with pytest.raises(InvalidParameterError, match="propensity must be given"):
        treatment_scores("doubly_robust", y, treatment, 2, None, np.zeros((1, 2)))


def test_lost_rewards_leave_the_predicted_scores_alone():
    predicted = np.array([[0.4, 0.2], [0.6, 0.8]])
    before = predicted.copy()
    treatment_scores("doubly_robust", np.ones(2), np.array([0, 1]), 2, np.full(2, 0.5), predicted)
    np.testing.assert_array_equal(predicted, before)
    assert (lost_rewards(predicted, np.ones(2)).min(axis=1) == 0.0).all()  # the best treatment loses nothing
