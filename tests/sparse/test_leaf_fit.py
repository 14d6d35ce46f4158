"""Leaf models under hard routing: values, gradients and limits against the single-leaf fit and differences."""

import numpy as np
import pytest
import torch
from oracles.looks import Waits

from softsurv.data.datasets import load_dataset
from softsurv.data.preprocess import Preprocessor
from softsurv.hazards import family_names, get_family
from softsurv.soft.fit_stack import fit_single_leaf
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.problem import make_problem
from softsurv.soft.watch import never_waiting
from softsurv.sparse.leaf_fit import (
    ROUGH,
    LeafObjective,
    LeafPenalties,
    fit_leaves,
    leaf_models,
    losses_in_leaves,
    row_terms,
    second_order,
)
from softsurv.trees.routing import linear

FEW = LbfgsSettings(max_iterations=5)


@pytest.fixture(scope="module")
def data():
    raw = load_dataset("veterans")
    return raw.with_features(Preprocessor().fit_transform(raw.X))


def penalties(ridge=0.01, baseline=0.02, slopes=np.inf):
    return LeafPenalties(*(torch.tensor([float(v)]).double() for v in (ridge, baseline, slopes)))


@pytest.mark.parametrize("family", family_names())
def test_one_leaf_is_the_single_leaf_fit(data, family):
    problem = make_problem(data, get_family(family))
    end = fit_leaves(problem, torch.zeros(1, data.n, dtype=torch.int64), 1, penalties(ridge=0.05))
    theirs = fit_single_leaf(problem, torch.tensor([0.05]).double())
    assert float(end.loss[0]) == pytest.approx(float(theirs.loss[0]), abs=1e-6)


@pytest.mark.parametrize("slopes", [np.inf, 0.05])
@pytest.mark.parametrize("family", ["loglogistic", "spline_ph", "gompertz", "exponential"])
def test_gradient_is_that_of_differences(data, family, slopes):
    problem = make_problem(data, get_family(family))
    leaf = torch.arange(data.n)[None] % 3
    objective = LeafObjective(problem, leaf, 3, penalties(slopes=slopes))
    size = problem.design.shape[-1] + problem.family.n_shape
    random = torch.Generator().manual_seed(0)
    common = 0.1 * torch.randn(1, 1, size, generator=random, dtype=torch.float64)
    deviation = 0.1 * torch.randn(1, 3, size, generator=random, dtype=torch.float64)
    if not np.isfinite(slopes):
        deviation[..., 1 : problem.design.shape[-1]] = 0  # the leaves share their slopes
    _, *gradients = objective.value_and_gradient(common, deviation)
    for k, gradient in enumerate(gradients):
        for at in [(0, 0, 0), (0, 0, 2), (0, 0, size - 1), (0, gradient.shape[1] - 1, 0)]:
            shift = torch.zeros_like(gradient)
            shift[at] = 1e-6
            points = [(common + s * shift, deviation) if k == 0 else (common, deviation + s * shift) for s in (1, -1)]
            up, down = (float(objective.value_and_gradient(*point)[0]) for point in points)
            free = k == 0 or bool(objective.free[0, at[2]])
            assert float(gradient[at]) == pytest.approx((up - down) / 2e-6 if free else 0.0, abs=2e-8)


def test_slopes_are_shared_unless_they_may_deviate(data):
    problem = make_problem(data, get_family("weibull"))
    leaf = (data.x[None, :, 0] > 0.5).long()
    q = problem.design.shape[-1]
    shared = leaf_models(fit_leaves(problem, leaf, 2, penalties()).point[0])
    own = leaf_models(fit_leaves(problem, leaf, 2, penalties(slopes=0.01)).point[0])
    assert torch.equal(shared[0, 0, 1:q], shared[0, 1, 1:q])
    assert (own[0, 0, 1:q] - own[0, 1, 1:q]).abs().max() > 1e-3
    assert shared[0, 0, 0] != shared[0, 1, 0]


def test_strong_shrinkage_gives_the_common_model(data):
    problem = make_problem(data, get_family("loglogistic"))
    leaf = (data.x[None, :, 0] > 0.5).long()
    model = fit_leaves(problem, leaf, 2, penalties(baseline=1e6)).point[0]
    one = fit_leaves(problem, torch.zeros_like(leaf), 1, penalties()).point[0]
    torch.testing.assert_close(leaf_models(model)[:, 0], leaf_models(one)[:, 0], atol=1e-3, rtol=0)


def test_losses_in_leaves_are_the_rows_own(data):
    problem = make_problem(data, get_family("spline_po"))
    leaf = (data.x[None, :, 0] > 0.5).long()
    leaves = leaf_models(fit_leaves(problem, leaf, 2, penalties()).point[0])
    q = problem.design.shape[-1]
    offset = linear(leaves[..., :q], problem.design).gather(1, leaf[:, None])
    own = row_terms(problem, offset, leaves[..., q:], leaf)[0][:, 0]
    torch.testing.assert_close(losses_in_leaves(problem, leaves).gather(1, leaf[:, None])[:, 0], own)


@pytest.mark.parametrize("family", ["loglogistic", "weibull", "lognormal", "spline_ph"])
def test_second_order_is_that_of_autograd(data, family):
    problem = make_problem(data, get_family(family))
    model = leaf_models(
        fit_leaves(problem, torch.zeros(1, data.n, dtype=torch.int64), 1, penalties(), None, FEW).point[0]
    )
    q, only = problem.design.shape[-1], torch.zeros(1, 1, dtype=torch.int64)
    offset = linear(model[..., :q], problem.design)

    def loss(v):
        return row_terms(problem, offset + v[0], model[..., q:] + v[1], only)[0][0, 0]

    zero = torch.zeros(2, dtype=torch.float64)
    slopes = torch.autograd.functional.jacobian(loss, zero)  # (N, 2)
    found = second_order(problem, model)[0]
    torch.testing.assert_close(found[:, :2], -slopes, atol=1e-5, rtol=1e-5)
    row = 5
    curvature = torch.autograd.functional.hessian(lambda v: loss(v)[row], zero)
    expected = torch.stack([curvature[0, 0], curvature[0, 1], curvature[1, 1].clamp(min=0)])
    torch.testing.assert_close(found[row, 2:], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", ["weibull", "spline_po"])
@pytest.mark.parametrize(("ridge", "slopes"), [(0.02, np.inf), (0.02, 0.05), (25.0, np.inf)])
def test_leaves_are_fitted_without_waiting(data, family, ridge, slopes):
    """What follows from the penalties is known on the host: a device is looked at late, in a copy."""
    problem, leaf = make_problem(data, get_family(family)), torch.arange(data.n)[None] % 3
    with never_waiting(), operators_alone(), Waits() as waits:
        fit_leaves(problem, leaf, 3, penalties(ridge=ridge, slopes=slopes), settings=ROUGH)
    assert waits.seen == {("nonzero", "minimise")}
