"""Bands of survival curves against the delta method by autograd, through the tree's own predictor."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from softsurv.hazards import get_family
from softsurv.trees.curve_bands import survival_band
from softsurv.trees.soft_tree import SoftTree

TIMES = np.array([0.3, 1.0, 2.5])


def random_tree(name):
    """A tree of two leaves and three features, ten rows, and a covariance of each leaf."""
    rng = np.random.default_rng(4)
    tree = SoftTree(1, 3, get_family(name))
    with torch.no_grad():
        tree.routing.copy_(torch.tensor(rng.standard_normal(tree.routing.shape)))
        tree.leaves.copy_(torch.tensor(0.5 * rng.standard_normal(tree.leaves.shape)))
        log_time = torch.tensor(rng.standard_normal(50))
        tree.time_scale.copy_(tree.family.fit_time_scale(log_time, torch.ones(50, dtype=torch.bool))[None])
    root = rng.standard_normal((2, tree.leaves.shape[-1], 12)) / 12
    return tree, torch.tensor(rng.standard_normal((10, 3))), root @ root.transpose(0, 2, 1)


def delta_method(tree, covariance, x, times, level):
    """The band of each row by itself: the slope of the predictor by all parameters of its leaf, from autograd."""
    lower, upper = np.empty((2, len(x), len(times)))
    for n, row in enumerate(x):
        z = tree.predictor(row[None], torch.as_tensor(times))[0][0, 0]
        leaf = int(tree.apply_leaf(row[None])[0, 0])
        for t, one in enumerate(z):
            (slope,) = torch.autograd.grad(one, tree.leaves, retain_graph=True)
            g = slope[0, leaf].numpy()
            margin = norm.ppf(0.5 + level / 2) * np.sqrt(g @ covariance[leaf] @ g)
            for found, edge in ((lower, one + margin), (upper, one - margin)):
                found[n, t] = torch.exp(-tree.family.link.cumulative_hazard(edge.detach())[0])
    return lower, upper


@pytest.mark.parametrize("name", ["exponential", "weibull", "lognormal", "gompertz", "spline_po"])
def test_bands_are_the_delta_method_by_autograd(name):
    tree, x, covariance = random_tree(name)
    found = survival_band(tree, covariance, tree.apply_leaf(x)[0].numpy(), x, TIMES, 0.9)
    for own, expected in zip(found, delta_method(tree, covariance, x, TIMES, 0.9), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-9)


def test_without_variance_the_band_is_the_curve():
    tree, x, covariance = random_tree("weibull")
    curve = tree.survival_function(x, torch.as_tensor(TIMES))[0].detach().numpy()
    for edge in survival_band(tree, 0 * covariance, tree.apply_leaf(x)[0].numpy(), x, TIMES, 0.95):
        np.testing.assert_allclose(edge, curve, rtol=1e-12)


def test_bands_hold_the_curve_and_those_of_less_confidence():
    tree, x, covariance = random_tree("loglogistic")
    leaf = tree.apply_leaf(x)[0].numpy()
    (lower, upper), (wide, high) = (survival_band(tree, 9 * covariance, leaf, x, TIMES, q) for q in (0.5, 0.99))
    curve = tree.survival_function(x, torch.as_tensor(TIMES))[0].detach().numpy()
    assert (wide >= 0).all()
    assert (wide < lower).all()
    assert (lower < curve).all()
    assert (curve < upper).all()
    assert (upper < high).all()
    assert (high <= 1).all()


def test_leaves_are_counted_among_those_that_rows_reach():
    """Where no row goes left, the covariance has the matrix of the right leaf alone, number 0."""
    tree, x, covariance = random_tree("weibull")
    with torch.no_grad():
        tree.routing[0, 0] = torch.tensor([-1e6, 0.0, 0.0, 0.0])
    tree.collapse_empty(x)
    assert len(tree.used_leaves) == 1
    found = survival_band(tree, covariance[1:], np.zeros(10, int), x, TIMES, 0.8)
    own = int(tree.used_leaves[0])
    full = covariance if own == 1 else covariance[::-1]
    for edge, expected in zip(found, delta_method(tree, full, x, TIMES, 0.8), strict=True):
        np.testing.assert_allclose(edge, expected, rtol=1e-9)
