"""Fit a stack of soft trees: many settings, many folds, many starts at once.

`make_stack` lays the trees out with their penalties and starts, `fit_stack` trains them. Everything that trains soft
trees goes this way: the estimator's own fit, the choice of depth and penalties, cross-validation, and the starts of a
streamed fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from softsurv.errors import NumericalError
from softsurv.soft.capacity import stack_parts
from softsurv.soft.causes import fit_uncounted_leaves, objective_of
from softsurv.soft.fair_leaves import fair_in_leaves, fair_single_leaves
from softsurv.soft.fairness import GroupFairness
from softsurv.soft.group_lasso import GroupLasso, fit_named
from softsurv.soft.nodec import Progress, Trained, nodec
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import Function, LbfgsSettings, Metric, Minimum, minimise
from softsurv.soft.parallel import Machine, keep_memory, map_parts
from softsurv.soft.penalties import Penalties, single_leaf_penalties, tree_penalties
from softsurv.soft.precondition import GramMetric
from softsurv.soft.problem import Problem, taken
from softsurv.soft.recipe import Candidate, Recipe, Training
from softsurv.soft.restricted import Moves, OverMoves, fit_leaves, fit_moves, moves_metric
from softsurv.soft.starts import initial_leaves
from softsurv.stopping import StopSignal

SINGLE_LEAF = LbfgsSettings(max_iterations=300, ftol=1e-12, gtol=1e-8)
"""The single-leaf fit is convex (in the exponentials of the shapes) and cheap, so it is solved to the end."""

FAIR = LbfgsSettings(max_iterations=100, ftol=1e-7)
"""How far leaves are fitted with the fairness penalty of what they predict."""

UNCOUNTED = LbfgsSettings(max_iterations=200, ftol=1e-9)
"""How far the leaves of causes that do not count, or hardly, are fitted, given the routing."""

FIRST_LEAVES = LbfgsSettings(max_iterations=10)
"""How far the leaves are fitted to a start's routing before training."""


@dataclass(frozen=True)
class Stack:
    """Trees that are fitted together, each with its rows, its penalties and its start.

    Attributes
    ----------
    objective : Objective
        The objective of M trees. The weights (M, 1, N) of its problem say which rows each tree is trained on.
    routing : Tensor (M, B, Q)
    leaves : Tensor (M, L, Q + K)
    moves : Moves, optional
        Parameters that may move; all by default. A fixed routing stays the same to the last digit.
    lasso : GroupLasso, optional
        Chooses features after training.
    """

    objective: Objective
    routing: Tensor
    leaves: Tensor
    moves: Moves | None = None
    lasso: GroupLasso | None = None

    @property
    def n_trees(self) -> int:
        """M."""
        return len(self.leaves)

    def take(self, trees: Tensor) -> Stack:
        """Some of the trees."""
        return Stack(
            self.objective.take(trees),
            taken(self.routing, trees),
            taken(self.leaves, trees),
            None if self.moves is None else self.moves.take(trees),
            None if self.lasso is None else self.lasso.take(trees),
        )


def make_stack(
    problem: Problem,
    recipe: Recipe,
    routing: Tensor,  # (F, S, B, Q)
    anchors: Tensor,  # (F, C, 1, Q + K)
    n: Tensor,  # (F,) training rows, in units of which penalties are
    *,
    settings: Sequence[Candidate] | None = None,
    fairness: GroupFairness | None = None,
    lasso: GroupLasso | None = None,
) -> Stack:
    """The trees of F folds, C settings and S starts: M = F C S, folds slowest, starts fastest.

    Parameters
    ----------
    problem : Problem
        The problem of F trees, one for each fold.
    recipe : Recipe
        Its ``candidate`` is the only setting where ``settings`` are not given. All settings have one depth.
    """
    settings, starts = [recipe.candidate] if settings is None else settings, routing.shape[1]
    trees = [StackedTree(k, recipe.seed + start) for k in range(len(settings)) for start in range(starts)]
    every = routing[:, None].expand(-1, len(settings), -1, -1, -1).flatten(1, 2)
    return stack_of(problem, recipe, settings, trees, every, anchors, n, fairness=fairness, lasso=lasso)


class StackedTree(NamedTuple):
    """One of the trees of a fold: the number of its setting and the seed of its start."""

    setting: int
    seed: int


def stack_of(
    problem: Problem,
    recipe: Recipe,
    settings: Sequence[Candidate],  # C, of one depth
    trees: Sequence[StackedTree],  # T
    routing: Tensor,  # (F, T, B, Q)
    anchors: Tensor,  # (F, C, 1, Q + K)
    n: Tensor,  # (F,)
    *,
    fairness: GroupFairness | None = None,
    lasso: GroupLasso | None = None,
    columns: Sequence[int] | None = None,  # (F,) columns of each fold; the rest of Q is padding
) -> Stack:
    """The trees of F folds, of any settings and starts: M = F T, folds slowest; ``problem`` is of one tree a fold."""
    folds, depth, of = len(n), settings[0].depth, [tree.setting for tree in trees]
    penalties = stack_penalties([settings[k] for k in of], recipe.l2_all, n, anchors[:, of])
    seeds = [tree.seed for tree in trees] * folds
    own = None if columns is None else [c for c in columns for _ in trees]
    centre = penalties.anchor if recipe.training.leaf_start == "near" else torch.zeros_like(penalties.anchor)
    leaves = penalties.anchor
    if depth:
        leaves = initial_leaves(centre, depth, seeds, columns=own, n_causes=problem.n_causes)
    objective = objective_of(problem.repeat(len(trees)), depth, penalties, fairness)
    return Stack(objective, routing.flatten(0, 1), leaves, lasso=lasso)


def stack_penalties(
    settings: Sequence[Candidate],  # (T,) of the trees of a fold
    l2_all: float,
    n: Tensor,  # (F,) training rows
    anchors: Tensor,  # (F, T, 1, Q + K)
) -> Penalties:
    """The penalties of the trees of all folds, (F T,)."""
    one = (1 / n)[:, None].expand(anchors.shape[:2])

    def strengths(values: Sequence[float]) -> Tensor:  # of each tree of a fold -> (F T,)
        return (torch.tensor(values, dtype=torch.float64).to(one) * one).flatten()

    return tree_penalties(
        strengths([s.ridge for s in settings]),
        strengths([s.shrinkage for s in settings]),
        strengths([s.routing_l2 for s in settings]),
        strengths([l2_all] * len(settings)),
        anchors.flatten(0, 1),
    )


def fit_anchors(
    problem: Problem,
    recipe: Recipe,
    n: Tensor,  # (F,)
    *,
    settings: Sequence[Candidate] | None = None,
    lasso: GroupLasso | None = None,
    budget: StopSignal | None = None,
    fairness: GroupFairness | None = None,
    check: bool = True,
) -> Minimum:
    """The single-leaf fit of each fold and setting, (F, C, 1, Q + K): what the leaves of trees begin at and shrink to.

    Settings of one ridge share a fit. The fairness penalty is part of it. Without ``check`` the caller must check that
    the losses are finite, once they are on the host.
    """
    settings = [recipe.candidate] if settings is None else settings
    ridges = list(dict.fromkeys(s.ridge for s in settings))
    one = (1 / n)[:, None].expand(-1, len(ridges))
    ridge = (torch.tensor(ridges, dtype=torch.float64).to(one) * one).flatten()
    stack, l2_all = problem.repeat(len(ridges)), recipe.l2_all * one.flatten()
    end = fit_single_leaf(stack, ridge, l2_all, lasso, budget, check)
    if fairness is not None:
        end = replace(end, point=(fair_single_leaves(stack, end.point[0], ridge, l2_all, fairness, FAIR, budget),))
    at = [ridges.index(s.ridge) for s in settings]

    def spread(value: Tensor) -> Tensor:
        return value.unflatten(0, (len(n), len(ridges)))[:, at]

    return Minimum((spread(end.point[0]),), spread(end.loss), spread(end.converged))


def fit_single_leaf(
    problem: Problem,
    ridge: Tensor | None = None,  # (M,)
    l2_all: Tensor | None = None,  # (M,)
    lasso: GroupLasso | None = None,
    budget: StopSignal | None = None,
    check: bool = True,
) -> Minimum:
    """The depth-0 trees; the point is their leaves (M, 1, Q + K).

    Raises
    ------
    NumericalError
        If a fit leaves the finite numbers, unless ``check`` is False.
    """
    zero = problem.design.new_zeros(problem.n_trees)
    ridge, l2_all = zero if ridge is None else ridge, zero if l2_all is None else l2_all
    ends = [_fit_one_cause(one, ridge, l2_all, budget) for one in problem.of_causes]  # only a lasso couples them
    end = Minimum(
        (ends[0].point[0], torch.cat([own.point[1] for own in ends], -1)),
        torch.stack([own.loss for own in ends]).sum(0),
        torch.stack([own.converged for own in ends]).all(0),
    )
    if check:
        refuse_infinite(end.loss)
    if lasso is not None:
        objective = objective_of(problem, 0, single_leaf_penalties(ridge, l2_all, end.point[1].shape[-1]))
        end = fit_named(objective, end.point[0], end.point[1], lasso, SINGLE_LEAF, budget)
    return replace(end, point=end.point[1:])


def refuse_infinite(loss: Tensor) -> None:
    """Raise NumericalError if a loss of a single-leaf fit is not finite. This waits for the device."""
    if not bool(torch.isfinite(loss).all()):
        raise NumericalError("the single-leaf fit left the finite numbers; rescale the features or the times")


def _fit_one_cause(problem: Problem, ridge: Tensor, l2_all: Tensor, budget: StopSignal | None) -> Minimum:
    """The depth-0 trees of one kind of event; the point is an empty routing and the leaves (M, 1, Q + K)."""
    columns = problem.design.shape[-1]
    routing = problem.design.new_zeros(problem.n_trees, 0, columns)
    start = problem.design.new_zeros(problem.n_trees, 1, columns + problem.family.n_shape)
    start[..., columns:] = problem.family.initial_shape(problem.time_scale[0])
    objective = Objective(problem, 0, single_leaf_penalties(ridge, l2_all, start.shape[-1]))
    return minimise(objective, (routing, start), SINGLE_LEAF, GramMetric(problem, 0, 1), budget)


def fit_stack(stack: Stack, training: Training, machine: Machine, progress: Progress | None = None) -> Trained:
    """Train every tree of a stack, in parts that fit the processor's caches or the device's memory.

    Parameters
    ----------
    stack : Stack
    training : Training
    machine : Machine
    progress : callable, optional
        Called with the round and the objectives of the trees that train together.

    Returns
    -------
    Trained
        All trees, in the order of the stack.
    """
    keep_memory()
    problem = stack.objective.problem
    if problem.n_groups > 1:  # folds with rows of their own: the caller decides how many train at once
        return _fit_part(stack, training, machine.budget, progress)
    fairness = stack.objective.fairness
    n_times = 0 if fairness is None else len(fairness.step)
    parts = stack_parts(problem, stack.leaves.shape[1], n_jobs=stack.n_trees, n_times=n_times)
    fit_part = partial(_fit_part, stack, training, machine.budget, progress)
    return _joined(map_parts(fit_part, parts, machine.at_once))


def _fit_part(
    whole: Stack, training: Training, budget: StopSignal | None, progress: Progress | None, part: slice | None = None
) -> Trained:
    """Fit the leaves to the start's routing, then train; with a group lasso, choose features and train again."""
    everyone = torch.arange(whole.n_trees)
    if part is not None and part.start > 0 and budget is not None and budget.exhausted:
        return _untrained(whole, everyone[part])
    stack = whole if part in (None, slice(0, whole.n_trees)) else whole.take(everyone[part])
    objective, routing, leaves = stack.objective, stack.routing, _first_leaves(stack, training, budget)
    if training.solver == "nodec" and objective.depth > 0:
        trained = nodec(objective, routing, leaves, training.nodec, budget, progress)
    else:
        trace: list[Tensor] = []

        def look(loss: Tensor) -> None:
            trace.append(loss.clone())
            if progress is not None:
                progress(len(trace), loss)

        function, metric = _over_moves(stack)
        end = minimise(function, (routing, leaves), training.joint, metric, budget, look)
        trained = Trained(end.point[0], end.point[1], end.loss, end.converged, tuple(trace))
    if objective.fairness is not None and objective.depth > 0:
        trained = fair_in_leaves(objective, trained, FAIR, budget)
    if stack.lasso is not None:
        end = fit_named(objective, trained.routing, trained.leaves, stack.lasso, training.joint, budget)
        trained = Trained(end.point[0], end.point[1], end.loss, end.converged, trained.trace)
    leaves = fit_uncounted_leaves(objective, trained.routing, trained.leaves, UNCOUNTED, budget)
    return replace(trained, leaves=leaves)


def _untrained(whole: Stack, trees: Tensor) -> Trained:
    """Trees that there was no time to train: their start, with an infinite objective so that none is chosen."""
    endless = torch.full((len(trees),), torch.inf, dtype=whole.leaves.dtype, device=whole.leaves.device)
    return Trained(taken(whole.routing, trees), taken(whole.leaves, trees), endless, torch.isfinite(endless), ())


def _first_leaves(stack: Stack, training: Training, budget: StopSignal | None) -> Tensor:
    """Leaves fitted a little to the start's routing, or to the rows whose path ends in them, by ``leaf_start``."""
    objective, moves = stack.objective, stack.moves
    if objective.depth == 0 or training.leaf_start in ("random", "spline"):
        return stack.leaves
    if training.leaf_start == "own":
        return fit_leaves(objective, stack.routing, stack.leaves, training.nodec.leaf, objective.depth, budget)
    if moves is None:
        return fit_leaves(objective, stack.routing, stack.leaves, FIRST_LEAVES, budget=budget)
    alone = Moves(torch.zeros_like(moves.routing), moves.leaves)
    return fit_moves(objective, stack.routing, stack.leaves, alone, FIRST_LEAVES, budget=budget).point[1]


def _over_moves(stack: Stack) -> tuple[Function, Metric]:
    """The function that joint training minimises, and its metric."""
    objective, moves = stack.objective, stack.moves
    if moves is None:
        return objective, GramMetric(objective.problem, stack.routing.shape[1], stack.leaves.shape[1])
    return OverMoves(objective, moves), moves_metric(objective, moves)


def _joined(parts: list[Trained]) -> Trained:
    """Parts of a stack as one; the trace of a part that ended earlier is continued with its last value."""
    if len(parts) == 1:
        return parts[0]
    length = max(len(part.trace) for part in parts)
    padded = [[part.trace[min(k, len(part.trace) - 1)] for part in parts if part.trace] for k in range(length)]
    return Trained(
        torch.cat([part.routing for part in parts]),
        torch.cat([part.leaves for part in parts]),
        torch.cat([part.objective for part in parts]),
        torch.cat([part.converged for part in parts]),
        tuple(torch.cat(losses) for losses in padded),
    )
