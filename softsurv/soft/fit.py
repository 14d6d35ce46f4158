"""One soft tree from data: several starts as one stack, the best of them kept."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softsurv.data.survival_data import SurvivalData
from softsurv.hazards.base import LeafFamily
from softsurv.results import FitReport, Status
from softsurv.soft.fairness import fairness_of
from softsurv.soft.fit_stack import fit_anchors, fit_stack, make_stack
from softsurv.soft.group_lasso import GroupLasso
from softsurv.soft.nodec import Progress
from softsurv.soft.parallel import Machine
from softsurv.soft.problem import make_problem
from softsurv.soft.recipe import Recipe
from softsurv.soft.starts import start_routing
from softsurv.trees.soft_tree import SoftTree


def fit_tree(
    data: SurvivalData,
    recipe: Recipe,
    machine: Machine,
    groups: tuple[int, ...] = (),
    progress: Progress | None = None,
) -> tuple[SoftTree, FitReport]:
    """Train every start and keep the one with the lowest training objective.

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

    Returns
    -------
    SoftTree
        A stack of one.
    FitReport
        ``details`` holds the objective of every start, and whether the single-leaf fit converged.
    """
    starts, depth, budget = recipe.used_starts, recipe.candidate.depth, machine.budget
    problem = make_problem(data, recipe.family, dtype=machine.dtype, device=machine.device)
    n, lasso = torch.full((1,), float(data.n), dtype=torch.float64).to(problem.weight), None
    if recipe.l1 > 0 and groups:
        numbers = torch.tensor(groups, dtype=torch.int64, device=machine.device)
        lasso = GroupLasso(numbers, problem.weight.new_full((len(starts),), recipe.l1 / data.n**0.5))
    # as many copies as starts: rounding depends on the size of a stack, and fits that are cut off multiply it
    copies, n_copies = problem.repeat(len(starts)), n.expand(len(starts))
    fairness = fairness_of(data, copies, recipe.fairness)
    anchor = fit_anchors(copies, recipe, n_copies, lasso=lasso, budget=budget, fairness=fairness)
    routing = start_routing(starts, data, depth, [recipe.seed + k for k in range(len(starts))], machine.start_seconds())
    stack = make_stack(
        problem, recipe, routing.to(problem.design)[None], anchor.point[0][:1], n, fairness=fairness, lasso=lasso
    )
    trained = fit_stack(stack, recipe.training, machine, progress)
    best = int(trained.objective.argmin())
    ended = Status.CONVERGED if bool(trained.converged[best]) else Status.ITERATION_LIMIT
    report = FitReport(
        (None if budget is None else budget.status) or ended,
        float(trained.objective[best]),
        seconds=0.0 if budget is None else budget.seconds,
        trace=tuple(float(losses[best]) for losses in trained.trace),
        details={
            "objectives": [value for value in trained.objective.tolist() if math.isfinite(value)],
            "single_leaf_converged": bool(anchor.converged.all()),
        },
    )
    tree = build_tree(recipe.family, depth, trained.routing[best], trained.leaves[best], problem.time_scale[0], data.x)
    return tree, report


def build_tree(
    family: LeafFamily,
    depth: int,
    routing: Tensor,  # (B, Q)
    leaves: Tensor,  # (L, Q + K)
    time_scale: Tensor,  # (n_time_scale,)
    x: Tensor,  # (n, P) rows that show which leaves are reached
) -> SoftTree:
    """The tree of these parameters; branch nodes that send all rows one way are collapsed."""
    tree = SoftTree(depth, routing.shape[-1] - 1, family, 1, leaves.dtype)
    state = {"routing": routing, "leaves": leaves, "time_scale": time_scale}
    tree.load_state_dict({name: value[None].cpu() for name, value in state.items()})
    tree.collapse_empty(x.to(tree.leaves))
    return tree.to(leaves.device)
