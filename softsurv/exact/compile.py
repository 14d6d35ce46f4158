"""The compiled functions that a search calls, by what it searches for: those that are needed, and no others.

All but the leaf cost is the same for every task. So a task of one's own takes a second to compile.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType

from softsurv.exact.base_cases import bits, lanes, plain, sums
from softsurv.exact.cuts import node
from softsurv.exact.entries import Compiled, Entry, make_ready
from softsurv.exact.joint import kernels as joint
from softsurv.exact.kernels import grouping, listing, recursion, root
from softsurv.exact.problem import Calls
from softsurv.exact.task import Task, content_of
from softsurv.stopping import StopSignal

CUTS = "cuts"
"""The search by cuts, in the place of the name of a base case."""

BASES = {"sums": sums, "bits": bits, "plain": plain}


@cache
def price_of(task: Task) -> Entry:
    """The compiled leaf cost of a task.

    Numba keeps a compiled function on disk under its name, and finds it again only where the functions that it calls
    are globals of its module. So a module is made for each task, named after the task and a digest of its leaf cost.
    """
    names = {"leaf_costs": task.leaf_costs, "parametric": task.parametric}
    module = execute("softsurv.exact.base_cases.task_costs", f"{task.name}_{task.digest()}", names)
    price: Entry = module.price
    return price


@cache
def points_of(leaf_points: Callable[..., None]) -> Entry:
    """The compiled objectives of a leaf."""
    digest = hashlib.sha256(repr(content_of(leaf_points)).encode()).hexdigest()[:10]
    points: Entry = execute("softsurv.exact.base_cases.task_points", digest, {"leaf_points": leaf_points}).points
    return points


def ready(
    task: Task,
    base: str = "sums",
    *,
    deep: bool = True,
    recursive: bool = True,
    in_lanes: bool = True,
    leaf_points: Callable[..., None] | None = None,
    stop: StopSignal | None = None,
    meanwhile: Callable[[], object] | None = None,
    also: Sequence[Compiled] = (),
) -> Calls:
    """Addresses of what a search calls, compiled or read from disk; says on the logger ``softsurv`` what it compiles.

    Parameters
    ----------
    task : Task
    base : str
        The base case, a name of `BASES`; or `CUTS`.
    deep : bool
        Whether trees may be deeper than two.
    recursive : bool
        Whether the recursion is called: for trees deeper than three, by listing, or from elsewhere. The lanes do
        depth three without it.
    in_lanes : bool
        Whether base cases may run eight at a time.
    leaf_points : callable, optional
        Objectives of a leaf, where trees are listed (`vector_task.LeafRule`).
    stop : StopSignal, optional
        Its clock does not count the time that this takes.
    meanwhile : callable, optional
        Called while a second process compiles: other work that the caller waits for.
    also : sequence of Compiled
        What else the caller needs.
    """
    in_lanes = in_lanes and base == "sums"
    asked = task, base, deep, recursive, in_lanes, leaf_points
    if asked in _known:
        make_ready(also, f"the exact search for {task.name!r}", stop)
        return _known[asked]
    calls = _known[asked] = _made_ready(*asked, stop, meanwhile, also)
    return calls


_known: dict[tuple[object, ...], Calls] = {}
"""What was made ready before, by what was asked for."""


def _made_ready(
    task: Task,
    base: str,
    deep: bool,
    recursive: bool,
    in_lanes: bool,
    leaf_points: Callable[..., None] | None,
    stop: StopSignal | None,
    meanwhile: Callable[[], object] | None,
    more: Sequence[Compiled],
) -> Calls:
    if base == CUTS:
        entries = {"price": price_of(task), "search_cuts": node.search_cuts}
        make_ready([*entries.values(), *more], f"the search by cuts for {task.name!r}", stop)
        return Calls(**{name: one.address for name, one in entries.items()})
    entries = {"price": price_of(task), "solve_two": BASES[base].solve_two}
    also = [grouping.group]  # later fits call it; this one has prepared its rows already
    if deep and (recursive or not in_lanes):
        entries["solve"] = recursion.solve
    elif deep:
        also.append(root.solve_root)
    if deep and in_lanes:
        entries |= {"solve_three": recursion.solve_three, "solve_lanes": lanes.solve_lanes}
    if leaf_points is not None:
        entries["leaf_points"] = points_of(leaf_points)
        also.append(listing.front)
    make_ready([*more, *entries.values(), *also], f"the exact search for {task.name!r}", stop, meanwhile)
    return Calls(**{name: one.address for name, one in entries.items()})


def ready_to_join(task: Task, *, triples: bool, stop: StopSignal | None = None) -> Calls:
    """As `ready`, for the search by joint sums, over triples of features or over pairs alone."""
    price = price_of(task)
    entries = [price, joint.join_pairs, joint.price_pairs, grouping.group, *([joint.join_triples] if triples else [])]
    make_ready(entries, f"the search by joint sums for {task.name!r}", stop)
    return Calls(price=price.address)


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
