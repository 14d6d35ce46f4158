"""The metric of the leaves' fits: the curvature it stands for, and how few rounds it needs."""

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv.data.readers import survival_data
from softsurv.hazards import family_names, get_family
from softsurv.soft import gram
from softsurv.soft.gram import RIDGE, inverse_gram
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.problem import make_problem
from softsurv.sparse import leaf_fit
from softsurv.sparse import leaf_metric as leaf_metric_module
from softsurv.sparse.leaf_fit import FIT, ROUGH, LeafObjective, LeafPenalties, fit_leaves
from softsurv.sparse.leaf_grams import leaf_grams
from softsurv.sparse.leaf_metric import (
    CURVATURE,
    LEAST_RIDGE,
    LEAST_SHARE,
    JointMetric,
    OwnSlopesMetric,
    SlopesMetric,
    leaf_metric,
)

TREES, N, LEAVES = 3, 200, 2


def a_stack(family, first=1e-4):
    """Problem and leaves of a stack; one row has its event far before all others."""
    rng = np.random.default_rng(0)
    time = rng.weibull(np.where(np.arange(N) % 2 == 0, 0.7, 2.5))
    time[0] = first
    x = pd.DataFrame(rng.random((N, 3)))
    event = rng.random(N) < 0.7
    event[0] = True
    data = survival_data(x, time=time, event=event)
    weight = torch.as_tensor(rng.integers(1, 3, (TREES, N)).astype(float))
    return make_problem(data, get_family(family), weight=weight), torch.arange(N).expand(TREES, -1) % LEAVES


def penalties(slopes):
    each = torch.full((TREES,), 0.02, dtype=torch.float64)
    return LeafPenalties(each, 2 * each, torch.full_like(each, slopes))


def objective_of(family, slopes=np.inf):
    problem, leaf = a_stack(family)
    return LeafObjective(problem, leaf, LEAVES, penalties(slopes))


def metric_of(objective, shape):
    return leaf_metric(objective.leaves, shape)


def steps(metric, size):
    """The matrix (M, D, D) that the metric multiplies gradients with."""
    unit = torch.eye((1 + LEAVES) * size, dtype=torch.float64)
    return torch.stack([metric(row.expand(TREES, -1).contiguous()) for row in unit], 1)


@pytest.mark.parametrize("slopes", [np.inf, 0.1])
@pytest.mark.parametrize("family", family_names())
def test_steps_lead_down(family, slopes):
    objective = objective_of(family, slopes)
    shape = torch.full((TREES, objective.problem.family.n_shape), 0.3, dtype=torch.float64)
    matrix = steps(metric_of(objective, shape), objective.columns + shape.shape[1])
    torch.testing.assert_close(matrix, matrix.mT)
    free = torch.cat([torch.ones_like(objective.free[:, None]), objective.free[:, None].expand(-1, LEAVES, -1)], 1)
    for own, moves in zip(matrix, free.flatten(1), strict=True):
        assert (own[~moves] == 0).all()
        assert (torch.linalg.eigvalsh(own[moves][:, moves]) > 0).all()


def test_the_joint_metric_is_the_inverse_of_a_curvature():
    objective = objective_of("spline_po")
    problem, q, k = objective.problem, objective.columns, objective.problem.family.n_shape
    shape = torch.linspace(-0.5, 0.5, k, dtype=torch.float64).expand(TREES, -1)
    metric = metric_of(objective, shape)
    assert isinstance(metric, JointMetric)
    unit = torch.diag(torch.cat([torch.ones(q), shape[0].exp()]).double())
    slopes = torch.cat([problem.design[0], problem.features[0, :k].T], 1)
    own = torch.cat([torch.zeros(N, q), problem.features[0, k:].T * problem.event[0].T], 1).double()
    plain = (CURVATURE * slopes.T @ slopes + own.T @ own) / N
    plain = plain + RIDGE * torch.diag(plain.diag())
    size = q + k
    matrix = steps(metric, size)
    ridge = torch.zeros(size).double()
    ridge[1:q] = objective.ridge[0]
    torch.testing.assert_close(matrix[0, :size, :size], torch.linalg.inv(unit @ (plain + torch.diag(ridge)) @ unit))
    at = [0, *range(q, size)]
    share = float(problem.weight[1, 0, objective.leaf[1] == 1].sum())
    block = (unit @ plain @ unit)[at][:, at] * share + torch.diag(objective.strength[1, at])
    second = [2 * size + place for place in at]
    torch.testing.assert_close(matrix[1][second][:, second], torch.linalg.inv(block))


def test_with_own_slopes_it_is_the_inverse_of_the_joint_curvature():
    objective = objective_of("spline_po", 0.1)
    problem, q, k = objective.problem, objective.columns, objective.problem.family.n_shape
    shape = torch.linspace(-0.5, 0.5, k, dtype=torch.float64).expand(TREES, -1)
    metric = metric_of(objective, shape)
    assert isinstance(metric, OwnSlopesMetric)
    own = leaf_grams(problem, objective.leaf, LEAVES, shape, CURVATURE)
    own = own + torch.diag_embed(RIDGE * own.diagonal(dim1=2, dim2=3) + LEAST_SHARE)
    size = q + k
    whole = torch.zeros(TREES, (1 + LEAVES) * size, (1 + LEAVES) * size, dtype=torch.float64)
    whole[:, :size, :size] = own.sum(1)
    whole[:, range(1, q), range(1, q)] += objective.ridge[:, None]
    for number in range(LEAVES):
        at = slice((number + 1) * size, (number + 2) * size)
        whole[:, :size, at] = whole[:, at, :size] = own[:, number]
        whole[:, at, at] = own[:, number] + torch.diag_embed(objective.strength)
    torch.testing.assert_close(steps(metric, size) @ whole, torch.eye(len(whole[0])).double().expand_as(whole))


def test_a_tree_among_others_may_share_its_slopes():
    """Its deviations in slopes stay at 0, and its steps are those of a stack in which all trees share them."""
    problem, leaf = a_stack("loglogistic")
    mixed = penalties(0.1)
    mixed.slopes[0] = np.inf
    shape = torch.zeros(TREES, 1, dtype=torch.float64)
    matrix = steps(metric_of(LeafObjective(problem, leaf, LEAVES, mixed), shape), problem.design.shape[-1] + 1)
    held = ~LeafObjective(problem, leaf, LEAVES, mixed).free[0]
    assert held.any()
    assert (matrix[0][len(held) :].view(LEAVES, len(held), -1)[:, held] == 0).all()


@pytest.mark.parametrize("family", ["loglogistic", "gompertz", "spline_po", "spline_ph"])
def test_a_rough_fit_of_nearly_free_leaves_is_nearly_at_its_end(family):
    """Scaled one by one, common slopes and deviations took hundreds of rounds where little holds them together."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame(np.c_[rng.random((N, 3)), (rng.random((N, 5)) < 0.1).astype(float)])
    risk = np.where(np.arange(N) % 2 == 0, 2.0, -2.0) * x[0].to_numpy()
    data = survival_data(x, time=rng.weibull(1.5, N) * np.exp(risk) + 0.01, event=rng.random(N) < 0.7)
    problem, leaf = make_problem(data, get_family(family), n_trees=TREES), torch.arange(N).expand(TREES, -1) % LEAVES
    each = torch.ones(TREES, dtype=torch.float64)
    free = LeafPenalties(0.3 / N * each, 1 / N * each, 0.1 / N * each)
    start = fit_leaves(problem, leaf, LEAVES, LeafPenalties(free.ridge, 10 * free.baseline, np.inf * each)).point[0]
    rough = fit_leaves(problem, leaf, LEAVES, free, start, ROUGH)
    end = fit_leaves(problem, leaf, LEAVES, free, start, LbfgsSettings(max_iterations=5000, ftol=0.0, gtol=1e-9))
    torch.testing.assert_close(rough.loss, end.loss, rtol=0, atol=2e-5)


def test_with_many_columns_own_slopes_are_scaled_one_by_one(monkeypatch):
    monkeypatch.setattr(leaf_metric_module, "RIDGED_COLUMNS", 2)
    objective = objective_of("loglogistic", 0.1)
    assert isinstance(metric_of(objective, torch.zeros(TREES, 1).double()), SlopesMetric)


@pytest.mark.parametrize("slopes", [np.inf, 0.1])
@pytest.mark.parametrize("ridge", [1e-4, 0.02, 25.0])
@pytest.mark.parametrize("family", ["spline_po", "loglogistic"])
def test_some_trees_keep_their_metric(family, ridge, slopes):
    objective = objective_of(family, slopes)
    objective.ridge[1:], objective.ridged = ridge, ridge > LEAST_RIDGE
    shape = torch.full((TREES, objective.problem.family.n_shape), 0.3, dtype=torch.float64)
    gradient = torch.randn(TREES, (1 + LEAVES) * (objective.columns + shape.shape[1]), dtype=torch.float64)
    metric, some = metric_of(objective, shape), torch.tensor([2, 0])
    torch.testing.assert_close(metric.take(some)(gradient[some]), metric(gradient)[some])


@pytest.mark.parametrize("family", ["spline_po", "spline_ph"])
def test_a_rough_fit_of_splines_is_nearer_to_the_end_than_from_zero_with_slopes_alone(family, monkeypatch):
    """One very early event: the level of a spline is where its first part begins."""
    problem, leaf = a_stack(family)
    end = fit_leaves(problem, leaf, LEAVES, penalties(np.inf), settings=FIT).loss
    rough = fit_leaves(problem, leaf, LEAVES, penalties(np.inf), settings=ROUGH).loss
    monkeypatch.setattr(
        leaf_fit, "leaf_metric", lambda leaves, shape: SlopesMetric(leaves, inverse_gram(problem.design) / CURVATURE)
    )
    zero = problem.design.new_zeros(TREES, 1 + LEAVES, problem.design.shape[-1] + problem.family.n_shape)
    plain = fit_leaves(problem, leaf, LEAVES, penalties(np.inf), zero, ROUGH).loss
    assert (rough - end).mean() < 0.7 * (plain - end).mean()


@pytest.mark.parametrize("most", [512, 2])
@pytest.mark.parametrize("family", ["weibull", "loglogistic", "spline_po"])
def test_leaves_that_a_ridge_holds_nearly_constant_are_fitted_to_the_end(family, most, monkeypatch):
    """With slopes of their own they took more than the 200 rounds of a final fit."""
    monkeypatch.setattr(leaf_metric_module, "MAX_COLUMNS", most)
    monkeypatch.setattr(gram, "MAX_COLUMNS", most)
    problem, leaf = a_stack(family)
    each = torch.ones(TREES, dtype=torch.float64)
    held = LeafPenalties(25 * each, 0.1 * each, 2.5e-4 * each)
    found = fit_leaves(problem, leaf, LEAVES, held)
    end = fit_leaves(problem, leaf, LEAVES, held, settings=LbfgsSettings(max_iterations=5000, ftol=0.0, gtol=1e-9))
    assert bool(found.converged.all())
    torch.testing.assert_close(found.loss, end.loss, rtol=0, atol=1e-6)


@pytest.mark.parametrize("family", ["loglogistic", "spline_po"])
def test_a_rough_fit_with_a_middling_ridge_is_nearly_at_its_end(family):
    """Rare levels have little curvature: such a ridge, far below that of a row's loss, is all there is of it."""
    rng = np.random.default_rng(0)
    rare = pd.DataFrame((rng.random((N, 8)) < 0.03).astype(float))
    data = survival_data(rare, time=rng.weibull(1.0, N) + 0.01, event=rng.random(N) < 0.7)
    problem, leaf = make_problem(data, get_family(family), n_trees=TREES), torch.arange(N).expand(TREES, -1) % LEAVES
    each = torch.ones(TREES, dtype=torch.float64)
    held = LeafPenalties(0.1 * each, 0.1 * each, np.inf * each)
    start = fit_leaves(problem, leaf, LEAVES, penalties(np.inf)).point[0].clone()
    start[:, 0, 1 : problem.design.shape[-1]] += 1.0  # the slopes of another ridge
    rough = fit_leaves(problem, leaf, LEAVES, held, start, ROUGH)
    end = fit_leaves(problem, leaf, LEAVES, held, start, LbfgsSettings(max_iterations=5000, ftol=0.0, gtol=1e-9))
    torch.testing.assert_close(rough.loss, end.loss, rtol=0, atol=1e-5)


def test_a_leaf_without_rows_has_a_finite_metric():
    problem, leaf = a_stack("spline_po")
    found = fit_leaves(problem, torch.zeros_like(leaf), LEAVES, penalties(np.inf))
    assert torch.isfinite(found.point[0]).all()
    assert found.point[0][:, 2].abs().max() < 1e-6
