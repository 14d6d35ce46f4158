"""The metric of a stack's parameters: against the dense matrix, units, padding, masks, and what it is good for."""

import numpy as np
import pytest
import torch

from softsurv.hazards import get_family
from softsurv.soft import gram
from softsurv.soft.gram import inverse_gram
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.soft.penalties import no_penalties
from softsurv.soft.precondition import LEAF_SCALE, SHAPE_SCALE, GramMetric
from softsurv.soft.problem import join_problems, make_problem
from softsurv.soft.starts import initial_leaves, random_routing


def problem(tools, n=30, p=3, seed=0, n_trees=2):
    return make_problem(tools.simulate(n, p, seed), get_family("weibull"), n_trees=n_trees)


def test_metric_is_block_diagonal(tools):
    one, gradient = problem(tools), torch.randn(2, 3 * 4 + 4 * 5, dtype=torch.float64)
    step = GramMetric(one, 3, 4)(gradient)
    inverse = inverse_gram(one.design)[0]
    for tree in range(2):
        routing, leaves = gradient[tree, :12].view(3, 4), gradient[tree, 12:].view(4, 5)
        torch.testing.assert_close(step[tree, :12].view(3, 4), routing @ inverse)
        torch.testing.assert_close(step[tree, 12:].view(4, 5)[:, :4], LEAF_SCALE * leaves[:, :4] @ inverse)
        torch.testing.assert_close(step[tree, 12:].view(4, 5)[:, 4:], SHAPE_SCALE * leaves[:, 4:])


@pytest.mark.parametrize(("branches", "leaves"), [(3, 0), (0, 4), (0, 1)])
def test_metric_of_one_kind_of_node(tools, branches, leaves):
    one, gradient = problem(tools), torch.randn(2, branches * 4 + leaves * 5, dtype=torch.float64)
    step = GramMetric(one, branches, leaves)(gradient)
    assert step.shape == gradient.shape
    assert ((step * gradient).sum(1) > 0).all()


def test_groups_have_their_own_and_rows_choose_among_them(tools):
    parts = [problem(tools, n, seed=n) for n in (30, 25)]
    metric, gradient = GramMetric(join_problems(parts), 3), torch.randn(4, 12, dtype=torch.float64)
    together = metric(gradient)
    for k, part in enumerate(parts):
        rows = torch.tensor([2 * k, 2 * k + 1])
        torch.testing.assert_close(together[rows], GramMetric(part, 3)(gradient[rows]))
        torch.testing.assert_close(metric.take(rows)(gradient[rows]), together[rows])
    torch.testing.assert_close(metric(gradient), together)


def test_parameters_that_may_not_move_get_no_step(tools):
    one = problem(tools)
    moves = torch.rand(2, 12) < 0.5
    metric, gradient = GramMetric(one, 3, moves=moves), torch.where(moves, torch.randn(2, 12, dtype=torch.float64), 0.0)
    step = metric(gradient)
    assert (step[~moves] == 0).all()
    assert ((step * gradient).sum(1) > 0).all()
    torch.testing.assert_close(metric.take(torch.tensor([1]))(gradient[1:]), step[1:])


class Whole:
    """One function for all rows."""

    def __init__(self, function):
        self.value_and_gradient = function

    def take(self, rows):
        return self


class Constant:
    """One matrix for all rows."""

    def __init__(self, matrix):
        self.matrix = matrix

    def __call__(self, gradient):
        return gradient @ self.matrix

    def take(self, rows):
        return self


def test_a_diagonal_is_kept_as_a_vector(tools, monkeypatch):
    """Steps are those of the matrix that has it on its diagonal, for groups and for parts of a stack."""
    monkeypatch.setattr(gram, "MAX_COLUMNS", 3)
    metric = GramMetric(join_problems([problem(tools, n, seed=n) for n in (30, 25)]), 3, 4)
    assert metric.inverse.shape == (2, 4)
    gradient = torch.randn(4, 3 * 4 + 4 * 5, dtype=torch.float64)
    step = metric(gradient)
    for tree in range(4):
        routing = gradient[tree, :12].view(3, 4) @ torch.diag(metric.inverse[tree // 2])
        torch.testing.assert_close(step[tree, :12].view(3, 4), routing)
    torch.testing.assert_close(metric.take(torch.tensor([2, 3]))(gradient[2:]), step[2:])


def test_minimiser_with_a_metric_is_the_minimiser_in_its_coordinates():
    rng = np.random.default_rng(3)
    half = torch.tensor(rng.standard_normal((5, 5)))
    target = torch.tensor(rng.standard_normal(5))

    def curved(x):
        away = x - target
        return away.square().square().sum(1) + away.square().sum(1), 4 * away**3 + 2 * away

    def mapped(u):
        value, gradient = curved(u @ half.T)
        return value, gradient @ half

    settings, start = LbfgsSettings(max_iterations=7, ftol=0.0), torch.tensor(rng.standard_normal((3, 5)))
    end = minimise(Whole(curved), (start @ half.T,), settings, Constant(half @ half.T))
    same = minimise(Whole(mapped), (start,), settings)
    torch.testing.assert_close(end.loss, same.loss)
    torch.testing.assert_close(end.point[0], same.point[0] @ half.T)


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
        metric = GramMetric(one.problem, 1, 2)
        values.append(minimise(one, (routing, leaves), LbfgsSettings(max_iterations=20, gtol=0.0), metric).loss)
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
    metric = GramMetric(one.problem, 0, 1)
    to_the_end = minimise(one, start, LbfgsSettings(max_iterations=2000, ftol=1e-15, gtol=1e-10), metric).loss
    soon = minimise(one, start, LbfgsSettings(max_iterations=25, ftol=1e-15), metric).loss
    assert float(soon - to_the_end) < 1e-6
