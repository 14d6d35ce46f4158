"""The training objective over some of its parameters: leaves alone, branch nodes alone, any that a mask lets move."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from softsurv.soft import node_rounds
from softsurv.soft.bfgs import Inner, solve
from softsurv.soft.blocks import BranchBlocks, LeafBlocks, few_columns, leaves_fall_apart
from softsurv.soft.newton import NewtonSettings, descend
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import Minimum, side_by_side
from softsurv.soft.precondition import GramMetric
from softsurv.soft.problem import taken
from softsurv.stopping import StopSignal
from softsurv.trees.routing import hard_reach, side_probability, subtree_costs
from softsurv.trees.topology import level_slice


@dataclass(frozen=True)
class Moves:
    """Which parameters of each tree may move.

    Attributes
    ----------
    routing : Tensor (M, B, Q) bool
    leaves : Tensor (M, L, Q + K) bool
    """

    routing: Tensor
    leaves: Tensor

    def take(self, trees: Tensor) -> Moves:
        """The parameters that may move in some trees."""
        return Moves(taken(self.routing, trees), taken(self.leaves, trees))


@dataclass(frozen=True)
class OverLeaves:
    """The objective over the leaves; ``reach`` (M, L, N) is the fixed weight of each row in each leaf.

    A row has weight only in the leaves below one node of ``level``.
    """

    objective: Objective
    reach: Tensor
    level: int = 0

    def take(self, trees: Tensor) -> OverLeaves:
        """The objective of some trees."""
        return OverLeaves(self.objective.take(trees), taken(self.reach, trees), self.level)

    def value_and_gradient(self, leaves: Tensor) -> tuple[Tensor, Tensor]:
        """Objective (M,) and its gradient over the leaves (M, L, Q + K)."""
        return self.objective.leaf_value_and_gradient(leaves, self.reach)

    def compiled_rounds(self) -> node_rounds.Rounds | None:
        """Rounds of BFGS in one compiled loop; None where it cannot be used."""
        return node_rounds.over_leaves(self.objective, self.reach, self.level)


@dataclass(frozen=True)
class OverBranches:
    """The objective over the branch nodes from some level on that are ``free``; every row's losses are fixed."""

    objective: Objective
    leaf_loss: Tensor  # (M, L, N)
    mass: Tensor  # (M, S, N) weight of each row at each node of that level
    free: Tensor  # (M, B, 1) bool

    def take(self, trees: Tensor) -> OverBranches:
        """The objective of some trees."""
        fixed = (taken(value, trees) for value in (self.leaf_loss, self.mass, self.free))
        return OverBranches(self.objective.take(trees), *fixed)

    def value_and_gradient(self, routing: Tensor) -> tuple[Tensor, Tensor]:
        """Objective (M,) and its gradient over the routing (M, B, Q)."""
        value, gradient = self.objective.routing_value_and_gradient(routing, self.leaf_loss, self.mass)
        return value, torch.where(self.free, gradient, 0.0)

    def compiled_rounds(self) -> node_rounds.Rounds | None:
        """Rounds of BFGS in one compiled loop; None where it cannot be used."""
        return node_rounds.over_branches(self.objective, self.leaf_loss, self.mass, self.free)


@dataclass(frozen=True)
class OverMoves:
    """The objective over the parameters that may move."""

    objective: Objective
    moves: Moves
    hard_levels: int = 0

    def take(self, trees: Tensor) -> OverMoves:
        """The objective of some trees."""
        return replace(self, objective=self.objective.take(trees), moves=self.moves.take(trees))

    def value_and_gradient(self, routing: Tensor, leaves: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Objective (M,) and its gradients, zero for what may not move."""
        value, d_routing, d_leaves = self.objective.value_and_gradient(routing, leaves, self.hard_levels)
        return value, torch.where(self.moves.routing, d_routing, 0.0), torch.where(self.moves.leaves, d_leaves, 0.0)


def fit_leaves(
    objective: Objective,
    routing: Tensor,  # (M, B, Q)
    leaves: Tensor,  # (M, L, Q + K)
    settings: Inner,
    level: int = 0,
    budget: StopSignal | None = None,
) -> Tensor:
    """Leaves (M, L, Q + K) for a fixed routing, in which the branch nodes above ``level`` route by their HBP."""
    if objective.fairness is not None:  # it couples all rows, so a leaf has no loss of its own
        moves = Moves(torch.zeros_like(routing).bool(), torch.ones_like(leaves).bool())
        return fit_moves(objective, routing, leaves, moves, settings, level, budget).point[1]
    if isinstance(settings, NewtonSettings) and leaves_fall_apart(objective.problem):
        reach, blocks = objective.reach(routing, level), objective.problem.blocks(leaves)
        ends = [
            block if own is None else descend(LeafBlocks(own, reach), block, settings, budget=budget)
            for own, block in zip(objective.by_cause, blocks, strict=True)
        ]
        return torch.cat(ends, -1) if len(ends) > 1 else ends[0]
    restricted = OverLeaves(objective, objective.reach(routing, hard_levels=level), level)
    metric = GramMetric(objective.problem, leaves=leaves.shape[1])
    return solve(restricted, (leaves,), settings, metric, budget).point[0]


def fit_branches(
    objective: Objective,
    routing: Tensor,  # (M, B, Q)
    leaves: Tensor,  # (M, L, Q + K)
    leaf_loss: Tensor,  # (M, L, N)
    free: Tensor,  # (M, B, 1) bool
    settings: Inner,
    level: int,
    budget: StopSignal | None = None,
) -> Tensor:
    """Routing (M, B, Q) for fixed leaves: only the free branch nodes move."""
    if objective.fairness is not None:
        moves = Moves(free.expand_as(routing), torch.zeros_like(leaves).bool())
        return fit_moves(objective, routing, leaves, moves, settings, level, budget).point[0]
    if level == 0 and objective.depth > 1:  # the root alone: what lies below it is a constant on either side
        sides = subtree_costs(side_probability(objective.splits(routing)[:, 1:]), leaf_loss, 1)[0][0]
        stump = type(objective)(objective.problem, 1, objective.penalties)
        root = fit_branches(stump, routing[:, :1], leaves, sides, free[:, :1], settings, 0, budget)
        return torch.cat([root, routing[:, 1:]], 1)
    top = level_slice(level).start
    mass = hard_reach(objective.splits(routing[:, :top]), level, objective.problem.weight)
    start, free = routing[:, top:], free[:, top:]
    if isinstance(settings, NewtonSettings) and level == objective.depth - 1 and few_columns(objective.problem):
        blocks = BranchBlocks.of(objective, leaf_loss, mass)
        below = descend(blocks, start, settings, free, budget)
    else:
        restricted = OverBranches(objective, leaf_loss, mass, free)
        metric = GramMetric(objective.problem, start.shape[1])
        below = solve(restricted, (start,), settings, metric, budget).point[0]
    return torch.cat([routing[:, :top], below], 1) if top else below


def fit_moves(
    objective: Objective,
    routing: Tensor,  # (M, B, Q)
    leaves: Tensor,  # (M, L, Q + K)
    moves: Moves,
    settings: Inner,
    hard_levels: int = 0,
    budget: StopSignal | None = None,
) -> Minimum:
    """Minimise over the parameters that may move; the point is routing and leaves."""
    metric = moves_metric(objective, moves)
    return solve(OverMoves(objective, moves, hard_levels), (routing, leaves), settings, metric, budget)


def moves_metric(objective: Objective, moves: Moves) -> GramMetric:
    """The metric over the parameters that may move."""
    branches, leaves = moves.routing.shape[1], moves.leaves.shape[1]
    return GramMetric(objective.problem, branches, leaves, side_by_side((moves.routing, moves.leaves)))
