"""A tree that names few features."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from oracles.fold_stack import CPU, SHORT, folds_and_settings
from oracles.soft_causes import objective_for, random_parameters, rows_of

from softsurv.soft import group_lasso
from softsurv.soft.fit_stack import fit_stack
from softsurv.soft.group_lasso import QUIET, GroupLasso, fit_named, fit_sparse, group_weights
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.watch import never_waiting


def test_a_group_lasso_takes_a_feature_out_of_the_whole_tree(tools):
    stack, _, _ = folds_and_settings(tools)
    lasso = GroupLasso(torch.arange(3), torch.full((8,), 0.06, dtype=torch.float64))
    trained = fit_stack(replace(stack, lasso=lasso), SHORT, CPU)
    used = (trained.routing[..., 1:] != 0).any(1) | (trained.leaves[..., 1:4] != 0).any(1)
    assert not used.all()
    assert used.any()


def test_a_feature_is_named_by_the_rules_or_by_any_cause(tools):
    objective = objective_for(tools, rows_of(tools))
    routing, leaves = random_parameters(tools, objective)
    lasso = GroupLasso(torch.arange(3), torch.full((2,), 0.1, dtype=torch.float64), 2)
    own = leaves.unflatten(-1, (2, -1))[..., 1:4]
    expected = (routing[..., 1:].square().sum(1) + own.square().sum((1, 2))).sqrt()
    torch.testing.assert_close(lasso.norms(routing, leaves), expected)
    shrunk = lasso.shrunk(routing, leaves, torch.full((2,), 1e9, dtype=torch.float64))
    assert (shrunk[0][..., 1:] == 0).all()
    rest = shrunk[1].unflatten(-1, (2, -1))
    assert (rest[..., 1:4] == 0).all()
    torch.testing.assert_close(rest[..., [0, 4]], leaves.unflatten(-1, (2, -1))[..., [0, 4]])


def test_a_proximal_step_minimises_penalty_and_distance():
    """Of each feature's weights: random points near the one that was found are no better."""
    torch.manual_seed(0)
    groups, strength, step = torch.tensor([0, 0, 1]), torch.tensor([0.7], dtype=torch.float64), torch.tensor([0.8])
    lasso = GroupLasso(groups, strength)
    routing, leaves = torch.randn(1, 1, 4, dtype=torch.float64), torch.randn(1, 2, 5, dtype=torch.float64)
    shrunk = lasso.shrunk(routing, leaves, step.double())

    def total(r, b):
        distance = (r - routing).square().sum() + (b - leaves).square().sum()
        return float(lasso.value(r, b) + distance / (2 * step[0]))

    best = total(*shrunk)
    for _ in range(50):
        nearby = [part + 1e-3 * torch.randn_like(part) for part in shrunk]
        assert total(*nearby) >= best
    assert torch.equal(shrunk[0][..., 0], routing[..., 0])  # intercepts and shapes stay
    assert torch.equal(shrunk[1][..., 4], leaves[..., 4])


def test_features_below_the_threshold_are_taken_out():
    groups = torch.tensor([0, 1])
    lasso = GroupLasso(groups, torch.tensor([10.0], dtype=torch.float64))
    routing, leaves = torch.ones(1, 1, 3, dtype=torch.float64), torch.ones(1, 2, 4, dtype=torch.float64)
    routing[..., 1:] *= torch.tensor([100.0, 1.0])
    kept = lasso.norms(*lasso.shrunk(routing, leaves, torch.ones(1, dtype=torch.float64)))
    before = lasso.norms(routing, leaves)
    torch.testing.assert_close(kept, (before - 10.0).clamp(min=0))


def test_large_blocks_cost_the_root_of_their_columns():
    assert group_weights(torch.tensor([0, 1, 1, 1, 1, 2])).tolist() == pytest.approx([1.0, 2.0, 1.0])


def test_a_sparse_tree_is_a_minimum_and_strong_penalties_name_nothing(tools):
    objective = tools.make_objective(tools.simulate(30), "weibull", 1, n_trees=2)
    routing, leaves = tools.random_parameters(objective)
    lasso = GroupLasso(torch.arange(3), torch.tensor([0.05, 50.0], dtype=torch.float64))
    *found, total = fit_sparse(objective, routing, leaves, lasso, max_iterations=150)
    torch.testing.assert_close(total, objective.value(*found) + lasso.value(*found))
    assert (total <= objective.value(routing, leaves) + lasso.value(routing, leaves)).all()
    norms = lasso.norms(*found)
    assert (norms[0] > 0).any()
    assert not norms[1].any()
    torch.manual_seed(0)
    for _ in range(20):
        near = [part + 1e-2 * torch.randn_like(part) for part in found]
        assert float(objective.value(*near)[0] + lasso.value(*near)[0]) > float(total[0]) - 1e-4


@pytest.mark.parametrize("late", [False, True], ids=["cpu", "device"])
def test_a_tree_leaves_as_soon_as_it_has_been_quiet_and_ends_as_alone(tools, late, monkeypatch):
    objective = tools.make_objective(tools.simulate(30), "weibull", 1, n_trees=4)
    routing, leaves = tools.random_parameters(objective)
    lasso = GroupLasso(torch.arange(3), torch.tensor([0.05, 50.0, 0.5, 0.2], dtype=torch.float64))
    widths, moving, advance = [], [], group_lasso._advance

    def counted(state, *given):
        widths.append(len(state.best))
        moving.append(int((state.quiet < QUIET).sum()))
        advance(state, *given)

    monkeypatch.setattr(group_lasso, "_advance", counted)
    with never_waiting() if late else nullcontext():
        *found, total = fit_sparse(objective, routing, leaves, lasso, max_iterations=150)
    assert widths == moving
    assert len(set(widths)) >= 3
    for k in range(4):
        one = torch.tensor([k])
        *alone, own = fit_sparse(objective.take(one), routing[one], leaves[one], lasso.take(one), max_iterations=150)
        torch.testing.assert_close(own, total[one], rtol=1e-9, atol=0)
        torch.testing.assert_close(lasso.take(one).norms(*alone), lasso.norms(*found)[one], rtol=1e-5, atol=1e-7)


def test_what_was_dropped_stays_out_while_the_rest_is_trained_on(tools):
    objective = tools.make_objective(tools.simulate(30), "weibull", 1, n_trees=1)
    routing, leaves = tools.random_parameters(objective)
    lasso = GroupLasso(torch.arange(3), torch.tensor([0.1], dtype=torch.float64))
    sparse = fit_sparse(objective, routing, leaves, lasso)
    end = fit_named(objective, routing, leaves, lasso, LbfgsSettings(max_iterations=10))
    before, after = lasso.norms(*sparse[:2]), lasso.norms(*end.point)
    assert torch.equal(before > 0, after > 0)
    assert bool((before == 0).any())
    assert float(end.loss[0]) < float(objective.value(*sparse[:2])[0])  # without the penalty it comes lower
