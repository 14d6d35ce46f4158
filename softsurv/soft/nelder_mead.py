"""Nelder and Mead's simplex search, where a value is not finite at the start (paper `sst`, section 5.1)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from softsurv.soft.optimisers import Function, Point

MOST_ITERATIONS = 40_000
"""As printed."""

NUDGE = 0.1
"""Size of the first simplex along a parameter that is zero."""


def where_finite(function: Function, start: Point, value: Tensor, max_iterations: int = MOST_ITERATIONS) -> Point:
    """The start, with those trees elsewhere whose value is not finite there.

    Parameters
    ----------
    function : Function
    start : tuple of Tensor (M, ...)
    value : Tensor (M,)
        Of the function at the start.
    max_iterations : int
        Of the search of each tree.

    Notes
    -----
    The paper searches this way where SLSQP overflows. The losses of softsurv are written so that they hardly can, so
    this is for the rare start whose shapes overflow.
    """
    found = [part.clone() for part in start]
    for tree in torch.nonzero(~torch.isfinite(value))[:, 0]:
        part = function.whole_groups(torch.arange(len(value), device=value.device) == tree)
        group = torch.nonzero(part)[:, 0]
        moved = _search(function.take(group), tuple(p[group] for p in start), int((group < tree).sum()), max_iterations)
        for table, rows in zip(found, moved, strict=True):
            table[tree] = rows
    return tuple(found)


def _search(function: Function, start: Point, position: int, max_iterations: int) -> tuple[Tensor, ...]:
    """Parameters of one tree of a group after a simplex search over them; the others stay where they are."""
    from scipy.optimize import minimize

    own = [part[position] for part in start]
    sizes = [part.numel() for part in own]

    def placed(x: np.ndarray) -> list[Tensor]:
        parts = torch.as_tensor(x).to(own[0]).split(sizes)
        return [part.view_as(before) for part, before in zip(parts, own, strict=True)]

    def value(x: np.ndarray) -> float:
        tables = [part.clone() for part in start]
        for table, moved in zip(tables, placed(x), strict=True):
            table[position] = moved
        at = float(function.value_and_gradient(*tables)[0][position])
        return at if np.isfinite(at) else np.inf

    flat = torch.cat([part.flatten() for part in own]).double().cpu().numpy()
    corners = np.vstack([flat, np.tile(flat, (len(flat), 1))])
    np.fill_diagonal(corners[1:], np.where(flat == 0, NUDGE, 0.5 * flat))  # towards zero nothing overflows
    options = {"maxiter": max_iterations, "maxfev": max_iterations, "initial_simplex": corners}
    with np.errstate(all="ignore"):
        ended = minimize(value, flat, method="Nelder-Mead", options=options)
    return tuple(placed(ended.x if np.isfinite(ended.fun) else flat))
