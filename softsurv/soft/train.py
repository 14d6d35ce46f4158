"""Train a stack of soft trees on a problem: anchor, starts, solver, report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from softsurv.budget import Budget
from softsurv.errors import InvalidParameterError, NumericalError
from softsurv.results import Status
from softsurv.soft.blocks import leaf_step, minimise_joint
from softsurv.soft.decomposition import NodecSettings, Trained, nodec
from softsurv.soft.initialise import initial_leaves, kmeans_routing, logrank_routing, random_routing
from softsurv.soft.objective import Objective, Penalties, no_penalties
from softsurv.soft.optimise import Settings
from softsurv.soft.parallel import keep_memory
from softsurv.soft.problem import Problem

Solver = Literal["lbfgs", "nodec"]
SOLVERS: tuple[Solver, ...] = ("lbfgs", "nodec")
STARTS = ("random", "kmeans", "logrank")

SINGLE_LEAF = Settings(max_iterations=300, ftol=1e-12, gtol=1e-8)
"""The single-leaf fit is convex (in the exponentials of the shapes) and cheap: solve it to the end."""


@dataclass(frozen=True)
class TrainSettings:
    """How trees are trained once their starts are there."""

    solver: Solver = "lbfgs"
    joint: Settings = field(default_factory=lambda: Settings(max_iterations=100, ftol=1e-7))
    nodec: NodecSettings = field(default_factory=NodecSettings)

    def __post_init__(self) -> None:
        if self.solver not in SOLVERS:
            raise InvalidParameterError(f"solver must be one of {', '.join(SOLVERS)}, got {self.solver!r}")


def fit_single_leaf(problem: Problem, l2: Tensor | None = None, l2_all: Tensor | None = None) -> Tensor:
    """Leaf parameters (M, 1, Q + K) of the depth-0 trees, with ridge penalties (M,)."""
    m, columns = problem.n_trees, problem.design.shape[-1]
    shape = problem.family.initial_shape(problem.clock[0])
    start = problem.design.new_zeros(m, 1, columns + problem.family.n_shape)
    start[..., columns:] = shape
    free = no_penalties(m, start.shape[-1], problem.design)
    penalties = Penalties(
        free.l2 if l2 is None else l2,
        free.shrinkage,
        free.routing_l2,
        free.anchor,
        free.l2_all if l2_all is None else l2_all,
    )
    routing = problem.design.new_zeros(m, 0, columns)
    _, leaves, value = minimise_joint(Objective(problem, 0, penalties), routing, start, SINGLE_LEAF)
    if not bool(torch.isfinite(value).all()):
        raise NumericalError("the single-leaf fit left the finite numbers; rescale the features or the times")
    return leaves


def start_routing(
    kinds: Sequence[str],  # one for each start
    x: np.ndarray,  # (N, P) training rows
    time: np.ndarray,
    event: np.ndarray,
    depth: int,
    seeds: Sequence[int],
) -> Tensor:  # (starts, B, P + 1)
    """Routing weights of each start, by its kind: random, kmeans or logrank."""
    tables = []
    for kind, seed in zip(kinds, seeds, strict=True):
        if kind == "random":
            tables.append(random_routing(x, depth, [seed])[0])
        elif kind == "kmeans":
            tables.append(kmeans_routing(x, depth, [seed])[0])
        elif kind == "logrank":
            tables.append(torch.as_tensor(logrank_routing(x, time, event, depth)))
        else:
            raise InvalidParameterError(f"init must be one of {', '.join(STARTS)}, got {kind!r}")
    return torch.stack(tables)


def start_leaves(objective: Objective, routing: Tensor, single: Tensor, seeds: Sequence[int]) -> Tensor:
    """Leaves fitted to the start's routing, from the single-leaf fit a little out of step."""
    leaves = initial_leaves(single, objective.depth, seeds)
    return leaf_step(objective, routing, leaves, 0, Settings(max_iterations=10))


def train(
    objective: Objective,
    routing: Tensor,  # (M, B, Q)
    leaves: Tensor,  # (M, L, Q + K)
    settings: TrainSettings,
    budget: Budget | None = None,
    progress: Callable[[int, Tensor], None] | None = None,
) -> Trained:
    """Train every tree of the stack by the chosen solver."""
    keep_memory()
    if settings.solver == "nodec" and objective.depth > 0:
        return nodec(objective, routing, leaves, settings.nodec, budget, progress)
    trace: list[Tensor] = []

    def on_round(x: Tensor, value: Tensor) -> None:
        trace.append(value.clone())
        if progress is not None:
            progress(len(trace), value)

    cut_off = torch.zeros(len(leaves), dtype=torch.bool, device=leaves.device)
    routing, leaves, value = minimise_joint(objective, routing, leaves, settings.joint, budget, on_round, cut_off)
    ended = Status.ITERATION_LIMIT if bool(cut_off[value.argmin()]) else Status.CONVERGED
    return Trained(routing, leaves, value, trace, (None if budget is None else budget.status) or ended)
