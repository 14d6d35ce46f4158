"""A search over a handful of rows, so that every kernel is compiled or loaded before a clock starts."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from softsurv.exact import problem as arrays
from softsurv.exact.kernels.cache import new_cache, relink
from softsurv.exact.kernels.lists import new_listing
from softsurv.exact.row_kinds import row_kinds_of
from softsurv.exact.split_costs import SplitCosts, no_prices
from softsurv.exact.task import Task
from softsurv.exact.vector_task import LeafRule, objectives


def small_problem(task: Task) -> arrays.Problem:
    """Four rows, with arrays of the types that a search passes."""
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.int32)
    width = task.n_statistics or 4
    start = np.array([0, 2, 4], np.int32)
    row_kinds = row_kinds_of(np.ones((4, width)), np.arange(4), codes, start, np.zeros(2, np.bool_), False, task.worst)
    assert row_kinds is not None
    prices = no_prices(2)
    if task.branching:
        prices = SplitCosts(np.zeros(1), np.zeros(2, int), np.ones(4)).prices(np.arange(2), 0)
    return arrays.Problem(
        gcode=codes + start[:-1],
        code_start=start,
        nominal=np.zeros(2, np.bool_),
        feature_of=np.array([0, 0, 1, 1], np.int32),
        stats=np.ones((4, width)),
        row_kinds=row_kinds,
        prices=prices,
        floor=np.zeros(4),
        keys=np.arange(8, dtype=np.uint64).reshape(4, 2),
        parameters=np.zeros(8),
        complexity=0.0,
        min_leaf=1.0,
        use_size=False,
        n_statistics=width,
        tolerance=1e-9,
        use_interval=True,
        use_similar=True,
        use_look_ahead=True,
        use_cache=True,
        use_lanes=True,
    )


def run_once(task: Task, module: ModuleType) -> None:
    """Call the compiled functions that the search calls."""
    problem = small_problem(task)
    rows, key, scratch, shared = small_state(problem)
    nodes, local, lanes, cache = scratch
    module.solve_one(problem, rows, 4, local)
    module.solve_two(problem, rows, 4, local)
    relink(cache)
    module.solve(problem, rows, 4, key[0], key[1], 3, 8, np.inf, 1, nodes, local, lanes, cache, shared)


def list_once(task: Task, module: ModuleType) -> None:
    """Call the listing of trees."""
    problem = small_problem(task)
    rows, key, scratch, shared = small_state(problem)
    some = objectives(LeafRule(task, task.leaf_costs), np.zeros((1, 1, problem.stats.shape[1])))
    listing = new_listing(problem, some, 3, 8, 8, np.zeros(0))
    module.front(problem, rows, 4, key[0], key[1], 3, np.inf, 0, *scratch, shared, listing)


def small_state(problem: arrays.Problem) -> tuple[Any, ...]:
    """Rows, key, scratch with a cache, and what threads share, for `small_problem`."""
    control = np.zeros(8, np.int64)
    own = arrays.new_nodes(problem, 3), arrays.new_local(problem, control), arrays.new_lanes(problem)
    scratch = *own, new_cache(1e5)
    rows = np.arange(4, dtype=np.int32)
    shared = arrays.Shared(
        control, np.zeros(8, np.int64), rows, np.zeros((8, 2, 4)), np.array([np.inf]), np.array([-2.0]),
        np.array([-1]), np.zeros(1, np.int64),
    )  # fmt: skip
    return rows, problem.keys.sum(axis=0, dtype=np.uint64), scratch, shared
