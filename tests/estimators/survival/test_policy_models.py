"""Cross-fitted models of a survival policy: the default one against its library, and the times of its predictions."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sksurv.linear_model import CoxPHSurvivalAnalysis

from softsurv import OptimalSurvivalPolicyTree
from softsurv.data.preprocess import Preprocessor
from softsurv.errors import InvalidParameterError
from softsurv.estimators.survival import policy_models, policy_rewards
from softsurv.estimators.survival.policy_models import (
    LEAST_TIMES,
    MOST_TIMES,
    RIDGE,
    folds_of,
    grid_of,
    propensities,
    survival_curves,
)
from softsurv.estimators.survival.policy_rewards import times_in_time
from softsurv.nonparametric import kaplan_meier
from softsurv.stopping import StopSignal


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    time, event = rng.exponential(np.exp(-frame["a"].to_numpy())), rng.random(120) < 0.7
    treatment = rng.integers(0, 2, 120)
    return frame, time, event, treatment, folds_of(treatment, event, 3, 0)


def test_cox_curves_are_those_of_the_library(rows):
    frame, time, event, treatment, folds = rows
    curves = survival_curves(frame, time, event, treatment, np.ones(len(time)), 1.0, None, folds)
    for a, (train, held_out) in ((a, fold) for a in range(2) for fold in folds):
        encode = Preprocessor().fit(frame.iloc[train])
        train = train[treatment[train] == a]
        outcome = np.rec.fromarrays([event[train], time[train]], names="event,time")
        cox = CoxPHSurvivalAnalysis(alpha=RIDGE).fit(np.asarray(encode.transform(frame.iloc[train])), outcome)
        steps = cox.predict_survival_function(np.asarray(encode.transform(frame.iloc[held_out])))
        for row, step in zip(held_out, steps, strict=True):
            values, inside = curves[a].worked_out().values, curves[a].times >= step.x[0]
            assert_allclose(values[row, inside], step(curves[a].times[inside]))
            assert (values[row, ~inside] == 1.0).all()


class ByWeight(BaseEstimator):
    """A survival model that can take weights, and writes down which."""

    def fit(self, X, y, sample_weight=None):
        given.append(sample_weight)
        return self

    def predict_survival_function(self, X, times):
        return np.ones((len(X), len(times)))


given: list = []


@pytest.mark.parametrize("unit", [1.0, 0.01])
def test_curves_of_weights_are_those_of_repeated_rows(rows, unit):
    frame, time, event, treatment, folds = rows
    weight = np.random.default_rng(1).integers(1, 4, len(time))
    own = survival_curves(frame, time, event, treatment, unit * weight, 1.0, None, folds)
    row = np.repeat(np.arange(len(time)), weight)
    again = [tuple(np.flatnonzero(np.isin(row, part)) for part in fold) for fold in folds]
    ones = np.ones(len(row))
    repeated = survival_curves(frame.iloc[row], time[row], event[row], treatment[row], ones, 1.0, None, again)
    for one, other in zip(own, repeated, strict=True):
        assert_allclose(one.worked_out().values[row], other.worked_out().values, rtol=1e-9)


def test_a_model_of_the_user_gets_the_weights(rows):
    frame, time, event, treatment, folds = rows
    weight = np.where(np.arange(len(time)) < 60, 2.0, 1.0)
    given.clear()
    survival_curves(frame, time, event, treatment, weight, 1.0, ByWeight(), folds)
    first = folds[0][0][treatment[folds[0][0]] == 0]
    assert given[0].tolist() == weight[first].tolist()
    given.clear()
    survival_curves(frame, time, event, treatment, np.full(len(time), 2.0), 1.0, ByWeight(), folds)
    assert given == [None] * 6
    with pytest.raises(InvalidParameterError, match="survival_model must take sample_weight in fit"):
        survival_curves(frame, time, event, treatment, weight, 1.0, CoxPHSurvivalAnalysis(), folds)


def test_cox_models_look_at_the_clock(rows):
    frame, time, event, treatment, folds = rows
    with pytest.warns(ConvergenceWarning, match="time_limit ended before 6 of 6 Cox models were fitted to the end"):
        curves = survival_curves(frame, time, event, treatment, np.ones(len(time)), 1.0, None, folds, StopSignal(0.0))
    assert all((curve.log_risk == 0).all() for curve in curves)  # no step was taken: Nelson-Aalen curves
    assert [len(curve.distinct()[0]) for curve in curves] == [3, 3]  # one for each fold


@pytest.mark.parametrize("unit", [2.0**-12, 3.0])
def test_the_unit_of_the_weights_changes_no_propensity(rows, unit):
    frame, _, _, treatment, folds = rows
    weight = np.random.default_rng(1).integers(1, 4, len(frame)).astype(float)
    expected, found = (propensities(frame, treatment, one, folds, StopSignal()) for one in (weight, unit * weight))
    assert_allclose(found, expected, rtol=1e-6)


def test_models_of_ones_own_are_not_begun_after_the_time(rows):
    """What stands for them are the Kaplan-Meier curve of each treatment and the shares of the treatments."""
    frame, time, event, treatment, folds = rows
    with pytest.warns(ConvergenceWarning, match="time_limit ended before 6 of 6 survival models"):
        curves = survival_curves(
            frame, time, event, treatment, np.ones(len(time)), 1.0, object(), folds, StopSignal(0.0)
        )
    train, held_out = folds[0]
    here = train[treatment[train] == 1]
    expected = kaplan_meier(time[here], event[here])(curves[1].times)
    assert_allclose(curves[1].values[held_out], np.tile(expected, (len(held_out), 1)))
    weight = np.arange(1.0, 121.0)
    with pytest.warns(ConvergenceWarning, match="before 3 of 3 propensity models"):
        chance = propensities(frame, treatment, weight, folds, StopSignal(0.0))
    assert_allclose(chance[held_out, 1], np.average(treatment[train], weights=weight[train]))


def test_few_times_are_all_taken(rows):
    _, time, event, *_ = rows
    assert grid_of(time[event]).tolist() == sorted(time[event])


def test_of_many_times_some_are_taken_with_equal_shares_of_events(monkeypatch):
    monkeypatch.setattr(policy_models, "MOST_TIMES", 11)
    times = np.random.default_rng(1).exponential(size=1001)
    grid = grid_of(times)
    assert set(grid) <= set(times)
    assert np.diff(np.searchsorted(np.sort(times), grid)).tolist() == [100] * 10


def test_survival_is_predicted_at_fewer_times_where_scores_would_take_too_long(rows, monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    none, long, short = StopSignal(), StopSignal(60.0), StopSignal(1.0)
    assert times_in_time(120_000, 2, none) == (MOST_TIMES, 0.0)
    assert times_in_time(50_000, 2, long) == (MOST_TIMES, pytest.approx(MOST_TIMES * 200_000 / 4e7))
    assert times_in_time(120_000, 2, short) == (LEAST_TIMES, 0.25)
    most, seconds = times_in_time(50_000, 2, short)
    assert LEAST_TIMES < most < MOST_TIMES
    assert 0.2 < seconds <= 0.25
    frame, time, event, treatment, folds = rows
    curves = survival_curves(frame, time, event, treatment, np.ones(len(time)), 3.0, None, folds, most_times=20)
    assert len(curves[0].times) == 20


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_many_rows_are_not_scored_after_the_time(rows, monkeypatch):
    frame, time, event, treatment, _ = rows
    tree = OptimalSurvivalPolicyTree(horizon=1.0, max_depth=1, time_limit=0.0)
    tree.fit(frame, (event, time), treatment=treatment)  # few rows are scored in any case
    monkeypatch.setattr(policy_rewards, "SCORED_ANYHOW", 100)
    with pytest.raises(InvalidParameterError, match="time_limit must be longer than reading and modelling 120 rows"):
        tree.fit(frame, (event, time), treatment=treatment)
