"""Blocks of Newton's method: the objective over one branch node or one leaf, the rest of its tree being fixed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from softsurv.hazards.base import LinearBaseline
from softsurv.hazards.likelihood import right_censored_curvature
from softsurv.soft.newton import MAX_COLUMNS, BlockValues
from softsurv.soft.objective import Objective
from softsurv.soft.problem import Problem


@dataclass(frozen=True)
class BranchBlocks:
    """Branch nodes of one level: each minimises ``sum_i gain_i p_i`` and its ridge, p being the probability of left.

    The curvature used for a row is ``|gain| p (1 - p)``. It bounds the true one, ``gain p (1 - p) (1 - 2 p)``, which
    may be negative.
    """

    problem: Problem
    gain: Tensor  # (M, S, N) weight of a row at the node times what left costs more than right
    penalty: Tensor  # (M, 1, Q)
    least_damping: ClassVar[float] = 1 / 256

    @classmethod
    def of(cls, objective: Objective, leaf_loss: Tensor, mass: Tensor) -> BranchBlocks:
        """The nodes just above the leaves, from the losses (M, L, N) and the weight (M, S, N) of each row at a node."""
        loss = leaf_loss.unflatten(1, (-1, 2))
        return cls(objective.problem, mass * (loss[:, :, 0] - loss[:, :, 1]), objective.routing_curvature)

    def near(self, point: Tensor) -> BlockValues:
        """Each node's value, gradient and curvature; the value omits what the node's routing does not change."""
        p = self.problem
        left = torch.sigmoid(p.linear(point))
        slope = torch.ops.aten.sigmoid_backward(self.gain, left)
        value = (self.gain[:, :, None] @ left[..., None])[..., 0, 0]
        curvature = p.gram(slope.abs(), p.groups)
        return _with_ridge(BlockValues(value, p.pullback(slope), curvature), self.penalty, point)


@dataclass(frozen=True)
class LeafBlocks:
    """Leaves, the weight ``reach`` (M, L, N) of each row in each leaf being fixed.

    The baseline is linear in the exponentials u of the shapes, and the loss is convex in u. With H its Hessian by u the
    curvature over the shapes is diag(u) H diag(u). The term with the gradient is left out, as it may be negative.
    """

    objective: Objective
    reach: Tensor
    least_damping: ClassVar[float] = 1.0

    @property
    def penalty(self) -> Tensor:
        """Curvature of the penalty, (M, 1, Q + K)."""
        return self.objective.leaf_well.curvature

    @cached_property
    def _events(self) -> Tensor:
        """Weight of each row in each leaf where its event was observed, (M, L, N)."""
        p = self.objective.problem
        return self.reach * p.per_tree(p.event)

    def near(self, point: Tensor) -> BlockValues:
        """Each leaf's value, gradient and curvature."""
        objective, p = self.objective, self.objective.problem
        _, z, log_slope = objective.predictors(point)
        loss, slopes = p.losses(z, log_slope, lambda _: z)
        value = (self.reach[:, :, None] @ loss[..., None])[..., 0, 0]
        by_z = self.reach * right_censored_curvature(p.family.link, z, p.per_tree(p.event), slopes)
        curvature = p.leaf_gram(by_z, p.groups)
        if isinstance(p.family, LinearBaseline):
            self._over_shapes(curvature, point[..., objective.columns :], p.family)
        gradient = objective.leaf_gradient(point, slopes, self.reach)
        return _with_ridge(BlockValues(value, gradient, curvature), self.penalty, point - objective.leaf_well.centre)

    def _over_shapes(self, curvature: Tensor, shape: Tensor, family: LinearBaseline) -> None:
        """Turn the curvature over u into that over the shapes, and add that of the log slope, in place."""
        p, first = self.objective.problem, self.objective.columns
        u = family.shape_weight(shape)
        curvature[..., first:, :].mul_(u[..., None])
        curvature[..., first:].mul_(u[..., None, :])
        curvature[..., first:, first:].add_(family.log_slope_curvature(u, p.groups.even(p.features), self._events))


def _with_ridge(data: BlockValues, penalty: Tensor, away: Tensor) -> BlockValues:
    """The values with the penalty added; ``away`` (M, S, D) is the point less the centre of the penalty."""
    pull = penalty * away
    value = torch.add(data.value, (pull * away).sum(-1), alpha=0.5)
    return BlockValues(value, data.gradient + pull, data.curvature)


def few_columns(problem: Problem) -> bool:
    """Whether there are so few columns that the curvature of a node is cheap."""
    return problem.design.shape[-1] <= MAX_COLUMNS


def leaves_fall_apart(problem: Problem) -> bool:
    """Whether `LeafBlocks` can be used: it lacks the curvature of other families and kinds of censoring."""
    known = isinstance(problem.family, LinearBaseline) or problem.family.n_shape == 0
    return known and few_columns(problem) and problem.right_censored
