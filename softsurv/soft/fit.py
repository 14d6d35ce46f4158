"""One soft tree from data: the chosen setting, several starts as one stack, the best of them kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from softsurv.budget import Budget
from softsurv.data.survival_data import SurvivalData
from softsurv.hazards.base import LeafFamily
from softsurv.results import FitReport
from softsurv.soft.fairness import fairness_of
from softsurv.soft.initialise import presumed_outcomes
from softsurv.soft.objective import Objective, Penalties
from softsurv.soft.parallel import map_parts, slabs
from softsurv.soft.problem import Problem, make_problem
from softsurv.soft.proximal import refit_named, sparse_fit
from softsurv.soft.selection import Candidate
from softsurv.soft.train import SINGLE_LEAF, Trained, TrainSettings, fit_single_leaf, start_leaves, start_routing, train
from softsurv.trees.soft_tree import SoftTree


@dataclass(frozen=True)
class Recipe:
    """How the final tree is trained.

    Attributes
    ----------
    candidate : Candidate
        Depth and penalties, in units of 1 / N.
    starts : tuple of str or ndarray (B, P + 1)
        Kind of each start, or its routing weights.
    training : TrainSettings
    l2_all : float
        Ridge on every leaf parameter, in units of 1 / N.
    fairness : float
    l1 : float
        Group lasso over features, in units of 1 / sqrt(N); it names the features, which are then fitted without it.
    groups : tuple of int
        Feature that each encoded column belongs to.
    """

    candidate: Candidate
    starts: tuple[str | np.ndarray, ...]
    training: TrainSettings
    l2_all: float
    fairness: float
    l1: float
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Machine:
    """Where and for how long to train."""

    device: torch.device
    dtype: torch.dtype
    budget: Budget
    workers: int


def fit_tree(
    data: SurvivalData,
    family: LeafFamily,
    recipe: Recipe,
    seed: int,
    machine: Machine,
    progress: Callable[[int, Tensor], None] | None = None,
) -> tuple[SoftTree, FitReport]:
    """Train every start and keep the one with the lowest training objective.

    Parameters
    ----------
    data : SurvivalData
        With numeric, complete features.
    family : LeafFamily
    recipe : Recipe
    seed : int
        Start k uses ``seed + k``.
    machine : Machine
    progress : callable, optional
        Called with the round and the objectives of the trees that trained together.

    Returns
    -------
    SoftTree
        A stack of one.
    FitReport
    """
    depth = recipe.candidate.depth
    starts = recipe.starts if depth else recipe.starts[:1]
    problem = make_problem(data, family, n_trees=len(starts), dtype=machine.dtype, device=machine.device)
    groups = torch.tensor(recipe.groups, dtype=torch.int64, device=machine.device)
    l1 = problem.weight.new_full((len(starts),), recipe.l1 / data.n**0.5 if len(groups) else 0.0)
    penalties = _penalties(problem, recipe, groups, l1, data.n)
    objective = Objective(problem, depth, penalties, fairness_of(data, problem, recipe.fairness))
    seeds = [seed + k for k in range(len(starts))]
    routing = _routing(starts, data, depth, seeds).to(problem.design)
    anchor = penalties.anchor
    leaves = anchor if depth == 0 else start_leaves(objective, routing, anchor, seeds)

    def improve(part: slice) -> Trained:
        """Train the starts of one slab; with an l1 penalty, then thin them out and refit what is named."""
        rows = torch.arange(len(starts), device=machine.device)[part]
        mine = objective.take(rows)
        trained = train(mine, routing[rows], leaves[rows], recipe.training, machine.budget, progress)
        if recipe.l1 == 0 or not len(groups):
            return trained
        r, b, _ = sparse_fit(mine, trained.routing, trained.leaves, groups, l1[rows], budget=machine.budget)
        r, b, value = refit_named(mine, r, b, groups, recipe.training.joint, machine.budget)
        return replace(trained, routing=r, leaves=b, objective=value)

    parts = map_parts(improve, slabs(len(starts), data.n * 2**depth, machine.device), machine.workers)
    return _best_tree(parts, data, depth, family, problem.clock, machine.budget)


def _penalties(problem: Problem, recipe: Recipe, groups: Tensor, l1: Tensor, n: int) -> Penalties:
    """Penalties of the stack; a shrunken tree takes the ridge through its anchor alone."""
    candidate = recipe.candidate
    one = problem.weight.new_full((problem.n_trees,), 1 / n)
    ridge, everything = candidate.ridge * one, recipe.l2_all * one
    anchor = fit_single_leaf(problem, l2=ridge, l2_all=everything)
    if bool((l1 > 0).any()):
        lone = Objective(problem, 0, Penalties(ridge, 0 * one, 0 * one, anchor, everything))
        no_routing = problem.design.new_zeros(problem.n_trees, 0, lone.columns)
        _, sparse, _ = sparse_fit(lone, no_routing, anchor, groups, l1)
        _, anchor, _ = refit_named(lone, no_routing, sparse, groups, SINGLE_LEAF)
    own_ridge = 0 * one if candidate.shrinkage > 0 else ridge
    return Penalties(own_ridge, candidate.shrinkage * one, candidate.routing_l2 * one, anchor, everything)


def _routing(starts: tuple[str | np.ndarray, ...], data: SurvivalData, depth: int, seeds: list[int]) -> Tensor:
    x, (time, event) = data.x.numpy(), presumed_outcomes(data)
    if depth == 0:
        return torch.zeros(1, 0, x.shape[1] + 1, dtype=torch.float64)
    tables = [
        start_routing([start], x, time, event, depth, [seed])[0] if isinstance(start, str) else torch.as_tensor(start)
        for start, seed in zip(starts, seeds, strict=True)
    ]
    return torch.stack(tables)


def _best_tree(
    parts: list[Trained], data: SurvivalData, depth: int, family: LeafFamily, clock: Tensor, budget: Budget
) -> tuple[SoftTree, FitReport]:
    objectives = [p.objective.double().cpu() for p in parts]
    of_part = [float(v.min()) for v in objectives]
    owner = int(np.argmin(of_part))
    at = int(objectives[owner].argmin())
    part = parts[owner]
    tree = SoftTree(depth, data.x.shape[1], family, 1, part.leaves.dtype)
    tree.load_state_dict(
        {"routing": part.routing[at : at + 1].cpu(), "leaves": part.leaves[at : at + 1].cpu(), "clock": clock[:1].cpu()}
    )
    tree.collapse_empty(data.x.to(part.leaves.dtype))
    report = FitReport(
        budget.status or part.status,
        of_part[owner],
        seconds=budget.seconds,
        trace=tuple(float(v[at]) for v in part.trace),
        details={"objectives": torch.cat(objectives).tolist()},
    )
    return tree.to(part.leaves.device), report
