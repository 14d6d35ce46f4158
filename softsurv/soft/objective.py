"""Training objective of a stack of soft trees, with analytic gradients.

    E = sum_i w_i sum_leaf P_i,leaf NLL_leaf(i) + penalties            (paper `sst`, eq. 5)

per tree of the stack. The gradient over a branch node is reach p(1 - p)(cost left - cost right), with costs
by recursion from the leaves up; no automatic differentiation is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from softsurv.soft.fairness import GroupFairness
from softsurv.soft.fused import fused_loss, is_fused
from softsurv.soft.one_pass import (
    OnePass,
    code_of,
    expected_loss,
    is_compiled,
    leaf_loss_and_slopes,
    leaf_losses,
    routed_loss,
)
from softsurv.soft.penalties import Penalties, Well
from softsurv.soft.problem import Problem
from softsurv.trees.routing import (
    hard_reach,
    reach_probability,
    routing_slopes,
    side_probability,
    subtree_costs,
)
from softsurv.trees.topology import level_slice

LOOPS, FUSED, OPERATORS = "compiled loops", "fused operator", "operators"
"""Ways over the rows: `one_pass.py`, `fused.py`, and torch's operators table by table."""


@dataclass(frozen=True)
class LeafTerms:
    """Loss of every row in every leaf (M, L, N) and its `Slopes`; with causes a tuple of them, one for each cause."""

    loss: Tensor
    slopes: Any


class Routed(NamedTuple):
    """Expected loss under the routing, with its derivatives."""

    value: Tensor  # (M,) expected loss
    slopes: Tensor  # (M, B, N) over the splits
    reach: Tensor  # (M, L, N) weight of each row in each leaf


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
        part = type(self)(self.problem.take(trees), self.depth, self.penalties.take(trees), fairness)
        if (well := vars(self).get("leaf_well")) is not None:  # computed once for a stack
            vars(part)["leaf_well"] = well.take(trees)
        return part

    @property
    def by_cause(self) -> tuple[Objective | None, ...]:
        """The objective of each cause's own leaves, or None where the cause does not count."""
        return (self,)

    def splits(self, routing: Tensor) -> Tensor:
        """Linear combinations at the branch nodes, (M, B, N)."""
        return self.problem.linear(routing)

    def predictors(self, leaves: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Linear part and predictors at the observed times, (M, L, N); log slope of the baseline, (M, L, N or 1)."""
        p, shape = self.problem, leaves[..., self.columns :]
        offset = p.linear(leaves[..., : self.columns])
        return offset, *p.family.predictor(offset, shape, p.tree_features)

    def leaf_terms(self, leaves: Tensor) -> LeafTerms:
        """Loss of every row in every leaf, (M, L, N)."""
        p, shape = self.problem, leaves[..., self.columns :]
        offset, z, log_slope = self.predictors(leaves)

        def z_at(features: Tensor) -> Tensor:
            return offset + p.family.baseline(shape, features)[0]

        return LeafTerms(*p.losses(z, log_slope, z_at))

    def leaf_losses(self, leaves: Tensor) -> Tensor:
        """The same without what gradients need."""
        code = self._compiled(leaves)
        if code is None:
            return self.leaf_terms(leaves).loss
        _, z, log_slope = self.predictors(leaves)
        return leaf_losses(code, z, log_slope, self.problem.even_event)

    def leaf_gradient(
        self,
        leaves: Tensor,  # (M, L, Q + K)
        slopes: Any,
        reach: Tensor,  # (M, L, N) weight of each row in each leaf
    ) -> Tensor:  # (M, L, Q + K)
        """Gradient of the weighted loss with respect to the leaf parameters."""
        p, shape = self.problem, leaves[..., self.columns :]
        gradient = self._leaf_pullback(leaves, reach * slopes.at_time, reach)
        others = ((slopes.at_entry, p.entry_features), (slopes.at_upper, p.upper_features))
        for slope, features in others:
            if slope is not None and features is not None:
                grad = reach * slope
                by_shape = p.family.baseline_pullback(shape, p.per_tree(features), grad, torch.zeros_like(grad))
                gradient = gradient + torch.cat([p.pullback(grad), by_shape], -1)
        return gradient

    def _leaf_pullback(self, leaves: Tensor, at_time: Tensor, reach: Tensor) -> Tensor:
        """Gradient over the leaves from weighted derivatives (M, L, N) by their predictors at the observed times."""
        p, shape = self.problem, leaves[..., self.columns :]
        by_shape = p.family.shape_gradient(shape, p.tree_features, at_time, reach, self._minus_event)
        return torch.cat([p.pullback(at_time), by_shape], -1)

    @cached_property
    def _minus_event(self) -> Tensor:
        """Derivative (M, 1, N) of the loss by the log slope."""
        return self.problem.per_tree(-self.problem.event)

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
        p, top, split = self.problem, level_slice(hard_levels).start, self.splits(routing)
        mass, split = hard_reach(split, hard_levels, p.weight), split[:, top:]
        rows = self._in_one_pass(leaves, split, mass)
        if rows is None:
            terms = self.leaf_terms(leaves)
            found = route(split, terms.loss, mass)
            value, slopes, d_leaves = found.value, found.slopes, self.leaf_gradient(leaves, terms.slopes, found.reach)
        else:
            value, slopes, d_leaves = rows.value, rows.slopes, self._leaf_pullback(leaves, rows.by_time, rows.reach)
        slopes = p.pullback(slopes)
        d_routing = slopes if top == 0 else pad(slopes, (0, 0, top, 0))
        value, d_routing, d_leaves = self._with_penalty(value, routing, leaves, d_routing, d_leaves)
        if self.fairness is not None:
            extra = self.fairness.value_and_gradient(self.problem, routing, leaves, hard_levels)
            value, d_routing, d_leaves = value + extra[0], d_routing + extra[1], d_leaves + extra[2]
        return value, d_routing, d_leaves

    def _in_one_pass(self, leaves: Tensor, split: Tensor, mass: Tensor) -> OnePass | None:
        """Expected loss by compiled loops or by a fused operator; None where torch's operators must be used."""
        p, form = self.problem, self.form(leaves, split, mass)
        if form == OPERATORS:
            return None
        _, z, log_slope = self.predictors(leaves)
        if form == FUSED:
            return fused_loss(p.family.link, z, log_slope, p.per_tree(p.event), split, mass)
        code = code_of(p.family.link)
        assert code is not None
        return expected_loss(code, z, log_slope, p.even_event, split, mass)

    def form(self, *tables: Tensor) -> str:
        """How :meth:`value_and_gradient` goes over the rows of these tables: :data:`LOOPS` and so on."""
        if self._compiled(*tables) is not None:
            return LOOPS
        return FUSED if self.problem.right_censored and is_fused(*tables) else OPERATORS

    def _compiled(self, *tables: Tensor) -> int | None:
        """The number of the link in the compiled loops over the rows; None where torch's operators must be used."""
        return code_of(self.problem.family.link) if self.problem.right_censored and is_compiled(*tables) else None

    def value(self, routing: Tensor, leaves: Tensor) -> Tensor:
        """Objective of each tree, (M,)."""
        value = route(self.splits(routing), self.leaf_losses(leaves), self.problem.weight).value
        if self.fairness is not None:
            value = value + self.fairness.value_and_gradient(self.problem, routing, leaves, 0)[0]
        return value + self.penalty(routing, leaves)[0]

    def routing_value_and_gradient(
        self,
        routing: Tensor,  # (M, B, Q) of the branch nodes from some level on
        leaf_loss: Tensor,  # (M, L, N)
        mass: Tensor,  # (M, S, N) weight of each row at each node of that level
    ) -> tuple[Tensor, Tensor]:
        """Objective over branch nodes alone, the leaves' losses and the routing above being fixed."""
        found = route(self.splits(routing), leaf_loss, mass)
        return self._with_routing_penalty(found.value, routing, self.problem.pullback(found.slopes))

    def reach(self, routing: Tensor, hard_levels: int = 0) -> Tensor:
        """Weight of each row in each leaf, (M, L, N)."""
        split = self.splits(routing)
        start = hard_reach(split, hard_levels, self.problem.weight)
        return reach_probability(side_probability(split[:, level_slice(hard_levels).start :]), start)[-1]

    def leaf_value_and_gradient(self, leaves: Tensor, reach: Tensor) -> tuple[Tensor, Tensor]:
        """Objective over the leaves alone, each row's weight in each leaf being fixed."""
        code = self._compiled(leaves, reach)
        if code is None:
            terms = self.leaf_terms(leaves)
            value, gradient = _inner(reach, terms.loss), self.leaf_gradient(leaves, terms.slopes, reach)
        else:
            _, z, log_slope = self.predictors(leaves)
            value, by_time = leaf_loss_and_slopes(code, z, log_slope, self.problem.even_event, reach)
            gradient = self._leaf_pullback(leaves, by_time, reach)
        return self._with_leaf_penalty(value, leaves, gradient)

    def penalty(self, routing: Tensor, leaves: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Value (M,) of the quadratic penalties and their gradients."""
        return self._with_penalty(
            routing.new_zeros(len(leaves)), routing, leaves, torch.zeros_like(routing), torch.zeros_like(leaves)
        )

    def _with_penalty(
        self, value: Tensor, routing: Tensor, leaves: Tensor, d_routing: Tensor, d_leaves: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same with all penalties added."""
        value, d_routing = self._with_routing_penalty(value, routing, d_routing)
        value, d_leaves = self._with_leaf_penalty(value, leaves, d_leaves)
        return value, d_routing, d_leaves

    def _with_routing_penalty(self, value: Tensor, routing: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Value (M,) and gradient with the penalty of the routing weights (M, B, Q) added."""
        if routing.shape[1] == 0:
            return value, gradient
        pull = self.routing_curvature * routing
        return _plus_half(value, pull, routing), gradient + pull

    def _with_leaf_penalty(self, value: Tensor, leaves: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Value (M,) and gradient with the penalties of the leaves (M, L, Q + K) added."""
        curvature, centre, floor = self.leaf_well
        away = leaves - centre
        pull = curvature * away
        return _plus_half(torch.add(value, floor, alpha=leaves.shape[1]), pull, away), gradient + pull

    @cached_property
    def routing_curvature(self) -> Tensor:
        """Curvature of the routing penalty, (M, 1, Q): intercepts are free."""
        return pad(self.penalties.routing_l2[:, None, None].expand(-1, 1, self.columns - 1), (1, 0))

    @cached_property
    def leaf_well(self) -> Well:
        """The penalties of the leaves, summed once."""
        return Well.of(self.penalties, self.columns)


def route(
    split: Tensor,  # (M, B, N) of the branch nodes from some level on
    leaf_loss: Tensor,  # (M, L, N)
    mass: Tensor,  # (M, S, N) weight of each row at each node of that level
) -> Routed:
    """Expected loss of rows that reach the nodes of a level with the weights ``mass``."""
    if is_compiled(split, leaf_loss, mass):
        return Routed(*routed_loss(split, leaf_loss, mass))
    sides = side_probability(split)
    reach = reach_probability(sides, mass)
    costs, gaps = subtree_costs(sides, leaf_loss, mass.shape[1].bit_length() - 1)
    return Routed(_inner(mass, costs[0]), routing_slopes(sides, reach, gaps), reach[-1])


def _inner(a: Tensor, b: Tensor) -> Tensor:
    """Inner products (M,) of tables (M, ...)."""
    return torch.bmm(a.flatten(1)[:, None], b.flatten(1)[..., None])[:, 0, 0]


def _plus_half(value: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """``value`` (M,) plus half the inner products of tables (M, ...)."""
    product = torch.baddbmm(value[:, None, None], a.flatten(1)[:, None], b.flatten(1)[..., None], alpha=0.5)
    return product[:, 0, 0]
