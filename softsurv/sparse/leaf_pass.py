"""The loss of leaf models in one compiled pass over the rows, for float64 on a CPU (`leaf_kernels`)."""

from __future__ import annotations

import torch
from torch import Tensor

from softsurv.clamps import LOG_SHAPE_LIMIT
from softsurv.hazards.base import LinearBaseline
from softsurv.soft.one_pass import arrays, code_of, is_compiled
from softsurv.soft.problem import Problem
from softsurv.sparse.leaf_kernels import rows_in_leaves


def pass_of(problem: Problem, *tables: Tensor) -> int | None:
    """The number of the link in the compiled loop; None where torch's operators must be used."""
    if problem.entry_features is not None or problem.upper_features is not None:
        return None
    if not isinstance(problem.family, LinearBaseline) or not is_compiled(*tables):
        return None
    return code_of(problem.family.link)


def one_pass(
    code: int,
    problem: Problem,
    offset: Tensor,  # (M, 1 or L, N)
    level: Tensor,  # (M, L), added to the offsets
    shape: Tensor,  # (M, L, K)
    leaf: Tensor,  # (M, N)
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mean loss (M,) of right-censored rows in their leaves, and its derivatives by offsets, levels and shapes."""
    p, k = problem, problem.family.n_shape
    features = p.groups.even(p.features)
    limited = shape.clamp(-LOG_SHAPE_LIMIT, LOG_SHAPE_LIMIT)
    weights = limited.exp()
    rise_log = features[:, k].log() if k == 1 else features[:, k]
    value, total = offset.new_empty(len(offset)), torch.empty_like(offset)
    d_level, d_weight = torch.empty_like(level), torch.empty_like(shape)
    tables = arrays(offset, level, limited, weights, features, rise_log, p.even_event[:, 0], p.weight[:, 0], leaf)
    rows_in_leaves(code, *tables, *arrays(value, total, d_level, d_weight))
    return value, total, d_level, torch.where(limited == shape, d_weight * weights, 0.0)
