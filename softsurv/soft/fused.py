"""The objective's pass over the rows as one operator that torch compiles for its device.

Torch's operators read and write a table of (trees, leaves, rows) each: the pass is 24 to 40 of them, and moves 23 to 60
tables. Written node by node and leaf by leaf, every value belongs to one row of one tree, and `torch.compile` makes one
kernel that reads the predictors and splits and writes the derivatives, once. The results are those of
`softsurv.soft.objective.route` and `softsurv.hazards.likelihood.right_censored_loss`, the oracle of the tests.

It is used on a CUDA device, for right-censored rows of every family, where the environment variable SOFTSURV_COMPILE
is 1. On a CPU `softsurv.soft.row_kernels` does this work, and only tests compile the operator there. No CUDA device has
run it so far, so it is off by default. Where it is asked for and cannot be compiled, the fit ends with an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, reduce
from types import FunctionType

import torch
from torch import Tensor

from softsurv.errors import InvalidParameterError
from softsurv.hazards.likelihood import right_censored_loss
from softsurv.hazards.links import Link
from softsurv.soft.one_pass import OnePass, by_operators
from softsurv.trees.routing import levels_from

SWITCH = "SOFTSURV_COMPILE"

ON, OFF, DEVICES = "1", ("", "0"), ("cpu", "cuda")


def is_fused(*tables: Tensor) -> bool:
    """Whether the compiled operator is asked for and can take these tables: on a device, without autograd.

    Raises
    ------
    InvalidParameterError
        If the environment variable is neither 0 nor 1.
    """
    asked = os.environ.get(SWITCH, "")
    if asked != ON and asked not in OFF:
        raise InvalidParameterError(f"{SWITCH} must be 0 or 1, got {asked!r}")
    return asked == ON and all(
        table.device.type in DEVICES and by_operators(table.device) and not table.requires_grad for table in tables
    )


def fused_loss(
    link: Link,
    z: Tensor,  # (M, L, N)
    log_slope: Tensor,  # (M, L, N or 1)
    event: Tensor,  # (M or 1, 1, N)
    split: Tensor,  # (M, B, N) of the branch nodes from some level on
    mass: Tensor,  # (M, S, N) weight of each row at each node of that level
) -> OnePass:
    """Loss of right-censored rows, and its slopes.

    Raises
    ------
    InvalidParameterError
        If the operator cannot be compiled here.
    """
    # detached, as a view of another tensor would be compiled anew
    rows = [table.detach() for table in (z, log_slope, event.expand(len(z), -1, -1), split, mass)]
    kind = z.shape[1], split.shape[1], log_slope.shape[2] == 1, z.dtype, z.device
    compiled = _compiled(link, *kind)  # type: ignore[arg-type]  # a link is hashed by what it is
    try:
        return compiled(*rows)
    except Exception as error:
        if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
            raise
        cause = " ".join(str(error).split("\n")[:2])  # who raised, then what
        raise InvalidParameterError(
            f"{SWITCH} must be 0 where torch cannot compile the objective, got 1 ({cause}); install the compiler that "
            "torch.compile needs, or unset it"
        ) from error


@cache
def _compiled(
    link: Link, leaves: int, branches: int, straight: bool, dtype: torch.dtype, device: torch.device
) -> Callable[..., OnePass]:
    """The operator for such tables, of any number of trees and rows.

    Torch keeps what it compiled with the code of a function, eight variants at most. So each kind of tables has code of
    its own, of which there are two variants at most for one tree, and for more.
    """

    def loss(z: Tensor, log_slope: Tensor, event: Tensor, split: Tensor, mass: Tensor) -> OnePass:
        return expected_loss_by_node(link, z, log_slope, event, split, mass)

    own = FunctionType(loss.__code__.replace(), loss.__globals__, closure=loss.__closure__)
    found: Callable[..., OnePass] = torch.compile(own, dynamic=True, fullgraph=True)
    return found


def expected_loss_by_node(
    link: Link,
    z: Tensor,  # (M, L, N)
    log_slope: Tensor,  # (M, L, N or 1)
    event: Tensor,  # (M, 1, N)
    split: Tensor,  # (M, B, N)
    mass: Tensor,  # (M, S, N)
) -> OnePass:
    """The loss of :func:`fused_loss`, from tables (M, N) of single nodes and leaves alone."""
    levels = levels_from(mass.shape[1].bit_length() - 1, split.shape[1])
    left, right = _sides(split)
    reach = [list(mass.unbind(1))]
    for nodes in levels:
        above = zip(reach[-1], left[nodes], right[nodes], strict=True)
        reach.append([part for here, low, high in above for part in (here * low, here * high)])
    own = zip(z.unbind(1), log_slope.unbind(1), strict=True)
    terms = [right_censored_loss(link, at, rise, event[:, 0]) for at, rise in own]
    costs, slopes = [loss for loss, _ in terms], list(split.unbind(1))
    for nodes, masses in zip(reversed(levels), reversed(reach[:-1]), strict=True):
        gaps = [a - b for a, b in zip(costs[::2], costs[1::2], strict=True)]
        low, high = left[nodes], right[nodes]
        costs = [torch.addcmul(b, p, gap) for b, p, gap in zip(costs[1::2], low, gaps, strict=True)]
        slopes[nodes] = [m * gap * p * q for m, gap, p, q in zip(masses, gaps, low, high, strict=True)]
    value = reduce(torch.add, [m * cost for m, cost in zip(reach[0], costs, strict=True)]).sum(1)
    by_time = [m * slope.at_time for m, (_, slope) in zip(reach[-1], terms, strict=True)]
    by_split = torch.stack(slopes, 1) if slopes else torch.zeros_like(split)
    return OnePass(value, by_split, torch.stack(by_time, 1), torch.stack(reach[-1], 1))


def _sides(split: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Probability (M, N) of going left and of going right at each branch node."""
    nodes = split.unbind(1)
    return [torch.sigmoid(node) for node in nodes], [torch.sigmoid(-node) for node in nodes]
