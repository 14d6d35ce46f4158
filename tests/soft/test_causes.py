"""The objective of dense trees with causes: against the objectives of each cause, and its own slopes."""

from __future__ import annotations

import pytest
import torch
from oracles.soft_causes import objective_for, random_parameters, rows_of

from softsurv.hazards import get_family
from softsurv.soft.causes import CausesObjective, make_problem_of_causes, objective_of
from softsurv.soft.fit_stack import fit_single_leaf
from softsurv.soft.newton import NewtonSettings
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.penalties import no_penalties
from softsurv.soft.precondition import GramMetric
from softsurv.soft.problem import make_problem
from softsurv.soft.restricted import fit_leaves


@pytest.mark.parametrize("late", [False, True])
def test_causes_are_added_up(tools, late):
    data = rows_of(tools, late=late)
    objective = objective_for(tools, data)
    assert isinstance(objective, CausesObjective)
    routing, leaves = random_parameters(tools, objective)
    free = no_penalties(2, leaves.shape[-1] // 2, leaves)
    value = objective.value(routing, leaves) - objective.penalty(routing, leaves)[0]
    alone = 0.0
    for code, own in zip((1, 2), leaves.chunk(2, -1), strict=True):
        problem = make_problem(data.of_cause(code), get_family("weibull"), n_trees=2)
        alone = alone + Objective(problem, 2, free).value(routing, own)
    torch.testing.assert_close(value, alone)


@pytest.mark.parametrize("rows", ["plain", "late", "fair"])
@pytest.mark.parametrize("family", ["weibull", "spline_po"])
def test_gradients_are_the_slopes(tools, family, rows):
    data = rows_of(tools, late=rows == "late")
    objective = objective_for(tools, data, family=family, fair=2.0 if rows == "fair" else 0.0)
    routing, leaves = random_parameters(tools, objective)
    for hard in range(3):
        value, d_routing, d_leaves = objective.value_and_gradient(routing, leaves, hard)
        u, v = random_parameters(tools, objective, seed=9, size=1.0)
        step = 1e-6
        up, down = (objective.value_and_gradient(routing + s * u, leaves + s * v, hard)[0] for s in (step, -step))
        found = (d_routing * u).sum((1, 2)) + (d_leaves * v).sum((1, 2))
        torch.testing.assert_close(found, (up - down) / (2 * step), rtol=1e-5, atol=1e-6)
        if rows != "fair":
            reach = objective.reach(routing, hard)
            by_leaves, gradient = objective.leaf_value_and_gradient(leaves, reach)
            rest = objective.penalty(routing, leaves)[0] - objective.penalty(0 * routing, leaves)[0]
            torch.testing.assert_close(by_leaves + rest, value)
            torch.testing.assert_close(gradient, d_leaves)


def test_the_single_leaf_is_that_of_each_cause(tools):
    data = rows_of(tools)
    problem = make_problem_of_causes(data, get_family("loglogistic"))
    ridge = torch.tensor([0.1], dtype=torch.float64)
    leaves = fit_single_leaf(problem, ridge).point[0]
    for code, own in zip((1, 2), problem.blocks(leaves), strict=True):
        alone = fit_single_leaf(make_problem(data.of_cause(code), get_family("loglogistic")), ridge).point[0]
        torch.testing.assert_close(own, alone)


def test_stacks_take_trees_of_all_causes(tools):
    objective = objective_for(tools, rows_of(tools), n_trees=3, fair=1.0)
    routing, leaves = random_parameters(tools, objective)
    one = objective.take(torch.tensor([1]))
    whole, part = objective.value_and_gradient(routing, leaves), one.value_and_gradient(routing[1:2], leaves[1:2])
    for ours, alone in zip(whole, part, strict=True):
        torch.testing.assert_close(ours[1:2], alone)


def test_the_metric_scales_each_cause_alike(tools):
    objective = objective_for(tools, rows_of(tools))
    routing, leaves = random_parameters(tools, objective)
    metric = GramMetric(objective.problem, routing.shape[1], leaves.shape[1])
    first, second = leaves.chunk(2, -1)
    same = torch.cat([routing.flatten(1), torch.cat([first, first], -1).flatten(1)], 1)
    steps = metric(same)[:, routing[0].numel() :].unflatten(1, leaves.shape[1:])
    torch.testing.assert_close(*steps.chunk(2, -1))
    assert not torch.equal(first, second)


def test_leaves_of_causes_end_where_l_bfgs_ends(tools):
    """Newton's method fits each cause alone; L-BFGS the sum over all. A cause that does not count stays."""
    data = rows_of(tools)
    objective = objective_for(tools, data)
    routing, leaves = random_parameters(tools, objective)
    reach, rounds = objective.reach(routing, 1), LbfgsSettings(max_iterations=500, ftol=1e-13, gtol=1e-9)
    newton, others = (fit_leaves(objective, routing, leaves, how, 1) for how in (NewtonSettings(steps=40), rounds))
    values = [objective.leaf_value_and_gradient(end, reach)[0] for end in (newton, others)]
    torch.testing.assert_close(*values, rtol=1e-8, atol=1e-9)
    one = make_problem_of_causes(data, get_family("weibull"), (1.0, 0.0), n_trees=2)
    counted = objective_of(one, 2, objective.penalties)
    own, rest = fit_leaves(counted, routing, leaves, NewtonSettings(steps=40), 1).chunk(2, -1)
    torch.testing.assert_close(own, newton.chunk(2, -1)[0])
    torch.testing.assert_close(rest, leaves.chunk(2, -1)[1], rtol=0, atol=0)
