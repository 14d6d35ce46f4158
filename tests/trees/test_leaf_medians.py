"""Medians that leaves predict: where the mean of the rows' curves crosses one half."""

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv import SoftSurvivalTree, load_dataset, load_model
from softsurv.trees.leaf_medians import predicted_medians

KNOWN = {"depth": 1, "leaf": "weibull", "max_terms": 1, "l2": 0.3, "shrinkage": 40.0}


@pytest.fixture(scope="module")
def data():
    return load_dataset("veterans")


@pytest.fixture(scope="module")
def tree(data):
    return SoftSurvivalTree(**KNOWN).fit(data.X, data.y)


def mean_survival(tree, data, leaf, time, weight=None):
    rows = tree.apply(data.X) == leaf
    own = tree.predict_survival_function(data.X[rows], times=[time])[:, 0]
    return np.average(own, weights=None if weight is None else weight[rows])


def test_the_mean_curve_of_a_leaf_is_one_half_at_its_median(tree, data):
    medians = tree.leaf_table_.predicted
    assert len(medians) == 2
    assert np.isfinite(medians).all()
    for leaf, median in enumerate(medians):
        assert mean_survival(tree, data, leaf, median) == pytest.approx(0.5, abs=1e-9)
        assert f"leaf {leaf}:" in tree.export_text()
        assert f"predicted median {float(f'{median:.3g}'):g}" in tree.export_text()


def test_rows_count_by_their_weight(data):
    weight = np.where(np.arange(data.n) % 3 == 0, 4.0, 0.5)
    tree = SoftSurvivalTree(**KNOWN).fit(data.X, data.y, sample_weight=weight)
    for leaf, median in enumerate(tree.leaf_table_.predicted):
        assert mean_survival(tree, data, leaf, median, weight) == pytest.approx(0.5, abs=1e-9)


def test_rows_by_blocks_have_the_same_medians(tree, data, monkeypatch):
    monkeypatch.setattr("softsurv.trees.leaf_medians.BLOCK", 10)
    again = SoftSurvivalTree(**KNOWN).fit(data.X, data.y)
    np.testing.assert_allclose(again.leaf_table_.predicted, tree.leaf_table_.predicted, rtol=1e-12)


def test_a_median_beyond_the_last_time_is_not_reached():
    data, end = load_dataset("gbsg2"), 1500.0
    time, event = np.minimum(data.time.numpy(), end), data.event.numpy() & (data.time.numpy() <= end)
    tree = SoftSurvivalTree(depth=1, leaf="loglogistic", l2=1.0, shrinkage=10.0, max_terms=1).fit(data.X, (event, time))
    stays = np.array([mean_survival(tree, data, leaf, end) > 0.5 for leaf in range(2)])
    assert stays.any()
    assert not stays.all()
    np.testing.assert_array_equal(np.isinf(tree.leaf_table_.predicted), stays)
    assert "predicted median not reached" in tree.export_text()


def test_a_median_far_before_the_last_time():
    """It was never sought before e**-60 of the last time, and that was printed."""
    rng = np.random.default_rng(0)
    frame, time = pd.DataFrame({"x": rng.normal(size=200)}), rng.exponential(size=200) ** 50
    tree = SoftSurvivalTree(depth=0, leaf="weibull", l2=1.0).fit(frame, (np.ones(200, dtype=bool), time))
    assert tree.horizon_ > 1e30
    (median,) = tree.leaf_table_.predicted
    assert tree.predict_survival_function(frame, times=[median]).mean() == pytest.approx(0.5, abs=1e-9)


def test_leaves_of_causes_predict_the_median_of_any_event(data):
    cause = np.where(data.event.numpy(), 1 + np.arange(data.n) % 2, 0)
    tree = SoftSurvivalTree(**KNOWN).fit(data.X, time=data.time.numpy(), cause=cause)
    for leaf, median in enumerate(tree.leaf_table_.predicted):
        assert mean_survival(tree, data, leaf, median) == pytest.approx(0.5, abs=1e-9)


def test_medians_are_those_of_halving(tree, data):
    longest = float(data.time.max())
    for leaf, median in enumerate(tree.leaf_table_.predicted):
        low, high = np.log(longest) - 20, np.log(longest)
        for _ in range(60):
            middle = 0.5 * (low + high)
            over = mean_survival(tree, data, leaf, np.exp(middle)) > 0.5
            low, high = (middle, high) if over else (low, middle)
        assert median == pytest.approx(np.exp(high), rel=1e-11)


def test_a_leaf_without_rows_has_no_median(tree, data):
    """Its place is that of no other leaf."""
    x = tree.preprocessor_.transform(data.X)
    leaf, longest = tree.apply(data.X), float(data.time.max())
    found = predicted_medians([tree.tree_], torch.tensor(np.asarray(x)), 2 * leaf, 4, longest)
    np.testing.assert_allclose(found[::2], tree.leaf_table_.predicted, rtol=1e-12)
    assert np.isnan(found[1::2]).all()


def test_saved_medians_are_the_same(tree, tmp_path):
    tree.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").leaf_table_.predicted, tree.leaf_table_.predicted)
