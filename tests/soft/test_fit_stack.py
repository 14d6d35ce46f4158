"""A stack against its trees one by one, the penalties of its settings, and parameters that may not move."""

from dataclasses import replace

import pytest
import torch
from oracles.fold_stack import CPU, SHORT, folds_and_settings

from softsurv.hazards import get_family
from softsurv.soft.fit_stack import Stack, fit_single_leaf, fit_stack
from softsurv.soft.problem import make_problem
from softsurv.soft.restricted import Moves


def test_folds_come_slowest_and_starts_fastest(tools):
    stack, anchors, n = folds_and_settings(tools)
    assert stack.n_trees == 8
    penalties = stack.objective.penalties
    one = torch.cat([1 / n[:1].expand(4), 1 / n[1:].expand(4)])
    torch.testing.assert_close(penalties.shrinkage, torch.tensor([3.0, 3.0, 0.0, 0.0] * 2) * one)
    torch.testing.assert_close(penalties.routing_l2, torch.tensor([1.0, 1.0, 0.1, 0.1] * 2, dtype=torch.float64) * one)
    torch.testing.assert_close(
        penalties.anchor[:, 0], anchors.point[0][:, :, None, 0].expand(2, 2, 2, -1).flatten(0, 2)
    )
    assert torch.equal(stack.routing[0], stack.routing[2])
    assert not torch.equal(stack.routing[0], stack.routing[1])


def test_a_shrunken_tree_takes_its_ridge_through_the_anchor_alone(tools):
    stack, anchors, n = folds_and_settings(tools)
    expected = torch.tensor([0.0, 0.0, 1.0, 1.0] * 2) * torch.cat([1 / n[:1].expand(4), 1 / n[1:].expand(4)])
    torch.testing.assert_close(stack.objective.penalties.l2, expected)
    problem = make_problem(
        tools.simulate(90), get_family("weibull"), weight=(stack.objective.problem.weight[4:5, 0] > 0)
    )
    alone = fit_single_leaf(problem, 1 / n[1:])
    torch.testing.assert_close(anchors.point[0][1, 1], alone.point[0][0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("solver", ["lbfgs", "nodec"])
def test_parts_of_a_stack_give_what_the_stack_gives(tools, solver, monkeypatch):
    stack, _, _ = folds_and_settings(tools)
    training = replace(SHORT, solver=solver, nodec=replace(SHORT.nodec, max_sweeps=1))
    whole = fit_stack(stack, training, CPU)
    monkeypatch.setattr("softsurv.soft.capacity.MAX_CELLS", 90 * 4 * 3)
    parts = fit_stack(stack, training, replace(CPU, workers=2))
    torch.testing.assert_close(parts.objective, whole.objective, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(parts.trace[-1], whole.trace[-1], rtol=1e-6, atol=1e-8)


def test_a_tree_whose_routing_is_fixed_keeps_it_to_the_last_digit(tools):
    stack, _, _ = folds_and_settings(tools)
    moves = Moves(torch.ones_like(stack.routing).bool(), torch.ones_like(stack.leaves).bool())
    moves.routing[3] = False
    moves.routing[5, 0] = False
    trained = fit_stack(replace(stack, moves=moves), SHORT, CPU)
    assert torch.equal(trained.routing[3], stack.routing[3])
    assert torch.equal(trained.routing[5, 0], stack.routing[5, 0])
    assert not torch.equal(trained.routing[5, 1], stack.routing[5, 1])
    free = fit_stack(stack, SHORT, CPU)
    torch.testing.assert_close(trained.objective[0], free.objective[0], rtol=1e-6, atol=1e-8)
    assert trained.objective[3] > free.objective[3]


def test_moves_of_everything_change_nothing(tools):
    stack, _, _ = folds_and_settings(tools)
    moves = Moves(torch.ones_like(stack.routing).bool(), torch.ones_like(stack.leaves).bool())
    free, masked = fit_stack(stack, SHORT, CPU), fit_stack(replace(stack, moves=moves), SHORT, CPU)
    torch.testing.assert_close(masked.objective, free.objective, rtol=1e-6, atol=1e-8)


def test_the_start_is_not_written_over(tools):
    stack, _, _ = folds_and_settings(tools)
    kept = stack.routing.clone(), stack.leaves.clone()
    fit_stack(stack, SHORT, CPU)
    assert torch.equal(stack.routing, kept[0])
    assert torch.equal(stack.leaves, kept[1])


def test_some_trees_of_a_stack(tools):
    stack, _, _ = folds_and_settings(tools)
    some = torch.tensor([6, 1])
    part = stack.take(some)
    assert isinstance(part, Stack)
    torch.testing.assert_close(part.objective.value(part.routing, part.leaves), _value(stack)[some])


def _value(stack):
    return stack.objective.value(stack.routing, stack.leaves)
