"""The objective over some of its parameters."""

import pytest
import torch
from oracles.soft_stack import CURVED, stack

from softsurv.soft.newton import NewtonSettings
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.restricted import Moves, OverBranches, OverLeaves, OverMoves, fit_branches, fit_leaves, fit_moves
from softsurv.trees.routing import hard_reach
from softsurv.trees.topology import level_slice

TO_THE_END = LbfgsSettings(max_iterations=500, ftol=1e-13, gtol=1e-9)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("family", CURVED)
def test_leaves_end_where_l_bfgs_ends(tools, family, groups):
    objective, routing, leaves = stack(tools, family, groups)
    reach = objective.reach(routing, 1)
    losses = [
        objective.leaf_value_and_gradient(fit_leaves(objective, routing, leaves, settings, 1), reach)[0]
        for settings in (NewtonSettings(steps=200), TO_THE_END)
    ]
    torch.testing.assert_close(*losses, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("level", [0, 1])
def test_branches_come_as_low_as_by_l_bfgs(tools, level):
    """In a few steps at least as low as 20 rounds of L-BFGS on average; nodes that may not move stay."""
    objective, routing, leaves = stack(tools, "loglogistic", trees=12)
    loss = objective.leaf_losses(leaves)
    free = torch.zeros(12, 3, 1, dtype=torch.bool)
    free[:10, level_slice(level)] = True
    ends = [
        fit_branches(objective, routing, leaves, loss, free, settings, level)
        for settings in (NewtonSettings(), LbfgsSettings(max_iterations=20, ftol=1e-6))
    ]
    mass = (
        objective.problem.weight
        if level == 0
        else hard_reach(objective.splits(routing[:, :1]), 1, objective.problem.weight)
    )
    kept = routing if level == 0 else routing[:, 1:]
    values = [objective.routing_value_and_gradient(e if level == 0 else e[:, 1:], loss, mass)[0] for e in ends]
    began = objective.routing_value_and_gradient(kept, loss, mass)[0]
    assert (values[0] <= began).all()
    assert (values[0][:10] < began[:10]).all()
    assert values[0].mean() <= values[1].mean() + 1e-5
    still = ~free.expand_as(routing)
    torch.testing.assert_close(ends[0][still], routing[still], rtol=0, atol=0)


@pytest.mark.parametrize("hard", [0, 1])
def test_parameters_that_may_not_move_stay_to_the_last_digit(tools, hard):
    objective = tools.make_objective(tools.simulate(60), "weibull", 2, n_trees=2, penalised=True)
    routing, leaves = tools.random_parameters(objective)
    moves = Moves(torch.zeros_like(routing).bool(), torch.zeros_like(leaves).bool())
    moves.routing[:, 1], moves.leaves[0, 2, 1] = True, True
    end = fit_moves(objective, routing, leaves, moves, LbfgsSettings(max_iterations=10), hard)
    for before, after, may in zip((routing, leaves), end.point, (moves.routing, moves.leaves), strict=True):
        assert torch.equal(before[~may], after[~may])
        assert not torch.equal(before[may], after[may])
    start = objective.value_and_gradient(routing, leaves, hard)[0]
    assert (end.loss < start).all()


def test_restrictions_are_the_objective_with_the_rest_fixed(tools):
    objective = tools.make_objective(tools.simulate(60), "loglogistic", 2, n_trees=2, penalised=True)
    routing, leaves = tools.random_parameters(objective)
    whole, by_routing, by_leaves = objective.value_and_gradient(routing, leaves)
    value, gradient = OverLeaves(objective, objective.reach(routing)).value_and_gradient(leaves)
    torch.testing.assert_close(gradient, by_leaves)
    free = torch.tensor([[True], [False], [True]]).expand(2, 3, 1)
    weight = objective.problem.weight
    over = OverBranches(objective, objective.leaf_losses(leaves), weight, free)
    routed, slopes = over.value_and_gradient(routing)
    torch.testing.assert_close(slopes, torch.where(free, by_routing, 0.0))
    away = leaves + 0.1
    change = OverLeaves(objective, objective.reach(routing)).value_and_gradient(away)[0] - value
    torch.testing.assert_close(change, objective.value(routing, away) - whole)
    other = over.value_and_gradient(routing + 0.1)[0] - routed
    torch.testing.assert_close(other, objective.value(routing + 0.1, leaves) - whole)


def test_some_trees_of_a_restriction(tools):
    objective = tools.make_objective(tools.simulate(40), "weibull", 1, n_trees=3, penalised=True)
    routing, leaves = tools.random_parameters(objective)
    rows = torch.tensor([2, 0])
    every = OverMoves(objective, Moves(torch.ones_like(routing).bool(), torch.ones_like(leaves).bool()))
    some = every.take(rows).value_and_gradient(routing[rows], leaves[rows])
    for part, whole in zip(some, every.value_and_gradient(routing, leaves), strict=True):
        torch.testing.assert_close(part, whole[rows])
