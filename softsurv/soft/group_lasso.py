"""Group lasso over features: accelerated proximal gradient for a stack of trees, so that a tree uses few features.

    E + strength sum_f sqrt(|f|) ||(routing weights, leaf coefficients) of feature f||

over all branch nodes and leaves, a feature's one-hot columns together. The method is FISTA with a restart where the
objective rises (Beck & Teboulle 2009; O'Donoghue & Candes 2015). Each tree has its own step length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import LbfgsSettings, Minimum
from softsurv.soft.problem import taken
from softsurv.soft.restricted import Moves, fit_moves
from softsurv.soft.watch import Watch, runs_ahead
from softsurv.stopping import StopSignal

QUIET = 5
"""Rounds in a row that gain little, after which a tree stops."""

Pair = tuple[Tensor, Tensor]
"""Routing weights (M, B, Q) and leaf parameters (M, L, Q + K)."""

MAX_HALVINGS = 40
"""After these a step is 1e-12 of the last one: there is no lower point."""

STEP_UP = 1.2
"""Growth of the step after a success, so that steps grow again where the curvature falls."""


def group_norms(
    routing: Tensor,  # (M, B, Q)
    leaves: Tensor,  # (M, L, Q + K)
    groups: Tensor,  # (P,) number of each column's feature
    n_groups: int,  # F
    n_causes: int = 1,
) -> Tensor:  # (M, F)
    """Norm of all coefficients of each feature, in the routing and in the leaves of every cause."""
    own = _coefficients(leaves, groups, n_causes)
    squares = routing[..., 1:].square().sum(1) + own.square().sum((1, 2))  # (M, P)
    return squares.new_zeros(len(squares), n_groups).index_add_(1, groups, squares).sqrt()


def _coefficients(leaves: Tensor, groups: Tensor, n_causes: int) -> Tensor:
    """The leaves' coefficients of the features for each cause, (M, L, C, P): a view."""
    return leaves.unflatten(-1, (n_causes, -1))[..., 1 : len(groups) + 1]


def group_weights(groups: Tensor) -> Tensor:  # (F,)
    """Square root of each feature's number of columns, so that features of many columns are not favoured."""
    return torch.bincount(groups).sqrt()


@dataclass(frozen=True)
class GroupLasso:
    """The penalty of a stack of trees.

    Attributes
    ----------
    groups : Tensor (P,)
        Number of each column's feature.
    strength : Tensor (M,)
    n_causes : int
        Number of causes whose parameters the leaves hold.
    """

    groups: Tensor
    strength: Tensor
    n_causes: int = 1

    def take(self, trees: Tensor) -> GroupLasso:
        """The penalty of some trees."""
        some = GroupLasso(self.groups, taken(self.strength, trees), self.n_causes)
        some.__dict__["thresholds"] = taken(self.thresholds, trees)  # to count columns anew would wait for a device
        return some

    @cached_property
    def thresholds(self) -> Tensor:
        """Factor of each feature's norm in the penalty, (M, F)."""
        return self.strength[:, None] * group_weights(self.groups).to(self.strength)

    def value(self, routing: Tensor, leaves: Tensor) -> Tensor:
        """Penalty of each tree, (M,)."""
        return (self.thresholds * self.norms(routing, leaves)).sum(1)

    def norms(self, routing: Tensor, leaves: Tensor) -> Tensor:
        """Norm of each feature, (M, F)."""
        return group_norms(routing, leaves, self.groups, self.thresholds.shape[1], self.n_causes)

    def shrunk(self, routing: Tensor, leaves: Tensor, step: Tensor) -> Pair:
        """Proximal step: every feature's norm falls by step (M,) times its threshold, but not below 0."""
        norms = self.norms(routing, leaves)
        keep = (1 - step[:, None] * self.thresholds / norms.clamp(min=1e-300)).clamp(min=0)  # (M, F)
        factor = keep[:, self.groups][:, None]  # (M, 1, P)
        r, b = routing.clone(), leaves.clone()
        r[..., 1:] *= factor
        _coefficients(b, self.groups, self.n_causes).mul_(factor[:, :, None])
        return r, b


@dataclass
class _LassoState:
    at: Pair
    ahead: Pair
    best: Tensor  # (m,) penalised objective
    momentum: Tensor  # (m,)
    step: Tensor  # (m,)
    quiet: Tensor  # (m,) rounds in a row that gained little
    halvings: Tensor  # (m,) of this step

    def take(self, trees: Tensor) -> _LassoState:
        """The trees (r,) of the stack."""
        at, ahead = ((taken(r, trees), taken(b, trees)) for r, b in (self.at, self.ahead))
        others = (taken(value, trees) for value in (self.best, self.momentum, self.step, self.quiet, self.halvings))
        return _LassoState(at, ahead, *others)


def fit_sparse(
    objective: Objective,
    routing: Tensor,  # (M, B, Q)
    leaves: Tensor,  # (M, L, Q + K)
    lasso: GroupLasso,
    max_iterations: int = 400,
    tolerance: float = 1e-7,
    budget: StopSignal | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Minimise the objective plus the group lasso; returns routing, leaves and penalised objective (M,).

    A round tries one step of every tree. A tree whose step is too long halves it and waits for the next round. A tree
    leaves the stack as soon as the host knows that it has been quiet for some rounds.
    """
    best = objective.value(routing, leaves) + lasso.value(routing, leaves)
    one, zero = torch.ones_like(lasso.strength), torch.zeros_like(lasso.strength)
    state = _LassoState((routing, leaves), (routing, leaves), best, one, one, zero, zero)
    ended, rows = (routing.clone(), leaves.clone(), best.clone()), torch.arange(len(best), device=best.device)
    watch = Watch(late=runs_ahead(best))
    for _ in range(2 * max_iterations):
        _advance(state, objective, lasso, tolerance)
        moving = watch(state.quiet < QUIET)
        left = None if moving is None else torch.nonzero(moving)[:, 0]
        if (left is not None and len(left) == 0) or (budget is not None and budget.exhausted):
            break
        if left is not None and len(left) < len(rows):
            _put(ended, rows, state)
            rows, state, objective, lasso = taken(rows, left), state.take(left), objective.take(left), lasso.take(left)
            watch.narrow(left)
    _put(ended, rows, state)
    return ended


def _put(ended: tuple[Tensor, Tensor, Tensor], rows: Tensor, state: _LassoState) -> None:
    """Write where the trees of a state are, and their objectives, in their rows (m,) of the whole stack."""
    for whole, part in zip(ended, (*state.at, state.best), strict=True):
        whole[rows] = part


def _advance(state: _LassoState, objective: Objective, lasso: GroupLasso, tolerance: float) -> None:
    """One step of every tree."""
    at, ahead, best, momentum = state.at, state.ahead, state.best, state.momentum
    value, *gradient = objective.value_and_gradient(*ahead)
    new, total, short = _trial(objective, lasso, ahead, value, (gradient[0], gradient[1]), state.step)
    # a tree that has been quiet for long waits too: how soon its host knows of it must not matter
    short = (short & (state.halvings < MAX_HALVINGS)) | (state.quiet >= QUIET)
    state.halvings = torch.where(short, state.halvings + 1, 0.0)
    rose = total > best
    grown = 0.5 * (1 + (1 + 4 * momentum.square()).sqrt())
    pull = torch.where(rose, 0.0, (momentum - 1) / grown)[:, None, None]
    stays, waits = (rose | short)[:, None, None], short[:, None, None]
    moved = (torch.where(stays, at[0], new[0]), torch.where(stays, at[1], new[1]))
    next_at = (moved[0] + pull * (moved[0] - at[0]), moved[1] + pull * (moved[1] - at[1]))
    state.ahead = (torch.where(waits, ahead[0], next_at[0]), torch.where(waits, ahead[1], next_at[1]))
    state.momentum = torch.where(short, momentum, torch.where(rose, 1.0, grown))
    still = rose | (best - total <= tolerance * best.abs().clamp(min=1.0))
    state.quiet = torch.where(short, state.quiet, torch.where(still, state.quiet + 1, 0.0))
    state.best, state.at = torch.where(rose | short, best, total), moved
    state.step = state.step * torch.where(short, 0.5, STEP_UP)


def fit_named(
    objective: Objective,
    routing: Tensor,
    leaves: Tensor,
    lasso: GroupLasso,
    settings: LbfgsSettings,
    budget: StopSignal | None = None,
) -> Minimum:
    """Choose features by the group lasso, then train on with these features and without the lasso.

    This is the relaxed lasso (Meinshausen 2007).
    """
    routing, leaves, _ = fit_sparse(objective, routing, leaves, lasso, budget=budget)
    named = lasso.norms(routing, leaves)[:, lasso.groups] > 0  # (M, P)
    kept = torch.cat([torch.ones_like(named[:, :1]), named], 1)[:, None]  # with the intercept
    shapes = torch.ones_like(leaves[:, :1, : leaves.shape[-1] // lasso.n_causes - kept.shape[-1]]).bool()
    of_leaf = torch.cat([kept, shapes], -1).repeat(1, 1, lasso.n_causes)
    moves = Moves(kept.expand_as(routing), of_leaf.expand_as(leaves))
    return fit_moves(objective, routing, leaves, moves, settings, budget=budget)


def _trial(
    objective: Objective,
    lasso: GroupLasso,
    at: Pair,
    value: Tensor,  # (M,)
    gradient: Pair,
    step: Tensor,  # (M,)
) -> tuple[Pair, Tensor, Tensor]:
    """A step of each tree, its penalised objective (M,), and whether it exceeds the quadratic bound of FISTA (M,)."""
    length = step[:, None, None]
    new = lasso.shrunk(at[0] - length * gradient[0], at[1] - length * gradient[1], step)
    smooth = objective.value(*new)
    change = (new[0] - at[0], new[1] - at[1])
    bound = value + _inner(gradient, change) + _inner(change, change) / (2 * step)
    return new, smooth + lasso.value(*new), ~(smooth <= bound + 1e-12 * value.abs().clamp(min=1.0))


def _inner(a: Pair, b: Pair) -> Tensor:  # (M,)
    return (a[0] * b[0]).sum((1, 2)) + (a[1] * b[1]).sum((1, 2))
