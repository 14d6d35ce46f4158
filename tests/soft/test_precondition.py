"""The metric of a stack's parameters: against the dense matrix, units, padding, masks, and what it is good for."""

import numpy as np
import pytest
import torch

from softsurv.hazards import get_family
from softsurv.soft import precondition
from softsurv.soft.blocks import minimise_joint
from softsurv.soft.starts import initial_leaves, random_routing
from softsurv.soft.objective import Objective
from softsurv.soft.penalties import no_penalties
from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.soft.precondition import LEAF_SCALE, RIDGE, SHAPE_SCALE, GramMetric, inverse_gram
from softsurv.soft.problem import join_problems, make_problem
from softsurv.trees.soft_tree import with_intercept


def design(n=40, p=3, seed=0, scale=1.0):
    x = torch.tensor(np.random.default_rng(seed).standard_normal((1, n, p)))
    return with_intercept(scale * x + 1)


def problem(tools, n=30, p=3, seed=0, n_trees=2):
    return make_problem(tools.simulate(n, p, seed), get_family("weibull"), n_trees=n_trees)


def test_is_the_inverse_of_the_gram_matrix_with_its_ridge():
    x = design()[0]
    gram = x.T @ x / len(x)
    expected = torch.linalg.inv(gram + RIDGE * torch.diag(torch.diagonal(gram)))
    torch.testing.assert_close(inverse_gram(x[None])[0], expected)


@pytest.mark.parametrize("columns", [3, 60])
def test_columns_of_zeros_collinear_columns_and_more_columns_than_rows_have_one(columns):
    x = design(50, columns)
    x = torch.cat([x, x[..., 1:2], torch.zeros_like(x[..., :1])], -1)
    inverse = inverse_gram(x)[0]
    assert torch.isfinite(inverse).all()
    assert (torch.linalg.eigvalsh(inverse) > 0).all()
    assert inverse[-1, -1] == 1


def test_many_columns_get_the_diagonal(monkeypatch):
    monkeypatch.setattr(precondition, "MAX_COLUMNS", 3)
    x = design()
    torch.testing.assert_close(inverse_gram(x)[0], torch.diag(1 / x[0].square().mean(0)))


def test_rows_of_zeros_change_nothing():
    x = design()
    padded = torch.nn.functional.pad(x, (0, 0, 0, 17))
    torch.testing.assert_close(inverse_gram(padded), inverse_gram(x))


def test_single_precision():
    x = design().float()
    inverse = inverse_gram(x)
    assert inverse.dtype == torch.float32
    torch.testing.assert_close(inverse.double(), inverse_gram(x.double()), rtol=1e-4, atol=1e-4)


def test_metric_is_block_diagonal(tools):
    one, gradient = problem(tools), torch.randn(2, 3 * 4 + 4 * 5, dtype=torch.float64)
    step = GramMetric(one, 3, 4)(gradient, None)
    inverse = inverse_gram(one.design)[0]
    for tree in range(2):
        routing, leaves = gradient[tree, :12].view(3, 4), gradient[tree, 12:].view(4, 5)
        torch.testing.assert_close(step[tree, :12].view(3, 4), routing @ inverse)
        torch.testing.assert_close(step[tree, 12:].view(4, 5)[:, :4], LEAF_SCALE * leaves[:, :4] @ inverse)
        torch.testing.assert_close(step[tree, 12:].view(4, 5)[:, 4:], SHAPE_SCALE * leaves[:, 4:])


@pytest.mark.parametrize(("branches", "leaves"), [(3, 0), (0, 4), (0, 1)])
def test_metric_of_one_kind_of_node(tools, branches, leaves):
    one, gradient = problem(tools), torch.randn(2, branches * 4 + leaves * 5, dtype=torch.float64)
    step = GramMetric(one, branches, leaves)(gradient, None)
    assert step.shape == gradient.shape
    assert ((step * gradient).sum(1) > 0).all()


def test_groups_have_their_own_and_rows_choose_among_them(tools):
    parts = [problem(tools, n, seed=n) for n in (30, 25)]
    metric, gradient = GramMetric(join_problems(parts), 3), torch.randn(4, 12, dtype=torch.float64)
    together = metric(gradient, None)
    for k, part in enumerate(parts):
        rows = torch.tensor([2 * k, 2 * k + 1])
        torch.testing.assert_close(together[rows], GramMetric(part, 3)(gradient[rows], None))
        torch.testing.assert_close(metric(gradient[rows], rows), together[rows])
    torch.testing.assert_close(metric(gradient, None), together)


def test_parameters_that_may_not_move_get_no_step(tools):
    one = problem(tools)
    moves = torch.rand(2, 12) < 0.5
    metric, gradient = GramMetric(one, 3, moves=moves), torch.where(moves, torch.randn(2, 12, dtype=torch.float64), 0.0)
    step = metric(gradient, None)
    assert (step[~moves] == 0).all()
    assert ((step * gradient).sum(1) > 0).all()
    torch.testing.assert_close(metric(gradient[1:], torch.tensor([1])), step[1:])


def test_minimiser_with_a_metric_is_the_minimiser_in_its_coordinates():
    rng = np.random.default_rng(3)
    half = torch.tensor(rng.standard_normal((5, 5)))
    target = torch.tensor(rng.standard_normal(5))

    def curved(x, rows):
        away = x - target
        return away.square().square().sum(1) + away.square().sum(1), 4 * away**3 + 2 * away

    def mapped(u, rows):
        value, gradient = curved(u @ half.T, rows)
        return value, gradient @ half

    settings, start = LbfgsSettings(max_iterations=7, ftol=0.0), torch.tensor(rng.standard_normal((3, 5)))
    x, f = minimise(curved, start @ half.T, settings, metric=lambda g, rows: g @ (half @ half.T))
    u, value = minimise(mapped, start, settings)
    torch.testing.assert_close(f, value)
    torch.testing.assert_close(x, u @ half.T)


def test_units_of_the_features_do_not_matter(tools):
    data = tools.simulate(80)
    scale = torch.tensor([1.0, 100.0, 1e-3])
    values = []
    for factor in (torch.ones(3), scale):
        scaled = data.with_features(data.X * factor.numpy())
        one = Objective(
            make_problem(scaled, get_family("weibull"), n_trees=2),
            1,
            no_penalties(2, 5, torch.zeros(0, dtype=torch.float64)),
        )
        routing = random_routing(data.x.numpy(), 1, (0, 1))
        leaves = initial_leaves(torch.zeros(2, 1, 5, dtype=torch.float64), 1, (0, 1))
        routing[..., 1:] /= factor
        leaves[..., 1:4] /= factor
        values.append(minimise_joint(one, routing, leaves, LbfgsSettings(max_iterations=20, gtol=0.0))[2])
    torch.testing.assert_close(values[1], values[0], rtol=1e-6, atol=1e-8)


def test_correlated_features_cost_few_rounds(tools):
    data = tools.simulate(200, 4)
    mix = np.eye(4) + 5.0  # features that are nearly one and the same
    correlated = data.with_features(data.X @ mix)
    one = Objective(
        make_problem(correlated, get_family("weibull"), n_trees=1),
        0,
        no_penalties(1, 6, torch.zeros(0, dtype=torch.float64)),
    )
    start = torch.zeros(1, 0, 5, dtype=torch.float64), torch.zeros(1, 1, 6, dtype=torch.float64)
    to_the_end = minimise_joint(one, *start, LbfgsSettings(max_iterations=2000, ftol=1e-15, gtol=1e-10))[2]
    soon = minimise_joint(one, *start, LbfgsSettings(max_iterations=25, ftol=1e-15))[2]
    assert float(soon - to_the_end) < 1e-6
