"""Rounds compiled as a whole, on each node's own rows, against the rounds of torch's operators on all rows."""

import pytest
import torch

from softsurv.hazards import family_names
from softsurv.soft import row_kernels
from softsurv.soft.bfgs import BfgsSettings, solve
from softsurv.soft.objective import Objective
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.problem import join_problems
from softsurv.soft.restricted import OverBranches, OverLeaves
from softsurv.stopping import StopSignal
from softsurv.trees.routing import hard_reach
from softsurv.trees.topology import level_slice, n_branches

ROWS = 2 * row_kernels.BLOCK + 17
"""Two whole blocks and a part of one."""

KNOWN = {"exponential", "weibull", "loglogistic", "spline_ph", "spline_po"}


def restrictions(objective, routing, leaves, level):
    """The objective over the leaves and over the branch nodes below a level, the first node of which is not free."""
    top = level_slice(level).start
    mass = hard_reach(objective.splits(routing[:, :top]), level, objective.problem.weight)
    free = torch.zeros(len(routing), n_branches(objective.depth), 1, dtype=torch.bool)
    for below in range(level, objective.depth):
        free[:, level_slice(below)] = (torch.arange(2**below) >= 2 ** (below - level)).view(1, -1, 1) | (level == 0)
    loss = objective.leaf_terms(leaves).loss
    branches = OverBranches(objective, loss, mass, free[:, top:])
    return OverLeaves(objective, objective.reach(routing, level), level), (leaves,), branches, (routing[:, top:],)


def assert_same_rounds(function, start, rounds):
    settings = BfgsSettings(max_iterations=rounds, accuracy=1e-12)
    found = solve(function, start, settings)
    with operators_alone():
        expected = solve(function, start, settings)
    torch.testing.assert_close(found.point[0], expected.point[0], rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-10, atol=1e-12)
    assert torch.equal(found.converged, expected.converged)
    assert not torch.equal(found.point[0], start[0])


@pytest.mark.parametrize("family", sorted(KNOWN))
@pytest.mark.parametrize(("depth", "level"), [(1, 0), (2, 0), (2, 1), (3, 1)])
def test_a_few_rounds_are_those_of_operators(tools, family, depth, level):
    objective = tools.make_objective(tools.simulate(ROWS), family, depth, n_trees=3, penalised=True)
    leaves, at_leaves, branches, at_branches = restrictions(objective, *tools.random_parameters(objective), level)
    assert leaves.compiled_rounds() is not None
    assert branches.compiled_rounds() is not None
    assert_same_rounds(leaves, at_leaves, 6)
    assert_same_rounds(branches, at_branches, 6)


def test_groups_of_other_lengths_and_rows_without_weight(tools):
    parts = [tools.make_objective(tools.simulate(n, seed=n), "loglogistic", 2, 2).problem for n in (140, 131)]
    problem = join_problems(parts)
    objective = Objective(problem, 2, tools.penalties_for(problem))
    leaves, at_leaves, branches, at_branches = restrictions(objective, *tools.random_parameters(objective), 1)
    assert_same_rounds(leaves, at_leaves, 6)
    assert_same_rounds(branches, at_branches, 6)


def test_a_tree_does_not_depend_on_the_stack_it_is_in(tools):
    objective = tools.make_objective(tools.simulate(ROWS), "loglogistic", 2, n_trees=4)
    leaves, (at,), _, _ = restrictions(objective, *tools.random_parameters(objective), 1)
    whole = solve(leaves, (at,), BfgsSettings(max_iterations=6))
    third = torch.tensor([2])
    alone = solve(leaves.take(third), (at[third],), BfgsSettings(max_iterations=6))
    torch.testing.assert_close(alone.point[0][0], whole.point[0][2], rtol=1e-9, atol=1e-11)


def test_the_clock_is_looked_at_between_calls(tools, monkeypatch):
    monkeypatch.setattr("softsurv.soft.node_rounds.PRODUCTS_A_CALL", 1)  # one round a call
    objective = tools.make_objective(tools.simulate(ROWS), "loglogistic", 2)
    leaves, at, _, _ = restrictions(objective, *tools.random_parameters(objective), 1)
    assert_same_rounds(leaves, at, 6)
    with StopSignal(0.0) as budget:
        end = solve(leaves, at, BfgsSettings(), budget=budget)
    assert torch.equal(end.point[0], at[0])
    assert not bool(end.converged.any())


@pytest.mark.parametrize("family", sorted(set(family_names()) - KNOWN))
def test_other_families_take_operators_over_their_leaves(tools, family):
    objective = tools.make_objective(tools.simulate(40), family, 1)
    leaves, _, branches, _ = restrictions(objective, *tools.random_parameters(objective), 0)
    assert leaves.compiled_rounds() is None
    assert branches.compiled_rounds() is not None


def test_other_censorings_take_operators(tools):
    objective = tools.make_objective(tools.with_everything(), "weibull", 1)
    leaves, _, branches, _ = restrictions(objective, *tools.random_parameters(objective), 0)
    assert leaves.compiled_rounds() is None
    assert branches.compiled_rounds() is None
