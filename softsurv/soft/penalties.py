"""Quadratic penalties of a stack of trees, and how a setting's strengths become penalties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor

from softsurv.soft.problem import taken


class Well(NamedTuple):
    """Quadratic penalties of all leaf parameters as one: ``sum_leaf (floor + curvature/2 (b - centre)^2)``."""

    curvature: Tensor  # (M, 1, Q + K)
    centre: Tensor  # (M, 1, Q + K)
    floor: Tensor  # (M,) for each leaf

    @classmethod
    def of(cls, penalties: Penalties, columns: int, counts: Sequence[float] = (1.0,)) -> Well:
        """The sum of all penalties of leaves, those of each cause times the cause's factor; ``columns`` is Q."""
        p, like = penalties, penalties.anchor[:1]
        coefficient = torch.zeros_like(like)
        coefficient.unflatten(-1, (len(counts), -1))[..., 1:columns] = 1
        times = like.new_tensor(counts).repeat_interleave(like.shape[-1] // len(counts))
        curvature = times * ((p.shrinkage + p.l2_all)[:, None, None] + p.l2[:, None, None] * coefficient)
        pull = times * p.shrinkage[:, None, None] * p.anchor
        centre = torch.where(curvature > 0, pull / torch.where(curvature > 0, curvature, 1.0), 0.0)
        return cls(curvature, centre, 0.5 * (pull * p.anchor - curvature * centre.square()).sum((1, 2)))

    def take(self, trees: Tensor) -> Well:
        """The penalties of some trees."""
        return Well(*(taken(value, trees) for value in self))


@dataclass(frozen=True)
class Penalties:
    """Quadratic penalties, one value per tree (M,).

    Attributes
    ----------
    l2 : Tensor (M,)
        ``l2/2 ||a||^2`` over the leaf coefficients; intercepts and shapes are free unless ``l2_all``.
    shrinkage : Tensor (M,)
        ``shrinkage/2 sum_leaf ||b_leaf - anchor||^2`` over all leaf parameters.
    routing_l2 : Tensor (M,)
        ``routing_l2/2 ||w||^2`` over the routing weights, intercepts free.
    anchor : Tensor (M, 1, Q + K)
        Where the leaves shrink to: the single-leaf fit.
    l2_all : Tensor (M,)
        ``l2_all/2 ||b||^2`` over every leaf parameter, as printed in the paper.
    """

    l2: Tensor
    shrinkage: Tensor
    routing_l2: Tensor
    anchor: Tensor
    l2_all: Tensor

    def take(self, trees: Tensor) -> Penalties:
        """The penalties of some trees."""
        return Penalties(**{f.name: taken(getattr(self, f.name), trees) for f in fields(self)})


def no_penalties(n_trees: int, leaf_size: int, like: Tensor) -> Penalties:
    """Penalties that are all zero."""
    zero = like.new_zeros(n_trees)
    return Penalties(zero, zero, zero, like.new_zeros(n_trees, 1, leaf_size), zero)


def single_leaf_penalties(ridge: Tensor, l2_all: Tensor, leaf_size: int) -> Penalties:
    """Penalties of the single-leaf fit, strengths (M,)."""
    free = no_penalties(len(ridge), leaf_size, ridge)
    return Penalties(ridge, free.shrinkage, free.routing_l2, free.anchor, l2_all)


def tree_penalties(ridge: Tensor, shrinkage: Tensor, routing_l2: Tensor, l2_all: Tensor, anchor: Tensor) -> Penalties:
    """Penalties of trees from their strengths (M,). A shrunken tree has no ridge of its own: its anchor had it."""
    return Penalties(torch.where(shrinkage > 0, 0.0, ridge), shrinkage, routing_l2, anchor, l2_all)
