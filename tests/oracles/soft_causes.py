"""Objectives of soft trees for several causes."""

from __future__ import annotations

import numpy as np
import torch

from softsurv.data.readers import survival_data
from softsurv.hazards import get_family
from softsurv.soft.causes import make_problem_of_causes, objective_of
from softsurv.soft.fairness import fairness_of


def rows_of(tools, n=60, late=False):
    """Rows of two causes, weighted, in two groups."""
    plain, rng = tools.simulate(n), np.random.default_rng(7)
    cause = np.where(plain.event.numpy(), rng.integers(1, 3, n), 0)
    entry = {"entry": 0.3 * plain.time.numpy()} if late else {}
    group = np.where(rng.random(n) < 0.4, "a", "b")
    how = {"cause": cause, "weight": rng.uniform(0.5, 2, n), "group": group} | entry
    return survival_data(plain.X, time=plain.time.numpy(), **how)


def objective_for(tools, data, depth=2, n_trees=2, family="weibull", fair=0.0):
    problem = make_problem_of_causes(data, get_family(family), n_trees=n_trees)
    block = penalties_of_blocks(tools, problem)
    return objective_of(problem, depth, block, fairness_of(data, problem, fair, 7))


def penalties_of_blocks(tools, problem):
    """Every penalty at some strength, an anchor for each cause."""
    own = tools.penalties_for(problem)
    return type(own)(own.l2, own.shrinkage, own.routing_l2, torch.cat([own.anchor, -own.anchor], -1), own.l2_all)


def random_parameters(tools, objective, seed=0, size=0.5):
    parts = [tools.random_parameters(part, seed + k, size) for k, part in enumerate(objective.parts)]
    return parts[0][0], torch.cat([leaves for _, leaves in parts], -1)
