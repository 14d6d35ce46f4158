"""Damped Newton's method for problems that fall apart into blocks: each branch node, or each leaf, by itself.

A block has its own curvature, step and damping. Its curvature may leave out what is negative, so that it is a metric
everywhere, and is multiplied by the damping: an accepted step lowers the damping, a refused one raises it (Nocedal &
Wright 2006, section 10.3). All blocks of a stack take a fixed number of steps together, so that nothing waits for a
device on the way. NODEC takes a quarter of the operators that it takes with L-BFGS, and its objective is mostly lower
(`scripts/bench_nodec.py` compares the two).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from softsurv.soft.optimisers import SUFFICIENT_DECREASE, LbfgsSettings
from softsurv.stopping import StopSignal

LOWER, RAISE = 0.5, 4.0
"""Factors of the damping after an accepted step and after a refused one."""

RIDGE = 1e-6
"""Share of the curvature's diagonal that is added to it: one-hot codes and the intercept are collinear."""

LEAST_CURVATURE = 1e-10
"""Added to the diagonal, which is zero to rounding where every row is certain."""

MAX_COLUMNS = 32
"""With more columns L-BFGS is cheaper on a CPU: the curvature has as many entries as the square of the columns."""


@dataclass(frozen=True)
class NewtonSettings:
    """The number of steps; ``otherwise`` is for problems that do not fall apart into blocks with known curvature."""

    steps: int = 8
    otherwise: LbfgsSettings = field(default_factory=lambda: LbfgsSettings(max_iterations=20, ftol=1e-6))


class BlockValues(NamedTuple):
    """A function of blocks at a point (M, S, D)."""

    value: Tensor  # (M, S)
    gradient: Tensor  # (M, S, D)
    curvature: Tensor  # (M, S, D, D) positive semi-definite, without that of the penalty


class Blocks(Protocol):
    """A function that is a sum over blocks with parameters of their own."""

    @property
    def penalty(self) -> Tensor:
        """Curvature of its quadratic penalty, (M, 1, D)."""

    @property
    def least_damping(self) -> float:
        """1 where the curvature is the true one, less where it is an upper bound."""

    def near(self, point: Tensor) -> BlockValues:
        """Each block's value, gradient and curvature at a point (M, S, D)."""


def descend(
    blocks: Blocks,
    start: Tensor,  # (M, S, D)
    settings: NewtonSettings,
    free: Tensor | None = None,  # (M, S, 1) bool: blocks that may move, all by default
    budget: StopSignal | None = None,  # checked before each step
) -> Tensor:  # (M, S, D)
    """Points at which no block has a higher value than at its start."""
    here = _side_by_side(start, blocks.near(start))
    size, floor = start.shape[-1], blocks.penalty + LEAST_CURVATURE
    damping = torch.ones_like(here[..., :1])
    for _ in range(settings.steps):
        if budget is not None and budget.exhausted:
            break
        value, point, gradient, curvature = _apart(here, size)
        matrix = damping[..., None] * curvature
        matrix.diagonal(dim1=2, dim2=3).mul_(1 + RIDGE).add_(floor)
        step = torch.cholesky_solve(gradient[..., None], torch.linalg.cholesky_ex(matrix)[0])[..., 0]
        trial = point - step
        there = blocks.near(trial)
        promised = (gradient[..., None, :] @ step[..., None])[..., 0]
        better = there.value[..., None] <= torch.sub(value, promised, alpha=SUFFICIENT_DECREASE)  # never where NaN
        better = better if free is None else better & free
        here = torch.where(better, _side_by_side(trial, there), here)
        damping = torch.addcmul(RAISE * damping, damping, better, value=LOWER - RAISE).clamp_(min=blocks.least_damping)
    return _apart(here, size)[1]


def _side_by_side(point: Tensor, local: BlockValues) -> Tensor:
    """A point and what is known of it as one table (M, S, 1 + 2 D + D D)."""
    return torch.cat([local.value[..., None], point, local.gradient, local.curvature.flatten(2)], -1)


def _apart(table: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Value (M, S, 1), point, gradient (M, S, D) and curvature (M, S, D, D) of a table."""
    ends = 1 + size, 1 + 2 * size
    curvature = table[..., ends[1] :].unflatten(-1, (size, size))
    return table[..., :1], table[..., 1 : ends[0]], table[..., ends[0] : ends[1]], curvature
