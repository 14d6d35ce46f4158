"""Training objective of a stack of soft trees, with analytic gradients.

    E = sum_i w_i sum_leaf P_i,leaf NLL_leaf(i) + penalties            (paper `sst`, eq. 5)

per tree of the stack. The gradient over a branch node is reach p(1 - p)(cost left - cost right), with costs
by recursion from the leaves up; no automatic differentiation is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from softsurv.hazards.likelihood import Slopes, general_loss, right_censored_loss
from softsurv.soft.fairness import GroupFairness
from softsurv.soft.penalties import Penalties
from softsurv.soft.problem import Problem
from softsurv.trees.routing import (
    harden,
    linear,
    linear_pullback,
    reach_probability,
    routing_slopes,
    subtree_costs,
)


@dataclass(frozen=True)
class LeafTerms:
    """Loss of every row in every leaf (M, L, N) and its slopes."""

    loss: Tensor
    slopes: Slopes


class Objective:
    """Value and gradient of the training objective for a stack of trees of one depth."""

    def __init__(
        self, problem: Problem, depth: int, penalties: Penalties, fairness: GroupFairness | None = None
    ) -> None:
        self.problem = problem
        self.depth = depth
        self.penalties = penalties
        self.fairness = fairness
        self.columns = problem.design.shape[-1]

    def take(self, trees: Tensor) -> Objective:
        """The objective of some trees of the stack."""
        fairness = None if self.fairness is None else self.fairness.take(trees)
        return Objective(self.problem.take(trees), self.depth, self.penalties.take(trees), fairness)

    def whole_groups(self, trees: Tensor) -> Tensor:
        """The mask (M,) of trees widened so that :meth:`take` accepts it."""
        return self.problem.whole_groups(trees)

    def splits(self, routing: Tensor) -> Tensor:
        """Linear combinations at the branch nodes, (M, B, N)."""
        return linear(routing, self.problem.design)

    def leaf_terms(self, leaves: Tensor) -> LeafTerms:
        """Loss of every row in every leaf, (M, L, N)."""
        p = self.problem
        offset = linear(leaves[..., : self.columns], p.design)
        shape = leaves[..., self.columns :]

        def predictor(features: Tensor | None) -> Tensor | None:
            return None if features is None else offset + p.family.baseline(shape, p.per_tree(features))[0]

        value, log_slope = p.family.baseline(shape, p.per_tree(p.features))
        z, event = offset + value, p.per_tree(p.event)
        if p.entry_features is None and p.upper_features is None:
            return LeafTerms(*right_censored_loss(p.family.link, z, log_slope, event))
        started = torch.ones_like(p.event, dtype=torch.bool) if p.started is None else p.started
        return LeafTerms(
            *general_loss(
                p.family.link,
                z,
                log_slope,
                event,
                started=p.per_tree(started),
                z_entry=predictor(p.entry_features),
                truncated=None if p.truncated is None else p.per_tree(p.truncated),
                z_upper=predictor(p.upper_features),
                interval=None if p.interval is None else p.per_tree(p.interval),
            )
        )

    def leaf_gradient(
        self,
        leaves: Tensor,  # (M, L, Q + K)
        slopes: Slopes,
        reach: Tensor,  # (M, L, N) weight of each row in each leaf
    ) -> Tensor:  # (M, L, Q + K)
        """Gradient of the weighted loss with respect to the leaf parameters."""
        p = self.problem
        shape = leaves[..., self.columns :]
        total = at_time = reach * slopes.at_time
        shape_grad = p.family.baseline_pullback(shape, p.per_tree(p.features), at_time, reach * slopes.log_slope)
        others = ((slopes.at_entry, p.entry_features), (slopes.at_upper, p.upper_features))
        for slope, features in others:
            if slope is not None and features is not None:
                grad = reach * slope
                total = total + grad
                shape_grad = shape_grad + p.family.baseline_pullback(
                    shape, p.per_tree(features), grad, torch.zeros_like(grad)
                )
        return torch.cat([linear_pullback(total, p.design), shape_grad], -1)

    def value_and_gradient(
        self,
        routing: Tensor,  # (M, B, Q)
        leaves: Tensor,  # (M, L, Q + K)
        hard_levels: int = 0,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Objective (M,) and its gradients; branch nodes above ``hard_levels`` route by their HBP, without slope.

        With hard levels this is the restricted objective of all working sets of one level at once: their rows
        and their parameters are disjoint.
        """
        terms = self.leaf_terms(leaves)
        value, d_routing, reach = self._routing_value(routing, terms.loss, hard_levels)
        d_leaves = self.leaf_gradient(leaves, terms.slopes, reach)
        if self.fairness is not None:
            extra = self.fairness.value_and_gradient(self.problem, self.depth, routing, leaves, hard_levels)
            value, d_routing, d_leaves = value + extra[0], d_routing + extra[1], d_leaves + extra[2]
        penalty, r_penalty, l_penalty = self.penalty(routing, leaves)
        return value + penalty, d_routing + r_penalty, d_leaves + l_penalty

    def value(self, routing: Tensor, leaves: Tensor) -> Tensor:
        """Objective of each tree, (M,)."""
        value, _, _ = self._routing_value(routing, self.leaf_terms(leaves).loss, 0)
        if self.fairness is not None:
            value = value + self.fairness.value_and_gradient(self.problem, self.depth, routing, leaves, 0)[0]
        return value + self.penalty(routing, leaves)[0]

    def routing_value_and_gradient(
        self,
        routing: Tensor,
        leaf_loss: Tensor,  # (M, L, N)
        hard_levels: int = 0,
    ) -> tuple[Tensor, Tensor]:
        """Objective over the branch nodes alone, the leaves' losses being fixed."""
        value, gradient, _ = self._routing_value(routing, leaf_loss, hard_levels)
        mu = self.penalties.routing_l2
        weights = routing[..., 1:]
        gradient[..., 1:] += mu[:, None, None] * weights
        return value + 0.5 * mu * weights.square().sum((1, 2)), gradient

    def reach(self, routing: Tensor, hard_levels: int = 0) -> Tensor:
        """Weight of each row in each leaf, (M, L, N)."""
        go_left = harden(torch.sigmoid(self.splits(routing)), hard_levels)
        return reach_probability(go_left, self.depth, self.problem.weight)[-1]

    def leaf_value_and_gradient(self, leaves: Tensor, reach: Tensor) -> tuple[Tensor, Tensor]:
        """Objective over the leaves alone, each row's weight in each leaf being fixed."""
        terms = self.leaf_terms(leaves)
        value = (reach * terms.loss).sum((1, 2))
        gradient = self.leaf_gradient(leaves, terms.slopes, reach)
        penalty, l_penalty = self.leaf_penalty(leaves)
        return value + penalty, gradient + l_penalty

    def penalty(self, routing: Tensor, leaves: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Value (M,) of the quadratic penalties and their gradients."""
        weights = routing[..., 1:]
        mu = self.penalties.routing_l2
        d_routing = torch.cat([torch.zeros_like(routing[..., :1]), mu[:, None, None] * weights], -1)
        value, d_leaves = self.leaf_penalty(leaves)
        return value + 0.5 * mu * weights.square().sum((1, 2)), d_routing, d_leaves

    def leaf_penalty(self, leaves: Tensor) -> tuple[Tensor, Tensor]:
        """Value (M,) of the leaves' quadratic penalties and its gradient."""
        q = self.penalties
        away = leaves - q.anchor
        gradient = q.shrinkage[:, None, None] * away + q.l2_all[:, None, None] * leaves
        coefficients = leaves[..., 1 : self.columns]
        gradient[..., 1 : self.columns] += q.l2[:, None, None] * coefficients
        value = (
            q.shrinkage * away.square().sum((1, 2))
            + q.l2_all * leaves.square().sum((1, 2))
            + q.l2 * coefficients.square().sum((1, 2))
        )
        return 0.5 * value, gradient

    def _routing_value(self, routing: Tensor, leaf_loss: Tensor, hard_levels: int) -> tuple[Tensor, Tensor, Tensor]:
        """Expected loss (M,), its gradient over the routing (M, B, Q) and the leaves' reach (M, L, N)."""
        weight = self.problem.weight
        go_left = harden(torch.sigmoid(self.splits(routing)), hard_levels)
        reach = reach_probability(go_left, self.depth, weight)
        costs = subtree_costs(go_left, leaf_loss, self.depth)
        value = (weight * costs[0]).sum((1, 2))
        slopes = routing_slopes(go_left, reach, costs, self.depth, hard_levels)
        return value, linear_pullback(slopes, self.problem.design), reach[-1]
