"""NODEC-DR: node-based decomposition with reassignment, for a stack of trees (paper `sst`, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from softsurv.budget import Budget
from softsurv.results import Status
from softsurv.soft.blocks import Balance, branch_step, leaf_step
from softsurv.soft.objective import Objective
from softsurv.soft.optimise import Settings

Progress = Callable[[int, Tensor], None]
"""Called after each sweep with its number and the best objectives (M,)."""


@dataclass(frozen=True)
class NodecSettings:
    """Published settings (section 5.1), with the moderate and high thresholds in the order that the text wants.

    ``patience``: a tree stops after this many macro iterations without an improvement of ``tolerance`` (relative).
    """

    max_sweeps: int = 10
    balance: Balance = field(default_factory=Balance)
    decay: float = 0.8
    patience: int = 3
    tolerance: float = 1e-4
    branch: Settings = field(default_factory=lambda: Settings(max_iterations=20, ftol=1e-6))
    leaf: Settings = field(default_factory=lambda: Settings(max_iterations=20, ftol=1e-6))


@dataclass
class Trained:
    """Best parameters of every tree, their objectives, and how training ended."""

    routing: Tensor  # (M, B, Q)
    leaves: Tensor  # (M, L, Q + K)
    objective: Tensor  # (M,)
    trace: list[Tensor]  # best objectives (M,) after each sweep
    status: Status

    def better(self, routing: Tensor, leaves: Tensor, value: Tensor, trees: Tensor) -> None:
        """Keep the given parameters of ``trees`` where their objective is lower."""
        won = value < self.objective[trees]
        self.routing[trees] = torch.where(won[:, None, None], routing, self.routing[trees])
        self.leaves[trees] = torch.where(won[:, None, None], leaves, self.leaves[trees])
        self.objective[trees] = torch.where(won, value, self.objective[trees])


def nodec(
    objective: Objective,
    routing: Tensor,
    leaves: Tensor,
    settings: NodecSettings,
    budget: Budget | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train every tree of the stack from its start; an exhausted budget returns the best trees so far."""
    everyone = torch.arange(len(leaves), device=leaves.device)
    best = Trained(routing.clone(), leaves.clone(), objective.value(routing, leaves), [], Status.ITERATION_LIMIT)
    trees, part, waited = everyone, objective, torch.zeros_like(everyone)
    balance = settings.balance
    for sweep in range(settings.max_sweeps):
        before = best.objective[trees].clone()
        for level in range(max(objective.depth, 1)):
            routing, leaves = _improve(part, routing, leaves, level, balance, settings, budget)
            best.better(routing, leaves, part.value(routing, leaves), trees)
        best.trace.append(best.objective.clone())
        if progress is not None:
            progress(sweep, best.objective)
        stop = None if budget is None else budget.status
        if stop is not None:
            best.status = stop
            break
        improved = before - best.objective[trees] > settings.tolerance * before.abs().clamp(min=1.0)
        waited = torch.where(improved, 0, waited + 1)
        keep = part.problem.whole_groups(waited < settings.patience)
        if not bool(keep.any()) or objective.depth == 0:
            best.status = Status.CONVERGED
            break
        if not bool(keep.all()):
            moving = torch.nonzero(keep)[:, 0]
            trees, routing, leaves, waited = trees[moving], routing[moving], leaves[moving], waited[moving]
            part = part.take(moving)
        balance = balance.decayed(settings.decay)
    return best


def _improve(
    objective: Objective,
    routing: Tensor,
    leaves: Tensor,
    level: int,
    balance: Balance,
    settings: NodecSettings,
    budget: Budget | None,
) -> tuple[Tensor, Tensor]:
    """BN step, then LN step, of one level; the root's working set has no leaves unless it is the whole tree."""
    if objective.depth:
        routing = branch_step(objective, routing, leaves, level, balance, settings.branch, budget)
    if level > 0 or objective.depth <= 1:
        leaves = leaf_step(objective, routing, leaves, level, settings.leaf, budget)
    return routing, leaves
