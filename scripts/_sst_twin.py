"""The plain program of paper `sst` (`_slow_twin.py`) from the starts that softsurv's own trees begin at."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from _slow_twin import Rows, nodec_dr

from softsurv import SurvivalData
from softsurv.hazards import get_family
from softsurv.soft import paper
from softsurv.soft.problem import Problem, make_problem
from softsurv.soft.starts import initial_leaves, random_routing
from softsurv.trees.soft_tree import SoftTree

FAMILY = "loglogistic"
"""The leaves that the plain program has."""


def plain_rows(problem: Problem) -> Rows:
    """The rows of a problem as the plain program takes them, with the printed penalty."""
    x, y, event = (v.contiguous().numpy() for v in (problem.design[0], problem.features[0, 0], problem.event[0, 0]))
    return Rows(x, y, event, paper.L2 / len(x), len(x))


def random_leaves(problem: Problem, depth: int, seeds: Sequence[int]) -> torch.Tensor:
    """Leaves at random, (M, L, Q + 1)."""
    size = problem.design.shape[-1] + problem.family.n_shape
    return initial_leaves(torch.zeros(len(seeds), 1, size, dtype=torch.float64), depth, seeds)


def twin_starts(train: SurvivalData, depth: int, seeds: Sequence[int]) -> tuple[list[SoftTree], list[float]]:
    """Tree and objective of every start, one after the other; ``train`` is encoded."""
    problem = make_problem(train, get_family(FAMILY))
    rows, leaves = plain_rows(problem), random_leaves(problem, depth, seeds)
    routing = random_routing(train.x.numpy(), depth, seeds)
    trees, objectives = [], []
    for w, b in zip(routing, leaves, strict=True):
        *found, value = nodec_dr(w.numpy(), b.numpy(), rows, analytic=True)
        tree = SoftTree(depth, train.x.shape[1], problem.family)
        state = {name: torch.as_tensor(v)[None] for name, v in zip(("routing", "leaves"), found, strict=True)}
        tree.load_state_dict(state | {"time_scale": problem.time_scale[:1]})
        trees.append(tree)
        objectives.append(value)
    return trees, objectives
