"""Data at the edge: one event, one row, ties, zeros, constants, units."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from softsurv import SoftSurvivalTree
from softsurv.errors import DataWarning, InvalidSurvivalDataError
from softsurv.estimators.saved import load_model
from softsurv.hazards import family_names

FIXED = {"l2": 1.0, "shrinkage": 1.0, "routing_l2": 0.1, "n_restarts": 2, "device": "cpu"}
SINGLE = {"depth": 0, "l2": 0.5, "device": "cpu"}
TIMES = np.array([0.0, 0.3, 2.0, 8.0, 30.0])


def predicts(tree, X):
    """Whether every prediction is finite where it has to be."""
    survival = tree.predict_survival_function(X, TIMES)
    return bool(np.isfinite(survival).all() and np.isfinite(tree.predict(X)).all())


@pytest.mark.parametrize("family", family_names())
def test_one_event_is_enough(rows, family):
    X, y = rows
    event = np.arange(len(y)) == 3
    assert predicts(SoftSurvivalTree(**SINGLE, leaf=family).fit(X, (event, y["time"])), X)


@pytest.mark.parametrize("family", family_names())
def test_all_times_equal(rows, family):
    X, y = rows
    tree = SoftSurvivalTree(**SINGLE, leaf=family).fit(X, (y["event"], np.full(len(y), 3.0)))
    assert predicts(tree, X)


def test_no_censoring_and_many_ties(rows):
    X, y = rows
    tree = SoftSurvivalTree(depth=1, **FIXED).fit(X, (np.ones(len(y), bool), np.ceil(y["time"] / 5)))
    assert predicts(tree, X)


def test_zero_times_are_floored_and_said(rows):
    X, y = rows
    time = y["time"].copy()
    time[:3] = 0.0
    with pytest.warns(DataWarning, match="time is 0 in 3 of 120 rows"):
        tree = SoftSurvivalTree(**SINGLE).fit(X, (y["event"], time))
    assert predicts(tree, X)


@pytest.mark.filterwarnings("ignore:time is 0")
def test_zero_times_are_scored_as_trained(rows, tmp_path):
    X, y = rows
    time, event = np.floor(y["time"] / 4), y["event"].copy()
    assert (event & (time == 0)).sum() > 20
    tree = SoftSurvivalTree(**SINGLE).fit(X, (event, time))
    floored = np.where(time > 0, time, 0.5)
    assert tree.time_floor_ == 0.5
    assert tree.score(X, (event, time)) == tree.score(X, (event, floored))
    assert tree.evaluate(X, (event, time)) == tree.evaluate(X, (event, floored))
    earlier = np.where(np.arange(len(X)) == 7, 0.2, time)  # below the floor, yet after the zeros
    moved = np.where(earlier > 0, earlier, 0.1)
    assert tree.evaluate(X, (event, earlier)) == tree.evaluate(X, (event, moved))
    assert_allclose(tree.log_likelihood(X, (event, time)), tree.log_likelihood(X, (event, floored)))
    few = X.iloc[:1], ([True], [0.0])
    some = X.iloc[:2], ([True, True], [0.0, 3.0])
    assert tree.log_likelihood(*some)[0] == tree.log_likelihood(few[0], ([True], [0.5]))[0]
    tree.save(tmp_path / "model")
    assert load_model(tmp_path / "model").time_floor_ == 0.5
    arrays, meta = tree._state()
    del meta["time_floor"]  # as before floors were saved
    tree._restore(arrays, meta)
    assert tree.time_floor_ == 0.5


@pytest.mark.filterwarnings("ignore:time is 0")
def test_an_event_at_zero_alone_still_ranks(rows):
    X, y = rows
    event, time = np.arange(len(X)) == 0, y["time"].copy()
    time[0] = 0.0
    tree = SoftSurvivalTree(**SINGLE).fit(X, (event, time))
    assert tree.unique_times_.tolist() == [time[time > 0].min()]
    assert np.isfinite(tree.predict(X)).all()


def test_intervals_alone_still_rank(rows):
    X, y = rows
    lower = np.floor(y["time"]) + 1
    tree = SoftSurvivalTree(**SINGLE).fit(X, (np.zeros(len(X), bool), lower), upper=lower + 1)
    assert tree.unique_times_.tolist() == np.unique(lower + 1).tolist()
    assert np.isfinite(tree.predict(X)).all()


def test_one_event_cannot_be_cross_validated(rows):
    with pytest.raises(InvalidSurvivalDataError, match=r"at least 2 rows to choose a tree.*got 1; collect"):
        SoftSurvivalTree().fit(rows[0], (np.arange(120) == 5, rows[1]["time"]))


def test_a_single_row():
    with pytest.warns(ConvergenceWarning, match="rescale the features"):  # the density at one time has no bound
        tree = SoftSurvivalTree(**SINGLE, preprocess=False).fit([[1.0]], ([True], [2.0]))
    assert predicts(tree, [[1.0]])


def test_constant_features_give_one_curve(rows):
    with pytest.warns(DataWarning, match="every feature is constant, so all rows get one curve"):
        tree = SoftSurvivalTree(**SINGLE).fit(rows[0].assign(x=1, side="left", noise=0), rows[1])
    assert np.unique(tree.predict(rows[0].assign(side="left"))).size == 1


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_unit_of_time_does_not_matter(rows, scale):
    X, y = rows
    plain = SoftSurvivalTree(depth=1, **FIXED).fit(X, y)
    scaled = SoftSurvivalTree(depth=1, **FIXED).fit(X, (y["event"], y["time"] * scale))
    assert_allclose(
        scaled.predict_survival_function(X, TIMES * scale), plain.predict_survival_function(X, TIMES), atol=1e-4
    )
    assert_allclose(scaled.predict_median(X) / scale, plain.predict_median(X), rtol=1e-3)


@pytest.mark.parametrize("options", [FIXED | {"depth": 1}, {"depth": 1}], ids=["dense", "rules"])
def test_a_column_of_missing_values_is_left_out_of_the_text(rows, options):
    X, y = rows
    X = pd.DataFrame(X)
    X.columns = [f"f{name}" for name in X.columns]
    holes = X.assign(nothing=np.nan, some=np.where(np.arange(len(X)) % 3 == 0, np.nan, 1.0 * np.arange(len(X))))
    text = SoftSurvivalTree(**options).fit(holes, y).export_text()
    assert "nothing" not in text
