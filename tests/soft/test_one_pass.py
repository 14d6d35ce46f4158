"""The compiled loops over the rows against torch's operators, which train on other devices."""

import math

import numpy as np
import pytest
import torch

from softsurv.hazards import family_names
from softsurv.soft import one_pass, row_kernels, vector_math
from softsurv.soft.nodec import NodecSettings, nodec
from softsurv.soft.objective import Objective
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.soft.problem import join_problems
from softsurv.soft.quasi_newton import Memory

ROWS = 2 * row_kernels.BLOCK + 17
"""Two whole blocks and a part of one."""


def both_ways(function, *arguments):
    """What a function gives by the compiled loops and by operators."""
    with operators_alone():
        expected = function(*arguments)
    return function(*arguments), expected


def assert_equal(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        scale = max(1.0, float(theirs.abs().max())) if theirs.numel() else 1.0
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-13 * scale)


@pytest.mark.parametrize("family", family_names())
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_values_and_gradients_of_all_restrictions(tools, family, depth):
    objective = tools.make_objective(tools.simulate(ROWS), family, depth, n_trees=3, penalised=True)
    for size in (0.3, 4.0):
        routing, leaves = tools.random_parameters(objective, size=size)
        for hard in range(depth + 1):
            assert_equal(*both_ways(objective.value_and_gradient, routing, leaves, hard))
        loss, reach = objective.leaf_terms(leaves).loss, objective.reach(routing)
        assert_equal(*both_ways(objective.leaf_value_and_gradient, leaves, reach))
        if depth:
            weight = objective.problem.weight
            assert_equal(*both_ways(objective.routing_value_and_gradient, routing, loss, weight))


@pytest.mark.parametrize("family", ["weibull", "loglogistic"])
def test_groups_and_rows_without_weight(tools, family):
    """Folds of different lengths: padded rows weigh nothing, and trees have the events of their own group."""
    parts = [tools.make_objective(tools.simulate(n, seed=n), family, 2, 2).problem for n in (40, 31)]
    problem = join_problems(parts)
    objective = Objective(problem, 2, tools.penalties_for(problem))
    assert_equal(*both_ways(objective.value_and_gradient, *tools.random_parameters(objective)))


def test_a_tree_does_not_depend_on_the_stack_it_is_in(tools):
    objective = tools.make_objective(tools.simulate(ROWS), "loglogistic", 2, n_trees=5)
    routing, leaves = tools.random_parameters(objective)
    z, rise = objective.predictors(leaves)[1:]
    split, mass, event = objective.splits(routing), objective.problem.weight, objective.problem.event
    whole = one_pass.expected_loss(row_kernels.ODDS, z, rise, event, split, mass)
    alone = one_pass.expected_loss(row_kernels.ODDS, z[3:4], rise[3:4], event, split[3:4], mass[3:4])
    for ours, theirs in zip(alone, whole, strict=True):
        assert torch.equal(ours[0], theirs[3])


def test_minima_are_the_same(tools):
    objective = tools.make_objective(tools.simulate(ROWS), "loglogistic", 2, n_trees=3, penalised=True)
    start, settings = tools.random_parameters(objective), LbfgsSettings(max_iterations=300, ftol=1e-13, gtol=1e-7)
    found, expected = both_ways(minimise, objective, start, settings)
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-8, atol=0)
    found, expected = both_ways(nodec, objective, *start, NodecSettings(max_sweeps=1))
    torch.testing.assert_close(found.objective, expected.objective, rtol=1e-4, atol=0)


def test_other_censorings_numbers_and_gradients_by_autograd_take_operators(tools):
    objective = tools.make_objective(tools.with_everything(), "weibull", 1)
    assert objective._compiled(objective.problem.weight) is None
    plain = tools.make_objective(tools.simulate(), "weibull", 1)
    assert plain._compiled(plain.problem.weight) == row_kernels.HAZARDS
    assert plain._compiled(plain.problem.weight.float()) is None
    assert plain._compiled(plain.problem.weight.clone().requires_grad_()) is None


@pytest.mark.parametrize("link", [row_kernels.HAZARDS, row_kernels.ODDS])
def test_what_is_not_finite_stays_so(link):
    """The line search takes a value that is not finite for a step too far."""
    nothing = torch.zeros(1, 1, 3, dtype=torch.float64)
    for bad in (math.nan, math.inf):
        z = torch.tensor([[[0.0, bad, 1.0]]], dtype=torch.float64)
        found = one_pass.expected_loss(link, z, nothing, nothing[0:1], nothing[:, :0], nothing + 1)
        assert not torch.isfinite(found.value).all()


def test_exponential_and_logarithm_to_the_last_places():
    @row_kernels.njit()
    def table(x, e, powers, logs):
        for i in range(x.size):
            powers[i], logs[i] = vector_math.exponential(x[i]), vector_math.log_one_plus(e[i])

    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-707, 700, 20_000), rng.uniform(-1, 1, 20_000), [0.0, -0.0, -800.0, -math.inf]])
    e = np.concatenate(
        [rng.uniform(0, 1, 20_000), 10 ** rng.uniform(-300, 0, 20_000), [0.0, 1.0, 0.4142135623730951, 0.5]]
    )
    powers, logs = np.empty_like(x), np.empty_like(e)
    table(x, e, powers, logs)
    np.testing.assert_allclose(powers, np.exp(x), rtol=5e-16, atol=1e-307)
    np.testing.assert_allclose(logs, np.log1p(e), rtol=5e-16)


def remembered(accepted):
    """Directions and slopes of a memory of three pairs after each of some moves, which some trees refuse."""
    rng, found = np.random.default_rng(0), []
    curvature = torch.tensor(rng.standard_normal((4, 6, 6)))
    curvature = curvature @ curvature.mT + torch.eye(6, dtype=torch.float64)
    x = torch.tensor(rng.standard_normal((4, 6)))

    def gradient(at):
        return (curvature @ at[..., None])[..., 0]

    memory = Memory(x, gradient(x), 0.3 * gradient(x), 3)
    for kept in accepted:
        direction, slope = memory.direction()
        trial = memory.x + 0.7 * direction
        trial = torch.where(torch.isfinite(trial), trial, 0.0)
        new = torch.where(kept[:, None], gradient(trial), torch.nan)  # a refused trial may have no gradient
        memory.move(trial, new, 0.3 * new, kept)
        found += [direction, slope, memory.x.clone()]
    return found


def test_the_memory_of_quasi_newton_steps():
    """Before it is full, once it turns over, and in trees that stay where they are."""
    accepted = torch.tensor(np.random.default_rng(1).random((9, 4)) < 0.7)
    for ours, theirs in zip(*both_ways(remembered, accepted), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


def test_a_pair_without_curvature_is_not_remembered():
    """Along a line that falls ever more steeply the metric's direction stays."""

    def direction():
        x = torch.zeros(1, 2, dtype=torch.float64)
        memory = Memory(x, x + 1, x + 1, 2)
        memory.move(x - 1, x + 2, x + 2, torch.tensor([True]))
        return memory.direction()

    for ours, theirs in zip(*both_ways(direction), strict=True):
        assert torch.equal(ours, theirs)
    assert direction()[0].tolist() == [[-2.0, -2.0]]
