"""Compile the Pareto search for a task: its templates executed once more with the task's leaf in place."""

from __future__ import annotations

import logging
from functools import cache
from types import ModuleType

from softsurv.exact.compile import execute
from softsurv.exact.jit import is_on_disk, source_digest
from softsurv.exact.pareto import linear
from softsurv.exact.pareto.task import ParetoTask, general_leaf

logger = logging.getLogger("softsurv")

ENGINE = (
    "bits.py",
    "cache.py",
    "jit.py",
    "pareto/arrays.py",
    "pareto/kernels.py",
    "pareto/linear.py",
    "pareto/lists.py",
    "pareto/recursion.py",
    "pareto/task.py",
    "pareto/two.py",
)
"""Files whose code ends up inside the compiled kernels."""


@cache
def specialise(task: ParetoTask) -> ModuleType:
    """The recursion compiled for a task; linear tasks share one (compilation itself happens at the first call)."""
    if task.linear:
        return _templates(f"linear_{source_digest(ENGINE)}", linear.leaf_points)
    return _templates(f"{task.name}_{task.digest()}_{source_digest(ENGINE)}", task.leaf_points)


@cache
def _templates(suffix: str, leaf_points: object) -> ModuleType:
    if leaf_points is linear.leaf_points:
        leaf_cost, price = linear.leaf_cost, linear.price
    else:
        leaf_cost, price = general_leaf(leaf_points)  # type: ignore[arg-type]
    two = execute(
        "softsurv.exact.pareto.two", suffix, {"leaf_points": leaf_points, "leaf_cost": leaf_cost, "price": price}
    )
    module = execute("softsurv.exact.pareto.recursion", suffix, {"price_two": two.price_two, "list_two": two.list_two})
    if not is_on_disk(module.optimum):
        logger.warning("compiling the Pareto search for %r, once on this machine: about 20 seconds", suffix)
    return module
