"""The objective of a stack in one compiled pass over its rows, for float64 on a CPU (`softsurv.soft.row_kernels`).

Elsewhere, and for other links and kinds of censoring, torch's operators do the same table by table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softsurv.hazards.base import LeafFamily, LinearBaseline
from softsurv.hazards.links import Link, ProportionalHazards, ProportionalOdds
from softsurv.hazards.parametric import Exponential, LogLogistic, Weibull
from softsurv.soft import node_kernels, row_kernels

_OPERATORS: ContextVar[bool] = ContextVar("operators alone", default=False)

CODES = {ProportionalHazards: row_kernels.HAZARDS, ProportionalOdds: row_kernels.ODDS}

BASELINES: dict[type[LeafFamily], int] = {
    Exponential: node_kernels.GIVEN,
    Weibull: node_kernels.LOG_LINEAR,
    LogLogistic: node_kernels.LOG_LINEAR,
}


@contextmanager
def operators_alone() -> Iterator[None]:
    """While open, torch's operators are used on a CPU too, as on any other device: for tests."""
    token = _OPERATORS.set(True)
    try:
        yield
    finally:
        _OPERATORS.reset(token)


class OnePass(NamedTuple):
    """Expected loss of a stack and its derivatives."""

    value: Tensor  # (M,) expected loss
    slopes: Tensor  # (M, B, N) over the splits
    by_time: Tensor  # (M, L, N) over the leaves' predictors: weight times slope
    reach: Tensor  # (M, L, N) weight of each row in each leaf


def by_operators(device: torch.device) -> bool:
    """Whether work around training uses torch's operators too: True on every device but a CPU."""
    return _OPERATORS.get() or device.type != "cpu"


def is_compiled(*tables: Tensor) -> bool:
    """Whether the compiled loops can take these tables: float64, on a CPU, without autograd."""
    return not _OPERATORS.get() and all(
        table.dtype == torch.float64 and table.device.type == "cpu" and not table.requires_grad for table in tables
    )


def code_of(link: Link) -> int | None:
    """The number of a link in the compiled loops; None if they lack it."""
    return CODES.get(type(link))


def baseline_of(family: LeafFamily) -> int | None:
    """The number of a family's baseline in the compiled loops; None if they lack it."""
    sums = node_kernels.SUMS if isinstance(family, LinearBaseline) and family.n_shape > 1 else None
    return BASELINES.get(type(family), sums)


def expected_loss(
    code: int,
    z: Tensor,  # (M, L, N)
    log_slope: Tensor,  # (M, L, N or 1)
    event: Tensor,  # (G, 1, N)
    split: Tensor,  # (M, B, N) of the branch nodes from some level on
    mass: Tensor,  # (M, S, N) weight of each row at each node of that level
) -> OnePass:
    """Loss of right-censored rows, and its slopes."""
    split = split.contiguous()
    found = OnePass(z.new_empty(len(z)), torch.empty_like(split), z.new_empty(z.shape), z.new_empty(z.shape))
    row_kernels.leaves_and_routing(code, *arrays(z, log_slope, event[:, 0], split, mass), *arrays(*found))
    return found


def leaf_losses(
    code: int,
    z: Tensor,  # (M, L, N)
    log_slope: Tensor,  # (M, L, N or 1)
    event: Tensor,  # (G, 1, N)
) -> Tensor:  # (M, L, N)
    """Loss of right-censored rows in each leaf."""
    loss = z.new_empty(z.shape)
    row_kernels.losses(code, *arrays(z, log_slope, event[:, 0], loss))
    return loss


def leaf_loss_and_slopes(
    code: int,
    z: Tensor,  # (M, L, N)
    log_slope: Tensor,  # (M, L, N or 1)
    event: Tensor,  # (G, 1, N)
    reach: Tensor,  # (M, L, N)
) -> tuple[Tensor, Tensor]:
    """Loss (M,) of right-censored rows of given weight in each leaf, and its slopes over the predictors (M, L, N)."""
    value, by_time = z.new_empty(len(z)), z.new_empty(z.shape)
    row_kernels.leaves_alone(code, *arrays(z, log_slope, event[:, 0], reach, value, by_time))
    return value, by_time


def routed_loss(
    split: Tensor,  # (M, B, N) of the branch nodes from some level on
    leaf_loss: Tensor,  # (M, L, N)
    mass: Tensor,  # (M, S, N) weight of each row at each node of that level
) -> tuple[Tensor, Tensor, Tensor]:
    """Loss (M,), its slopes over the splits (M, B, N), and the weight of each row in each leaf (M, L, N)."""
    split, reach = split.contiguous(), leaf_loss.new_empty(leaf_loss.shape)
    value, slopes = split.new_empty(len(split)), torch.empty_like(split)
    row_kernels.routing_alone(*arrays(split, leaf_loss, mass, value, slopes, reach))
    return value, slopes, reach


def arrays(*tensors: Tensor) -> list[Any]:
    """Tensors as NumPy arrays: views, or copies of what is not contiguous. Tensors to be filled must be contiguous."""
    return [tensor.contiguous().numpy() for tensor in tensors]
