"""Compile the engine for one task: the template modules executed once more with the task's leaf cost in place."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from types import ModuleType

from softsurv.exact.tasks.base import Task


@cache
def specialise(task: Task) -> ModuleType:
    """The recursion compiled for a task (compilation itself happens at the first call, or is read from disk).

    Numba names its files on disk after the module and function, and checks the template's time stamp: the name holds
    the task and a digest of its leaf cost, so every task has files of its own and a changed one is compiled again.
    """
    suffix = f"{task.name}_{task.digest()}"
    two = _execute(task.base_case, suffix, {"leaf_costs": task.leaf_costs, "n_statistics": task.n_statistics})
    three = _execute("softsurv.exact.depth_three", suffix, {"price": two.price})
    names = {name: vars(two)[name] for name in ("price", "solve_two", "sum_pairs")}
    return _execute("softsurv.exact.recursion", suffix, names | {"solve_lanes": three.solve_lanes})


def _execute(template: str, suffix: str, names: dict[str, object]) -> ModuleType:
    """Execute a template module under a name of its own, with some globals set beforehand."""
    name = f"{template}_{suffix}"
    found = importlib.util.find_spec(template)
    if found is None or found.origin is None:
        raise ImportError(f"template module {template} was not found")
    spec = importlib.util.spec_from_file_location(name, found.origin)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(names)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
