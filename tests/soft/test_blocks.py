"""Branch nodes and leaves as blocks of Newton's method: values, slopes and curvatures."""

import pytest
import torch
from oracles.soft_stack import CURVED, stack

from softsurv.soft.blocks import BranchBlocks, LeafBlocks, leaves_fall_apart
from softsurv.trees.routing import hard_reach
from softsurv.trees.topology import level_slice


def branch_blocks(objective, routing, leaves, level=1):
    """The nodes above the leaves."""
    mass = hard_reach(objective.splits(routing[:, : level_slice(level).start]), level, objective.problem.weight)
    return BranchBlocks.of(objective, objective.leaf_losses(leaves), mass)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("family", CURVED)
def test_value_and_slope_of_leaves_add_up_to_those_of_the_tree(tools, family, groups):
    objective, routing, leaves = stack(tools, family, groups)
    reach = objective.reach(routing, 1)
    here = LeafBlocks(objective, reach).near(leaves)
    value, gradient = objective.leaf_value_and_gradient(leaves, reach)
    torch.testing.assert_close(here.gradient, gradient)
    floor = objective.leaf_well.floor * leaves.shape[1]
    torch.testing.assert_close(here.value.sum(1) + floor, value)


@pytest.mark.parametrize("groups", [1, 2])
def test_value_and_slope_of_branches_add_up_to_those_of_the_tree(tools, groups):
    objective, routing, leaves = stack(tools, "weibull", groups)
    here = branch_blocks(objective, routing, leaves).near(routing[:, 1:])
    away = branch_blocks(objective, routing, leaves).near(0 * routing[:, 1:])
    mass = hard_reach(objective.splits(routing[:, :1]), 1, objective.problem.weight)
    loss = objective.leaf_losses(leaves)
    value, gradient = objective.routing_value_and_gradient(routing[:, 1:], loss, mass)
    zero, _ = objective.routing_value_and_gradient(0 * routing[:, 1:], loss, mass)
    torch.testing.assert_close(here.gradient, gradient)
    torch.testing.assert_close((here.value - away.value).sum(1), value - zero)


@pytest.mark.parametrize("family", CURVED)
def test_the_curvature_of_leaves_is_the_hessian_over_the_exponentials_of_shapes(tools, family):
    objective, routing, leaves = stack(tools, family, trees=1, depth=1)
    p, q, reach = objective.problem, objective.columns, objective.reach(routing)

    def loss(point):
        """Of the first leaf, at coefficients and exponentials of shapes (Q + K,)."""
        leaf = torch.cat([point[:q], point[q:].log()])[None, None].expand_as(leaves)
        return (reach * objective.leaf_terms(leaf).loss)[0, 0].sum()

    point = torch.cat([leaves[0, 0, :q], leaves[0, 0, q:].exp()])
    scale = torch.cat([torch.ones(q, dtype=point.dtype), point[q:]])
    expected = scale[:, None] * torch.autograd.functional.hessian(loss, point) * scale
    found = LeafBlocks(objective, reach).near(leaves).curvature[0, 0]
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)
    assert p.right_censored


def test_where_the_curvature_of_leaves_is_at_hand(tools, monkeypatch):
    def problem(family, data=None):
        return tools.make_objective(tools.simulate(20) if data is None else data, family).problem

    assert leaves_fall_apart(problem("weibull"))
    assert leaves_fall_apart(problem("lognormal"))
    assert not leaves_fall_apart(problem("gompertz"))
    assert not leaves_fall_apart(problem("weibull", tools.with_everything(20)))  # intervals and late entries
    monkeypatch.setattr("softsurv.soft.blocks.MAX_COLUMNS", 3)  # three features and a column of ones
    assert not leaves_fall_apart(problem("weibull"))
