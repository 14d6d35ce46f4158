"""The surface that soft and optimal trees share, on a tree whose curves are known in closed form."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gamma
from scipy.stats import weibull_min
from sklearn.exceptions import NotFittedError
from sksurv.functions import StepFunction as SksurvStepFunction
from sksurv.metrics import concordance_index_censored

from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, InvalidTimesError
from softsurv.estimators.shared import base
from softsurv.estimators.shared.base import SurvivalTreeBase
from softsurv.metrics import evaluate


class WeibullStub(SurvivalTreeBase):
    """H = (t / x)^shape with the one feature x; the leaf says whether x exceeds 5."""

    def __init__(self, shape: float = 1.5) -> None:
        self.shape = shape

    def fit(self, X, y):
        self._read(X, y)
        return self

    def _prepare(self, X):
        return np.asarray(X, dtype=float)[:, 0]

    def _leaf(self, prepared):
        return (prepared > 5).astype(np.int64)

    def _log_cumulative_hazard(self, prepared, times):
        with np.errstate(divide="ignore"):
            return self.shape * (np.log(times) - np.log(prepared)[:, None])

    def _hazard(self, prepared, times):
        return self.shape / times * (times / prepared[:, None]) ** self.shape

    def _quantile(self, prepared, level):
        return prepared * (-np.log(level)) ** (1 / self.shape)


SCALES = np.array([[2.0], [7.0], [30.0]])
TIMES = np.array([0.0, 0.5, 4.0, 90.0])


@pytest.fixture(scope="module")
def stub():
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 20, size=(60, 1))
    time = X[:, 0] * rng.weibull(1.5, 60)
    return WeibullStub().fit(X, (rng.random(60) < 0.8, time))


def truth(k):
    return weibull_min(1.5, scale=SCALES[k, 0])


def test_survival_and_cumulative_hazard(stub):
    expected = np.array([truth(k).sf(TIMES) for k in range(3)])
    assert np.allclose(stub.predict_survival_function(SCALES, TIMES), expected)
    assert np.allclose(stub.predict_cumulative_hazard_function(SCALES, TIMES), (TIMES / SCALES) ** 1.5)


def test_times_need_not_be_sorted(stub):
    order = [2, 0, 3, 1]
    assert np.array_equal(
        stub.predict_survival_function(SCALES, TIMES[order]), stub.predict_survival_function(SCALES, TIMES)[:, order]
    )


def test_hazard_is_density_over_survival(stub):
    expected = np.array([truth(k).pdf(TIMES[1:3]) / truth(k).sf(TIMES[1:3]) for k in range(3)])
    assert np.allclose(stub.predict_hazard_function(SCALES, TIMES[1:3]), expected)


def test_quantiles_are_those_of_the_distribution(stub):
    assert np.allclose(stub.predict_median(SCALES), [truth(k).median() for k in range(3)])
    assert np.allclose(stub.predict_quantile(SCALES, 0.9), [truth(k).ppf(0.9) for k in range(3)])


@pytest.mark.parametrize("horizon", [0.5, 10.0, 500.0])
def test_expectation_is_the_integral_of_survival(stub, horizon):
    expected = [quad(truth(k).sf, 0, horizon, points=[min(20.0, horizon / 2)])[0] for k in range(3)]
    assert np.allclose(stub.predict_expectation(SCALES, horizon), expected, rtol=1e-8)


def test_expectation_reaches_the_mean(stub):
    assert np.allclose(stub.predict_expectation(SCALES, 400.0), SCALES[:, 0] * gamma(1 + 1 / 1.5), rtol=1e-8)
    assert np.allclose(stub.predict_expectation(SCALES, 1e7), SCALES[:, 0] * gamma(1 + 1 / 1.5), rtol=1e-8)


def test_expectation_holds_the_curves_of_few_rows_at_once(stub, monkeypatch):
    """Tables of all rows left the processor's memory: 100,000 rows took five times as long."""
    rows, inner = [], WeibullStub._log_cumulative_hazard
    monkeypatch.setattr(base, "ROWS_AT_ONCE", 2)
    expected = [stub.predict_expectation(SCALES[k : k + 1])[0] for k in range(3)]
    monkeypatch.setattr(
        WeibullStub, "_log_cumulative_hazard", lambda self, x, t: rows.append(len(x)) or inner(self, x, t)
    )
    assert np.allclose(stub.predict_expectation(SCALES), expected, rtol=1e-14)
    assert set(rows) == {2, 1}


def test_expectation_ends_at_the_last_training_time_by_default(stub):
    assert np.array_equal(stub.predict_expectation(SCALES), stub.predict_expectation(SCALES, stub.horizon_))


def test_conditional_survival_is_the_ratio(stub):
    times = np.array([1.0, 3.0, 6.0, 11.0])
    expected = np.array([truth(k).sf(np.maximum(times, 3.0)) / truth(k).sf(3.0) for k in range(3)])
    assert np.allclose(stub.predict_conditional_survival(SCALES, 3.0, times), expected)
    assert np.allclose(
        stub.predict_conditional_survival(SCALES, 0.0, times), stub.predict_survival_function(SCALES, times)
    )


def test_conditional_survival_after_certain_death_is_no_nan(stub):
    values = stub.predict_conditional_survival(np.array([[1e-3]]), 1e4, [1e4, 2e4])
    assert values.tolist() == [[1.0, 0.0]]


def test_step_functions_are_those_of_scikit_survival(stub):
    grid = np.array([1.0, 2.0, 9.0])
    curves = stub.predict_survival_function(SCALES, grid, return_array=False)
    assert all(isinstance(curve, SksurvStepFunction) for curve in curves)
    assert np.array_equal([curve(9.0) for curve in curves], stub.predict_survival_function(SCALES, [9.0])[:, 0])
    hazards = stub.predict_cumulative_hazard_function(SCALES, grid, return_array=False)
    assert np.array_equal(hazards[1].y, stub.predict_cumulative_hazard_function(SCALES, grid)[1])
    with pytest.raises(InvalidTimesError, match="times must increase for step functions; sort them"):
        stub.predict_survival_function(SCALES, [2.0, 1.0], return_array=False)


@pytest.mark.parametrize("times", [[10**400], ["soon"], [None, "1"]])
def test_times_that_are_no_numbers_are_one_sentence(stub, times):
    with pytest.raises(InvalidTimesError, match="times must be"):
        stub.predict_survival_function(SCALES, times)


def test_risk_is_higher_for_earlier_events_even_where_survival_is_saturated(stub):
    with pytest.warns(DataWarning, match="far outside the training range, of 6 rows: x0 in 2"):
        risk = stub.predict(np.array([[1e-8], [1e-7], [2.0], [7.0], [1e6], [1e7]]))
    assert np.all(np.diff(risk) < 0)


def test_the_default_grid_is_the_distinct_event_times():
    model = WeibullStub().fit(np.ones((5, 1)), ([True, False, True, True, True], [3.0, 9.0, 1.0, 3.0, 0.5]))
    assert model.unique_times_.tolist() == [0.5, 1.0, 3.0]
    assert model.horizon_ == 9.0
    assert model.predict_survival_function(SCALES).shape == (3, 3)


def test_scores_are_those_of_the_metrics(stub):
    rng = np.random.default_rng(1)
    X = rng.uniform(1, 20, size=(50, 1))
    time, event = X[:, 0] * rng.weibull(1.5, 50), rng.random(50) < 0.7
    result = stub.evaluate(X, (event, time))
    assert result["n"] == 50
    assert result["harrell_c"] == stub.score(X, (event, time))
    weight = rng.integers(0, 3, 50)
    weighted, repeated = stub.score(X, (event, time), weight), np.repeat(np.arange(50), weight)
    assert weighted == stub.evaluate(X, (event, time), sample_weight=weight)["harrell_c"] != result["harrell_c"]
    assert weighted == pytest.approx(stub.score(X[repeated], (event[repeated], time[repeated])), abs=0.01)
    # proportional hazards: the time-dependent concordance is Harrell's own
    assert result["harrell_c"] == pytest.approx(concordance_index_censored(event, time, -X[:, 0])[0])
    log_hazard = lambda times: stub._log_cumulative_hazard(X[:, 0], times)  # noqa: E731
    train = np.random.default_rng(0)
    train_x = train.uniform(1, 20, size=(60, 1))
    train_time = train_x[:, 0] * train.weibull(1.5, 60)
    assert result == evaluate(train_time, train.random(60) < 0.8, time, event, log_hazard)


def test_evaluate_takes_column_names_and_grids(stub):
    rng = np.random.default_rng(1)
    import pandas as pd

    table = pd.DataFrame({"x": rng.uniform(1, 20, 40)})
    table["t"], table["e"] = table["x"] * rng.weibull(1.5, 40), 1
    result = stub.evaluate(table, time="t", event="e", times=[2.0, 4.0, 8.0])
    assert (result["range"], result["n_times"], result["events"]) == ((2.0, 8.0), 3, 40)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda m: m.predict_survival_function(SCALES, [-1.0]), InvalidTimesError, "got -1 at position 0"),
        (lambda m: m.predict_survival_function(SCALES, [1, np.nan]), InvalidTimesError, "got nan at position 1"),
        (lambda m: m.predict_survival_function(SCALES, [np.inf]), InvalidTimesError, "finite and >= 0, got inf"),
        (lambda m: m.predict_survival_function(SCALES, []), InvalidTimesError, r"non-empty one-dimensional grid, got"),
        (lambda m: m.predict_survival_function(SCALES, [[1.0]]), InvalidTimesError, r"got shape \(1, 1\)"),
        (lambda m: m.predict_hazard_function(SCALES, [0.0]), InvalidTimesError, "leave time 0 out"),
        (lambda m: m.predict_quantile(SCALES, 0.0), InvalidParameterError, "probability must be between 0 and 1"),
        (lambda m: m.predict_quantile(SCALES, 1), InvalidParameterError, "probability must be between 0 and 1, got 1"),
        (lambda m: m.predict_quantile(SCALES, "half"), InvalidParameterError, "got 'half'"),
        (lambda m: m.predict_expectation(SCALES, 0.0), InvalidTimesError, "horizon must be a finite time > 0"),
        (lambda m: m.predict_expectation(SCALES, np.inf), InvalidTimesError, "horizon must be a finite time > 0"),
        (
            lambda m: m.predict_conditional_survival(SCALES, -2.0),
            InvalidTimesError,
            "after must be a finite time >= 0, or one for each row",
        ),
        (lambda m: m.fit(SCALES, ([False] * 3, [1, 2, 3])), InvalidSurvivalDataError, "event must be True in at least"),
    ],
)
def test_wrong_arguments_get_one_sentence(call, error, sentence):
    model = WeibullStub().fit(SCALES, ([True] * 3, [1.0, 2.0, 3.0]))
    with pytest.raises(error, match=sentence) as caught:
        call(model)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "method",
    [
        "apply",
        "predict",
        "predict_survival_function",
        "predict_cumulative_hazard_function",
        "predict_hazard_function",
        "predict_median",
        "predict_expectation",
    ],
)
def test_an_unfitted_tree_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(WeibullStub(), method)(SCALES)


def test_names_of_an_earlier_fit_are_forgotten():
    import pandas as pd

    y = ([True] * 3, [1.0, 2.0, 3.0])
    model = WeibullStub().fit(pd.DataFrame(SCALES, columns=["x"]), y)
    assert list(model.feature_names_in_) == ["x"]
    assert not hasattr(model.fit(SCALES, y), "feature_names_in_")


def test_a_fitted_tree_shows_and_explains_itself() -> None:
    from softsurv import SoftSurvivalTree, load_dataset

    data = load_dataset("veterans")
    tree = SoftSurvivalTree(depth=1, l2=1.0, shrinkage=1.0, routing_l2=1.0, n_restarts=1)
    assert "SoftSurvivalTree" in tree._repr_html_()
    tree.fit(data.X, data.y)
    assert "<svg" in tree._repr_mimebundle_()["text/html"]
    summary = tree.leaf_summary()
    assert summary["n"].sum() == data.n
    assert "training rows" in str(tree.explain(data.X.iloc[[0]]))


def test_times_at_which_no_training_row_was_left_are_named_once_where_they_are_asked_for():
    rng = np.random.default_rng(0)
    X, time = rng.uniform(1, 20, (60, 1)), rng.weibull(1.5, 60)
    event = rng.random(60) < 0.8
    tree = WeibullStub().fit(X, (event, time))
    last = tree.horizon_
    tree.predict_survival_function(X, [last])
    tree.predict_expectation(X)
    said = f"no training row was observed after {last:g}; what is predicted for "
    for call, named in (
        (lambda: tree.predict_survival_function(X, [1.0, 2 * last]), f"{2 * last:g} is"),
        (lambda: tree.predict_expectation(X, horizon=3 * last), f"{3 * last:g} is"),
        (lambda: tree.predict_conditional_survival(X, 1.0, last * np.arange(1, 7)), "and 2 later times is"),
    ):
        with pytest.warns(DataWarning, match=re.escape(said) + ".*" + re.escape(named)) as record:
            call()
        assert len(record) == 1
        assert record[0].filename == __file__
    early = time < np.median(time)
    WeibullStub().fit(X[early], (event[early], time[early])).evaluate(X, (event, time))  # no one asked for a curve


@pytest.mark.parametrize("value", ["x", None, [1, 2], -1.0, np.nan, 10**400])
def test_a_time_that_is_none_is_one_sentence(stub, value):
    with pytest.raises(InvalidTimesError, match=r"after must be (a finite time >= 0|one time), or one for each"):
        stub.predict_conditional_survival(SCALES, value)
    if value is not None:
        with pytest.raises(InvalidTimesError, match="horizon must be a finite time > 0, got "):
            stub.predict_expectation(SCALES, value)
