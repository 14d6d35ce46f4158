"""What a fit learns beside its tree: sizes of splits, and the covariance of dense leaves against autograd."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from oracles.simulated import simulate

from softsurv import SoftSurvivalTree
from softsurv.estimators.soft.inference import centre_and_spread, covariance_of_leaves, sizes_of_splits
from softsurv.estimators.soft.parameters import SoftParameters
from softsurv.trees.split_effects import split_effects

SETTINGS = {"leaf": "weibull", "max_terms": None, "n_restarts": 1, "device": "cpu", "preprocess": False}


@pytest.fixture(scope="module")
def data():
    return simulate(80, 2)


@pytest.fixture(scope="module")
def fitted(data):
    """A dense tree of one split, and its recipe."""
    model = SoftSurvivalTree(depth=1, l2=0.5, shrinkage=2.0, routing_l2=0.1, **SETTINGS).fit(data)
    parameters = SoftParameters(**model.get_params(deep=False))
    return model, parameters.recipe(parameters.given(None))


def test_splits_are_measured_at_the_quartiles_of_the_events(fitted, data):
    tree = fitted[0].tree_
    times = np.quantile(data.time.numpy()[data.event.numpy()], [0.25, 0.5, 0.75])
    one = split_effects(tree, data.x, times)
    np.testing.assert_allclose(sizes_of_splits([tree], data), one)
    np.testing.assert_allclose(sizes_of_splits([tree, tree], data), 2 * one)


def test_zero_times_and_rows_without_events_leave_a_size(fitted, data):
    tree = fitted[0].tree_
    censored = data._derive({"event": torch.zeros(data.n, dtype=torch.bool)})
    expected = split_effects(tree, data.x, np.quantile(data.time.numpy(), [0.25, 0.5, 0.75]))
    np.testing.assert_allclose(sizes_of_splits([tree], censored), expected)


def test_weights_of_rows_count(fitted, data):
    weight = np.random.default_rng(0).integers(1, 4, data.n)
    again = np.repeat(np.arange(data.n), weight)
    weighted = data._derive({"weight": torch.tensor(weight, dtype=torch.float64)})
    times = np.quantile(data.time.numpy()[data.event.numpy()], [0.25, 0.5, 0.75])
    expected = split_effects(fitted[0].tree_, data.x[again], times)
    np.testing.assert_allclose(sizes_of_splits([fitted[0].tree_], weighted), expected)


@pytest.mark.parametrize("other", [torch.float64, torch.float32])
def test_means_and_deviations_are_those_of_repeated_rows(fitted, data, other):
    tree, weight = fitted[0].tree_, np.random.default_rng(0).integers(0, 4, data.n)
    weighted = data._derive({"weight": torch.as_tensor(weight / 7)})
    rows = data.x.numpy()[np.repeat(np.arange(data.n), weight)]
    centre, spread = centre_and_spread(tree.to(other), weighted)
    tree.to(torch.float64)
    np.testing.assert_allclose(centre, rows.mean(0))
    np.testing.assert_allclose(spread, rows.std(0))


def test_weighted_means_are_the_same_to_the_last_bit_however_the_columns_lie(fitted):
    weighted = simulate(1001, 2)._derive({"weight": torch.linspace(0.1, 2.0, 1001).double()})
    by_row, by_column = weighted.x.contiguous(), weighted.x.T.contiguous().T
    found = [
        centre_and_spread(fitted[0].tree_, SimpleNamespace(x=x, weight=weighted.weight)) for x in (by_row, by_column)
    ]
    np.testing.assert_array_equal(*found)


def test_the_covariance_is_the_inverse_hessian_of_a_leaf(data):
    """One leaf with a ridge on its slopes: the loss of all rows by autograd through the tree's own likelihood."""
    model = SoftSurvivalTree(depth=0, l2=0.5, **SETTINGS).fit(data)
    parameters = SoftParameters(**model.get_params(deep=False))
    tree, recipe = model.tree_, parameters.recipe(parameters.given(None))
    found = covariance_of_leaves(tree, data, recipe)
    time, event = data.time, data.event.double()
    design = torch.cat([torch.ones(data.n, 1, dtype=torch.float64), data.x], 1)
    mean, scale = tree.time_scale[0, :2].double()

    def loss(leaf):
        slope = leaf[3].exp()
        z = design @ leaf[:3] + slope * (time.log() - mean) / scale
        log_hazard = z + leaf[3] - scale.log() - time.log()
        return (z.exp() - event * log_hazard).sum() + 0.5 * recipe.candidate.ridge * (leaf[1:3] ** 2).sum()

    hessian = torch.autograd.functional.hessian(loss, tree.leaves[0, 0].detach().double())
    np.testing.assert_allclose(found[0], torch.linalg.inv(hessian), rtol=1e-4)


def test_more_copies_of_the_rows_have_a_smaller_covariance(fitted, data):
    model, recipe = fitted
    twice = data.take(np.tile(np.arange(data.n), 2))
    once, double = (covariance_of_leaves(model.tree_, rows, recipe) for rows in (data, twice))
    assert once.shape == double.shape == (len(model.tree_.used_leaves), 4, 4)
    assert (np.diagonal(double, axis1=1, axis2=2) < np.diagonal(once, axis1=1, axis2=2)).all()
    pd.testing.assert_frame_equal(*(pd.DataFrame(m[0] - m[0].T) for m in (once, 0 * once)), atol=1e-12)
