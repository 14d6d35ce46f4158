"""Scores of treatments before the search: names of treatments, propensities, and the time that scores take."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.survival.policy import OptimalSurvivalPolicyTree
from softsurv.estimators.survival.policy_models import LEAST_TIMES, MOST_TIMES
from softsurv.estimators.survival.policy_rewards import (
    known_propensities,
    raised_to_overlap,
    read_treatments,
    require_events,
    times_in_time,
)
from softsurv.stopping import StopSignal

TWO = np.array(["care", "drug"])


def table(n=4, kept=None):
    """As much of a training table as the names and chances of treatments need."""
    return SimpleNamespace(n_given=n, kept=np.arange(n) if kept is None else np.array(kept))


def test_treatments_are_places_among_the_names_of_the_rows_that_are_kept():
    names, codes = read_treatments(table(kept=[0, 1, 3]), ["old", "new", "third", "old"])
    assert (names.tolist(), codes.tolist()) == (["new", "old"], [1, 0, 1])
    with pytest.raises(InvalidParameterError, match="at least two values, got one; there is nothing to choose"):
        read_treatments(table(kept=[0, 3]), ["old", "new", "third", "old"])


def test_every_treatment_needs_an_event():
    names = np.array(["a", "b", "c"])
    require_events(names, np.array([0, 2, 1, 0]))
    with pytest.raises(InvalidSurvivalDataError, match=r'got none for a, c; merge treatments, .* take method="ips"'):
        require_events(names, np.array([1, 1]))


def test_propensities_are_of_all_rows_or_of_each():
    np.testing.assert_array_equal(known_propensities([0.3, 0.7], TWO, table(3)), [[0.3, 0.7]] * 3)
    each = np.array([[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]])
    np.testing.assert_array_equal(known_propensities(each, TWO, table(3, [0, 2])), each[[0, 2]])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([0.3, 0.3, 0.4], r"must be \(2,\) or \(3, 2\), one for each treatment, got \(3,\)"),
        (0.5, r"must be \(2,\) or \(3, 2\), one for each treatment, got 0\.5"),
        ([0.5, 0.6], "must be >= 0 and sum to one in each row"),
        ([-0.5, 1.5], "must be >= 0 and sum to one in each row"),
        ([0.5, np.nan], "NaN"),
        (pd.Series({"drug": 0.3, "care": 0.7}), "propensity must be in the order care, drug, got drug, care"),
        (pd.DataFrame({"drug": [0.3] * 3, "care": 0.7}), "propensity must be in the order care, drug, got drug, care"),
    ],
    ids=str,
)
def test_propensities_that_cannot_be_used(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        known_propensities(given, TWO, table(3))


def test_small_propensities_are_raised_with_a_warning():
    chance = np.array([[0.02, 0.98], [0.5, 0.5], [1.0, 0.0]])
    with pytest.warns(DataWarning, match="2 rows have a propensity below 0.05, raised to it"):
        found = raised_to_overlap(chance, 0.05)
    np.testing.assert_array_equal(found, [[0.05, 0.98], [0.5, 0.5], [1.0, 0.05]])
    assert (raised_to_overlap(chance, 0.0) > 0).all()  # no score is divided by 0, and nothing is said


@pytest.mark.parametrize("method", ["doubly_robust", "ips"])
def test_a_treatment_that_was_given_without_a_chance_is_refused(trial, method):
    """Its score is divided by the chance: without an overlap it was nan, and so was the objective."""
    x, time, event, treatment, _, _ = trial(60, 0)
    chance = np.full((60, 2), 0.5)
    chance[7] = [treatment[7], 1 - treatment[7]]
    chance[8] = [1 - treatment[8], treatment[8]]  # what was not given needs no chance
    tree = OptimalSurvivalPolicyTree(2.0, method, max_depth=1, n_folds=2, overlap=0.0)
    with pytest.raises(InvalidSurvivalDataError, match="got 0 at row 7; leave out such rows, or give an overlap"):
        tree.fit(x, (event, time), treatment=treatment, propensity=chance)
    chance[7] = 0.5
    assert np.isfinite(tree.fit(x, (event, time), treatment=treatment, propensity=chance).objective_)


def test_times_are_as_many_as_a_quarter_of_the_limit_allows(monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    assert times_in_time(10**7, 2, StopSignal(None)) == (MOST_TIMES, 0.0)
    many, seconds = times_in_time(10**5, 2, StopSignal(60.0))
    few, at_most = times_in_time(10**7, 2, StopSignal(20.0))
    assert many == MOST_TIMES
    assert seconds == pytest.approx(MOST_TIMES * 10**5 * 4 / 4e7)
    assert LEAST_TIMES <= few < many
    assert at_most == pytest.approx(min(few * 10**7 * 4 / 4e7, 5.0))
    assert times_in_time(10**9, 2, StopSignal(1.0)) == (LEAST_TIMES, pytest.approx(0.25))


def test_rewards_are_the_restricted_means_where_nothing_is_censored(trial):
    """By inverse propensity without censoring: the row's own time up to the horizon over its chance, else 0."""
    frame, _, _, treatment, chance, rate = trial(200, 4)
    time = np.random.default_rng(0).exponential(1 / rate)
    tree = OptimalSurvivalPolicyTree(2.0, "ips", max_depth=1, thresholds=2).fit(
        frame, (np.ones(200, bool), time), treatment=treatment, propensity=[0.5, 0.5]
    )
    scores = tree.scores_
    taken = scores[np.arange(200), treatment] / (np.minimum(time, 2.0) / chance)
    assert (scores[np.arange(200), 1 - treatment] == 0).all()
    for one in (0, 1):  # of one treatment all rows are weighed alike
        np.testing.assert_allclose(taken[treatment == one], taken[treatment == one][0])
    assert taken == pytest.approx(1.0, abs=0.3)


def test_rows_of_one_outcome_and_many_weights_may_stand_in_any_order():
    """Rows that differ in their weight alone kept the order given, which moved the folds."""
    rng = np.random.default_rng(1)
    X, treatment = pd.DataFrame({"u": rng.integers(0, 2, 120)}), rng.integers(0, 2, 120)
    time, event, weight = rng.integers(1, 6, 120) * 1.0, rng.random(120) < 0.7, rng.choice([1.0, 2.0, 5.0], 120)
    fit = OptimalSurvivalPolicyTree(4.0, max_depth=1, n_folds=3).fit
    scores = fit(X, (event, time), treatment=treatment, sample_weight=weight).scores_
    mixed = rng.permutation(120)
    again = fit(
        X.iloc[mixed].reset_index(drop=True), (event[mixed], time[mixed]),
        treatment=treatment[mixed], sample_weight=weight[mixed],
    ).scores_  # fmt: skip
    np.testing.assert_allclose(np.sort(again, axis=0), np.sort(scores, axis=0), rtol=1e-9)
