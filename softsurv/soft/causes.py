"""The objective of dense trees whose leaves hold one hazard for each cause.

All causes share the routing. Given the leaf, the loss of a row is a sum over the causes. The loss of a cause takes the
events of the other causes as censored and is multiplied by the cause's factor, its ``count``. So are the penalties of
its leaves: given the routing, the leaves of a cause do not depend on its factor. The parameters of a leaf are those of
its causes, one after the other: (M, L, C (Q + K)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, reduce

import torch
from torch import Tensor
from torch.nn.functional import pad

from softsurv.data.survival_data import SurvivalData
from softsurv.hazards.base import LeafFamily
from softsurv.hazards.likelihood import Slopes
from softsurv.soft.bfgs import Inner
from softsurv.soft.fairness import GroupFairness
from softsurv.soft.objective import OPERATORS, LeafTerms, Objective, route
from softsurv.soft.penalties import Penalties, Well
from softsurv.soft.problem import Problem, make_problem, with_others
from softsurv.soft.restricted import Moves, fit_moves
from softsurv.stopping import StopSignal
from softsurv.trees.routing import hard_reach
from softsurv.trees.topology import level_slice

LITTLE = 0.1
"""Leaves of causes with a factor below this are fitted once more, given the routing. Joint training ends by the sum
over all causes: the leaves of such a cause have hardly left their start by then."""


def make_problem_of_causes(
    data: SurvivalData, family: LeafFamily, counts: Sequence[float] | None = None, **how: object
) -> Problem:
    """Problem of the first cause, which holds those of the others.

    ``counts`` (C,) are the factors of the causes, 1 by default. Other arguments as in `make_problem`.
    """
    parts = [make_problem(part, family, **how) for part in data.by_cause()]  # type: ignore[arg-type]
    counts = (1.0,) * len(parts) if counts is None else counts
    return with_others(*(replace(part, count=count) for part, count in zip(parts, counts, strict=True)))


def objective_of(
    problem: Problem, depth: int, penalties: Penalties, fairness: GroupFairness | None = None
) -> Objective:
    """The objective of a problem of one kind of event, or of several causes."""
    kind = CausesObjective if problem.others else Objective
    return kind(problem, depth, penalties, fairness)


class CausesObjective(Objective):
    """Value and gradient of the training objective where the problem holds several causes."""

    @cached_property
    def parts(self) -> tuple[Objective, ...]:
        """The objective of each cause, for its losses and their gradients."""
        return tuple(Objective(problem, self.depth, self.penalties) for problem in self.problem.of_causes)

    @property
    def by_cause(self) -> tuple[Objective | None, ...]:
        """The objective of each cause's own leaves, or None where the cause does not count."""
        p, anchors = self.problem, self.problem.blocks(self.penalties.anchor)
        return tuple(
            Objective(one, self.depth, replace(self.penalties, anchor=anchor)) if count else None
            for one, anchor, count in zip(p.of_causes, anchors, p.counts, strict=True)
        )

    def form(self, *tables: Tensor) -> str:
        """By operators: the losses of causes are added up before rows are routed."""
        return OPERATORS

    def leaf_terms(self, leaves: Tensor) -> LeafTerms:
        """Loss of every row in every leaf, (M, L, N), all causes added up; the slopes are those of each cause."""
        terms = [part.leaf_terms(own) for part, own in zip(self.parts, self.problem.blocks(leaves), strict=True)]
        losses = [_times(count, one.loss) for count, one in zip(self.problem.counts, terms, strict=True)]
        return LeafTerms(reduce(torch.add, losses), tuple(one.slopes for one in terms))

    def leaf_losses(self, leaves: Tensor) -> Tensor:
        """The same without what gradients need."""
        return self.leaf_terms(leaves).loss

    def leaf_gradient(self, leaves: Tensor, slopes: tuple[Slopes, ...], reach: Tensor) -> Tensor:
        """Gradient of the weighted loss with respect to the leaf parameters (M, L, C (Q + K))."""
        own = zip(self.problem.counts, self.parts, self.problem.blocks(leaves), slopes, strict=True)
        return torch.cat([_times(count, part.leaf_gradient(block, one, reach)) for count, part, block, one in own], -1)

    def value_and_gradient(
        self, routing: Tensor, leaves: Tensor, hard_levels: int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Objective (M,) and its gradients; branch nodes above ``hard_levels`` route by their HBP, without slope."""
        terms, top = self.leaf_terms(leaves), level_slice(hard_levels).start
        split = self.splits(routing)
        found = route(split[:, top:], terms.loss, hard_reach(split, hard_levels, self.problem.weight))
        d_routing = pad(self.problem.pullback(found.slopes), (0, 0, top, 0))
        d_leaves = self.leaf_gradient(leaves, terms.slopes, found.reach)
        value, d_routing, d_leaves = self._with_penalty(found.value, routing, leaves, d_routing, d_leaves)
        if self.fairness is not None:
            extra = self.fairness.value_and_gradient(self.problem, routing, leaves, hard_levels)
            value, d_routing, d_leaves = value + extra[0], d_routing + extra[1], d_leaves + extra[2]
        return value, d_routing, d_leaves

    def leaf_value_and_gradient(self, leaves: Tensor, reach: Tensor) -> tuple[Tensor, Tensor]:
        """Objective over the leaves alone, each row's weight in each leaf being fixed."""
        terms = self.leaf_terms(leaves)
        gradient = self.leaf_gradient(leaves, terms.slopes, reach)
        return self._with_leaf_penalty((reach * terms.loss).sum((1, 2)), leaves, gradient)

    @cached_property
    def leaf_well(self) -> Well:
        return Well.of(self.penalties, self.columns, self.problem.counts)


def fit_uncounted_leaves(
    objective: Objective,
    routing: Tensor,  # (M, B, Q)
    leaves: Tensor,  # (M, L, C (Q + K))
    settings: Inner,
    budget: StopSignal | None = None,
) -> Tensor:
    """The leaves with the hazards of the causes whose factor is 0, or :data:`LITTLE`, fitted given the trained routing.

    A parameter that is exactly 0 was taken out by a group lasso and stays so. With fairness every factor is above 0,
    and the penalty holds all causes together: their leaves stay.
    """
    counts = objective.problem.counts
    if min(counts) >= LITTLE or len(counts) == 1 or objective.fairness is not None:
        return leaves
    uncounted = torch.tensor([count < LITTLE for count in counts], device=leaves.device)
    moves = uncounted.repeat_interleave(leaves.shape[-1] // len(counts)) & (leaves != 0)
    alike = with_others(*(replace(one, count=1.0) for one in objective.problem.of_causes))
    whole = objective_of(alike, objective.depth, objective.penalties)
    held = torch.zeros_like(routing).bool()
    return fit_moves(whole, routing, leaves, Moves(held, moves), settings, budget=budget).point[1]


def _times(count: float, value: Tensor) -> Tensor:
    """A cause's term times the cause's factor."""
    return value if count == 1.0 else count * value
