"""Covariances of the leaves' parameters against autograd and against differences of the whole objective."""

import numpy as np
import pytest
import torch

from softsurv.data.datasets import load_dataset
from softsurv.data.preprocess import Preprocessor
from softsurv.hazards import family_names, get_family
from softsurv.soft.problem import make_problem
from softsurv.sparse.covariance import MOST_PARAMETERS, dense_covariance, information, rule_covariance
from softsurv.sparse.leaf_fit import LeafObjective, LeafPenalties, fit_leaves, leaf_models, losses_in_leaves


@pytest.fixture(scope="module")
def data():
    raw = load_dataset("veterans")
    return raw.with_features(Preprocessor().fit_transform(raw.X))


def penalties(ridge=0.01, baseline=0.02, slopes=np.inf):
    return LeafPenalties(*(torch.tensor([float(v)]).double() for v in (ridge, baseline, slopes)))


@pytest.mark.parametrize("family", family_names())
def test_information_is_autograds_hessian(data, family):
    problem = make_problem(data, get_family(family))
    leaf = (data.x[:, 0] > 0.5).long()
    leaves = leaf_models(fit_leaves(problem, leaf[None], 2, penalties(slopes=0.01)).point[0])[0]
    found = information(problem, leaf, leaves)

    def loss(values):
        losses = losses_in_leaves(problem, values.view_as(leaves)[None])[0]
        return (problem.weight[0, 0] * losses.gather(0, leaf[None])[0]).sum()

    hessian = torch.autograd.functional.hessian(loss, leaves.flatten()).view(*leaves.shape, *leaves.shape)
    for k in range(2):
        torch.testing.assert_close(found[k], hessian[k, :, k], atol=1e-7, rtol=1e-5)
        assert float(hessian[k, :, 1 - k].abs().max()) == 0


@pytest.mark.parametrize("slopes", [np.inf, 0.05])
def test_covariance_is_that_of_the_whole_objective(data, slopes):
    """Slow twin: the Hessian over common model and deviations by differences, inverted, pulled to the leaves."""
    problem, n_leaves = make_problem(data, get_family("weibull")), 3
    leaf, held = torch.arange(data.n) % n_leaves, penalties(slopes=slopes)
    end = fit_leaves(problem, leaf[None], n_leaves, held).point[0]
    objective = LeafObjective(problem, leaf[None], n_leaves, held)
    size = end.shape[-1]
    free = torch.cat([torch.ones(1, size, dtype=torch.bool), objective.free.expand(n_leaves, -1)]).flatten()
    places = torch.nonzero(free)[:, 0]
    columns = []
    for at in places:
        step = torch.zeros(free.shape, dtype=torch.float64)
        step[at] = 1e-5
        ends = []
        for sign in (1, -1):
            point = end + sign * step.view_as(end)
            _, *gradient = objective.value_and_gradient(point[:, :1], point[:, 1:])
            ends.append(torch.cat(gradient, 1).flatten()[places])
        columns.append((ends[0] - ends[1]) / 2e-5)
    inverse = torch.zeros(len(free), len(free), dtype=torch.float64)
    inverse[places[:, None], places] = torch.linalg.inv(torch.stack(columns, 1)) / data.n
    inverse = inverse.view(1 + n_leaves, size, 1 + n_leaves, size)
    found = rule_covariance(problem, leaf, end[0], held, data.n)
    for k in range(n_leaves):
        pair = [0, 1 + k]
        np.testing.assert_allclose(found[k], inverse[pair][:, :, pair].sum((0, 2)), rtol=1e-4, atol=1e-8)


def test_unpenalised_deviations_are_leaves_fitted_apart(data):
    """Common model and deviations are then not known apart; each leaf is."""
    problem, leaf = make_problem(data, get_family("loglogistic")), (data.x[:, 0] > 0.5).long()
    held = penalties(ridge=0.0, baseline=0.0, slopes=0.0)
    end = fit_leaves(problem, leaf[None], 2, held).point[0]
    found = rule_covariance(problem, leaf, end[0], held, data.n)
    q = problem.design.shape[-1]
    apart = dense_covariance(problem, leaf, leaf_models(end)[0], torch.full((q + 1,), 0.0), data.n)
    for one, other in zip(found, apart, strict=True):  # levels of a category and the intercept are not known apart
        known = np.flatnonzero(other.diagonal() < 100)
        assert known.size >= 4
        assert (one.diagonal() > 100).tolist() == (other.diagonal() > 100).tolist()
        np.testing.assert_allclose(one[known][:, known], other[known][:, known], rtol=1e-3, atol=1e-5)


def test_a_leaf_without_rows_knows_what_its_penalty_says(data):
    problem, leaf = make_problem(data, get_family("weibull")), torch.zeros(data.n, dtype=torch.int64)
    end = fit_leaves(problem, leaf[None], 2, penalties()).point[0]
    found = rule_covariance(problem, leaf, end[0], penalties(), data.n)
    # the common level is known as well as the full leaf's deviation from it; the empty leaf deviates as freely
    assert found[1, 0, 0] - found[0, 0, 0] == pytest.approx(2 / (0.02 * data.n), rel=1e-6)


def test_very_many_parameters_have_no_covariance(data):
    problem = make_problem(data, get_family("weibull"))
    wide = torch.zeros(2, MOST_PARAMETERS + 1, dtype=torch.float64)
    leaf = torch.zeros(data.n, dtype=torch.int64)
    assert dense_covariance(problem, leaf, wide, wide[0], 1.0) is None


def test_single_precision_gives_the_same(data):
    leaf = (data.x[:, 0] > 0.5).long()
    found = []
    for dtype in (torch.float64, torch.float32):
        problem = make_problem(data, get_family("weibull"), dtype=dtype)
        end = fit_leaves(make_problem(data, get_family("weibull")), leaf[None], 2, penalties()).point[0]
        found.append(rule_covariance(problem, leaf, end[0].to(dtype), penalties(), data.n))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-3)
