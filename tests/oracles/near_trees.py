"""A small problem of near-optimal trees, with its splits and every tree written down."""

from __future__ import annotations

import numpy as np
from oracles.all_trees import all_trees

from softsurv.exact.bounds import Bounds
from softsurv.exact.objectives import label_costs
from softsurv.exact.rashomon.divisions import Divisions
from softsurv.exact.rashomon.problem import SearchProblem


def problem_of(seed=0, n=12, complexity=0.3, min_leaf=1, features=3):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, (n, features)).astype(np.int32)
    nominal = np.arange(features) % 2 == 1
    costs = rng.integers(0, 5, (n, 2)).astype(float)
    return SearchProblem(
        label_costs.TASK, codes, np.full(features, 3), nominal, costs, None, min_leaf, None, complexity
    )


def divisions_of(problem, depth=2, with_idle=False):
    return Divisions.of(problem, problem.search(1e7, Bounds(cancel=False)), depth, with_idle)


def every_tree(problem, depth, leaves, with_idle=False):
    """(cost, leaves, tree) of every tree within the limits."""
    p = problem
    return all_trees(p.task, p.codes, p.nominal, p.statistics, depth, leaves, p.min_leaf, p.complexity, with_idle)
