"""A search over a handful of rows, so that every kernel is compiled or loaded before a clock starts."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from softsurv.exact import problem as arrays
from softsurv.exact.cache import new_cache, relink
from softsurv.exact.tasks.base import Task
from softsurv.exact.tolls import SplitCosts, no_tolls
from softsurv.exact.units import pack_units


def run_once(task: Task, module: ModuleType) -> None:
    """Call the compiled functions that the search calls, with arrays of the types that it passes."""
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.int32)
    width = task.n_statistics or 2
    start = np.array([0, 2, 4], np.int32)
    units = pack_units(np.ones((4, width)), np.arange(4), codes, start, np.zeros(2, np.bool_), False, task.worst)
    assert units is not None
    tolls = no_tolls(2)
    if task.branching:
        tolls = SplitCosts(np.zeros(1), np.zeros(2, int), np.ones(4)).tolls(np.arange(2), 0)
    problem = arrays.Problem(
        gcode=codes + start[:-1],
        code_start=start,
        nominal=np.zeros(2, np.bool_),
        feature_of=np.array([0, 0, 1, 1], np.int32),
        stats=np.ones((4, width)),
        units=units,
        tolls=tolls,
        floor=np.zeros(4),
        keys=np.arange(8, dtype=np.uint64).reshape(4, 2),
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
    control = np.zeros(8, np.int64)
    nodes, local, lanes = arrays.new_nodes(problem, 3), arrays.new_local(problem, control), arrays.new_lanes(problem)
    rows = np.arange(4, dtype=np.int32)
    shared = arrays.Shared(
        control, np.zeros(8, np.int64), rows, np.zeros((8, 2, 4)), np.array([np.inf]), np.array([-2.0]),
        np.array([-1]), np.zeros(1, np.int64),
    )  # fmt: skip
    module.solve_one(problem, rows, 4, local)
    module.solve_two(problem, rows, 4, local)
    key = problem.keys.sum(axis=0, dtype=np.uint64)
    cache = new_cache(1e5)
    relink(cache)
    module.solve(problem, rows, 4, key[0], key[1], 3, 8, np.inf, 1, nodes, local, lanes, cache, shared)
