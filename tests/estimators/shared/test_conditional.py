"""Survival of rows of any age: each row alone, by the time that it is asked for, is the slow twin."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from oracles.spells import rows_of_kind
from scipy.special import gamma, gammaincc

from softsurv import OptimalModelTree, OptimalSurvivalTree, SoftSurvivalTree
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, InvalidTimesError
from softsurv.estimators.shared.conditional import ConditionalSurvival

TREES = {
    "optimal": OptimalSurvivalTree(max_depth=2),
    "kaplan-meier": OptimalSurvivalTree(max_depth=2, leaf="km", shrinkage=0, min_samples_leaf=10),
    "soft": SoftSurvivalTree(depth=1, leaf="weibull", l2=1.0, shrinkage=1.0),
    "splines": SoftSurvivalTree(depth=1, leaf="spline_po", max_terms=None, l2=1.0, n_restarts=1),
    "models": OptimalModelTree(max_depth=1, leaf="weibull"),
}

ALONE = np.append(np.arange(0, 150, 5), 7)
"""Rows that are looked at one by one, among them the one that has outlived all training rows."""

KINDS = [(name, kind) for name in TREES for kind in ("events", "causes") if (name, kind) != ("kaplan-meier", "causes")]


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def fitted(request):
    name, kind = request.param
    data = rows_of_kind(kind, 150)
    return TREES[name].fit(data), data


@pytest.fixture
def tree(fitted):
    return fitted[0]


@pytest.fixture
def data(fitted):
    return fitted[1]


@pytest.fixture
def ages(data):
    """The age of each row; some are new, some of one age, and one has outlived all training rows."""
    found = np.round(data.time.numpy() * np.random.default_rng(1).random(data.n), 1)
    found[7] = 1.5 * float(data.time.max())
    return found


def test_rows_of_their_own_age_are_as_each_alone(tree, data, ages):
    X, times = data.X, np.array([0.0, 0.5, 1.0, 2.0])
    expected = [tree.predict_conditional_survival(X[k : k + 1], ages[k], times)[0] for k in ALONE]
    found = tree.predict_conditional_survival(X, ages, times)
    np.testing.assert_allclose(found[ALONE], expected, rtol=1e-12, atol=1e-15)
    assert (found[times <= ages[:, None]] == 1.0).all()
    assert np.array_equal(tree.predict_conditional_survival(data, pd.Series(ages, X.index), times), found)


@pytest.mark.filterwarnings("ignore:no training row was observed after")
@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_remaining_times_are_those_of_the_conditional_curve(tree, data, ages, probability):
    found = tree.predict_quantile(data.X, probability, after=ages)
    here = np.isfinite(found)
    assert here[ALONE].any()
    around = found[:, None] * np.array([1 - 1e-6, 1 + 1e-6]) + np.array([-1e-9, 1e-9])
    for k in np.intersect1d(ALONE, np.flatnonzero(here)):
        before, by = around[k]
        early, late = tree.predict_conditional_survival(data.X[k : k + 1], ages[k], ahead=[max(before, 0.0), by])[0]
        assert early > 1 - probability or before <= 0
        assert late <= 1 - probability + 1e-9
    never = tree.predict_conditional_survival(data.X, ages, ahead=[1e3 * tree.horizon_])[~here]
    assert (never > 1 - probability).all()
    new = tree.predict_quantile(data.X, probability, after=0)
    np.testing.assert_allclose(new, tree.predict_quantile(data.X, probability), rtol=1e-9)
    halves = tree.predict_median(data.X, after=pd.Series(ages, data.X.index))
    assert np.array_equal(halves, tree.predict_quantile(data.X, 0.5, after=ages))


@pytest.mark.filterwarnings("ignore:no training row was observed after")
def test_the_mean_remaining_time_is_the_area_under_the_conditional_curve(tree, data, ages):
    horizon = 1.2 * tree.horizon_
    with pytest.warns(DataWarning, match=rf"the horizon {horizon:g} lies at or before 1 of 150 ages in after, .* 0;"):
        found = tree.predict_expectation(data.X, horizon, after=ages)
    n = 5_000
    for k in range(7, data.n, 30):
        ahead = (np.arange(n) + 0.5) / n * max(horizon - ages[k], 0.0)
        curve = tree.predict_conditional_survival(data.X[k : k + 1], ages[k], ahead=ahead)[0]
        assert found[k] == pytest.approx(curve.mean() * max(horizon - ages[k], 0.0), rel=1e-3)
    assert found[7] == 0.0  # it has outlived the horizon
    new = tree.predict_expectation(data.X, horizon, after=0)
    np.testing.assert_allclose(new, tree.predict_expectation(data.X, horizon), rtol=1e-6)


def test_the_mean_remaining_time_where_time_is_a_calendar_year():
    """Fifteen years of 2015 were one step of the times by which the curve is drawn."""
    rng = np.random.default_rng(0)
    X, entry = pd.DataFrame({"x": rng.normal(size=300)}), 2000 + rng.uniform(0, 10, 300)
    gone = entry + 5 * rng.weibull(1.5, 300)
    tree = SoftSurvivalTree(depth=0, leaf="spline_po", l2=1.0, shrinkage=1.0)
    tree.fit(X, (gone < 2015, np.minimum(gone, 2015.0)), entry=entry)
    now = np.array([2001.0, 2007.5, 2013.0])
    found = tree.predict_expectation(X[:3], after=now)
    for k, left in enumerate(2015 - now):
        ahead = np.linspace(0.0, left, 401)
        curve = tree.predict_conditional_survival(X[k : k + 1], now[k], ahead=ahead)[0]
        assert found[k] == pytest.approx(np.trapezoid(curve, ahead), rel=1e-4)
    years = np.append(np.linspace(1e-6, 1900, 10_000), np.linspace(1900, 2015, 10_000)[1:])
    whole = np.trapezoid(tree.predict_survival_function(X[:3], years), years)
    np.testing.assert_allclose(tree.predict_expectation(X[:3]), whole, rtol=0, atol=1e-3)


@pytest.mark.filterwarnings("ignore:no training row was observed after")
def test_the_mean_remaining_time_of_the_oldest_is_that_of_a_weibull_curve():
    """Nearly nobody of their training gets so old: shares of 1e-9 to 1e-100 survive."""
    rng = np.random.default_rng(0)
    X, time = pd.DataFrame({"x": rng.normal(size=200)}), 10 * rng.weibull(5.0, 200)
    tree = SoftSurvivalTree(depth=0, leaf="weibull", l2=1.0, shrinkage=1.0).fit(X, pd.DataFrame({"t": time, "e": True}))
    H = -np.log(tree.predict_survival_function(X[:1], times=[5.0, 10.0])[0])
    shape = np.log2(H[1] / H[0])
    passed = np.array([0.5, 5.0, 20.0, 80.0, 230.0])  # H at each age
    scale = 10.0 / H[1] ** (1 / shape)
    expected = scale * gamma(1 + 1 / shape) * gammaincc(1 / shape, passed) * np.exp(passed)
    rows = X.iloc[np.zeros(len(passed), dtype=int)]
    found = tree.predict_expectation(rows, 1e3, after=scale * passed ** (1 / shape))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:no training row was observed after")
@pytest.mark.parametrize("path", ["hbp", "soft"])
def test_remaining_time_of_an_age_at_which_survival_is_zero_to_rounding(path):
    """S was 0 from H = 745 on, and the remaining median of such an age 0 too."""
    rng = np.random.default_rng(3)
    X, time = pd.DataFrame({"x": rng.normal(size=200)}), rng.exponential(size=200)
    tree = SoftSurvivalTree(depth=1, leaf="exponential", l2=1.0, shrinkage=1.0, max_terms=None).fit(X, (time > 0, time))
    found = tree.predict_quantile(X, 0.5, after=2000.0, path=path)
    then = tree.predict_conditional_survival(X, 2000.0, ahead=[0.5, 1.0], path=path)  # S is exp(-rate t) by now
    assert (tree.predict_survival_function(X, times=[2000.0], path=path) == 0).any()
    np.testing.assert_allclose(found, -np.log(2) / np.log(then[:, 1]), rtol=1e-6)
    np.testing.assert_allclose(then[:, 0] ** 2, then[:, 1], rtol=1e-6)


def test_remaining_times_of_rows_older_than_all_of_training_are_told():
    data = rows_of_kind("events", 150)
    tree = OptimalSurvivalTree(max_depth=1).fit(data)
    with pytest.warns(DataWarning, match=f"no training row was observed after {tree.horizon_:g}"):
        tree.predict_median(data.X, after=2 * tree.horizon_)


def test_remaining_time_until_one_of_the_causes_is_refused():
    data = rows_of_kind("causes", 150)
    tree = OptimalSurvivalTree(max_depth=1).fit(data)
    with pytest.raises(InvalidParameterError, match="leave out cause, or after"):
        tree.predict_quantile(data.X, 0.1, cause=1, after=1.0)


@pytest.mark.filterwarnings("ignore:no training row was observed after")
def test_times_ahead_count_from_the_age(tree, data, ages):
    X, ahead = data.X, np.array([0.0, 0.25, 1.0])
    expected = [tree.predict_conditional_survival(X[k : k + 1], ages[k], ages[k] + ahead)[0] for k in ALONE]
    found = tree.predict_conditional_survival(X, ages, ahead=ahead)
    np.testing.assert_allclose(found[ALONE], expected, rtol=1e-12, atol=1e-15)
    assert (found[:, 0] == 1.0).all()
    same = tree.predict_conditional_survival(X, 0.5, ahead=ahead)
    np.testing.assert_allclose(tree.predict_conditional_survival(X, np.full(data.n, 0.5), ahead=ahead), same)
    np.testing.assert_allclose(tree.predict_conditional_survival(X, 0.5, 0.5 + ahead), same)


@pytest.fixture(scope="module")
def small():
    return OptimalSurvivalTree(max_depth=1).fit(rows_of_kind("events", 60))


def test_times_ahead_beyond_training_are_told(small):
    X = rows_of_kind("events", 60).X
    with pytest.warns(DataWarning, match="no training row was observed after"):
        small.predict_conditional_survival(X, np.linspace(0, small.horizon_, 60), ahead=[0.5])


@pytest.mark.parametrize(
    ("after", "error", "sentence"),
    [
        ([1.0, 2.0], InvalidTimesError, r"after must be one time, or one for each of the 60 rows, got shape \(2,\)"),
        (np.full(60, -1.0), InvalidSurvivalDataError, "after must be finite and >= 0, got -1 at row 0 and 59 more"),
        (pd.Series(np.ones(60), range(59, -1, -1)), InvalidSurvivalDataError, "after must be in the row order of X"),
        (["soon"] * 60, InvalidSurvivalDataError, "after must"),
        ("soon", InvalidTimesError, "after must be a finite time >= 0, or one for each row, got 'soon'"),
    ],
)
def test_ages_that_are_not_those_of_the_rows_are_refused(small, after, error, sentence):
    with pytest.raises(error, match=sentence):
        small.predict_conditional_survival(rows_of_kind("events", 60).X, after, [1.0])


def test_times_of_all_rows_are_looked_at_once(small, monkeypatch):
    """Each of 217 times was looked at for each row alone: 21,000 rows took a minute."""
    looked = []
    inner = type(small)._log_cumulative_hazard
    monkeypatch.setattr(
        type(small), "_log_cumulative_hazard", lambda self, x, t: looked.append(len(t)) or inner(self, x, t)
    )
    times = np.linspace(0.0, small.horizon_, 50)
    small.predict_conditional_survival(rows_of_kind("events", 60).X, np.linspace(0, 1, 60), times)
    assert looked == [50]


@pytest.mark.filterwarnings("ignore:no training row was observed after")
@pytest.mark.parametrize("name", ["optimal", "soft", "splines"])
def test_own_times_need_no_curve_of_other_rows_at_them(name, monkeypatch):
    """Blocks of 64 rows were looked at by 64 times, of which one was kept: 100 times of 100,000 rows took 46 s."""
    data = rows_of_kind("events", 80)
    tree, ages = TREES[name].fit(data), data.time.numpy()
    ahead = np.array([0.0, 0.25, 1.0])
    expected = ConditionalSurvival._at_own_times(tree, tree._checked(data.X, {}), ages[:, None] + ahead)
    monkeypatch.setattr(type(tree), "_log_cumulative_hazard", None)
    np.testing.assert_allclose(
        tree._at_own_times(tree._checked(data.X, {}), ages[:, None] + ahead), expected, rtol=1e-12, atol=1e-15
    )
    assert tree.predict_conditional_survival(data.X, ages, ahead=ahead).shape == (80, 3)


def test_times_are_absolute_or_ahead(small):
    with pytest.raises(InvalidParameterError, match="give times, or ahead for times counted from after, and not both"):
        small.predict_conditional_survival(rows_of_kind("events", 60).X, 1.0, [2.0], ahead=[1.0])
    with pytest.raises(InvalidTimesError, match="ahead must be finite and >= 0, got -1 at position 0"):
        small.predict_conditional_survival(rows_of_kind("events", 60).X, 1.0, ahead=[-1.0])
