"""What a soft tree is fitted to: forms of the table, weights, late entry, intervals."""

from __future__ import annotations

import lifelines
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose

from softsurv import SoftSurvivalTree, SurvivalData
from softsurv.errors import DataWarning, EvaluationWarning, InvalidSurvivalDataError
from softsurv.metrics import harrell_c

SINGLE = {"depth": 0, "l2": 0.5, "device": "cpu"}
TIMES = np.array([0.0, 0.3, 2.0, 8.0, 30.0])


def test_every_form_of_the_data_gives_one_tree(rows, tmp_path):
    X, y = rows
    table = X.assign(t=y["time"], e=y["event"])
    table.to_parquet(tmp_path / "rows.parquet")
    expected = SoftSurvivalTree(**SINGLE).fit(X, y).predict(X)

    def risk(*data, **columns):
        return SoftSurvivalTree(**SINGLE).fit(*data, **columns).predict(X)

    assert np.array_equal(risk(X, (y["event"], y["time"])), expected)
    assert np.array_equal(risk(SurvivalData(X, y["time"], y["event"])), expected)
    assert np.array_equal(risk(table, time="t", event="e"), expected)
    assert np.array_equal(risk(str(tmp_path / "rows.parquet"), time="t", event="e"), expected)
    assert np.array_equal(risk(pl.from_pandas(X), y), expected)
    assert np.array_equal(risk(X.to_dict("list"), y), expected)


def test_predictions_take_survival_data_and_polars(trees, rows):
    X, y = rows
    expected = trees().predict(X)
    assert np.array_equal(trees().predict(SurvivalData(X, y["time"], y["event"])), expected)
    assert np.array_equal(trees().predict(pl.from_pandas(X)), expected)


def test_an_unseen_level_is_said(trees, rows):
    with pytest.warns(DataWarning, match=r"column 'side' has 1 level\(s\) not seen in training"):
        trees().predict(rows[0].assign(side="middle"))


def test_without_preprocessing_features_stay_as_they_are(rows):
    x = rows[0][["x"]].to_numpy()
    tree = SoftSurvivalTree(**SINGLE, preprocess=False).fit(x, rows[1])
    assert tree.preprocessor_ is None
    assert tree.encoded_names_ == ["x0"]
    with pytest.raises(InvalidSurvivalDataError, match="X must have 1 features as in training, got 2"):
        tree.predict(np.hstack([x, x]))
    with pytest.raises(InvalidSurvivalDataError, match="X must be numeric"):
        SoftSurvivalTree(**SINGLE, preprocess=False).fit(rows[0][["side"]], rows[1])


def test_a_weight_counts_as_copies_of_a_row(rows):
    X, y = rows
    copies = np.random.default_rng(0).integers(1, 4, len(X))
    index = np.repeat(np.arange(len(X)), copies)
    X = X.drop(columns="noise")  # its mean, imputed, is unweighted
    # the ridge is divided by the number of rows, weights are scaled to a mean of one
    weighted = SoftSurvivalTree(depth=0, l2=0.0, device="cpu").fit(X, y, sample_weight=copies)
    repeated = SoftSurvivalTree(depth=0, l2=0.0, device="cpu").fit(X.iloc[index], y[index])
    assert_allclose(
        weighted.predict_survival_function(X, TIMES), repeated.predict_survival_function(X, TIMES), atol=1e-6
    )


def test_late_entry_raises_the_early_hazard(rows):
    """Rows that enter late were not at risk before: ignoring that makes early survival too good."""
    X, y = rows
    plain = SoftSurvivalTree(**SINGLE).fit(X, y)
    late = SoftSurvivalTree(**SINGLE).fit(X, y, entry=0.9 * y["time"])
    assert late.predict_survival_function(X, [1.0]).mean() < plain.predict_survival_function(X, [1.0]).mean()


def test_intervals_speak_where_exact_times_are_unknown(rows):
    X, y = rows
    exact = SoftSurvivalTree(**SINGLE).fit(X, y)
    narrow = np.where(y["event"], y["time"] * 1.001, np.inf)
    events = np.zeros(len(y), dtype=bool)
    events[:1] = y["event"][:1] = True
    narrow[0] = np.inf
    tree = SoftSurvivalTree(**SINGLE).fit(X, (events, y["time"]), upper=narrow)
    assert_allclose(tree.predict_survival_function(X, TIMES), exact.predict_survival_function(X, TIMES), atol=0.02)


def test_units_that_failed_before_the_first_visit_after_their_entry_count():
    """Without them the early hazard of inspected units that enter late is too small."""
    rng = np.random.default_rng(0)
    life, entry = 6.0 * rng.weibull(1.3, 3000), rng.integers(0, 4, 3000).astype(float)
    life, entry = life[life > entry], entry[life > entry]
    visit = np.minimum(np.floor(life), 10.0)
    upper = np.where(life < 10, visit + 1, np.inf)
    X = pd.DataFrame({"noise": rng.normal(size=len(life))})
    none = np.zeros(len(life), dtype=bool)
    tree = SoftSurvivalTree(**SINGLE | {"leaf": "weibull"}).fit(X, (none, visit), upper=upper, entry=entry)
    assert ((visit == entry) & (entry > 0)).sum() > 100
    assert_allclose(np.median(tree.predict_quantile(X, 0.1)), 6.0 * (-np.log(0.9)) ** (1 / 1.3), rtol=0.1)


def test_the_likelihood_is_the_one_trained_on(rows):
    """Without penalties: minus the objective per row, less the constants that training leaves out (eq. 2)."""
    X, y = rows
    rng = np.random.default_rng(3)
    entry = np.where(rng.random(len(X)) < 0.5, 0.0, 0.8 * y["time"])
    interval = ~y["event"] & (rng.random(len(X)) < 0.6)
    upper = np.where(interval, y["time"] + 3, np.inf)
    weight = rng.uniform(0.5, 2.0, len(X))
    known = {"entry": entry, "upper": upper, "sample_weight": weight}
    tree = SoftSurvivalTree(depth=0, l2=0.0, device="cpu").fit(X, y, **known)
    constants = y["event"] * (np.log(y["time"]) + float(tree.tree_.time_scale[0, 1].log()))
    trained = -(weight * constants).sum() - weight.sum() * tree.report_.objective
    assert tree.log_likelihood(X, y, **known).sum() == pytest.approx(trained, rel=1e-9)
    data = SurvivalData(X, y["time"], y["event"], entry=entry, upper=upper, weight=weight)
    assert_allclose(tree.log_likelihood(data), tree.log_likelihood(X, y, **known))
    survival, late, at_upper = (
        np.diag(tree.predict_survival_function(X, t)) for t in (y["time"], entry, np.where(interval, upper, 1.0))
    )
    hazard = np.diag(tree.predict_hazard_function(X, y["time"]))
    expected = np.where(
        y["event"], np.log(hazard * survival), np.log(np.where(interval, survival - at_upper, survival))
    )
    assert_allclose(tree.log_likelihood(data), weight * (expected - np.log(late)), atol=1e-9)


def test_the_likelihood_is_that_of_lifelines(rows):
    X, y = rows[0][["x"]], rows[1]
    entry = np.where(np.arange(len(X)) % 2, 0.0, 0.7 * y["time"])
    tree = SoftSurvivalTree(depth=0, leaf="weibull", l2=0.0, device="cpu").fit(X, y, entry=entry)
    table = X.assign(time=y["time"], event=y["event"], entry=entry)
    theirs = lifelines.WeibullAFTFitter().fit(table, "time", "event", entry_col="entry")
    assert tree.log_likelihood(X, y, entry=entry).sum() == pytest.approx(theirs.log_likelihood_, rel=1e-6)
    lower = np.floor(y["time"] / 4) * 4
    upper = np.where(y["event"], lower + 4, np.inf)
    tree = SoftSurvivalTree(depth=0, leaf="weibull", l2=0.0, device="cpu")
    lower[~y["event"]] = np.maximum(lower[~y["event"]], 4.0)  # no right-censoring at 0, where lifelines has no floor
    tree.fit(X, (np.zeros(len(X), bool), lower), upper=upper)
    table = X.assign(lower=lower, upper=upper)
    theirs = lifelines.WeibullAFTFitter().fit_interval_censoring(table, "lower", "upper")
    found = tree.log_likelihood(X, (np.zeros(len(X), bool), lower), upper=upper).sum()
    assert found == pytest.approx(theirs.log_likelihood_, rel=1e-6)


def test_scores_compare_rows_under_observation_together(rows):
    X, y = rows
    tree, entry = SoftSurvivalTree(**SINGLE).fit(X, y), 0.9 * y["time"]
    data = SurvivalData(X, y["time"], y["event"], entry=entry)
    expected = harrell_c(y["time"], y["event"], tree.predict(X), entry=entry)
    assert expected != tree.score(X, y)
    assert tree.score(X, y, entry=entry) == tree.score(data) == pytest.approx(expected)
    result = tree.evaluate(data)
    assert tree.evaluate(X, y, entry=entry) == result
    assert result["harrell_c"] == tree.score(data)
    weight = np.arange(1.0, 121.0)
    assert tree.score(X, y, sample_weight=weight) == tree.evaluate(X, y, sample_weight=weight)["harrell_c"]
    for measure in (tree.score, tree.evaluate):
        assert measure(SurvivalData(X, y["time"], y["event"], weight=np.arange(1.0, 121.0))) != measure(X, y)
        with pytest.warns(EvaluationWarning, match="lie in an interval"):
            measure(SurvivalData(X, y["time"], y["event"], upper=np.where(y["event"], np.inf, 99.0)))


@pytest.mark.parametrize("given", [{}, {"depth": 1}, {"depth": 1, "l2": 1.0, "shrinkage": 3.0, "routing_l2": 1.0}])
def test_rows_of_no_weight_change_nothing(rows, given):
    """Not the folds, not the knots, not the splits that the features suggest."""
    X, y = rows
    weight = np.random.default_rng(0).uniform(0.5, 2, 120) * (np.arange(120) % 3 > 0)
    y = y.copy()
    y["time"][weight == 0] *= 40
    kept = weight > 0
    settings = {"leaf": "spline_ph", "n_restarts": 2} | given
    with_them = SoftSurvivalTree(**settings).fit(X, y, sample_weight=weight)
    without = SoftSurvivalTree(**settings).fit(X[kept], y[kept], sample_weight=weight[kept])
    assert np.array_equal(with_them.unique_times_, without.unique_times_)
    assert with_them.horizon_ == without.horizon_
    assert_allclose(with_them.predict_survival_function(X), without.predict_survival_function(X), atol=1e-12)
    assert list(with_them.feature_names_in_) == list(X.columns)


def test_weights_of_zero_alone_are_refused(rows):
    weight = np.where(rows[1]["event"], 0.0, 1.0)
    with pytest.raises(InvalidSurvivalDataError, match="event must be True"):
        SoftSurvivalTree(**SINGLE).fit(*rows, sample_weight=weight)


@pytest.mark.parametrize("preprocess", [True, False])
def test_columns_named_by_numbers_are_found_again(preprocess):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)))
    y = (np.arange(60) % 3 > 0, np.random.default_rng(1).exponential(size=60))
    tree = SoftSurvivalTree(**SINGLE, preprocess=preprocess).fit(table, y)
    np.testing.assert_array_equal(tree.predict(table[[2, 0, 1]].assign(more=np.inf)), tree.predict(table))
