"""The metric of the fits of leaves: a guess of the inverse curvature, so that few rounds are needed.

A spline's level is the log hazard at its first knot, from where its functions only rise. Level and shapes are therefore
strongly correlated, and without their joint curvature a fit takes hundreds of rounds. Where leaves have slopes of their
own, a step of the common model and the same step of all deviations are nearly the same change, the more so the weaker
the shrinkage: rough fits stopped up to 0.1 nats above their least loss until the metric knew of this.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from softsurv.arrays import FloatArray
from softsurv.hazards.base import LinearBaseline
from softsurv.soft.gram import MAX_COLUMNS, RIDGE
from softsurv.soft.groups import Groups
from softsurv.soft.problem import Problem, taken
from softsurv.sparse.leaf_grams import leaf_grams

CURVATURE = 0.25
"""Typical curvature of a row's loss by its level; it scales the first steps."""

RIDGED_COLUMNS = 128
"""Most columns with which each tree has a matrix of its own: with more, it would cost as much as the rounds."""

LEAST_RIDGE = CURVATURE * RIDGE
"""A ridge above this is part of the metric: it exceeds what the Gram matrix is regularised with, and so the curvature
of the data in the directions that they say least of."""

WALL = 1e3
"""A ridge above this is part of the metric of one leaf too. There slopes move the loss by their penalty alone."""

LEAST_SHARE = 1e-9
"""Least share of the weight of a leaf: without rows, its curvature is that of the penalties."""

LEAST_STRENGTH = 1e-6
"""Least penalty of deviations where a metric holds them and the common model: without one, many pairs are alike."""


@dataclass(frozen=True)
class Leaves:
    """The data of a stack from which its metric is computed.

    Attributes
    ----------
    problem : Problem
        The problem of M trees.
    leaf : Tensor (M, N)
        Leaf of each row.
    n_leaves : int
        L.
    strength, free : Tensor (M, Q + K)
        Penalties of the leaves' deviations, and which of these may differ from 0.
    ridge : Tensor (M,)
        On the common slopes.
    ridged, shared : bool
        Whether the ridge of some tree is part of the metric (:func:`has_ridge`), and whether the leaves of every tree
        share their slopes. The host knows both.
    """

    problem: Problem
    leaf: Tensor
    n_leaves: int
    strength: Tensor
    free: Tensor
    ridge: Tensor
    ridged: bool
    shared: bool


def has_ridge(ridge: FloatArray, n_leaves: int) -> bool:
    """Whether the ridge (M,) of some tree is part of the metric."""
    return bool((ridge > _least_ridge(n_leaves)).any())


def _least_ridge(n_leaves: int) -> float:
    return WALL if n_leaves == 1 else LEAST_RIDGE


def leaf_metric(leaves: Leaves, shape: Tensor) -> LeafMetric:
    """The metric of a stack, for common models that begin with these shapes (M, K)."""
    family, (rows, columns) = leaves.problem.family, leaves.problem.design.shape[1:]
    if leaves.n_leaves > 1 and not leaves.shared and columns <= RIDGED_COLUMNS:
        return OwnSlopesMetric(leaves, shape)
    if isinstance(family, LinearBaseline) and family.n_shape > 1 and columns <= min(rows, MAX_COLUMNS):
        curvature = curvature_of(leaves.problem)
        return JointMetric(leaves, _with_ridge(_inverse(curvature), leaves), curvature, shape)
    return SlopesMetric(leaves, _with_ridge(leaves.problem.inverse_gram / CURVATURE, leaves))


def _with_ridge(inverse: Tensor, leaves: Leaves) -> Tensor:
    """The inverse curvature of each group, or of each tree, (M, R, R) or (M, Q), where some have a ridge that counts.

    Of features scaled to [0, 1] the least curvatures are far below that of a row's loss. Without the ridge in the
    metric the first steps in these directions are far too long: rough fits then end far from the least loss, and the
    candidates of a strong ridge are compared unfinished. One leaf begins at slopes of zero: its ridge is left out up to
    `WALL`. Above, the first steps are too long by so much that no shorter one is found, where an axis is nearly
    constant, as the first one of a row space. The ridge of several leaves is left out where columns are many.
    """
    columns, trees = leaves.problem.design.shape[-1], len(leaves.ridge)
    strong = leaves.ridge[:, None] > _least_ridge(leaves.n_leaves)
    many = inverse.dim() == 3 and columns > RIDGED_COLUMNS and leaves.n_leaves > 1
    if many or not leaves.ridged:
        return inverse
    plain = inverse.repeat_interleave(trees // len(inverse), 0)
    ridge = torch.nn.functional.pad(leaves.ridge[:, None].repeat(1, columns - 1), (1, plain.shape[-1] - columns))
    if inverse.dim() == 2:
        return torch.where(strong, plain / (1 + plain * ridge), plain)
    return torch.where(strong[..., None], _inverse(_inverse(plain) + torch.diag_embed(ridge)), plain)


def _inverse(matrix: Tensor) -> Tensor:
    return torch.cholesky_inverse(torch.linalg.cholesky_ex(matrix)[0])


class SlopesMetric:
    """The inverse curvature for the common slopes; for deviations a scale by the weight of the leaf's rows.

    Parameters
    ----------
    leaves : Leaves
    inverse : Tensor (M or G, Q, Q), or (M or G, Q) of a diagonal
        Inverse curvature of each tree or group in the common slopes.
    """

    def __init__(self, leaves: Leaves, inverse: Tensor) -> None:
        problem = leaves.problem
        self.columns, self.groups = problem.design.shape[-1], Groups.equal(problem.n_trees, len(inverse))
        self.inverse = inverse
        share = problem.weight.new_zeros(problem.n_trees, leaves.n_leaves)
        self.share = share.scatter_add_(1, leaves.leaf, problem.weight[:, 0])
        curvature = CURVATURE * self.share[..., None] + leaves.strength[:, None]
        self.scale = torch.where(leaves.free[:, None], 1 / curvature.clamp(min=1e-12), 0.0)  # (M, L, Q + K)

    def take(self, trees: Tensor) -> Self:
        """The metric of some trees."""
        part = copy(self)
        part.scale = taken(self.scale, trees)
        part.groups, groups = self.groups.take(trees, self.inverse)
        part.inverse = self.inverse if groups is None else taken(self.inverse, groups)
        return part

    def __call__(self, gradient: Tensor) -> Tensor:
        """Steps (m, D) from gradients (m, D)."""
        m, n_leaves, size = self.scale.shape
        parts = gradient.view(m, 1 + n_leaves, size)
        return torch.cat([self._common(parts[:, :1]), self._leaves(parts[:, 1:])], 1).flatten(1)

    def _common(self, gradient: Tensor) -> Tensor:  # (m, 1, Q + K)
        slopes = gradient[..., : self.columns]
        if self.inverse.dim() == 3:
            slopes = self.groups.product(slopes, self.inverse)
        else:
            slopes = slopes * self.groups.per_tree(self.inverse)[:, None]
        return torch.cat([slopes, gradient[..., self.columns :]], -1)

    def _leaves(self, gradient: Tensor) -> Tensor:  # (m, L, Q + K)
        return self.scale * gradient


class JointMetric(SlopesMetric):
    """For baselines of several functions: slopes, level and shapes together.

    The curvature is that of least squares in the linear predictor plus that of the events' log slopes. It is taken by
    the exponentials of the shapes, at shapes of zero; ``unit`` turns their steps into steps of the shapes.

    Parameters
    ----------
    leaves : Leaves
    inverse : Tensor (M or G, Q + K, Q + K)
        Inverse of the curvature with each tree's ridge.
    curvature : Tensor (G, Q + K, Q + K)
    shape : Tensor (M, K)
        Shapes of the common models to begin with.
    """

    def __init__(self, leaves: Leaves, inverse: Tensor, curvature: Tensor, shape: Tensor) -> None:
        super().__init__(leaves, inverse)
        q = self.columns
        self.unit = (-shape).exp()[:, None]  # (M, 1, K)
        at = torch.tensor([0, *range(q, q + shape.shape[-1])], device=shape.device)
        self.at, self.free = at, leaves.free[:, None, at]
        share = self.share.clamp(min=LEAST_SHARE)[..., None, None]
        own = curvature[:, at[:, None], at].repeat_interleave(len(share) // len(curvature), 0)[:, None] * share
        units = torch.cat([torch.ones_like(self.unit[..., :1]), self.unit], -1)[:, None]  # (M, 1, 1, 1 + K)
        own = own + torch.diag_embed(leaves.strength[:, None, at] * units[:, :, 0].square())
        self.of_leaf = _inverse(own) * units * units.mT  # (M, L, 1+K, 1+K)

    def take(self, trees: Tensor) -> Self:
        part = super().take(trees)
        part.unit, part.free, part.of_leaf = (taken(own, trees) for own in (self.unit, self.free, self.of_leaf))
        return part

    def _common(self, gradient: Tensor) -> Tensor:
        q = self.columns
        scaled = torch.cat([gradient[..., :q], gradient[..., q:] * self.unit], -1)
        step = self.groups.product(scaled, self.inverse)
        return torch.cat([step[..., :q], step[..., q:] * self.unit], -1)

    def _leaves(self, gradient: Tensor) -> Tensor:
        own = (self.of_leaf @ gradient[..., self.at, None])[..., 0]
        return (self.scale * gradient).index_copy(-1, self.at, torch.where(self.free, own, 0.0))


class OwnSlopesMetric:
    """The inverse of the joint curvature of the common model and the leaves' deviations.

    With the curvature A_k of leaf k, the penalties S of its deviations and those R of the common model, the joint
    curvature is the sum of A_k plus R for the common model, A_k + S for each deviation, and A_k between them. Its
    inverse follows from B_k = (A_k + S)^-1: steps of the common model are (R + sum_k A_k B_k S)^-1 times the gradient
    less A_k B_k times those of the deviations.

    Parameters
    ----------
    leaves : Leaves
    shape : Tensor (M, K)
        Shapes of the common models to begin with.
    """

    def __init__(self, leaves: Leaves, shape: Tensor) -> None:
        curvature = leaf_grams(leaves.problem, leaves.leaf, leaves.n_leaves, shape, CURVATURE)  # (M, L, R, R)
        columns, size = leaves.problem.design.shape[-1], curvature.shape[-1]
        curvature = curvature + torch.diag_embed(RIDGE * curvature.diagonal(dim1=2, dim2=3) + LEAST_SHARE)
        free = leaves.free.double()[:, None, :, None]
        both = free * free.mT  # (M, 1, R, R)
        strength = torch.diag_embed(leaves.strength.double().clamp(min=LEAST_STRENGTH))[:, None]
        fixed = torch.diag_embed(1.0 - free[..., 0])
        of_leaf = both * _inverse(both * (curvature + strength) + fixed)
        coupling = curvature @ of_leaf
        held = curvature - coupling @ curvature
        ridge = torch.nn.functional.pad(leaves.ridge.double()[:, None].repeat(1, columns - 1), (1, size - columns))
        shared = held.sum(1) + torch.diag_embed(ridge)
        place = leaves.problem.design
        self.of_leaf, self.coupling = of_leaf.to(place), coupling.to(place)
        self.common = _inverse((shared + shared.mT) / 2).to(place)

    def take(self, trees: Tensor) -> Self:
        """The metric of some trees."""
        part = copy(self)
        part.common, part.of_leaf, part.coupling = (
            taken(own, trees) for own in (self.common, self.of_leaf, self.coupling)
        )
        return part

    def __call__(self, gradient: Tensor) -> Tensor:
        """Steps (m, D) from gradients (m, D)."""
        m, n_leaves, size, _ = self.of_leaf.shape
        parts = gradient.view(m, 1 + n_leaves, size)
        own = parts[:, 1:, :, None]
        common = self.common @ (parts[:, 0, :, None] - (self.coupling @ own).sum(1))  # (m, R, 1)
        deviation = self.of_leaf @ own - self.coupling.mT @ common[:, None]
        return torch.cat([common[:, None], deviation], 1)[..., 0].flatten(1)


LeafMetric = SlopesMetric | OwnSlopesMetric
"""Any of them."""


def curvature_of(problem: Problem) -> Tensor:
    """Curvature of each group's mean loss in common slopes and shapes, (G, Q + K, Q + K), a little regularised."""
    q, k = problem.design.shape[-1], problem.family.n_shape
    design, rise = problem.design.double(), problem.features[:, :k].double()
    slope = problem.features[:, k : 2 * k].double() * problem.event.double()
    count = design[..., :1].square().sum(1)[..., None]  # rows: padding has 0 in the column of ones
    table = torch.cat([design, rise.mT], -1)
    gram = CURVATURE * (table.mT @ table)
    gram[:, q:, q:] += slope @ slope.mT
    gram = gram / count
    diagonal = gram.diagonal(dim1=1, dim2=2)
    return (gram + torch.diag_embed(torch.where(diagonal > 0, RIDGE * diagonal, 1.0))).to(problem.design)
