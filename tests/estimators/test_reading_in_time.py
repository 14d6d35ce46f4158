"""Reading a table of many columns of text is under the time limit of every estimator, and says so in one sentence."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import softsurv
from softsurv.data import in_time
from softsurv.data.chunks import Table
from softsurv.errors import InvalidParameterError
from softsurv.estimators.names import HOME
from softsurv.estimators.separable.front import misclassification_front
from softsurv.estimators.stream import fit_stream
from softsurv.estimators.survival.fair import survival_fairness_front

N, COLUMNS = 60, 40
RNG = np.random.default_rng(3)
EVENT, TIME = RNG.random(N) < 0.7, RNG.exponential(size=N) + 0.1
CLASS, TWO, SCORES = RNG.integers(0, 2, N), RNG.integers(0, 2, N), RNG.random((N, 2))
SURVIVAL = {"y": (EVENT, TIME)}
CASES = {
    "SoftSurvivalTree": ({}, SURVIVAL),
    "OptimalSurvivalTree": ({}, SURVIVAL),
    "OptimalModelTree": ({}, SURVIVAL),
    "OptimalFairSurvivalTree": ({"horizon": 1.0, "tolerance": 0.1}, SURVIVAL | {"group": TWO}),
    "OptimalSurvivalPolicyTree": ({"horizon": 1.0}, SURVIVAL | {"treatment": TWO}),
    "OptimalClassificationTree": ({}, {"y": CLASS}),
    "OptimalFairClassificationTree": ({"tolerance": 0.1}, {"y": CLASS, "group": TWO}),
    "OptimalCostSensitiveTree": ({}, {"y": CLASS, "costs": SCORES}),
    "OptimalRegressionTree": ({}, {"y": TIME}),
    "OptimalPolicyTree": ({}, {"scores": SCORES}),
    "OptimalCapacityPolicyTree": ({"capacity": {1: 0.3}}, {"scores": SCORES}),
}
SAID = r"time_limit must be longer than reading the table takes, got 1e\+06 s, which passed at 16 of 40 columns of text"


@pytest.fixture
def table():
    return pd.DataFrame(RNG.choice(list("abc"), (N, COLUMNS))).add_prefix("site")


@pytest.fixture
def passed(monkeypatch):
    """Any time limit has passed when the clock is looked at."""
    monkeypatch.setattr(in_time, "READING_GRACE", -math.inf)


def test_every_estimator_is_here():
    assert set(CASES) == set(HOME)


@pytest.mark.parametrize("name", CASES)
def test_text_is_read_within_the_time_limit(name, table, passed):
    options, outcome = CASES[name]
    with pytest.raises(InvalidParameterError, match=SAID):
        getattr(softsurv, name)(**options, time_limit=1e6).fit(table, **outcome)


@pytest.mark.parametrize("name", CASES)
def test_a_large_table_of_numbers_is_read_within_the_time_limit(name, passed, monkeypatch):
    """Nothing is kept of a fit that did not end, and the next one is as if there had been none."""
    options, outcome = CASES[name]
    numbers = pd.DataFrame(RNG.random((N, 3))).add_prefix("x")
    kind = getattr(softsurv, name)
    tree = kind(**options, **({"depth": 0, "l2": 1.0} if name == "SoftSurvivalTree" else {"max_depth": 1}))
    with monkeypatch.context() as patched:
        patched.setattr(in_time, "NUMBERS_ANYHOW", 0)
        said = r"longer than reading 60 rows of 3 columns takes, got 1e\+06 s, which passed meanwhile; raise it"
        with pytest.raises(InvalidParameterError, match=said):
            tree.set_params(time_limit=1e6).fit(numbers, **outcome)
    with pytest.raises(NotFittedError):
        tree.predict(numbers)
    tree.fit(numbers, **outcome)
    again = kind(**tree.get_params()).fit(numbers, **outcome)
    np.testing.assert_array_equal(tree.predict(numbers), again.predict(numbers))


@pytest.mark.parametrize("name", ["SoftSurvivalTree", "OptimalModelTree"])
@pytest.mark.parametrize("max_terms", [3, None])
def test_no_leaf_is_begun_that_takes_longer_than_what_is_left(name, max_terms, monkeypatch):
    monkeypatch.setattr(in_time, "NUMBERS_ANYHOW", 0)
    monkeypatch.setattr(in_time, "ONE_LEAF", math.inf)
    options = {"max_terms": max_terms} if name == "SoftSurvivalTree" else {}
    numbers = pd.DataFrame(RNG.random((N, 3))).add_prefix("x")
    with pytest.raises(InvalidParameterError, match="which left no time to fit a leaf; raise it"):
        getattr(softsurv, name)(**options, time_limit=1e6).fit(numbers, **SURVIVAL)


def test_fronts_read_within_the_time_limit(table, passed):
    with pytest.raises(InvalidParameterError, match=SAID):
        misclassification_front(table, CLASS, time_limit=1e6)
    with pytest.raises(InvalidParameterError, match=SAID):
        survival_fairness_front(table, (EVENT, TIME), group=TWO, horizon=1.0, time_limit=1e6)


def test_numbers_and_a_few_columns_of_text_are_read_in_any_case(table, passed):
    """They take no time worth a limit: the tree that there is time for is returned."""
    few = table.iloc[:, :16].assign(**{f"x{k}": RNG.random(N) for k in range(COLUMNS)})
    tree = softsurv.OptimalRegressionTree(max_depth=1, time_limit=1e6).fit(few, TIME)
    assert tree.tree_.n_leaves == 2


def test_without_a_limit_all_is_read(table, passed):
    tree = softsurv.OptimalRegressionTree(max_depth=1, time_limit=None).fit(table, TIME)
    assert tree.n_features_in_ == COLUMNS
    with pytest.raises(InvalidParameterError, match="passed at 16 of 40"):  # the limit of a fit ends with its reading
        softsurv.OptimalRegressionTree(max_depth=1, time_limit=1e6).fit(table, TIME)
    assert tree.predict(table).shape == (N,)


def test_a_stream_is_read_within_the_time_limit(table, tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    table.iloc[:, :2].assign(t=TIME, e=EVENT).to_csv(path, index=False)
    model = softsurv.SoftSurvivalTree(depth=0, l2=1.0, leaf="weibull", max_terms=None, time_limit=1e6)
    with monkeypatch.context() as patched:
        patched.setattr(in_time, "READING_GRACE", -math.inf)
        with pytest.raises(InvalidParameterError, match="passed at row 32 of the first of two readings; raise it, or"):
            fit_stream(model, Table(path, "t", "e", chunk_rows=2))
    assert fit_stream(model, Table(path, "t", "e", chunk_rows=2)).n_features_in_ == 2


def test_the_second_reading_of_a_stream_looks_at_the_clock_too(table, tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    table.iloc[:, :2].assign(t=TIME, e=EVENT).to_csv(path, index=False)
    model = softsurv.SoftSurvivalTree(depth=0, l2=1.0, leaf="weibull", max_terms=None, time_limit=1e6)

    def begins_late(*how, **more):
        monkeypatch.setattr(in_time, "READING_GRACE", -math.inf)
        return learned(*how, **more)

    learned = softsurv.estimators.stream.Preprocessor.alphabetical
    monkeypatch.setattr(softsurv.estimators.stream.Preprocessor, "alphabetical", begins_late)
    with pytest.raises(InvalidParameterError, match="passed at row 32 of the second reading; raise it, or"):
        fit_stream(model, Table(path, "t", "e", chunk_rows=2))
