"""Predictions of a fitted soft tree: curves, hazards, quantiles, leaves, scores, and its text."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from numpy.testing import assert_allclose

from softsurv import SoftSurvivalTree
from softsurv.errors import InvalidParameterError
from softsurv.estimators.soft import fitted
from softsurv.hazards import family_names
from softsurv.metrics import harrell_c
from softsurv.trees.soft_tree import SoftTree

SINGLE = {"depth": 0, "l2": 0.5, "device": "cpu"}
TIMES = np.array([0.0, 0.3, 2.0, 8.0, 30.0])


@pytest.mark.parametrize("path", ["hbp", "soft"])
@pytest.mark.parametrize("family", family_names())
def test_survival_starts_at_one_and_falls(trees, rows, family, path):
    survival = trees(family).predict_survival_function(rows[0], TIMES, path=path)
    assert survival.shape == (120, 5)
    assert survival.dtype == np.float64
    assert np.all(survival[:, 0] == 1)
    assert np.all((survival >= 0) & (survival <= 1))
    assert np.all(np.diff(survival) <= 0)
    assert_allclose(survival, np.exp(-trees(family).predict_cumulative_hazard_function(rows[0], TIMES, path=path)))


@pytest.mark.parametrize("after", [None, 2.0])
def test_quantiles_are_sought_for_few_rows_at_once(trees, rows, monkeypatch, after):
    """A search over all rows left the processor's cache: a million medians took four times as long."""
    tree, sizes, inner = trees("spline_po"), [], SoftTree.time_of_hazard
    expected = tree.predict_quantile(rows[0], 0.3, after=after)
    monkeypatch.setattr(fitted, "ROWS_AT_ONCE", 50)
    monkeypatch.setattr(SoftTree, "time_of_hazard", lambda *given: sizes.append(len(given[1])) or inner(*given))
    assert_allclose(tree.predict_quantile(rows[0], 0.3, after=after), expected, rtol=1e-9)
    assert sizes == [50, 50, 20]


@pytest.mark.parametrize("family", family_names())
def test_the_hazard_is_the_slope_of_the_cumulative_hazard(trees, rows, family):
    tree, at, step = trees(family), np.array([0.7, 4.0, 11.0]), 1e-5
    both = [tree.predict_cumulative_hazard_function(rows[0], at * (1 + s)) for s in (step, -step)]
    assert_allclose(tree.predict_hazard_function(rows[0], at), (both[0] - both[1]) / (2 * step * at), rtol=1e-5)


@pytest.mark.parametrize("path", ["hbp", "soft"])
@pytest.mark.parametrize("family", family_names())
def test_quantiles_lie_on_the_curve(trees, rows, family, path):
    tree, X = trees(family), rows[0].iloc[:15]
    for share in (0.1, 0.5):
        quantile = tree.predict_quantile(X, share, path=path)
        reached = np.isfinite(quantile)
        assert reached.any()
        survival = tree.predict_survival_function(X, np.where(reached, quantile, 1.0), path=path)
        assert_allclose(np.diag(survival)[reached], 1 - share, atol=1e-9)
    assert np.array_equal(tree.predict_median(X, path=path), quantile)


@pytest.mark.parametrize("path", ["hbp", "soft"])
def test_the_expectation_is_the_area_under_the_curve(trees, rows, path):
    grid = np.linspace(0, 12, 20_001)
    survival = trees().predict_survival_function(rows[0], grid, path=path)
    expected = np.trapezoid(survival, grid, axis=1)
    assert_allclose(trees().predict_expectation(rows[0], 12.0, path=path), expected, rtol=1e-5)


@pytest.mark.parametrize("path", ["hbp", "soft"])
def test_conditional_survival_is_the_ratio(trees, rows, path):
    late = np.array([2.0, 5.0, 9.0])
    survival = trees().predict_survival_function(rows[0], late, path=path)
    conditional = trees().predict_conditional_survival(rows[0], 2.0, late, path=path)
    assert_allclose(conditional, survival / survival[:, :1], rtol=1e-9)


@pytest.mark.parametrize("family", family_names())
def test_the_soft_path_is_the_mixture_of_all_leaves(trees, rows, family):
    tree = trees(family)
    x = torch.tensor(tree.preprocessor_.transform(rows[0]).to_numpy())
    probability, grid = tree.leaf_probability(rows[0]), torch.tensor(TIMES[1:])
    expected = np.zeros((120, 4))
    with torch.no_grad():
        for leaf, place in enumerate(tree.tree_.used_leaves):
            everyone = torch.full((1, 120), int(place))
            z, _ = tree.tree_.predictor(x, grid, everyone)
            curve = torch.exp(-torch.exp(tree.tree_.family.link.log_cumulative_hazard(z)))[0].numpy()
            expected += probability[:, leaf : leaf + 1] * curve
    assert_allclose(tree.predict_survival_function(rows[0], TIMES[1:], path="soft"), expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_the_tables_that_scikit_learn_is_set_to_are_of_no_matter(trees, rows, kind):
    tree = trees()
    expected = tree.predict(rows[0])
    with sklearn.config_context(transform_output=kind):
        assert_allclose(tree.predict(rows[0]), expected)


def test_both_paths_are_one_in_a_single_leaf(rows):
    tree = SoftSurvivalTree(**SINGLE).fit(*rows)
    hard, mixed = (tree.predict_survival_function(rows[0], TIMES, path=path) for path in ("hbp", "soft"))
    assert_allclose(hard, mixed, atol=1e-12)
    assert set(tree.apply(rows[0])) == {0}


def test_a_row_falls_into_the_leaf_that_its_branches_lead_to(trees, rows):
    tree = trees()
    left, leaf = tree.routing_probability(rows[0]), tree.apply(rows[0])
    assert_allclose(tree.leaf_probability(rows[0]).sum(1), 1.0)
    for row in range(120):
        node = 0
        while node < left.shape[1]:
            node = 2 * node + (1 if left[row, node] >= 0.5 else 2)
        assert tree.tree_.used_leaves[leaf[row]] == node - left.shape[1]


def test_risk_agrees_with_the_order_of_survival(trees, rows):
    risk = trees().predict(rows[0])
    hazard = np.log(trees().predict_cumulative_hazard_function(rows[0], trees().unique_times_))
    worse = (hazard[:, None] > hazard[None]).all(2)
    assert worse.any()
    assert np.all((risk[:, None] > risk[None])[worse])


def test_far_times_stay_finite(trees, rows):
    for family in family_names():
        far = trees(family).predict_survival_function(rows[0], [1e-12, 1e12])
        assert np.isfinite(far).all()
        assert np.isfinite(trees(family).predict(rows[0])).all()


def test_a_hazard_belongs_to_one_leaf(trees, rows):
    with pytest.raises(InvalidParameterError, match="a hazard belongs to one leaf"):
        trees().predict_hazard_function(rows[0], [1.0], path="soft")


def test_scores_are_those_of_the_predicted_curves(trees, make_rows):
    X, y = make_rows(seed=5)
    tree = trees()
    result = tree.evaluate(X, y)
    assert set(result) >= {"harrell_c", "uno_c", "cd_auc", "ibs", "n", "events", "range"}
    with np.errstate(divide="ignore"):
        log_hazard = lambda times: np.log(tree.predict_cumulative_hazard_function(X, times))  # noqa: E731
        expected = harrell_c(y["time"], y["event"], log_hazard)
    assert result["harrell_c"] == pytest.approx(expected, abs=1e-12)
    assert tree.score(X, y) == result["harrell_c"]
    assert result["harrell_c"] > 0.6  # the sides cross: no single linear score ranks them


def test_the_leaf_table_counts_the_training_rows(trees, rows):
    table, leaf = trees().leaf_table_, trees().apply(rows[0])
    assert table.n.tolist() == np.bincount(leaf).tolist()  # leaves have no holes in their numbers
    assert int(table.events.sum()) == int(rows[1]["event"].sum())


def test_text_and_dot_name_every_occupied_leaf(trees, rows):
    text, dot = trees().export_text(), trees().export_dot()
    for leaf in np.unique(trees().apply(rows[0])):
        size = trees().leaf_table_.n[leaf]
        assert re.search(rf"leaf {leaf}: n {size}, events \d+, predicted median", text)
        assert re.search(rf"leaf {leaf}\\nn {size}, events", dot)
    assert dot.startswith("digraph")
    assert dot.count("{") == dot.count("}")
    assert "side=right" in text or "x" in text


def test_leaves_are_numbered_without_holes_from_left_to_right():
    """Three leaves, one of them at depth 1: 0, 1, 2 in the predictions, the text, the dot and the tables."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.random(600), "b": rng.random(600)})
    scale = np.where(X["a"] > 0.6, 1.0, np.where(X["b"] > 0.5, 8.0, 60.0))
    tree = SoftSurvivalTree(depth=2, leaf="weibull", max_terms=1).fit(
        X, (np.ones(600, bool), scale * rng.weibull(2, 600))
    )
    assert tree.tree_.leaves.shape[1] == 4
    assert np.unique(tree.apply(X)).tolist() == [0, 1, 2]
    assert tree.leaf_probability(X).shape == (600, 3)
    assert_allclose(tree.leaf_probability(X).sum(1), 1.0)
    assert len(tree.leaf_table_.n) == 3
    assert re.findall(r"leaf (\d)", tree.export_text()) == ["0", "1", "2"]
    assert re.findall(r"leaf (\d)", tree.export_dot()) == ["0", "1", "2"]
    assert tree.leaf_summary().index.tolist() == tree.summary().leaves.index.tolist() == [0, 1, 2]
    assert tree.split_sizes_.shape == (3,)


@pytest.mark.parametrize("unit", [1e-300, 1e300])
@pytest.mark.parametrize("path", ["hbp", "soft"])
def test_times_of_predictions_have_the_unit_of_the_table_at_both_ends_of_floats(rows, unit, path):
    """They were the same time for all rows, or infinite."""
    X, event, time = rows[0], rows[1]["event"], rows[1]["time"]
    how = {"depth": 1, "leaf": "weibull", "max_terms": None, "l2": 1.0, "shrinkage": 1.0, "routing_l2": 0.1}
    plain, scaled = (SoftSurvivalTree(**how).fit(X, (event, time * one)) for one in (1.0, unit))
    expected = plain.predict_quantile(X, 0.3, path=path)
    np.testing.assert_allclose(scaled.predict_quantile(X, 0.3, path=path) / unit, expected, rtol=1e-6)
