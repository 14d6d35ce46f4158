"""First steps of the fits of leaves: a guess of the inverse curvature, so that few rounds are needed.

A spline's level is the log hazard at its first knot, from where its parts only rise: level and shapes lean on each
other, and without their joint curvature a fit takes hundreds of rounds.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from softsurv.hazards.base import LinearBaseline
from softsurv.soft.gram import MAX_COLUMNS, RIDGE
from softsurv.soft.problem import Problem, groups_of, taken
from softsurv.trees.routing import linear

CURVATURE = 0.25
"""Typical curvature of a row's loss in its level: scales the first steps."""

LEAST_SHARE = 1e-9
"""Of the weight, what a leaf without rows counts as: its curvature is that of the penalties."""


@dataclass(frozen=True)
class Leaves:
    """What a metric is made of.

    Attributes
    ----------
    problem : Problem
        Of M trees.
    leaf : Tensor (M, N)
        Leaf of each row.
    n_leaves : int
        L.
    strength, free : Tensor (M, Q + K)
        Penalties of the leaves' deviations, and which of these are no constants.
    """

    problem: Problem
    leaf: Tensor
    n_leaves: int
    strength: Tensor
    free: Tensor


def leaf_metric(leaves: Leaves, shape: Tensor) -> SlopesMetric:
    """The metric of a stack, for common models that begin with these shapes (M, K)."""
    family, (rows, columns) = leaves.problem.family, leaves.problem.design.shape[1:]
    joint = isinstance(family, LinearBaseline) and family.n_shape > 1 and columns <= min(rows, MAX_COLUMNS)
    if joint:
        return JointMetric(leaves, curvature_of(leaves.problem), shape)
    return SlopesMetric(leaves, leaves.problem.inverse_gram / CURVATURE)


class SlopesMetric:
    """The inverse Gram matrix for the common slopes, one over the rows' weight for deviations.

    Parameters
    ----------
    leaves : Leaves
    inverse : Tensor (G, Q, Q), or (G, Q) of a diagonal
        Inverse curvature of each group in the common slopes.
    """

    def __init__(self, leaves: Leaves, inverse: Tensor) -> None:
        problem = leaves.problem
        self.columns, self.per_group = problem.design.shape[-1], problem.n_trees // problem.n_groups
        self.inverse = inverse
        share = problem.weight.new_zeros(problem.n_trees, leaves.n_leaves)
        self.share = share.scatter_add_(1, leaves.leaf, problem.weight[:, 0])
        curvature = CURVATURE * self.share[..., None] + leaves.strength[:, None]
        self.scale = torch.where(leaves.free[:, None], 1 / curvature.clamp(min=1e-12), 0.0)  # (M, L, Q + K)

    def take(self, trees: Tensor) -> Self:
        """The metric of some trees."""
        part = copy(self)
        part.scale = taken(self.scale, trees)
        if len(self.inverse) > 1:
            groups = groups_of(trees, self.per_group)
            part.inverse, part.per_group = taken(self.inverse, groups), len(trees) // len(groups)
        return part

    def __call__(self, gradient: Tensor) -> Tensor:
        """Steps (m, D) from gradients (m, D)."""
        m, n_leaves, size = self.scale.shape
        parts = gradient.view(m, 1 + n_leaves, size)
        return torch.cat([self._common(parts[:, :1]), self._leaves(parts[:, 1:])], 1).flatten(1)

    def _common(self, gradient: Tensor) -> Tensor:  # (m, 1, Q + K)
        slopes = gradient[..., : self.columns]
        if self.inverse.dim() == 3:
            slopes = linear(slopes, self.inverse)
        else:
            slopes = slopes * self.inverse.repeat_interleave(len(gradient) // len(self.inverse), 0)[:, None]
        return torch.cat([slopes, gradient[..., self.columns :]], -1)

    def _leaves(self, gradient: Tensor) -> Tensor:  # (m, L, Q + K)
        return self.scale * gradient


class JointMetric(SlopesMetric):
    """For baselines of several parts: slopes, level and shapes together.

    The curvature is that of least squares in the linear predictor, plus that of the events' log slopes, at shapes of
    zero; shapes count in units of what their parts rise.

    Parameters
    ----------
    leaves : Leaves
    curvature : Tensor (G, Q + K, Q + K)
    shape : Tensor (M, K)
        Shapes of the common models to begin with.
    """

    def __init__(self, leaves: Leaves, curvature: Tensor, shape: Tensor) -> None:
        super().__init__(leaves, torch.cholesky_inverse(torch.linalg.cholesky_ex(curvature)[0]))
        q = self.columns
        self.unit = (-shape).exp()[:, None]  # (M, 1, K)
        at = torch.tensor([0, *range(q, q + shape.shape[-1])], device=shape.device)
        self.at, self.free = at, leaves.free[:, None, at]
        share = self.share.clamp(min=LEAST_SHARE)[..., None, None]
        own = curvature[:, at[:, None], at].repeat_interleave(self.per_group, 0)[:, None] * share
        units = torch.cat([torch.ones_like(self.unit[..., :1]), self.unit], -1)[:, None]  # (M, 1, 1, 1 + K)
        own = own + torch.diag_embed(leaves.strength[:, None, at] * units[:, :, 0].square())
        self.of_leaf = torch.cholesky_inverse(torch.linalg.cholesky_ex(own)[0]) * units * units.mT  # (M, L, 1+K, 1+K)

    def take(self, trees: Tensor) -> Self:
        part = super().take(trees)
        part.unit, part.free, part.of_leaf = (taken(own, trees) for own in (self.unit, self.free, self.of_leaf))
        return part

    def _common(self, gradient: Tensor) -> Tensor:
        q = self.columns
        scaled = torch.cat([gradient[..., :q], gradient[..., q:] * self.unit], -1)
        step = linear(scaled, self.inverse)
        return torch.cat([step[..., :q], step[..., q:] * self.unit], -1)

    def _leaves(self, gradient: Tensor) -> Tensor:
        own = (self.of_leaf @ gradient[..., self.at, None])[..., 0]
        return (self.scale * gradient).index_copy(-1, self.at, torch.where(self.free, own, 0.0))


def curvature_of(problem: Problem) -> Tensor:
    """Curvature of each group's mean loss in common slopes and shapes, (G, Q + K, Q + K), a little regularised."""
    q, k = problem.design.shape[-1], problem.family.n_shape
    design, rise = problem.design.double(), problem.features[:, :k].double()
    slope = problem.features[:, k : 2 * k].double() * problem.event.double()
    count = design[..., :1].square().sum(1)[..., None]  # padding lacks the column of ones
    table = torch.cat([design, rise.mT], -1)
    gram = CURVATURE * (table.mT @ table)
    gram[:, q:, q:] += slope @ slope.mT
    gram = gram / count
    diagonal = gram.diagonal(dim1=1, dim2=2)
    return (gram + torch.diag_embed(torch.where(diagonal > 0, RIDGE * diagonal, 1.0))).to(problem.design)
