"""Whole rounds of BFGS over the leaves or branch nodes of a level, in compiled loops where these can be used.

They serve where `softsurv.soft.one_pass` does, for one kind of event and families whose baseline the loops have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from softsurv.soft import node_kernels
from softsurv.soft.objective import Objective
from softsurv.soft.one_pass import arrays, baseline_of, code_of, is_compiled

Rounds = Callable[[tuple[Any, ...], tuple[float, ...]], None]
"""Takes some rounds of every tree in place: the tables of the optimiser's state, and its limits."""

PRODUCTS_A_CALL = 2**26
"""Multiplications of one call, which takes some hundredths of a second. The time limit is checked between calls."""

OWN_PRODUCTS = 32
"""Cost of the loss of a row in a leaf beside its columns, in multiplications."""


def over_leaves(objective: Objective, reach: Tensor, level: int) -> Rounds | None:
    """Rounds over the leaves; ``reach`` (M, L, N) is the weight of each row in each leaf.

    Each row has weight below one node of the level alone.
    """
    p = objective.problem
    link, baseline = code_of(p.family.link), baseline_of(p.family)
    if link is None or baseline is None or not _takes(objective, reach):
        return None
    curvature, centre, floor = objective.leaf_well
    of_groups = (p.groups.even(value) for value in (p.design, p.features, p.event[:, 0]))
    design, time, event, weight = arrays(*of_groups, _by_node(reach, 2**level))
    well, count = tuple(arrays(curvature[:, 0], centre[:, 0], floor)), _rounds_of(reach, objective.columns)

    def rounds(state: tuple[Any, ...], limits: tuple[float, ...]) -> None:
        node_kernels.leaf_rounds(state, limits, count, link, baseline, design, time, event, weight, well)

    return rounds


def over_branches(objective: Objective, leaf_loss: Tensor, mass: Tensor, free: Tensor) -> Rounds | None:
    """Rounds over the branch nodes below a level.

    ``leaf_loss`` (M, L, N), ``mass`` (M, S, N) of each row at each node of the level, ``free`` (M, B, 1): a node of the
    level is free with all below it.
    """
    if not _takes(objective, leaf_loss, mass):
        return None
    tops = mass.shape[1]
    loss, entering, curvature = _by_node(leaf_loss, tops), mass[:, :, None], objective.routing_curvature[:, 0]
    p = objective.problem
    tables = arrays(p.groups.even(p.design), loss, entering, free[:, :tops, 0], curvature)
    count = _rounds_of(leaf_loss, objective.columns)

    def rounds(state: tuple[Any, ...], limits: tuple[float, ...]) -> None:
        node_kernels.branch_rounds(state, limits, count, *tables)

    return rounds


def _takes(objective: Objective, *tables: Tensor) -> bool:
    """Whether the loops compute all terms of the objective."""
    p = objective.problem
    return type(objective) is Objective and p.right_censored and objective.fairness is None and is_compiled(*tables)


def _by_node(table: Tensor, tops: int) -> Tensor:
    """A table (M, L, N) of the leaves below the S nodes of a level, (M, S, L / S, N)."""
    return table.unflatten(1, (tops, -1))


def _rounds_of(table: Tensor, columns: int) -> int:
    """How many rounds a call takes, from a table of all leaves (M, L, N) and the columns of the design."""
    m, leaves, _ = table.shape
    products = table.numel() * (columns + OWN_PRODUCTS) + m * (leaves * columns) ** 2  # second term: BFGS matrices
    return max(PRODUCTS_A_CALL // max(products, 1), 1)
