"""Nelder and Mead's simplex search, where a value is not finite at the start (paper `sst`, section 5.1)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from softsurv.soft.optimisers import Function, Point

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

MOST_ITERATIONS = 40_000
"""Limit of iterations that the paper prints (section 5.1)."""

NUDGE = 0.1
"""Size of the first simplex along a parameter that is zero."""

HALVINGS = 64
"""A simplex without a finite value is halved in each iteration: after so many, its corners are one and the same."""


def where_finite(function: Function, start: Point, value: Tensor, max_iterations: int = MOST_ITERATIONS) -> Point:
    """The start; trees whose value is not finite there begin at the end of a simplex search.

    Parameters
    ----------
    function : Function
    start : tuple of Tensor (M, ...)
    value : Tensor (M,)
        Value of the function at the start.
    max_iterations : int
        Limit for the search of each tree.

    Notes
    -----
    The paper searches this way where SLSQP overflows. The losses of softsurv are written so that they hardly overflow:
    this is for the rare start whose shapes do.
    """
    found = [part.clone() for part in start]
    for tree in torch.nonzero(~torch.isfinite(value))[:, 0]:
        one = tree[None]
        moved = _search(function.take(one), tuple(part[one] for part in start), max_iterations)
        for table, rows in zip(found, moved, strict=True):
            table[tree] = rows[0]
    return tuple(found)


def _search(function: Function, start: Point, max_iterations: int) -> Point:
    """Parameters (1, ...) of one tree after a simplex search."""
    from scipy.optimize import minimize

    sizes = [part.numel() for part in start]

    def placed(x: np.ndarray) -> Point:
        parts = torch.as_tensor(x).split(sizes)
        return tuple(part.view(before.shape).to(before) for part, before in zip(parts, start, strict=True))

    def value(x: np.ndarray) -> float:
        at = float(function.value_and_gradient(*placed(x))[0])
        return at if np.isfinite(at) else np.inf

    iteration = itertools.count(1)

    def end_where_nothing_is_left(intermediate_result: OptimizeResult) -> None:
        if next(iteration) >= HALVINGS and np.isinf(intermediate_result.fun):
            raise StopIteration

    flat = torch.cat([part.flatten() for part in start]).double().cpu().numpy()
    corners = np.vstack([flat, np.tile(flat, (len(flat), 1))])
    np.fill_diagonal(corners[1:], np.where(flat == 0, NUDGE, 0.5 * flat))  # towards zero nothing overflows
    options = {"maxiter": max_iterations, "maxfev": max_iterations, "initial_simplex": corners}
    with np.errstate(all="ignore"):
        ended = minimize(value, flat, method="Nelder-Mead", options=options, callback=end_where_nothing_is_left)
    return placed(ended.x if np.isfinite(ended.fun) else flat)
