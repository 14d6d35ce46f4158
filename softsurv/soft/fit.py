"""One soft tree from data: several starts as one stack, the best of them kept."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from softsurv.data.survival_data import SurvivalData
from softsurv.hazards.base import LeafFamily
from softsurv.numerics import Design
from softsurv.results import FitReport, Status
from softsurv.soft.causes import make_problem_of_causes
from softsurv.soft.ended import form_of
from softsurv.soft.fairness import fairness_of
from softsurv.soft.fit_stack import Stack, fit_anchors, fit_stack, make_stack
from softsurv.soft.group_lasso import GroupLasso
from softsurv.soft.nodec import Progress, Trained
from softsurv.soft.parallel import Machine
from softsurv.soft.problem import Problem
from softsurv.soft.recipe import Recipe
from softsurv.soft.spline_start import begin_spline_leaves
from softsurv.soft.starts import counted_events, start_routing
from softsurv.trees.soft_tree import SoftTree


@dataclass(frozen=True)
class FittedStarts:
    """The tree of every start, and which is best.

    Attributes
    ----------
    trees : tuple of SoftTree
        Stacks of one.
    objectives : tuple of float
        Training objectives; infinite for a tree that there was no time to train: it is as training would begin.
    report : FitReport
        Of the best tree. ``details`` holds the objective of every start, whether the single-leaf fit converged, and
        ``objective_by``: how the objective went over the rows, :func:`form_of`. ``leaves_alike`` is there where
        training was cut off so early that the single leaf fits better: it is in all leaves of the tree then.
    causes : tuple of tuple of SoftTree
        Where events have causes: for each start one tree per cause. These differ in their leaves alone, and those of
        the first cause are ``trees``.
    """

    trees: tuple[SoftTree, ...]
    objectives: tuple[float, ...]
    report: FitReport
    causes: tuple[tuple[SoftTree, ...], ...] = ()

    @property
    def best(self) -> SoftTree:
        """The tree with the lowest training objective."""
        return self.trees[self._best]

    @property
    def best_of_causes(self) -> tuple[SoftTree, ...]:
        """The best tree for each cause; the tree alone where there is one kind of event."""
        return self.causes[self._best] if self.causes else (self.best,)

    @property
    def _best(self) -> int:
        return self.objectives.index(min(self.objectives))


def fit_tree(
    data: SurvivalData,
    recipe: Recipe,
    machine: Machine,
    groups: tuple[int, ...] = (),
    progress: Progress | None = None,
) -> tuple[SoftTree, FitReport]:
    """Train every start and keep the one with the lowest training objective; arguments as in `fit_starts`."""
    fitted = fit_starts(data, recipe, machine, groups, progress)
    return fitted.best, fitted.report


def fit_starts(
    data: SurvivalData,
    recipe: Recipe,
    machine: Machine,
    groups: tuple[int, ...] = (),
    progress: Progress | None = None,
) -> FittedStarts:
    """Train every start.

    Parameters
    ----------
    data : SurvivalData
        With numeric, complete features.
    recipe : Recipe
    machine : Machine
    groups : tuple of int
        Feature that each column belongs to, for ``recipe.l1``.
    progress : callable, optional
        Called with the round and the objectives of the trees that trained together.
    """
    starts, depth, budget = recipe.used_starts, recipe.candidate.depth, machine.budget
    how = {"dtype": machine.dtype, "device": machine.device, "design": data.design}
    problem = make_problem_of_causes(data, recipe.family, recipe.counts, **how)
    n, lasso = torch.full((1,), float(data.n), dtype=torch.float64).to(problem.weight), None
    if recipe.l1 > 0 and groups:
        numbers = torch.tensor(groups, dtype=torch.int64, device=machine.device)
        lasso = GroupLasso(numbers, problem.weight.new_full((len(starts),), recipe.l1 / data.n**0.5), problem.n_causes)
    # one copy for each start: rounding depends on the size of a stack, and fits that stop early multiply it
    copies, n_copies = problem.repeat(len(starts)), n.expand(len(starts))
    fairness = fairness_of(data, copies, recipe.fairness)
    sure = None if budget is None else budget.with_grace()  # what leaves begin at and shrink to, and the last resort
    anchor = fit_anchors(copies, recipe, n_copies, lasso=lasso, budget=sure, fairness=fairness)
    anchored = bool(anchor.converged.all()) and not (sure is not None and sure.exhausted)
    seeds, proposing = [recipe.seed + k for k in range(len(starts))], counted_events(data, recipe.counts)
    routing = start_routing(starts, proposing, depth, seeds, machine.start_seconds(), budget)
    stack = make_stack(
        problem, recipe, routing.to(problem.design)[None], anchor.point[0][:1], n, fairness=fairness, lasso=lasso
    )
    if recipe.training.leaf_start == "spline" and depth:
        stack = replace(stack, leaves=begin_spline_leaves(data, problem, depth, seeds, stack.leaves))
    trained = fit_stack(stack, recipe.training, machine, progress)
    late, alike = budget is not None and budget.exhausted, {}
    if late and (single := single_leaf_if_better(anchor.point[0][0], stack, trained)) is not None:
        trained, alike = single, {"leaves_alike": True}
    best = int(trained.objective.argmin())
    ended = Status.CONVERGED if bool(trained.converged[best]) else Status.ITERATION_LIMIT
    report = FitReport(
        (None if budget is None else budget.status) or ended,
        float(trained.objective[best]),
        seconds=0.0 if budget is None else budget.seconds,
        trace=tuple(float(losses[best]) for losses in trained.trace),
        details={
            "objectives": [value for value in trained.objective.tolist() if math.isfinite(value)],
            "single_leaf_converged": anchored,
            "objective_by": form_of(stack, recipe.training),
        }
        | alike,
    )
    found = tuple(
        trees_of_causes(problem, recipe, routing, leaves, Design(problem.design[0]) if known else None)
        for routing, leaves, known in zip(trained.routing, trained.leaves, trained.objective.isfinite(), strict=True)
    )
    firsts = tuple(trees[0] for trees in found)
    return FittedStarts(firsts, tuple(trained.objective.tolist()), report, found if problem.others else ())


def single_leaf_if_better(anchor: Tensor, stack: Stack, trained: Trained) -> Trained | None:
    """The trees with the single leaf (1, 1, Q + K) in all leaves of the best one, where that fits better; else None.

    For training that was cut off: leaves begin at random, or not near their minimum.
    """
    best = trained.objective.argmin()[None]
    alike = anchor.expand(1, *stack.leaves.shape[1:])
    value = stack.objective.take(best.cpu()).value(trained.routing[best], alike)
    if not bool(value < trained.objective[best]):
        return None
    leaves, objective = trained.leaves.clone(), trained.objective.clone()
    leaves[best], objective[best] = alike, value
    return replace(trained, leaves=leaves, objective=objective)


def trees_of_causes(
    problem: Problem, recipe: Recipe, routing: Tensor, leaves: Tensor, x: Tensor | Design | None
) -> tuple[SoftTree, ...]:
    """The tree of each cause from the parameters (B, Q) and (L, C (Q + K)) of one tree of the stack."""
    return tuple(
        build_tree(recipe.family, recipe.candidate.depth, routing, own, part.time_scale[0], x)
        for part, own in zip(problem.of_causes, problem.blocks(leaves), strict=True)
    )


def build_tree(
    family: LeafFamily,
    depth: int,
    routing: Tensor,  # (B, Q)
    leaves: Tensor,  # (L, Q + K)
    time_scale: Tensor,  # (n_time_scale,)
    x: Tensor | Design | None,  # (n, P) rows that show which leaves are reached
) -> SoftTree:
    """The tree of these parameters; branch nodes that send all rows one way are collapsed, where rows are given."""
    tree = SoftTree(depth, routing.shape[-1] - 1, family, 1, leaves.dtype)
    tree.routing, tree.leaves = (torch.nn.Parameter(value[None].detach().clone()) for value in (routing, leaves))
    tree.time_scale = time_scale[None].to(leaves, copy=True)
    if x is not None:
        tree.collapse_empty(x.to(tree.leaves))
    return tree
