"""Baselines of competing risks: Aalen-Johansen, riskRegression's cause-specific Cox, lifelines, one kind of event."""

import os
import sys
from pathlib import Path

import lifelines
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from softsurv import load_dataset
from softsurv.aalen_johansen import aalen_johansen
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError, InvalidTimesError
from softsurv.estimators.baselines import AalenJohansenBaseline, CauseSpecificCox, foretelling, independent
from softsurv.metrics import auc_incidence, brier_score_incidence
from softsurv.nonparametric import censoring_survival, kaplan_meier

FOLDER = Path(os.environ.get("SOFTSURV_DATA", "")) / "event-history"


@pytest.fixture(scope="module")
def follic():
    return load_dataset("survset:follic").split(0.3, seed=0)


@pytest.mark.parametrize("model", [AalenJohansenBaseline, CauseSpecificCox])
def test_contract(model, follic):
    train, test = follic
    fitted = model().fit(train)
    times = np.array([0.0, 0.5, 5.0, 20.0, 90.0])
    found = fitted.predict_cumulative_incidence(test.X, times)
    assert found.shape == (test.n, 5, 2)
    assert (found[:, 0] == 0).all()
    assert (np.diff(found, axis=1) >= 0).all()
    np.testing.assert_allclose(found.sum(-1) + fitted.predict_survival_function(test.X, times), 1, atol=1e-12)
    np.testing.assert_array_equal(fitted.predict_cumulative_incidence(test.X, times, "2"), found[..., 1])
    result = fitted.evaluate(test)
    assert list(result["causes"]) == ["1", "2"]
    assert result["causes"]["1"]["ibs"] < 0.3


def test_the_null_model_is_aalen_johansen(follic):
    train, test = follic
    curve = aalen_johansen(train.time, train.cause)
    times = np.linspace(0, 30, 50)
    found = AalenJohansenBaseline().fit(train).predict_cumulative_incidence(test.X, times)
    np.testing.assert_allclose(found[3], curve.state_probabilities(times)[:, 1:], atol=1e-12)


def test_where_all_fail_the_null_model_ends_at_one():
    data = survival_data({"x": [1, 2, 3, 4]}, time=[1.0, 2.0, 2.0, 3.0], cause=[1, 2, 1, 2])
    found = AalenJohansenBaseline().fit(data).predict_cumulative_incidence(data.X, [3.0])
    np.testing.assert_allclose(found[0, 0], [0.5, 0.5], atol=1e-12)


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the folder event-history is not in SOFTSURV_DATA")
def test_cox_has_the_scores_of_riskregression():
    """CSC takes product limits for exponentials: the difference is below 2e-5 in the Brier score of mgus2."""
    rows = pd.read_csv(FOLDER / "mgus2_complete_folds.csv")
    reference = pd.read_csv(FOLDER / "reference_riskregression.csv").query("set == 'mgus2' and model == 'CSC'")
    times, scores = reference["times"].to_numpy(float), []
    for fold in range(5):
        train, test = rows[rows["fold"] != fold].drop(columns="fold"), rows[rows["fold"] == fold]
        model = CauseSpecificCox().fit(train, time="time", cause="cause")
        risk = model.predict_cumulative_incidence(test.drop(columns=["time", "cause", "fold"]), times, 1)
        censoring = censoring_survival(test["time"], test["cause"] > 0)
        outcome = test["time"], test["cause"]
        brier = brier_score_incidence(*outcome, risk, times, censoring)
        scores.append([brier, auc_incidence(*outcome, risk, times, censoring)[0]])
    brier, auc = np.mean(scores, axis=0)
    np.testing.assert_allclose(brier, reference["Brier"], atol=2e-5)
    np.testing.assert_allclose(auc, reference["auc"], atol=5e-4)


@pytest.mark.parametrize("late", [False, True])
def test_cox_equals_lifelines(late):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 2))
    time = rng.exponential(5.0, 150) + 0.2
    cause = rng.integers(0, 3, 150)
    entry = time * rng.random(150) * 0.5 if late else None
    data = survival_data(pd.DataFrame(x, columns=["a", "b"]), time=time, cause=cause, entry=entry)
    model = CauseSpecificCox().fit(data)
    encoded = pd.DataFrame(model._prepare(data.X), columns=["a", "b"])
    for code in (1, 2):
        frame = encoded.assign(time=time, event=cause == code)
        if late:
            theirs = lifelines.CoxPHFitter().fit(frame.assign(entry=entry), "time", "event", entry_col="entry")
        else:
            theirs = lifelines.CoxPHFitter().fit(frame, "time", "event")
        np.testing.assert_allclose(model.coefficients_[code - 1], theirs.params_, atol=1e-5)
        risk = np.exp(encoded.to_numpy() @ model.coefficients_[code - 1])
        begins = np.zeros(150) if entry is None else entry
        steps = [  # Breslow by the definition; lifelines forgets late entry here
            (cause[time == t] == code).sum() / risk[(begins < t) & (time >= t)].sum() for t in model.times_
        ]
        np.testing.assert_allclose(
            model._rises(encoded[:4].to_numpy())[0, :, code - 1], risk[0] * np.array(steps), rtol=1e-12
        )


def test_weights_count_as_rows():
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(
        {"a": rng.normal(size=80), "t": np.ceil(rng.exponential(9.0, 80)), "why": rng.integers(0, 3, 80)}
    )
    copies = rng.integers(1, 4, 80)
    weighted = survival_data(rows[["a"]], time=rows["t"], cause=rows["why"], weight=copies)
    repeated = rows.loc[np.repeat(rows.index, copies)].reset_index(drop=True)
    times = np.array([2.0, 9.0, 20.0])
    named = AalenJohansenBaseline().fit(rows, time="t", cause="why", sample_weight=copies)
    np.testing.assert_array_equal(named.rises_, AalenJohansenBaseline().fit(weighted).rises_)
    with pytest.raises(TypeError, match="fit has no argument 'weigth'; did you mean 'weight'"):
        AalenJohansenBaseline().fit(rows, time="t", cause="why", weigth=copies)
    null = [
        AalenJohansenBaseline().fit(weighted).predict_cumulative_incidence(rows[["a"]], times),
        AalenJohansenBaseline().fit(repeated, time="t", cause="why").predict_cumulative_incidence(rows[["a"]], times),
    ]
    np.testing.assert_allclose(*null, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-7, 1e-90, 1e90])
def test_cox_does_not_depend_on_the_unit_of_the_weights(unit):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=80)})
    known = {"time": rng.exponential(np.exp(X["a"])), "cause": rng.integers(0, 3, 80)}
    weight = rng.uniform(0.5, 2.0, 80)
    one, other = (CauseSpecificCox().fit(X, **known, weight=w).coefficients_ for w in (weight, unit * weight))
    assert np.abs(one).min() > 0.01
    np.testing.assert_allclose(other, one, rtol=1e-4)


def test_one_kind_of_event_is_kaplan_meier():
    train, test = load_dataset("veterans").split(seed=0)
    times = np.array([10.0, 100.0, 300.0])
    survival = AalenJohansenBaseline().fit(train).predict_survival_function(test.X, times)
    np.testing.assert_allclose(survival[0], kaplan_meier(train.time, train.event)(times), atol=1e-12)
    assert CauseSpecificCox().fit(train).evaluate(test)["harrell_c"] > 0.6


def test_intervals_are_refused():
    data = survival_data({"a": [1.0, 2.0]}, time=[1.0, 2.0], event=[True, False], upper=[1.0, 3.0])
    with pytest.raises(InvalidSurvivalDataError, match="this baseline takes no interval-censored rows"):
        CauseSpecificCox().fit(data)


def test_rows_of_weight_0_change_nothing():
    rng = np.random.default_rng(2)
    X, time, event = pd.DataFrame({"a": rng.normal(size=60)}), np.ceil(rng.exponential(9.0, 60)), rng.random(60) < 0.6
    weight = rng.integers(0, 3, 60).astype(float)
    some, times = weight > 0, np.array([2.0, 9.0])
    for model in (AalenJohansenBaseline, CauseSpecificCox):
        found = [
            model().fit(X[part], (event[part], time[part]), weight=weight[part]).predict_survival_function(X, times)
            for part in (slice(None), some)
        ]
        np.testing.assert_allclose(*found, rtol=1e-6)


@pytest.mark.parametrize(("times", "words"), [("a", "must be numbers"), ([-1.0], "finite and >= 0"), ([], "non-empty")])
def test_wrong_times_are_one_sentence(times, words, follic):
    with pytest.raises(InvalidTimesError, match=words):
        AalenJohansenBaseline().fit(follic[0]).predict_survival_function(follic[1].X, times)


def test_a_cause_of_one_kind_of_event_is_refused():
    train, test = load_dataset("veterans").split(seed=0)
    with pytest.raises(InvalidSurvivalDataError, match="cause must be left out where there is one kind"):
        AalenJohansenBaseline().fit(train).predict_cumulative_incidence(test.X, [10.0], cause=1)


@pytest.mark.parametrize("weight", [None, 0.5], ids=["scikit-survival", "lifelines"])
def test_columns_that_follow_from_others_change_no_prediction(weight):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=150), "b": rng.integers(0, 2, 150)})
    more = X.assign(twice=2 * X.a, no=1 - X.b, both=X.a + X.b)
    outcome = {"time": rng.exponential(size=150), "cause": rng.integers(0, 3, 150)}
    outcome |= {} if weight is None else {"weight": np.full(150, weight)}
    alone, beside = (CauseSpecificCox().fit(survival_data(one, **outcome)) for one in (X, more))
    assert (beside.coefficients_[:, 2:] == 0).all()
    at = [0.3, 1.0]
    np.testing.assert_allclose(
        alone.predict_cumulative_incidence(X, at), beside.predict_cumulative_incidence(more, at), atol=1e-7
    )


@pytest.mark.filterwarnings("default:Starting with pandas version 4")  # of lifelines
@pytest.mark.parametrize("weight", [None, 0.5], ids=["scikit-survival", "lifelines"])
def test_a_column_that_foretells_a_cause_is_said_once(weight):
    rng = np.random.default_rng(0)
    cause = rng.integers(0, 3, 200)
    X = pd.DataFrame({"a": rng.normal(size=200), "told": (cause == 2) | (rng.random(200) < 0.5)})
    outcome = {} if weight is None else {"weight": np.full(200, weight)}
    data = survival_data(X, time=rng.exponential(size=200), cause=cause, **outcome)
    with pytest.warns(ConvergenceWarning, match=r"^cause '2' is foretold by 'told': .*; leave the column out$") as said:
        CauseSpecificCox().fit(data)
    assert len([one for one in said if "with pandas version 4" not in str(one.message)]) == 1


def test_independent_columns_are_the_first_of_those_that_follow_from_one_another():
    x = np.random.default_rng(1).normal(size=(30, 3)) * [1.0, 1e-9, 1e9]
    table = np.column_stack([x[:, 0], np.ones(30), x[:, 1], x[:, 0] - 3.0, x[:, 2], x[:, 0] + x[:, 2]])
    assert independent(table).tolist() == [True, False, True, False, True, False]
    assert independent(x[:2]).tolist() == [True, False, False]


def test_a_column_foretells_where_each_event_is_highest_or_lowest_at_risk():
    rng = np.random.default_rng(2)
    for _ in range(300):
        n = 6
        x, time, event = rng.integers(0, 3, (n, 4)).astype(float), rng.integers(1, 5, n), rng.random(n) < 0.5
        for k, found in enumerate(foretelling(x, time, event)):
            ends = [(x[i, k], x[time >= time[i], k]) for i in np.flatnonzero(event)]
            varies = any(at_risk.min() < at_risk.max() for _, at_risk in ends)
            highest, lowest = (all(own == end(at_risk) for own, at_risk in ends) for end in (np.max, np.min))
            assert found == (varies and (highest or lowest))


def test_without_lifelines_weights_meet_the_sentence_that_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "lifelines", None)
    X = pd.DataFrame({"a": np.arange(20.0) % 7})
    data = survival_data(X, time=np.arange(1.0, 21), cause=np.arange(20) % 3, weight=np.full(20, 2.0))
    with pytest.raises(InvalidParameterError, match="python -m pip install lifelines"):
        CauseSpecificCox().fit(data)
