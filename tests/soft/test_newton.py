"""Newton's method block by block: against autograd, L-BFGS to the end and the objective of the whole tree."""

import pytest
import torch
from oracles.soft_stack import CURVED, stack

from softsurv.hazards import get_family
from softsurv.hazards.likelihood import right_censored_curvature, right_censored_loss
from softsurv.soft import blocks
from softsurv.soft.blocks import LeafBlocks, leaves_fall_apart
from softsurv.soft.newton import NewtonSettings, descend
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.problem import make_problem
from softsurv.soft.restricted import fit_leaves


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
