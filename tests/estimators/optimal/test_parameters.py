"""OptimalSurvivalTree: one sentence for every wrong input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from softsurv import OptimalSurvivalTree, SurvivalData
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError, InvalidTimesError
from softsurv.estimators.optimal.parameters import OptimalParameters, least_rows
from softsurv.estimators.optimal.search import SEARCHES


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"objective": "auc"}, "objective must be one of 'relative_risk', 'ibs', got 'auc'"),
        (
            {"leaf": "ipcw"},
            "leaf must be one of 'auto', 'adaptive', 'nelson_aalen', 'km' for objective='relative_risk', got 'ipcw'",
        ),
        ({"objective": "ibs", "leaf": "nelson_aalen"}, "leaf must be one of 'auto', 'km', 'ipcw' for objective='ibs'"),
        ({"max_depth": -1}, "max_depth must be an integer >= 0, got -1"),
        ({"max_depth": 11}, "max_depth must be an integer from 0 to 10 for objective='relative_risk', got 11"),
        ({"max_depth": None}, "max_depth must be an integer from 0 to 10 for objective='relative_risk', got None"),
        ({"max_leaves": 0}, "max_leaves must be an integer >= 1, got 0"),
        ({"min_samples_leaf": 0.5}, r"min_samples_leaf must be an integer >= 1, got 0\.5"),
        ({"min_samples_leaf": 500}, "min_samples_leaf must be at most the number of rows, 120, got 500"),
        ({"complexity": -0.1}, r"complexity must be a finite number >= 0, got -0\.1"),
        ({"complexity": np.nan}, "complexity must be a finite number >= 0, got nan"),
        ({"thresholds": "few"}, "thresholds must be an integer >= 1"),
        ({"time_limit": -1}, "time_limit must be a finite number of seconds >= 0, got -1"),
        ({"memory_limit": 10}, r"memory_limit must be a finite number of bytes >= 1e\+06, got 10"),
        ({"n_jobs": 0}, "n_jobs must be an integer >= 1, or -1 for all cores, got 0"),
        ({"tune": "grid"}, "tune must be one of 'auto', None, 'cv', got 'grid'"),
        ({"objective": "ibs", "tune": "cv", "max_depth": None}, 'max_depth must be given where tune="cv"'),
        ({"shrinkage": -1}, "shrinkage must be a finite number of events >= 0, got -1"),
        ({"tune_score": "auc"}, "tune_score must be one of 'auto', 'likelihood', 'ibs', 'concordance', got 'auc'"),
        ({"random_state": -1}, "random_state must be an integer >= 0, got -1"),
        ({"reference": np.zeros(3)}, "reference must be None for objective='relative_risk'"),
    ],
    ids=str,
)
def test_a_wrong_argument(rows, arguments, sentence):
    with pytest.raises(InvalidParameterError, match=sentence) as caught:
        OptimalSurvivalTree(**arguments).fit(*rows)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda X, y: OptimalSurvivalTree().fit(X, (np.zeros(120, bool), y["time"])), "event must be True in at least"),
        (lambda X, y: OptimalSurvivalTree().fit(X, y, sample_weight=np.where(y["event"], 0, 1)), "event must be True"),
        (
            lambda X, y: OptimalSurvivalTree("ibs").fit(X, y, entry=y["time"] / 2),
            'entry must be left out for objective="',
        ),
        (lambda X, y: OptimalSurvivalTree().fit(X.assign(x=np.inf), y), "X must be finite or missing"),
        (lambda X, y: OptimalSurvivalTree().fit(X.assign(day=pd.Timestamp("2020-01-01")), y), "day"),
        (
            lambda X, y: OptimalSurvivalTree().fit(
                SurvivalData(X, time=y["time"], event=y["event"], upper=np.where(y["event"], np.inf, y["time"] + 1))
            ),
            "upper must be inf in every row for an optimal tree",
        ),
    ],
)
def test_wrong_data(rows, call, sentence):
    with pytest.raises(InvalidSurvivalDataError, match=sentence) as caught:
        call(*rows)
    assert "\n" not in str(caught.value)


def test_wrong_predictions(trees, rows):
    with pytest.raises(InvalidParameterError, match="predictions of an optimal tree take no path; leave it out"):
        trees().predict(rows[0], path="soft")
    with pytest.raises(InvalidParameterError, match=r"take no start, id; predict_path\(X, start, stop, id\) follows"):
        trees().predict_survival_function(rows[0], start="from", id="who")
    with pytest.raises(InvalidTimesError, match="horizon must be a finite time > 0"):
        trees().predict_expectation(rows[0], 0.0)
    with pytest.raises(InvalidSurvivalDataError, match="got none named 'x'"):
        trees().predict(rows[0].drop(columns="x"))
    for method in ("predict", "apply", "predict_median", "predict_expectation"):
        with pytest.raises(NotFittedError):
            getattr(OptimalSurvivalTree(), method)(rows[0])
    with pytest.raises(NotFittedError):
        OptimalSurvivalTree().export_text()


@pytest.mark.parametrize(
    ("n", "events", "rows"),
    [(500, 250, 10), (500, 100, 25), (500, 40, 40), (2000, 400, 25), (2000, 26, 100), (30, 1, 30)],
)
def test_a_leaf_has_five_events_to_expect_unless_events_are_rare(n, events, rows):
    assert least_rows(OptimalParameters(), n, events) == rows
    assert least_rows(OptimalParameters(min_samples_leaf=7), n, events) == 7


@pytest.mark.parametrize(
    ("outcome", "words"), [({"cause": "c"}, "competing causes"), ({"recurrent": True}, "recurrent")]
)
def test_a_history_that_an_objective_does_not_take_is_refused_before_anything_is_compiled(outcome, words, monkeypatch):
    monkeypatch.setattr(SEARCHES["ibs"], "warm_up", pytest.fail)
    with pytest.raises(InvalidParameterError, match=f"objective must be 'relative_risk' with {words}"):
        OptimalSurvivalTree("ibs").fit(pd.DataFrame({"c": [0, 1], "t": [1.0, 2.0]}), time="t", **outcome)
