"""Curvature of the mean loss of each leaf in its own slopes and shapes."""

from __future__ import annotations

import torch
from torch import Tensor

from softsurv.hazards.base import LinearBaseline
from softsurv.soft.one_pass import arrays, is_compiled
from softsurv.soft.problem import Problem
from softsurv.sparse.gram_kernels import add_leaf_grams

LEAST_SLOPE = 1e-300
"""Least slope of a baseline that is divided by."""


def leaf_grams(
    problem: Problem,
    leaf: Tensor,  # (M, N)
    n_leaves: int,
    shape: Tensor,  # (M, K)
    curvature: float,
) -> Tensor:  # (M, L, Q + K, Q + K), in double precision
    """Curvatures, with that of each row's loss by its level set to ``curvature``, at these shapes in all leaves.

    A row adds its curvature in level, slopes and shapes, times its weight, to its leaf. An event adds that of the log
    slope as well. A shape of a baseline that is no sum of functions has the curvature of the level.
    """
    q, k, summed = problem.design.shape[-1], problem.family.n_shape, isinstance(problem.family, LinearBaseline)
    known = k if summed else 0
    weights = problem.family.shape_weight(shape) if isinstance(problem.family, LinearBaseline) else shape[:, :0]
    rise, slope = problem.features[:, :known], problem.features[:, known : 2 * known]
    if is_compiled(problem.design, problem.weight):
        found = problem.weight.new_zeros(len(leaf), n_leaves, q + k, q + k)
        tables = problem.design, rise, slope, problem.event[:, 0], problem.weight[:, 0], leaf, weights
        add_leaf_grams(*arrays(*tables), curvature, found.numpy())
    else:
        found = _by_operators(problem, leaf, n_leaves, (rise, slope, weights), curvature)
    if not summed:
        at = torch.arange(q, q + k, device=found.device)
        found[:, :, at, at] = found[:, :, :1, 0]
    return found


def _by_operators(
    problem: Problem,
    leaf: Tensor,
    n_leaves: int,
    baseline: tuple[Tensor, Tensor, Tensor],  # functions and their slopes (G, k, N), weights (M, k)
    curvature: float,
) -> Tensor:
    """The same by torch's operators."""
    q, k, weight = problem.design.shape[-1], problem.family.n_shape, problem.weight[:, 0].double()
    rise, slope = (problem.per_tree(own).double() * baseline[2].double()[..., None] for own in baseline[:2])
    share = slope * problem.per_tree(problem.event).double() / slope.sum(1, keepdim=True).clamp(min=LEAST_SLOPE)
    design = problem.per_tree(problem.design.double()).expand(len(leaf), -1, -1)
    table = torch.cat([design, rise.mT], -1)  # (M, N, Q + k)
    found = weight.new_zeros(len(leaf), n_leaves, q + k, q + k)
    known = table.shape[-1]
    for number in range(n_leaves):
        own = torch.where(leaf == number, weight, 0.0)[..., None]
        found[:, number, :known, :known] = curvature * (table * own).mT @ table
        found[:, number, q:known, q:known] += (share * own.mT) @ share.mT
    return found
