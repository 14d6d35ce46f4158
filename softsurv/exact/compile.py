"""Compile the engine for one task: the template modules executed once more with the task's leaf cost in place."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

from softsurv.exact.jit import say_compiling, source_digest
from softsurv.exact.task import Task, content_of
from softsurv.exact.warm_up import list_once, run_once

FOLDER = Path(__file__).parent
FOLDERS = "kernels", "base_cases"
ENGINE = (
    *("compile.py", "jit.py", "split_costs.py"),
    *(f"{folder}/{file.name}" for folder in FOLDERS for file in sorted((FOLDER / folder).glob("*.py"))),
)
"""Files whose code ends up inside the compiled kernels."""

LANE_BASES = ("softsurv.exact.base_cases.sums",)
"""Base cases of which eight run at once below a node of depth three (`base_cases/lanes.py`)."""


@cache
def specialise(task: Task) -> ModuleType:
    """The recursion compiled for a task (compilation itself happens at the first call, or is read from disk).

    Numba keeps a compiled function on disk under its name (`jit.kernel`) and recompiles it when its own file changes,
    but not when a function that was inlined into it does. So the name holds the task, a digest of its leaf cost and
    one of the engine's source.
    """
    suffix = f"{task.name}_{task.digest()}_{source_digest(ENGINE)}"
    flags = {"linear": task.linear, "branching": task.branching, "parametric": task.parametric}
    pricing = execute("softsurv.exact.base_cases.leaf_prices", suffix, flags | {"leaf_costs": task.leaf_costs})
    names = {name: vars(pricing)[name] for name in ("price", "price_sides", "best_roots")}
    two = execute(task.base_case, suffix, names | flags)
    three = execute("softsurv.exact.base_cases.lanes", suffix, {"price": pricing.price})
    names = {
        "price": pricing.price,
        "solve_lanes": three.solve_lanes,
        "has_lanes": task.base_case in LANE_BASES and not task.branching,
    }
    names |= flags
    names |= {name: vars(two)[name] for name in ("solve_one", "solve_two", "sum_sides")}
    return execute("softsurv.exact.kernels.recursion", suffix, names)


@cache
def listing_of(task: Task, leaf_points: Callable[..., None]) -> ModuleType:
    """The listing of near-optimal trees compiled for a task, and for the objectives of its leaves."""
    names = {name: vars(specialise(task))[name] for name in ("solve", "solve_two")}
    points = hashlib.sha256(repr(content_of(leaf_points)).encode()).hexdigest()[:10]
    suffix = f"{task.name}_{task.digest()}_{points}_{source_digest(ENGINE)}"
    module = execute("softsurv.exact.kernels.listing", suffix, names | {"leaf_points": leaf_points})
    say_compiling(module.front, f"the listing of trees for {task.name!r}")
    list_once(task, module)
    return module


@cache
def ready(task: Task) -> ModuleType:
    """The recursion of a task, compiled or read from disk: the first search of a process waits here, not in its clock.

    Says once, on the logger ``softsurv``, that it compiles.
    """
    module = specialise(task)
    say_compiling(module.solve, f"the exact search for {task.name!r}")
    run_once(task, module)
    return module


def execute(template: str, suffix: str, names: dict[str, object]) -> ModuleType:
    """Execute a template module under a name of its own, with some globals set beforehand."""
    name = f"{template}_{suffix}"
    found = importlib.util.find_spec(template)
    if found is None or found.origin is None:
        raise ImportError(f"template module {template} was not found")
    spec = importlib.util.spec_from_file_location(name, found.origin)
    if spec is None or spec.loader is None:
        raise ImportError(f"template module {template} cannot be executed from {found.origin}")
    module = importlib.util.module_from_spec(spec)
    vars(module).update(names)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
