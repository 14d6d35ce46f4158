"""The two subproblems of the node-based decomposition (paper `sst`, section 4 and Appendix C).

All working sets of one level are solved at once: with the branch nodes above the level routing by their HBP,
the rows and the parameters of two subtrees of the same level are disjoint, so this equals solving them in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from softsurv.budget import Budget
from softsurv.soft.objective import Objective
from softsurv.soft.optimise import Settings, minimise
from softsurv.soft.precondition import GramMetric
from softsurv.trees.routing import hbp_leaf, linear, linear_pullback, subtree_costs
from softsurv.trees.topology import level_slice, n_branches

CLASS_RIDGE = 1e-3
"""Ridge of the weighted logistic regression: its classes come from a linear rule, so without it they separate."""


@dataclass(frozen=True)
class Balance:
    """Thresholds of the reassignment heuristic: moderate imbalance, high imbalance, share to swap."""

    moderate: float = 0.3
    high: float = 0.1
    swap: float = 0.4

    def decayed(self, factor: float) -> Balance:
        """All three thresholds times a factor, as after each macro iteration."""
        return Balance(self.moderate * factor, self.high * factor, self.swap * factor)


class _Taken:
    """The objective of the trees still moving, kept between rounds."""

    def __init__(self, objective: Objective, *tensors: Tensor) -> None:
        self.objective, self.tensors = objective, tensors
        self.whole: tuple[Any, ...] = (objective, *tensors)
        self.rows: Tensor | None = None
        self.part: tuple[Any, ...] = self.whole

    def __call__(self, rows: Tensor | None) -> tuple[Any, ...]:
        if rows is None:
            return self.whole
        if rows is not self.rows:
            self.rows, self.part = rows, (self.objective.take(rows), *(t[rows] for t in self.tensors))
        return self.part


def minimise_joint(
    objective: Objective,
    routing: Tensor,  # (M, B, Q)
    leaves: Tensor,  # (M, L, Q + K)
    settings: Settings,
    budget: Budget | None = None,
    on_round: Callable[[Tensor, Tensor], None] | None = None,
    cut_off: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Joint minimisation over all parameters; returns routing, leaves and objective (M,).

    ``cut_off`` (M,) bool is set where a tree took all its iterations.
    """
    taken, size = _Taken(objective), routing[0].numel()

    def function(x: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        (part,) = taken(rows)
        r, b = x[:, :size].view(len(x), *routing.shape[1:]), x[:, size:].view(len(x), *leaves.shape[1:])
        value, d_routing, d_leaves = part.value_and_gradient(r, b)
        return value, torch.cat([d_routing.flatten(1), d_leaves.flatten(1)], 1)

    start = torch.cat([routing.flatten(1), leaves.flatten(1)], 1)
    metric = GramMetric(objective.problem, routing.shape[1], leaves.shape[1])
    x, f = minimise(function, start, settings, objective.problem.whole_groups, budget, on_round, metric, cut_off)
    return x[:, :size].view_as(routing), x[:, size:].view_as(leaves), f


def some(mask: Tensor) -> bool:
    """Whether there is work for a mask; on a GPU it is done in any case, because a look would wait for the device."""
    return mask.is_cuda or bool(mask.any())


def leaf_step(
    objective: Objective,
    routing: Tensor,
    leaves: Tensor,
    level: int,
    settings: Settings,
    budget: Budget | None = None,
) -> Tensor:
    """LN step: leaves of all working sets of one level, the routing being fixed."""
    if objective.fairness is not None:
        return _restricted_with_fairness(objective, routing, leaves, None, level, settings, budget)[1]
    reach = objective.reach(routing, hard_levels=level)
    taken = _Taken(objective, reach)

    def function(x: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        part, part_reach = taken(rows)
        value, gradient = part.leaf_value_and_gradient(x.view(-1, *leaves.shape[1:]), part_reach)
        return value, gradient.flatten(1)

    metric = GramMetric(objective.problem, leaves=leaves.shape[1])
    x, _ = minimise(function, leaves.flatten(1), settings, objective.problem.whole_groups, budget, metric=metric)
    return x.view_as(leaves)


def branch_step(
    objective: Objective,
    routing: Tensor,
    leaves: Tensor,
    level: int,
    balance: Balance,
    settings: Settings,
    budget: Budget | None = None,
) -> Tensor:
    """BN step: branch nodes of all working sets of one level, with reassignment where routing is imbalanced."""
    leaf_loss = objective.leaf_terms(leaves).loss
    at_node, left, share = _routed(objective, routing, level)
    smaller = torch.minimum(share, 1 - share)  # (M, S)
    heavy_enough = balance.moderate * (objective.problem.weight > 0).sum((1, 2)) >= 1
    imbalanced = (smaller <= balance.moderate) & heavy_enough[:, None] & at_node.any(-1)
    if some(imbalanced):
        labels = left
        high = imbalanced & (smaller <= balance.high)
        if some(high):
            error = (objective.reach(routing, level) * leaf_loss).sum(1, keepdim=True)  # term (9)
            labels = _swap_worst(left, at_node, error, share, high, balance.swap)
        nodes = level_slice(level)
        rows = at_node & imbalanced[..., None]
        fitted = classify(objective, routing[:, nodes], rows, left, labels, settings, budget)
        routing = routing.clone()
        routing[:, nodes] = torch.where(imbalanced[..., None], fitted, routing[:, nodes])
    free = _free_branches(~imbalanced, level, objective.depth)
    if not some(free):
        return routing
    if objective.fairness is not None:
        return _restricted_with_fairness(objective, routing, leaves, free, level, settings, budget)[0]
    return _restricted(objective, routing, leaf_loss, free, level, settings, budget)


def classify(
    objective: Objective,
    weights: Tensor,  # (M, S, Q) of the level's branch nodes
    rows: Tensor,  # (M, S, N) bool: rows that count at each node
    left: Tensor,  # (M, S, N) bool: side on which each row is now
    labels: Tensor,  # (M, S, N) bool: side on which it is wanted, True for left
    settings: Settings,
    budget: Budget | None = None,
) -> Tensor:
    """Weighted logistic regression (8) at each branch node; the rows on either side now weigh one half together."""
    here_left, here_right = rows & left, rows & ~left
    count = torch.where(left, here_left.sum(-1, keepdim=True), here_right.sum(-1, keepdim=True))
    mass = torch.where(rows, 0.5 / count.clamp(min=1), 0.0)  # 1 / (2 L |I_s|) and 1 / (2 (1 - L) |I_s|)
    taken = _Taken(objective, mass, labels.to(weights))

    def function(x: Tensor, trees: Tensor | None) -> tuple[Tensor, Tensor]:
        """Loss (M,) of the routing weights x (M, S * P) of these trees, and its gradient."""
        part, m, target = taken(trees)
        w = x.view(-1, *weights.shape[1:])
        v = linear(w, part.problem.design)
        loss = m * (torch.nn.functional.softplus(v) - target * v)
        ridge = 0.5 * CLASS_RIDGE * w[..., 1:].square().sum((1, 2))
        gradient = linear_pullback(m * (torch.sigmoid(v) - target), part.problem.design)
        gradient[..., 1:] += CLASS_RIDGE * w[..., 1:]
        return loss.sum((1, 2)) + ridge, gradient.flatten(1)

    metric = GramMetric(objective.problem, weights.shape[1])
    x, _ = minimise(function, weights.flatten(1), settings, objective.problem.whole_groups, budget, metric=metric)
    return x.view_as(weights)


def _restricted(
    objective: Objective,
    routing: Tensor,
    leaf_loss: Tensor,
    free: Tensor,  # (M, B, 1) bool
    level: int,
    settings: Settings,
    budget: Budget | None,
) -> Tensor:
    """Restricted objective over the free branch nodes."""
    if level == 0 and objective.depth > 1:  # the root alone: what lies below it is a constant on either side
        sides = subtree_costs(torch.sigmoid(objective.splits(routing)), leaf_loss, objective.depth)[1]
        stump = Objective(objective.problem, 1, objective.penalties)
        root = _restricted(stump, routing[:, :1], sides, free[:, :1], 0, settings, budget)
        return torch.cat([root, routing[:, 1:]], 1)
    taken = _Taken(objective, leaf_loss, free)

    def function(x: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        part, loss, mask = taken(rows)
        value, gradient = part.routing_value_and_gradient(x.view(-1, *routing.shape[1:]), loss, level)
        return value, torch.where(mask, gradient, 0.0).flatten(1)

    metric = GramMetric(objective.problem, routing.shape[1])
    x, _ = minimise(function, routing.flatten(1), settings, objective.problem.whole_groups, budget, metric=metric)
    return x.view_as(routing)


def _restricted_with_fairness(
    objective: Objective,
    routing: Tensor,
    leaves: Tensor,
    free: Tensor | None,  # (M, B, 1) branch nodes that move; None: the leaves move
    level: int,
    settings: Settings,
    budget: Budget | None,
) -> tuple[Tensor, Tensor]:
    """Restricted objective (4): the fairness term couples all rows, so neither part can be held as a constant."""
    move_routing = torch.zeros_like(routing).bool() if free is None else free.expand_as(routing)
    move_leaves = torch.full_like(leaves, float(free is None)).bool()
    return minimise_masked(objective, routing, leaves, move_routing, move_leaves, settings, level, budget)[:2]


def minimise_masked(
    objective: Objective,
    routing: Tensor,
    leaves: Tensor,
    move_routing: Tensor,  # (M, B, Q) bool
    move_leaves: Tensor,  # (M, L, Q + K) bool
    settings: Settings,
    hard_levels: int = 0,
    budget: Budget | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Minimise over some of the parameters; returns routing, leaves and objective (M,)."""
    size = routing[0].numel()
    may_move = torch.cat([move_routing.flatten(1), move_leaves.flatten(1)], 1)
    taken = _Taken(objective, may_move)

    def function(x: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        part, moves = taken(rows)
        r, b = x[:, :size].view(len(x), *routing.shape[1:]), x[:, size:].view(len(x), *leaves.shape[1:])
        value, d_routing, d_leaves = part.value_and_gradient(r, b, hard_levels)
        return value, torch.where(moves, torch.cat([d_routing.flatten(1), d_leaves.flatten(1)], 1), 0.0)

    start = torch.cat([routing.flatten(1), leaves.flatten(1)], 1)
    metric = GramMetric(objective.problem, routing.shape[1], leaves.shape[1], may_move)
    x, f = minimise(function, start, settings, objective.problem.whole_groups, budget, metric=metric)
    return x[:, :size].view_as(routing), x[:, size:].view_as(leaves), f


def _routed(objective: Objective, routing: Tensor, level: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows whose HBP path passes each node of the level and which of all rows it sends left, (M, S, N); the
    share that goes left, (M, S)."""
    splits = objective.splits(routing)
    at = hbp_leaf(splits, level)[:, None]  # (M, 1, N) node of this level
    numbers = torch.arange(2**level, device=splits.device)[None, :, None]
    at_node = (at == numbers) & (objective.problem.weight > 0)
    left = splits[:, level_slice(level)] >= 0
    total = at_node.sum(-1)
    return at_node, left, (at_node & left).sum(-1) / total.clamp(min=1)


def _swap_worst(
    left: Tensor,  # (M, S, N) bool
    at_node: Tensor,  # (M, S, N) bool
    error: Tensor,  # (M, 1, N)
    share: Tensor,  # (M, S)
    high: Tensor,  # (M, S) bool
    fraction: float,
) -> Tensor:
    """Swap the class of the fraction of each node's rows in its big child that have the largest error term."""
    big = at_node & (left == (share >= 0.5)[..., None])
    count = torch.minimum((fraction * at_node.sum(-1)).ceil().long(), big.sum(-1) - 1).clamp(min=0)
    ranked = torch.where(big, error, -torch.inf).argsort(-1, descending=True)
    rank = torch.empty_like(ranked).scatter_(
        -1, ranked, torch.arange(ranked.shape[-1], device=ranked.device).expand_as(ranked)
    )
    return left ^ (big & (rank < count[..., None]) & high[..., None])


def _free_branches(balanced: Tensor, level: int, depth: int) -> Tensor:  # (M, S) -> (M, B, 1)
    """Branch nodes that the BN step moves: each balanced node with its descendants; the root alone if D > 1."""
    free = torch.zeros(balanced.shape[0], n_branches(depth), dtype=torch.bool, device=balanced.device)
    free[:, level_slice(level)] = balanced
    if level > 0:
        for below in range(level + 1, depth):
            free[:, level_slice(below)] = balanced.repeat_interleave(2 ** (below - level), 1)
    return free[..., None]
