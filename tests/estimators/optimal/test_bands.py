"""Limits of an optimal tree's curves: what they mean, where there are none, and that they are kept with a model."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from lifelines import KaplanMeierFitter
from numpy.testing import assert_allclose, assert_array_equal

from softsurv import OptimalFairSurvivalTree, OptimalSurvivalTree, load_model
from softsurv.errors import InvalidParameterError
from softsurv.files import replace_file, seal, unseal
from softsurv.nonparametric import StepFunction, quantile, survival_interval
from softsurv.persistence import MAX_BYTES, MODEL

OWN = {"leaf": "km", "shrinkage": 0.0}

REPEATS, LEAST, MOST = 200, 0.90, 0.985
"""Simulated samples. The share of 200 that limits of 95 % hold is within these in all but one of a thousand cases."""


def fitted(rows, **how):
    return OptimalSurvivalTree(**{"max_depth": 2, "min_samples_leaf": 10} | how).fit(*rows)


def two_groups(n, rng):
    """Two groups that every search parts: events in one come three times as early."""
    group = np.arange(n) % 2
    died, censored = np.where(group == 1, 2.0, 8.0) * rng.weibull(1.2, n), rng.exponential(12.0, n)
    return pd.DataFrame({"group": group}), (died <= censored, np.minimum(died, censored))


@pytest.mark.parametrize("objective", ["relative_risk", "ibs"])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_kaplan_meier_leaves_have_the_limits_of_lifelines(rows, objective, level):
    X, y = rows
    tree = fitted(rows, objective=objective, **OWN)
    lower, upper = tree.predict_survival_interval(X, level=level)
    leaf, times = tree.apply(X), tree.unique_times_
    assert tree.tree_.n_leaves > 1
    for k in range(tree.tree_.n_leaves):
        here, first = leaf == k, int(np.argmax(leaf == k))
        kmf = KaplanMeierFitter(alpha=1 - level).fit(y["time"][here], y["event"][here], timeline=times)
        alive = kmf.survival_function_.to_numpy()[:, 0] > 0  # lifelines has no limits where nobody is
        known = kmf.confidence_interval_.to_numpy()[alive]
        assert_allclose(np.stack([lower[first], upper[first]], 1)[alive], known, rtol=0, atol=1e-8)
        assert_allclose(lower[first][~alive], 0.0)
        assert_allclose(upper[first][~alive], known[-1, 1])


def test_limits_of_a_leaf_hold_the_true_curve_as_often_as_they_say():
    times, ask = np.array([1.0, 2.0, 4.0]), pd.DataFrame({"group": [0, 1]})
    truth = np.exp(-((times / np.array([[8.0], [2.0]])) ** 1.2))
    held = np.zeros(truth.shape)
    for seed in range(REPEATS):
        X, y = two_groups(200, np.random.default_rng(seed))
        tree = OptimalSurvivalTree(max_depth=1, **OWN, min_samples_leaf=20).fit(X, y)
        lower, upper = tree.predict_survival_interval(ask, times)
        held += (lower <= truth) & (truth <= upper)
    assert (held / REPEATS >= LEAST).all(), held / REPEATS
    assert (held / REPEATS <= MOST).all(), held / REPEATS


@pytest.mark.parametrize("entering", [False, True])
def test_limits_fall_with_time_around_the_predicted_curve(rows, entering):
    X, y = rows
    entry = np.where(X["x"] > 0, 0.3 * y["time"], 0.0) if entering else None
    tree = OptimalSurvivalTree(max_depth=2, **OWN).fit(X, y, entry=entry)
    survival = tree.predict_survival_function(X)
    for level in (0.01, 0.95, 0.999):
        lower, upper = tree.predict_survival_interval(X, level=level)
        assert (lower <= survival).all()
        assert (survival <= upper).all()
        assert (np.diff(lower) <= 0).all()
        assert (np.diff(upper) <= 0).all()


def test_a_single_leaf_borrows_nothing(rows):
    tree = OptimalSurvivalTree(max_depth=0, leaf="km", shrinkage=10.0).fit(*rows)
    lower, upper = survival_interval(rows[1]["time"], rows[1]["event"])
    times = tree.unique_times_[tree.unique_times_ < rows[1]["time"].max()]
    found = tree.predict_survival_interval(rows[0].head(1), times)
    assert_allclose(found, [[lower(times)], [upper(times)]], rtol=0, atol=1e-12)


def test_weights_count_rows(rows):
    X, y = rows
    twice = np.repeat(np.arange(len(y)), 2)
    how = OWN | {"max_depth": 1, "thresholds": [0.0], "min_samples_leaf": 1}
    weighted = OptimalSurvivalTree(**how).fit(X[["x"]], y, sample_weight=np.full(len(y), 2.0))
    repeated = OptimalSurvivalTree(**how).fit(X[["x"]].iloc[twice], y[twice])
    bands = [tree.predict_survival_interval(X[["x"]]) for tree in (weighted, repeated)]
    assert_allclose(*bands, rtol=1e-9)


def test_limits_widen_with_the_level_and_start_at_one(rows):
    tree, times = fitted(rows, **OWN), [0.0, 2.0, 5.0]
    narrow, wide = (tree.predict_survival_interval(rows[0], times, level=level) for level in (0.5, 0.99))
    assert_array_equal(np.array([narrow, wide])[:, :, :, 0], 1.0)
    survival = tree.predict_survival_function(rows[0], times)
    begun = (survival > 0) & (survival < 1)  # both limits are 1 before a leaf's first event
    assert begun.any()
    assert (wide[0] < narrow[0])[begun].all()
    assert (narrow[1] < wide[1])[begun].all()


def test_saved_and_pickled_models_have_the_same_limits(rows, tmp_path):
    X, tree = rows[0], fitted(rows, **OWN)
    tree.save(tmp_path)
    copies = [load_model(tmp_path), pickle.loads(pickle.dumps(tree))]
    copies[0].save(tmp_path / "again")
    for copy in (*copies, load_model(tmp_path / "again")):
        assert_array_equal(copy.predict_survival_interval(X), tree.predict_survival_interval(X))


def test_a_model_of_an_earlier_version_says_what_it_lacks(rows, tmp_path):
    fitted(rows, **OWN).save(tmp_path)
    arrays, note = unseal(tmp_path / MODEL, MAX_BYTES)
    replace_file(tmp_path / MODEL, seal({k: v for k, v in arrays.items() if "variance" not in k}, note))
    old = load_model(tmp_path)
    assert old.predict_survival_function(rows[0]).shape[0] == len(rows[0])
    with pytest.raises(InvalidParameterError, match=r"saved by a version that kept no variances.*fit the tree again"):
        old.predict_survival_interval(rows[0])


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"shrinkage": 0.0},
        {"leaf": "nelson_aalen", "shrinkage": 0.0},
        {"leaf": "km"},
        {"objective": "ibs"},
        {"objective": "ibs", "leaf": "ipcw", "shrinkage": 0.0},
    ],
    ids=str,
)
def test_curves_that_borrow_have_no_limits(rows, how):
    tree = fitted(rows, **how)
    with pytest.raises(InvalidParameterError) as refused:
        tree.predict_survival_interval(rows[0])
    said = str(refused.value)
    assert 'OptimalSurvivalTree(leaf="km", shrinkage=0)' in said
    assert f"leaf={tree.leaf_!r}, shrinkage={tree.shrinkage_:g}: a curve that borrows" in said
    assert "leaf_summary(data) gives the observed median of each leaf with its interval" in said


def test_what_the_refusal_names_gives_limits_and_observed_intervals(rows):
    X, y = rows
    tree = OptimalSurvivalTree(leaf="km", shrinkage=0).fit(X, y)
    assert tree.predict_survival_interval(X)[0].shape == (len(y), len(tree.unique_times_))
    assert tree.leaf_summary((X, y))[["median_lower", "median_upper"]].notna().any(axis=None)


def test_what_else_has_no_limits_says_so(rows):
    X, y = rows
    for level in (0, 1, 95, "0.95"):
        with pytest.raises(InvalidParameterError, match="level must be between 0 and 1, got"):
            fitted(rows, **OWN).predict_survival_interval(X, level=level)
    fair = OptimalFairSurvivalTree(max_depth=1, horizon=5.0, tolerance=1.0).fit(X, y, group=X["side"] == "left")
    with pytest.raises(InvalidParameterError, match="leaf='nelson_aalen'"):
        fair.predict_survival_interval(X)
    cause = np.where(y["event"], 1 + (X["x"] > 0), 0)
    tree = OptimalSurvivalTree(max_depth=1).fit(X, time=y["time"], cause=cause)
    with pytest.raises(InvalidParameterError, match=r"fitted to several; fit a tree to data\.of_cause"):
        tree.predict_survival_interval(X)
    subject = np.arange(len(y)) // 2
    start = np.where(np.arange(len(y)) % 2 == 0, 0.0, np.roll(y["time"], 1))
    often = OptimalSurvivalTree(max_depth=1).fit(
        X, start=start, stop=start + y["time"], event=y["event"], id=subject, recurrent=True
    )
    with pytest.raises(InvalidParameterError, match="recurrent events; leave out what follows a subject's first"):
        often.predict_survival_interval(X)


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_quantiles_have_the_limits_at_which_those_of_the_curve_cross_their_level(rows, probability):
    X, y = rows
    tree = fitted(rows, **OWN)
    found, leaf = tree.predict_quantile_interval(X, probability), tree.apply(X)
    for k in range(tree.tree_.n_leaves):
        here = leaf == k
        curves = survival_interval(y["time"][here], y["event"][here])
        for end, curve in zip(found, curves, strict=True):
            known = curve.values[~np.isnan(curve.values)]
            expected = quantile(StepFunction(curve.times[: len(known)], known, 1.0), probability)
            assert (end[here] == expected).all()
    time = tree.predict_quantile(X, probability)
    assert (found[0] <= time).all()
    assert (time <= found[1]).all()
    assert np.isfinite(found[0]).any()


def test_quantile_limits_are_refused_like_those_of_curves(rows):
    X, _ = rows
    with pytest.raises(InvalidParameterError, match="borrows from other rows"):
        fitted(rows).predict_quantile_interval(X)
    with pytest.raises(InvalidParameterError, match="probability must be between 0 and 1, got 10"):
        fitted(rows, **OWN).predict_quantile_interval(X, 10)
