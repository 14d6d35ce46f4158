"""Numbers behind the pictures against plain loops and the estimator's own predictions."""

import numpy as np
import pandas as pd
import pytest

from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, InvalidTimesError
from softsurv.explore.curves import (
    MAX_STEPS,
    curves_by_leaf,
    default_times,
    distinguishing,
    leaf_summary,
    prediction_frame,
    steps,
    survival_frame,
)
from softsurv.explore.view import tree_view
from softsurv.nonparametric import StepFunction, kaplan_meier, median, restricted_mean


def test_summary_of_the_training_rows_is_what_the_tree_remembers(gbsg2):
    remembered, computed = leaf_summary(gbsg2.tree), leaf_summary(gbsg2.tree, gbsg2.train)
    pd.testing.assert_frame_equal(remembered, computed)


def test_summary_of_new_rows_matches_a_plain_loop(gbsg2):
    table = leaf_summary(gbsg2.tree, gbsg2.test, horizon=1500)
    leaf = gbsg2.tree.apply(gbsg2.test)
    for k in np.unique(leaf):
        part = gbsg2.test.take(leaf == k)
        curve = kaplan_meier(part.time.numpy(), part.event.numpy())
        row = table.loc[k]
        assert (row["n"], row["events"]) == (part.n, part.n_events)
        assert row["median"] == median(curve)
        assert row["restricted_mean"] == pytest.approx(restricted_mean(curve, 1500))
        assert row["median_lower"] <= row["median"] <= row["median_upper"]
        assert row["top_features"]


def test_summary_names_empty_leaves(lopsided):
    table = leaf_summary(lopsided.tree)
    empty = table[table["n"] == 0]
    assert len(empty) > 0
    assert empty[["median", "restricted_mean"]].isna().all(axis=None)


def test_curves_are_thinned_by_risk_and_keep_their_ends(gbsg2):
    times = default_times(gbsg2.tree)
    whole = curves_by_leaf(gbsg2.tree, gbsg2.test, times, max_curves=10_000)
    thinned = curves_by_leaf(gbsg2.tree, gbsg2.test, times, max_curves=5)
    assert sum(one.rows.size for one in thinned) == gbsg2.test.n
    for full, few in zip(whole, thinned, strict=True):
        assert len(few.values) == min(5, full.rows.size)
        if full.rows.size:
            np.testing.assert_allclose(few.values[[0, -1]], full.values[[0, -1]], rtol=1e-12)
            rows = gbsg2.test.X.iloc[full.rows]
            np.testing.assert_allclose(
                full.mean, gbsg2.tree.predict_survival_function(rows, times=times).mean(0), atol=1e-12
            )


def test_the_mean_counts_weights_as_the_observed_curve_does(stump):
    data, times = stump.data, np.array([100.0, 400.0, 900.0])
    weight = 1.0 + 9.0 * (data.X["grade"] == "III").to_numpy()
    weighed = SurvivalData(data.X, data.time, data.event, weight=weight)
    (one,) = curves_by_leaf(stump.tree, weighed, times)
    curves = stump.tree.predict_survival_function(data.X, times=times)
    np.testing.assert_allclose(one.mean, weight @ curves / weight.sum())
    assert np.abs(one.mean - curves.mean(0)).max() > 0.01


def test_survival_frame_keeps_index_and_times(gbsg2):
    X = gbsg2.test.X.iloc[:4].set_axis(list("abcd"))
    frame = survival_frame(gbsg2.tree, X, [365, 730])
    assert list(frame.index) == list("abcd")
    assert list(frame.columns) == [365, 730]
    np.testing.assert_array_equal(frame, gbsg2.tree.predict_survival_function(X, times=[365, 730]))
    after = survival_frame(gbsg2.tree, X, [730], after=365)
    np.testing.assert_allclose(after[730], frame[730] / frame[365], rtol=1e-9)
    ages = survival_frame(gbsg2.tree, X, [730], after=[365, 0, 730, 365])
    np.testing.assert_allclose(ages[730], after[730].where([True, False, False, True], [0, frame[730].iloc[1], 1, 0]))


def test_prediction_frame_holds_what_the_estimator_says(gbsg2):
    X = gbsg2.test.X.iloc[:5]
    frame = prediction_frame(gbsg2.tree, X, times=[365], horizon=1000, quantiles=[0.5, 0.9])
    np.testing.assert_array_equal(frame["q(0.5)"], frame["median"])
    np.testing.assert_array_equal(frame["q(0.9)"], gbsg2.tree.predict_quantile(X, 0.9))
    np.testing.assert_array_equal(frame["median"], gbsg2.tree.predict_median(X))
    np.testing.assert_array_equal(frame["expectation"], gbsg2.tree.predict_expectation(X, 1000))
    assert (frame["first_quartile"] <= frame["median"]).all()
    assert list(frame.columns)[-1] == "S(365)"


def test_what_sets_rows_apart_is_the_standardised_difference(mixed):
    view, rows = tree_view(mixed.tree), np.flatnonzero(mixed.tree.apply(mixed.data) == mixed.tree.apply(mixed.data)[0])
    table = distinguishing(view, view.encode(mixed.data.X), rows)
    age = mixed.data.X["age"]
    here, others = age.iloc[rows], age.drop(age.index[rows])
    row = table.loc["age"]
    assert (row["here"], row["elsewhere"]) == (pytest.approx(here.mean()), pytest.approx(others.mean()))
    assert row["difference"] == pytest.approx((here.mean() - others.mean()) / age.std(ddof=0))
    share = (mixed.data.X["grade"].iloc[rows] == "III").mean()
    assert table.loc["grade=III", "here"] == pytest.approx(share)
    assert distinguishing(view, view.encode(mixed.data.X), np.arange(mixed.data.n)).empty


def test_steps_begin_at_zero_and_stay_drawable():
    at, values = steps(StepFunction(np.arange(1.0, 5001), np.linspace(1, 0, 5000), 1.0), 9999.0)
    assert (at[0], values[0], at[-1]) == (0.0, 1.0, 5000.0)
    assert at.size <= MAX_STEPS + 2


def test_horizon_must_be_a_time(gbsg2):
    with pytest.raises(InvalidTimesError, match="horizon must be a finite time > 0, got -1"):
        default_times(gbsg2.tree, horizon=-1)


def test_close_times_have_columns_of_their_own(gbsg2):
    frame = prediction_frame(gbsg2.tree, gbsg2.test.X, times=[700, 700.0001, 365], quantiles=[0.5, 0.5000001])
    assert frame.columns[-5:].tolist() == ["q(0.5)", "q(0.5000001)", "S(700)", "S(700.0001)", "S(365)"]
    expected = gbsg2.tree.predict_survival_function(gbsg2.test.X, times=[700, 700.0001, 365])
    np.testing.assert_array_equal(frame.iloc[:, -3:], expected)


@pytest.mark.parametrize("give", [survival_frame, prediction_frame])
def test_times_that_are_no_numbers_are_told(gbsg2, give):
    with pytest.raises(InvalidParameterError, match=r"times must be numbers, got \['a'\]"):
        give(gbsg2.tree, gbsg2.test.X, times=["a"])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"horizon": "far"}, "horizon must be a finite time > 0, got 'far'"),
        ({"n_features": -1}, "n_features must be an integer >= 0, got -1"),
        ({"n_features": 1.5}, "n_features must be an integer >= 0, got 1.5"),
    ],
)
def test_wrong_arguments_of_a_summary_are_told(gbsg2, wrong, sentence):
    with pytest.raises((InvalidParameterError, InvalidTimesError), match=sentence):
        leaf_summary(gbsg2.tree, **wrong)
