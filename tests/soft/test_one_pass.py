"""The compiled loops over the rows against torch's operators, which train on other devices."""

import pytest
import torch
from oracles.both_ways import both_ways

from softsurv.hazards import family_names
from softsurv.soft import one_pass, row_kernels
from softsurv.soft.nodec import NodecSettings, nodec
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.soft.problem import join_problems

ROWS = 2 * row_kernels.BLOCK + 17
"""Two whole blocks and a part of one."""


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
