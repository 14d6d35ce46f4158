"""Compile the Pareto search for a task: its templates executed once more with the task's leaf in place."""

from __future__ import annotations

import hashlib
import logging
from functools import cache
from pathlib import Path
from types import ModuleType

from softsurv.exact import pareto_linear
from softsurv.exact.compile import execute
from softsurv.exact.pareto_task import ParetoTask, general_leaf

logger = logging.getLogger("softsurv")

ENGINE = (
    "cache.py",
    "jit.py",
    "pareto_arrays.py",
    "pareto_kernels.py",
    "pareto_linear.py",
    "pareto_lists.py",
    "pareto_recursion.py",
    "pareto_task.py",
    "pareto_two.py",
)
"""Files whose code ends up inside the compiled kernels."""


@cache
def specialise(task: ParetoTask) -> ModuleType:
    """The recursion compiled for a task; linear tasks share one (compilation itself happens at the first call)."""
    if task.linear:
        return _templates(f"linear_{_engine_digest()}", pareto_linear.leaf_points)
    return _templates(f"{task.name}_{task.digest()}_{_engine_digest()}", task.leaf_points)


@cache
def _templates(suffix: str, leaf_points: object) -> ModuleType:
    if leaf_points is pareto_linear.leaf_points:
        leaf_cost, price = pareto_linear.leaf_cost, pareto_linear.price
    else:
        leaf_cost, price = general_leaf(leaf_points)  # type: ignore[arg-type]
    two = execute(
        "softsurv.exact.pareto_two", suffix, {"leaf_points": leaf_points, "leaf_cost": leaf_cost, "price": price}
    )
    module = execute("softsurv.exact.pareto_recursion", suffix, {"price_two": two.price_two, "list_two": two.list_two})
    stats = module.optimum.stats
    name = module.optimum.py_func.__qualname__
    if stats.cache_path is None or not any(Path(stats.cache_path).glob(f"*{name}*.nbi")):
        logger.warning("compiling the Pareto search for %r, once on this machine: about 20 seconds", suffix)
    return module


@cache
def _engine_digest() -> str:
    """Ten hex digits that change with the source of any compiled part of the search."""
    digest = hashlib.sha256()
    for name in ENGINE:
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.hexdigest()[:10]
