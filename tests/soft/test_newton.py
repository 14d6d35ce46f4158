"""Newton's method block by block: against autograd, L-BFGS to the end and the objective of the whole tree."""

import pytest
import torch

from softsurv.hazards import family_names, get_family
from softsurv.hazards.likelihood import right_censored_curvature, right_censored_loss
from softsurv.soft import blocks
from softsurv.soft.blocks import BranchBlocks, LeafBlocks, leaves_fall_apart
from softsurv.soft.newton import NewtonSettings, descend
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.problem import join_problems, make_problem
from softsurv.soft.restricted import fit_branches, fit_leaves
from softsurv.trees.routing import hard_reach
from softsurv.trees.topology import level_slice

CURVED = [name for name in family_names() if name not in ("gompertz",)]
TO_THE_END = LbfgsSettings(max_iterations=500, ftol=1e-13, gtol=1e-9)


def stack(tools, family, groups=1, trees=2, depth=2):
    """Objective, routing and leaves of some trees for each group of rows."""
    parts = [make_problem(tools.simulate(70 + 9 * k, seed=k), get_family(family), n_trees=trees) for k in range(groups)]
    problem = join_problems(parts) if groups > 1 else parts[0]
    objective = Objective(problem, depth, tools.penalties_for(problem))
    return objective, *tools.random_parameters(objective)


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


@pytest.mark.parametrize("family", CURVED)
def test_the_curvature_of_a_row_is_the_second_derivative_of_its_loss(family):
    link = get_family(family).link
    z = torch.linspace(-6, 6, 24, dtype=torch.float64).requires_grad_(True)
    for event in (torch.zeros_like(z), torch.ones_like(z)):
        loss, slopes = right_censored_loss(link, z, torch.zeros_like(z), event)
        (slope,) = torch.autograd.grad(loss.sum(), z, create_graph=True)
        (curvature,) = torch.autograd.grad(slope.sum(), z, allow_unused=True)
        found = right_censored_curvature(link, z.detach(), event, slopes)
        torch.testing.assert_close(found.detach(), curvature, rtol=1e-7, atol=1e-9)


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


def test_a_step_that_overshoots_is_shortened(tools):
    """Leaves far from the minimum, where exponentials are large: no block ends above its start."""
    objective, routing, leaves = stack(tools, "weibull")
    blocks, far = LeafBlocks(objective, objective.reach(routing)), leaves + 6
    began, end = blocks.near(far).value, blocks.near(descend(blocks, far, NewtonSettings())).value
    assert (end < began).all()


def test_where_the_curvature_is_not_at_hand_l_bfgs_goes_on(tools, monkeypatch):
    """For Gompertz leaves, late entry, and many columns."""
    plain = LbfgsSettings(max_iterations=20, ftol=1e-6)

    def both(objective, routing, leaves):
        return [fit_leaves(objective, routing, leaves, settings, 1) for settings in (NewtonSettings(), plain)]

    gompertz = stack(tools, "gompertz")
    late = make_problem(tools.with_everything(50), get_family("weibull"), n_trees=2)
    wide = stack(tools, "weibull")
    assert leaves_fall_apart(wide[0].problem)
    monkeypatch.setattr(blocks, "MAX_COLUMNS", 2)
    objective = Objective(late, 2, tools.penalties_for(late))
    for case in (gompertz, (objective, *tools.random_parameters(objective)), wide):
        assert not leaves_fall_apart(case[0].problem)
        torch.testing.assert_close(*both(*case), rtol=0, atol=0)
