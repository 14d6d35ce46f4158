"""The summary of a soft tree: against lifelines' parametric regressions, by simulated coverage, and as text."""

import lifelines
import numpy as np
import pandas as pd
import pytest

from softsurv import SoftSurvivalTree, load_dataset, load_model
from softsurv.errors import InvalidParameterError
from softsurv.estimators.soft.summary import late_words, surest


def weibull_rows(n, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.normal(60, 10, n).round(1), "side": rng.choice(["left", "right"], n)})
    time = 500 * rng.weibull(1.5, n) * np.exp(-0.03 * (X["age"] - 60) - 0.6 * (X["side"] == "right"))
    censored = rng.exponential(900, n)
    return X, np.minimum(time, censored).to_numpy() + 1e-3, (time <= censored).to_numpy()


def fitted(X, time, event, family="weibull", **settings):
    return SoftSurvivalTree(**({"depth": 0, "leaf": family, "l2": 0.0} | settings)).fit(X, (event, time))


REFERENCES = {
    "weibull": (lifelines.WeibullAFTFitter, "lambda_"),
    "loglogistic": (lifelines.LogLogisticAFTFitter, "alpha_"),
    "lognormal": (lifelines.LogNormalAFTFitter, "mu_"),
}


@pytest.mark.parametrize("family", REFERENCES)
def test_one_unpenalised_leaf_is_lifelines_regression(family):
    X, time, event = weibull_rows(300, 1)
    theirs = X.assign(side=(X["side"] == "right").astype(float), time=time, event=event)
    fitter, name = REFERENCES[family]
    reference = fitter().fit(theirs, "time", "event")
    found = fitted(X, time, event, family).summary(per="unit", measure="time").effects.reset_index("leaf")
    for feature, contrast in (("age", "+1"), ("side", "right vs left")):
        row = found.loc[(feature, contrast)]
        assert row["coefficient"] == pytest.approx(reference.params_[name, feature], rel=1e-3)
        assert row["standard_error"] == pytest.approx(reference.standard_errors_[name, feature], rel=2e-3)
        expected = reference.confidence_intervals_.loc[(name, feature)].to_numpy()
        np.testing.assert_allclose(np.log([row["lower"], row["upper"]]), expected, rtol=5e-3, atol=1e-4)


def test_effects_of_whole_numbers_are_those_of_one_more():
    X, time, event = weibull_rows(300, 1)
    X = X.assign(grade=np.random.default_rng(0).integers(0, 3, 300), dose=X["age"] / 100)
    found = fitted(X, time, event, l2=0.1).summary().effects.reset_index(["leaf", "contrast"])["contrast"]
    assert found["grade"] == "+1"
    assert found["dose"] == "+0.01"


def test_median_of_the_typical_row_is_lifelines():
    X, time, event = weibull_rows(300, 1)
    theirs = X.assign(side=(X["side"] == "right").astype(float), time=time, event=event)
    reference = lifelines.WeibullAFTFitter().fit(theirs, "time", "event")
    age, side = np.sort(X["age"])[(len(X) - 1) // 2], X["side"].mode()[0]
    typical = pd.DataFrame({"age": [age], "side": [float(side == "right")]})
    leaves = fitted(X, time, event).summary().leaves
    assert leaves["median"][0] == pytest.approx(float(reference.predict_median(typical).iloc[0]), rel=1e-3)
    rho = np.exp(reference.params_["rho_", "Intercept"])
    assert leaves["shape"][0] == f"Weibull shape {rho:.3g}"
    v = np.append(typical.iloc[0], 1.0)  # delta method: log median = mu(x) + log(log 2) / rho
    order = [("lambda_", "age"), ("lambda_", "side"), ("lambda_", "Intercept"), ("rho_", "Intercept")]
    gradient = np.append(v, -np.log(np.log(2)) / rho)
    variance = gradient @ reference.variance_matrix_.loc[order, order].to_numpy() @ gradient
    width = np.log(leaves["median_upper"][0] / leaves["median_lower"][0])
    assert width == pytest.approx(2 * 1.96 * np.sqrt(variance), rel=1e-2)


def test_a_weighted_row_counts_as_several():
    X, time, event = weibull_rows(120, 2)
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    at = np.repeat(np.arange(len(X)), weight)
    weighted = SoftSurvivalTree(0, "weibull", l2=0.0).fit(X, (event, time), sample_weight=weight)
    repeated = fitted(X.iloc[at].reset_index(drop=True), time[at], event[at])
    slopes = slice(1, 3)  # level and shape refer to the mean of log time, which weights do not move
    np.testing.assert_allclose(
        weighted.covariance_[0, slopes, slopes], repeated.covariance_[0, slopes, slopes], rtol=1e-4
    )


@pytest.mark.slow
def test_intervals_cover_the_truth():
    """Nominal 95 %: with 400 repeats the observed share lies within 2.2 points of it in 19 of 20 runs."""
    inside, truth = np.zeros(2), {"age": -0.03, "side": -0.6}
    repeats = 400
    for seed in range(repeats):
        found = fitted(*weibull_rows(200, 100 + seed)).summary(per="unit", measure="time").effects
        for k, (feature, value) in enumerate(truth.items()):
            row = found.xs(feature, level="feature").iloc[0]
            inside[k] += row["lower"] <= np.exp(value) <= row["upper"]
    assert ((inside / repeats > 0.92) & (inside / repeats < 0.975)).all()


@pytest.fixture(scope="module")
def gbsg2():
    data = load_dataset("gbsg2")
    return data, SoftSurvivalTree(depth=1, leaf="loglogistic", l2=0.3, shrinkage=40.0).fit(data)


def test_leaves_and_effects_are_told(gbsg2):
    data, tree = gbsg2
    summary = tree.summary()
    leaf = tree.apply(data)
    assert summary.leaves["n"].tolist() == np.bincount(leaf).tolist()
    assert summary.leaves["events"].tolist() == np.bincount(leaf, data.event.numpy()).astype(int).tolist()
    assert (summary.leaves["median_lower"] < summary.leaves["median"]).all()
    assert summary.measure == "odds ratio of the event"
    assert {"+10", "+100", "II vs I", "III vs I", "yes vs no"} <= set(
        summary.effects.index.get_level_values("contrast")
    )
    assert (summary.effects["lower"] < summary.effects["effect"]).all()
    text = str(summary)
    for words in (
        "odds ratio of the event",
        "given the rules",
        "log-logistic shape",
        "III vs I",
        "Typical row of each leaf (medians and most frequent levels of its training rows)",
        "The median of a leaf is that of its typical row;",
    ):
        assert words in text


def test_typical_rows_lie_in_their_leaves_and_have_the_medians_that_are_shown(gbsg2):
    """One typical row for all leaves lies in one of them, so that the medians of the others were extrapolations."""
    data, tree = gbsg2
    summary, leaf = tree.summary(), tree.apply(data)
    assert summary.typical.columns.tolist() == data.X.columns.tolist()
    np.testing.assert_array_equal(tree.apply(summary.typical), summary.typical.index)
    np.testing.assert_allclose(tree.predict_median(summary.typical), summary.leaves["median"])
    for k in summary.typical.index:
        rows = data.X[leaf == k]
        assert summary.typical.loc[k, "age"] == np.sort(rows["age"])[(len(rows) - 1) // 2]
        assert summary.typical.loc[k, "tgrade"] == rows["tgrade"].mode()[0]


def test_a_typical_row_outside_its_leaf_is_named(gbsg2):
    data = gbsg2[0]
    tree = SoftSurvivalTree(depth=1, leaf="loglogistic", l2=0.3, shrinkage=40.0).fit(data)
    assert "would go to another leaf" not in str(tree.summary())
    tree.typical_rows_ = tree.typical_rows_[[0, 0]]
    assert "The typical row of leaf 1 would go to another leaf." in str(tree.summary())


def test_medians_after_the_last_observed_time_are_named():
    """The text of the tree says "not reached" where the table shows such a number."""
    X, time, event = weibull_rows(300, 2)
    short = SoftSurvivalTree(depth=0, leaf="weibull", l2=0.1)
    summary = short.fit(X, (event & (time <= 60), np.minimum(time, 60))).summary()
    assert (summary.leaves["median"] > 60).all()
    assert "Nothing was observed after 60: the median of leaf 0 is extrapolated." in str(summary)
    assert "extrapolated" not in str(short.fit(X, (event, time)).summary())
    several = late_words(pd.DataFrame({"median": [70.0, 10.0, 80.0]}), 60.0)
    assert several == " Nothing was observed after 60: the medians of leaves 0, 2 are extrapolated."


def test_of_many_features_the_text_shows_those_of_the_effects_and_columns_without_values_are_missing(monkeypatch):
    X, time, event = weibull_rows(200, 4)
    found = fitted(X.assign(site="here"), time, event).summary()
    assert found.typical["site"].isna().all()
    assert "site" not in str(found)
    monkeypatch.setattr("softsurv.estimators.soft.summary.SHOWN_FEATURES", 1)
    monkeypatch.setattr("softsurv.estimators.soft.summary.SHOWN_EFFECTS", 1)
    assert "1 features more are in `typical`." in found.typical_text()
    assert len(found.typical_text()[1].splitlines()) == 3  # two of the header, one feature


def test_a_contrast_is_what_the_prediction_does(gbsg2):
    """Odds of the event of two rows in one leaf that differ by the contrast alone."""
    data, tree = gbsg2
    effects = tree.summary().effects
    for feature, contrast, change in (("tgrade", "III vs I", {"tgrade": "III"}), ("tsize", "+10", {"tsize": 40.0})):
        base = data.X.iloc[[0]].assign(tgrade="I", tsize=30.0)
        moved = base.assign(**change)
        leaf = tree.apply(base)[0]
        assert tree.apply(moved)[0] == leaf
        s, t = (tree.predict_survival_function(X, times=[700.0])[0, 0] for X in (base, moved))
        ratio = ((1 - t) / t) / ((1 - s) / s)
        own = effects.loc[("all" if "all" in effects.index.get_level_values("leaf") else leaf, feature, contrast)]
        assert own["effect"] == pytest.approx(ratio, rel=1e-6)


def test_units_change_the_numbers_and_not_the_test(gbsg2):
    tree = gbsg2[1]
    step, unit, sd = (
        tree.summary(per=per).effects.xs("age", level="feature").iloc[0] for per in ("step", "unit", "sd")
    )
    assert step["coefficient"] == pytest.approx(10 * unit["coefficient"])
    ratios = [row["coefficient"] / row["standard_error"] for row in (step, unit, sd)]
    np.testing.assert_allclose(ratios, ratios[0])
    with pytest.raises(InvalidParameterError, match="per must be one of"):
        tree.summary(per="year")


def test_a_saved_model_keeps_its_standard_errors(gbsg2, tmp_path):
    tree = gbsg2[1]
    tree.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    pd.testing.assert_frame_equal(again.summary().effects, tree.summary().effects)
    assert str(again.summary()) == str(tree.summary())
    pd.testing.assert_frame_equal(again.summary().typical, tree.summary().typical)
    np.testing.assert_array_equal(again.feature_importances_, tree.feature_importances_)


def test_a_model_of_before_has_effects_without_errors(gbsg2):
    data = gbsg2[0]
    tree = SoftSurvivalTree(depth=1, leaf="loglogistic", l2=0.3, shrinkage=40.0).fit(data)
    tree.covariance_ = tree.typical_rows_ = None
    summary = tree.summary()
    assert summary.typical.index.tolist() == ["all"]
    own = tree.apply(summary.typical)[0]
    np.testing.assert_allclose(tree.predict_median(summary.typical)[0], summary.leaves["median"][own])
    assert "Typical row (means and most frequent levels of all training rows)" in str(summary)
    assert "the same in every leaf, also in leaves to which it would not go;" in str(summary)
    assert summary.effects["standard_error"].isna().all()
    assert summary.effects["effect"].notna().all()
    assert "no standard errors" in str(summary)


def test_dense_trees_and_their_leaves(gbsg2):
    data = gbsg2[0]
    tree = SoftSurvivalTree(
        depth=1, leaf="weibull", max_terms=None, l2=1.0, shrinkage=1.0, routing_l2=0.1, n_restarts=1
    ).fit(data)
    summary = tree.summary()
    assert set(summary.effects.index.get_level_values("leaf")) == {0, 1}
    assert (summary.effects["standard_error"] > 0).all()
    assert "most probable leaf" in str(summary)
    assert summary.measure == "hazard ratio"


def test_a_spline_has_no_time_ratio(gbsg2):
    tree = SoftSurvivalTree(depth=0, leaf="spline_ph", l2=0.3).fit(gbsg2[0])
    with pytest.raises(InvalidParameterError, match="time"):
        tree.summary(measure="time")
    assert np.isfinite(tree.summary().leaves["median_lower"][0])


def test_importances_do_not_depend_on_sharpness(gbsg2):
    import copy

    tree = copy.deepcopy(gbsg2[1])
    before = tree.feature_importances_
    tree.tree_.routing.data *= 5.0
    np.testing.assert_allclose(tree.feature_importances_, before)
    assert before.sum() == pytest.approx(1.0)
    asked = tree.tree_.rules[0].sources(tree.preprocessor_.columns_)
    names = list(tree.feature_names_in_)
    tree.tree_.leaves.data[:, :, 1:-1] = 0.0  # without slopes the split is all there is
    assert {names[k] for k in np.flatnonzero(tree.feature_importances_)} == set(asked)


def test_the_text_shows_the_surest_effects_of_each_leaf_and_says_how_many_are_left_out(monkeypatch):
    X, time, event = weibull_rows(400, 3)
    X = X.assign(shop=np.random.default_rng(3).choice(["north", "south", "east", "west", "centre"], 400))
    found = fitted(X, time, event, l2=1.0).summary()
    assert "not shown" not in str(found)
    monkeypatch.setattr("softsurv.estimators.soft.summary.SHOWN_EFFECTS", 3)
    text = str(found)
    evidence = (found.effects["coefficient"] / found.effects["standard_error"]).abs()
    last = evidence.nlargest(3).index[-1]
    assert last in surest(found.effects, 3).index
    assert list(surest(found.effects, 3).index) == [
        one for one in found.effects.index if evidence[one] >= evidence[last]
    ]
    assert f"{len(found.effects) - 3} effects of less evidence are not shown: they are in `effects`." in text


def test_the_surest_effects_are_those_of_each_leaf_and_cause():
    index = pd.MultiIndex.from_product(
        [["x", "y"], [0, 1], list("abc"), ["+1"]], names=["cause", "leaf", "feature", "contrast"]
    )
    effects = pd.DataFrame({"coefficient": np.arange(12.0), "standard_error": [np.nan, 1.0] * 6}, index=index)
    kept = surest(effects, 1)
    assert [one[:3] for one in kept.index] == [("x", 0, "c"), ("x", 1, "c"), ("y", 0, "c"), ("y", 1, "c")]
