"""Conformal lower bounds of fitted trees: coverage, what is refused, what is saved."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, load_model
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError

LEAF_COVERAGE = 0.9


def simulate(n, rng):
    """Times of shape 1.5, of two kinds of rows; features and true, censoring times."""
    X = pd.DataFrame({"x": rng.random(n), "z": rng.normal(size=n)})
    time = rng.weibull(1.5, n) * np.where(X["x"] > 0.5, 2.0, 8.0) * np.exp(0.4 * X["z"])
    return X, time, rng.exponential(10.0, n)


def seen(time, censored):
    return time <= censored, np.minimum(time, censored)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X, *times = simulate(300, rng)
    soft = SoftSurvivalTree(depth=1, leaf="weibull", max_terms=1, l2=1.0, shrinkage=1.0)
    return [OptimalSurvivalTree(max_depth=1).fit(X, seen(*times)), soft.fit(X, seen(*times))]


def test_bounds_hold_in_each_leaf_though_the_model_is_wrong():
    """Trees fitted to 40 rows; 30 calibrations of 300 rows, fresh rows to judge."""
    held, naive = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, *times = simulate(40, rng)
        tree = OptimalSurvivalTree(max_depth=1, min_samples_leaf=10).fit(X, seen(*times))
        X, *times = simulate(300, rng)
        tree.calibrate(X, seen(*times), coverage=LEAF_COVERAGE)
        X, time, _ = simulate(2000, rng)
        survives = time >= tree.predict_lower_bound(X)
        leaf = tree.apply(X)
        held.append([survives[leaf == k].mean() for k in range(2)])
        naive.append((time >= tree.predict_quantile(X, 0.1)).mean())
    assert_allclose(np.mean(held, axis=0), LEAF_COVERAGE, atol=0.025)
    # by itself such a tree promises too much in one sample and too little in the next
    assert np.std(naive) > 2 * np.std(np.mean(held, axis=1))


def test_without_censoring_a_leaf_of_a_step_tree_has_its_order_statistic(fitted):
    tree = fitted[0]
    rng = np.random.default_rng(5)
    X, time, _ = simulate(400, rng)
    tree.calibrate(X, (np.ones(400, dtype=bool), time), coverage=[0.8, 0.9])
    leaf = tree.apply(X)
    for share in (0.8, 0.9):
        bound = tree.predict_lower_bound(X, share)
        for k in range(2):
            own = np.sort(time[leaf == k])
            allowed = int((1 - share) * (len(own) + 1))
            assert (own < bound[leaf == k][0]).sum() < allowed
    assert (tree.predict_lower_bound(X, 0.8) >= tree.predict_lower_bound(X, 0.9)).all()


def test_soft_trees_bound_each_row_by_its_own_curve(fitted):
    tree = fitted[1]
    X, *times = simulate(300, np.random.default_rng(6))
    bound = tree.calibrate(X, seen(*times)).predict_lower_bound(X)
    level = tree.calibration_["level"].to_numpy()[tree.apply(X)]
    cutoff = tree.calibration_["cutoff"].to_numpy()[tree.apply(X)]
    inside = bound < cutoff
    assert inside.mean() > 0.9
    survival = np.array([tree.predict_survival_function(X[k : k + 1], [bound[k]])[0, 0] for k in range(30)])
    assert_allclose(1 - survival[inside[:30]], level[:30][inside[:30]], atol=1e-6)


def test_rows_that_nobody_follows_to_the_end_have_bounds_that_hold():
    """All are censored by 6, before the first cut-off: bounds were 0 in every leaf, at a coverage of 0.8 above all."""
    held = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        (X, time, _), end = simulate(150, rng), rng.uniform(0, 6, 150)
        time *= np.exp(X["z"])
        if seed == 0:
            how = {"depth": 1, "leaf": "weibull", "max_terms": 1, "l2": 0.1, "shrinkage": 1.0}
            tree = SoftSurvivalTree(**how).fit(X, seen(time, end))
        else:
            tree.calibrate(X, seen(time, end), coverage=0.8)
            X, time, _ = simulate(1000, rng)
            bound = tree.predict_lower_bound(X, 0.8)
            assert (bound > 0).all()
            held.append((time * np.exp(X["z"]) >= bound).mean())
    assert 0.8 < np.mean(held) < 0.95


def test_bounds_hold_where_a_study_ends_at_one_time_for_all():
    """The cut-off is the end of the study: those who fail before it count as those who are free of the event then."""
    held = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        time, censored = rng.exponential(370.0, 3600), np.minimum(rng.uniform(0.0, 240.0, 3600), 60.0)
        X, (event, last) = pd.DataFrame({"x": rng.integers(0, 2, 3600).astype(float)}), seen(time, censored)
        tree = OptimalSurvivalTree(max_depth=0).fit(X[:600], (event[:600], last[:600]))
        tree.calibrate(X[600:1200], (event[600:1200], last[600:1200]), coverage=LEAF_COVERAGE)
        held.append((time[1200:] >= tree.predict_lower_bound(X[1200:])).mean())
    assert_allclose(np.mean(held), LEAF_COVERAGE, atol=0.01)


def test_cross_conformal_uses_the_training_rows():
    X, *times = simulate(250, np.random.default_rng(7))
    tree = OptimalSurvivalTree(max_depth=1).fit(X, seen(*times))
    tree.calibrate(X, seen(*times), n_folds=5)
    X, time, _ = simulate(4000, np.random.default_rng(8))
    assert 0.85 < (time >= tree.predict_lower_bound(X)).mean() < 0.96


def test_a_saved_tree_keeps_its_bounds_and_a_new_fit_loses_them(fitted, tmp_path):
    X, *times = simulate(200, np.random.default_rng(9))
    tree = fitted[1].calibrate(X, seen(*times))
    tree.save(tmp_path / "model")
    assert_allclose(load_model(tmp_path / "model").predict_lower_bound(X), tree.predict_lower_bound(X))
    with pytest.raises(InvalidParameterError, match="the tree is not calibrated; call calibrate"):
        OptimalSurvivalTree(max_depth=1).fit(X, seen(*times)).predict_lower_bound(X)
    with pytest.raises(InvalidParameterError, match=r"coverage is 0.5 and the tree was calibrated for 0.9"):
        tree.predict_lower_bound(X, 0.5)


def halves(event, time):
    """Each subject's time in two rows."""
    rows = {"start": np.concatenate([0 * time, time / 2]), "stop": np.concatenate([time / 2, time])}
    return rows | {"event": np.concatenate([0 * event, event]), "id": np.tile(np.arange(len(time)), 2)}


def test_subjects_with_several_rows_are_refused_by_what_they_are(fitted):
    X, *times = simulate(200, np.random.default_rng(10))
    rows = halves(*seen(*times))
    with pytest.raises(InvalidSurvivalDataError, match="needs one row for each subject, got 200 subjects in 400 rows"):
        fitted[0].calibrate(pd.concat([X, X + 1.0], ignore_index=True), **rows)
    with pytest.raises(InvalidSurvivalDataError, match="start after 0 must be left out of calibration"):
        fitted[0].calibrate(X, **{name: column[200:] for name, column in rows.items()})


def test_stretches_that_only_cut_a_row_calibrate_as_the_row(fitted):
    X, *times = simulate(200, np.random.default_rng(10))
    whole = fitted[0].calibrate(X, seen(*times)).calibration_
    cut = fitted[0].calibrate(pd.concat([X, X], ignore_index=True), **halves(*seen(*times))).calibration_
    pd.testing.assert_frame_equal(cut, whole)


def test_what_the_promise_does_not_cover_is_refused(fitted):
    X, *times = simulate(200, np.random.default_rng(10))
    tree = fitted[0]
    for name, column in {"entry": np.full(200, 1e-9), "weight": np.arange(1.0, 201.0)}.items():
        with pytest.raises(InvalidSurvivalDataError, match=f"{name} must be left out of calibration"):
            tree.calibrate(X, seen(*times), **{name: column})
    with pytest.raises(InvalidParameterError, match="coverage must be between 0 and 1, got 90"):
        tree.calibrate(X, seen(*times), coverage=90)
    with pytest.raises(InvalidParameterError, match="n_folds must be an integer >= 2, got 1"):
        tree.calibrate(X, seen(*times), n_folds=1)
    with pytest.warns(DataWarning, match=r"too few followed rows for a bound above 0 in leaf 0"):
        tree.calibrate(X[:8], (seen(*times)[0][:8], seen(*times)[1][:8]))
