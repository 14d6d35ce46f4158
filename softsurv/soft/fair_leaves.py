"""Group fairness of what is predicted: a row's curve is that of its HBP leaf, not the mixture that trains the routing.

Joint training penalises the mixture, whose distance has a derivative by the routing. Then the routing is fixed, every
row counts in its HBP leaf alone, and the leaves are fitted again with the penalty of the predicted curves. The single
leaf that trees start from and shrink to is fitted with the penalty too. Without it, shrinkage would pull towards a
model that separates the groups.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from softsurv.soft.causes import objective_of
from softsurv.soft.fairness import GroupFairness
from softsurv.soft.nodec import Trained
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.penalties import single_leaf_penalties
from softsurv.soft.problem import Problem
from softsurv.soft.restricted import Moves, fit_leaves, fit_moves
from softsurv.stopping import StopSignal


def fair_single_leaves(
    problem: Problem,
    leaves: Tensor,  # (M, 1, Q + K) fitted without the penalty
    ridge: Tensor,  # (M,)
    l2_all: Tensor,  # (M,)
    fairness: GroupFairness,
    settings: LbfgsSettings,
    budget: StopSignal | None = None,
) -> Tensor:  # (M, 1, Q + K)
    """Single-leaf fits with the penalty."""
    fairness = replace(fairness, rho=fairness.rho[:1].expand(problem.n_trees))
    objective = objective_of(problem, 0, single_leaf_penalties(ridge, l2_all, leaves.shape[-1]), fairness)
    routing = problem.design.new_zeros(problem.n_trees, 0, problem.design.shape[-1])
    moves = Moves(torch.zeros_like(routing).bool(), torch.ones_like(leaves).bool())
    return fit_moves(objective, routing, leaves, moves, settings, 0, budget).point[1]


def fair_in_leaves(
    objective: Objective, trained: Trained, settings: LbfgsSettings, budget: StopSignal | None = None
) -> Trained:
    """Trees whose leaves are fitted again with each row in its HBP leaf, and their objective there."""
    depth = objective.depth
    leaves = fit_leaves(objective, trained.routing, trained.leaves, settings, depth, budget)
    value = objective.value_and_gradient(trained.routing, leaves, depth)[0]
    return replace(trained, leaves=leaves, objective=value)


def held_out_distance(
    fairness: GroupFairness,
    problem: Problem,
    depth: int,
    routing: Tensor,  # (M, B, Q)
    leaves: Tensor,  # (M, L, Q + K)
    held_out: Tensor,  # (M, N) weights of the held-out rows
) -> Tensor:  # (M,)
    """The penalty of the predicted curves of held-out rows."""
    rows = problem.weighing(held_out[:, None])
    every = replace(fairness, rho=fairness.rho[:1].expand(len(leaves)))
    return every.value_and_gradient(rows, routing, leaves, depth)[0]
