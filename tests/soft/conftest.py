"""Simulated data and stacks of trees shared by the tests of training."""

import numpy as np
import pytest
import torch
from oracles.simulated import simulate, with_everything

from softsurv.hazards import get_family
from softsurv.soft.objective import Objective
from softsurv.soft.penalties import Penalties, no_penalties
from softsurv.soft.problem import make_problem
from softsurv.trees.topology import n_branches, n_leaves


def random_parameters(objective, seed=0, size=0.5):
    """Routing and leaf parameters of every tree."""
    problem, rng = objective.problem, np.random.default_rng(seed)
    m, q, depth = problem.n_trees, problem.design.shape[-1], objective.depth
    routing = torch.tensor(size * rng.standard_normal((m, n_branches(depth), q)))
    return routing, torch.tensor(size * rng.standard_normal((m, n_leaves(depth), q + problem.family.n_shape)))


def penalties_for(problem, seed=0):
    """Every penalty at some strength, different for each tree."""
    rng = np.random.default_rng(seed)
    size = problem.design.shape[-1] + problem.family.n_shape
    l2, shrinkage, routing_l2, l2_all = torch.tensor(rng.uniform(0.1, 1, (4, problem.n_trees)))
    return Penalties(l2, shrinkage, routing_l2, torch.tensor(rng.standard_normal((problem.n_trees, 1, size))), l2_all)


def make_objective(data, family="weibull", depth=2, n_trees=1, penalised=False, fairness=None, weight=None):
    """Objective of a stack of trees on one data set."""
    problem = make_problem(data, get_family(family), n_trees=n_trees, weight=weight)
    size = problem.design.shape[-1] + problem.family.n_shape
    plain = no_penalties(problem.n_trees, size, problem.design)
    return Objective(problem, depth, penalties_for(problem) if penalised else plain, fairness)


@pytest.fixture
def tools():
    """The functions of this file, for test modules."""
    from types import SimpleNamespace

    return SimpleNamespace(
        simulate=simulate,
        with_everything=with_everything,
        random_parameters=random_parameters,
        penalties_for=penalties_for,
        make_objective=make_objective,
    )
