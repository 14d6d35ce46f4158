"""Leaf models under hard routing: one common model and each leaf's deviation from it, fitted jointly.

Every row is in one leaf of each tree, so one loss for each row and tree is enough, whatever the number of leaves.
Deviations of slopes and of baselines have penalties of their own: leaves may share all slopes and differ in level and
shape.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softsurv.hazards.likelihood import Slopes
from softsurv.soft.optimisers import LbfgsSettings, Minimum, Rounds, minimise
from softsurv.soft.problem import Problem, taken
from softsurv.sparse.fit_rounds import rounds_of
from softsurv.sparse.leaf_metric import LeafMetric, Leaves, has_ridge, leaf_metric
from softsurv.sparse.leaf_pass import one_pass, pass_of
from softsurv.stopping import StopSignal
from softsurv.trees.routing import linear

FIT = LbfgsSettings(max_iterations=200, ftol=1e-10)
"""How far the leaves of a final tree are fitted."""

ROUGH = LbfgsSettings(max_iterations=25, ftol=1e-6)
"""How far leaves are fitted between two searches for rules, and where candidates are compared."""

STEP = 1e-4
"""Distance of central differences: rounding and the third derivatives of splines each put some 1e-6 on curvatures."""


@dataclass(frozen=True)
class LeafPenalties:
    """Quadratic penalties of leaf models, one value per tree (M,), on the scale of the mean loss.

    They lie on the host, so that decisions that depend on them do not wait for a device.

    Attributes
    ----------
    ridge : Tensor (M,)
        On the common slopes.
    baseline : Tensor (M,)
        On each leaf's deviation in level and shape.
    slopes : Tensor (M,)
        On each leaf's deviation in slopes; ``inf`` where the leaves share them.
    """

    ridge: Tensor
    baseline: Tensor
    slopes: Tensor

    @property
    def shared(self) -> bool:
        """Whether the leaves of every tree share their slopes."""
        return not np.isfinite(self.slopes.numpy()).any()

    def of_deviations(self, n_leaves: int, columns: int, size: int) -> tuple[Tensor, Tensor]:
        """Strengths of the penalties of deviations, and which deviations may differ from 0: (M, size) on the host."""
        own = torch.isfinite(self.slopes)
        strength = self.baseline[:, None].repeat(1, size)
        strength[:, 1:columns] = torch.where(own, self.slopes, 0.0)[:, None]
        free = torch.ones_like(strength, dtype=torch.bool)
        free[:, 1:columns] = own[:, None]
        return strength, free & (n_leaves > 1)  # a single leaf is the common model


class LeafObjective:
    """Penalised mean loss of a stack of trees, each row in its own leaf.

    Parameters
    ----------
    problem : Problem
        The problem of M trees.
    leaf : Tensor (M, N)
        Leaf of each row, on any device.
    n_leaves : int
        L.
    penalties : LeafPenalties
    """

    def __init__(self, problem: Problem, leaf: Tensor, n_leaves: int, penalties: LeafPenalties) -> None:
        self.problem, self.n_leaves = problem, n_leaves
        self.columns, place = problem.design.shape[-1], problem.weight
        self.leaf, self.ridge = leaf.to(place.device), penalties.ridge.to(place)
        self.shared, self.ridged = penalties.shared, has_ridge(penalties.ridge.numpy(), n_leaves)
        strength, free = penalties.of_deviations(n_leaves, self.columns, self.columns + problem.family.n_shape)
        self.strength, self.free = strength.to(place), free.to(place.device)

    def take(self, trees: Tensor) -> LeafObjective:
        """The objective of some trees of the stack."""
        part = copy(self)
        part.problem = self.problem.take(trees)
        part.leaf, part.ridge = taken(self.leaf, trees), taken(self.ridge, trees)
        part.strength, part.free = taken(self.strength, trees), taken(self.free, trees)
        part.__dict__.pop("member", None)  # that of the whole stack
        return part

    @cached_property
    def member(self) -> Tensor:
        """1 where a row is in a leaf, (M, L, N)."""
        every = torch.arange(self.n_leaves, device=self.leaf.device)[:, None]
        return (self.leaf[:, None] == every).to(self.problem.design)

    @property
    def leaves(self) -> Leaves:
        """What a metric and compiled rounds need."""
        p = self.problem
        return Leaves(p, self.leaf, self.n_leaves, self.strength, self.free, self.ridge, self.ridged, self.shared)

    def whole_rounds(self, metric: LeafMetric) -> Rounds | None:
        """Rounds of a fit in one compiled loop; None where it cannot be used."""
        return rounds_of(self.leaves, metric)

    def value_and_gradient(
        self,
        common: Tensor,  # (M, 1, Q + K)
        deviation: Tensor,  # (M, L, Q + K)
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Objective (M,) and its gradients."""
        p, q = self.problem, self.columns
        leaves = common + deviation
        own = deviation[..., 0] if self.shared else torch.zeros_like(deviation[..., 0])
        offset = p.linear((common if self.shared else leaves)[..., :q])
        if (code := pass_of(p, offset, leaves)) is None:
            value, total, d_level, d_shape = self._by_operators(offset, own, leaves[..., q:])
        else:
            value, total, d_level, d_shape = one_pass(code, p, offset, own, leaves[..., q:], self.leaf)
        if self.shared:
            d_common = torch.cat([p.pullback(total), d_shape.sum(1, keepdim=True)], -1)
            d_leaf = torch.zeros_like(leaves)
            d_leaf[..., 0] = d_level
            d_leaf[..., q:] = d_shape
        else:
            d_leaf = torch.cat([p.pullback(total), d_shape], -1)
            d_common = d_leaf.sum(1, keepdim=True)
        return self._with_penalties(value, common, deviation, d_common, d_leaf)

    def _with_penalties(
        self, value: Tensor, common: Tensor, deviation: Tensor, d_common: Tensor, d_leaf: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Value (M,) and gradients with all penalties added."""
        q, ridge = self.columns, self.ridge[:, None, None]
        away = torch.where(self.free[:, None], deviation, 0.0)
        value = value + 0.5 * (self.strength[:, None] * away.square()).sum((1, 2))
        value = value + 0.5 * (ridge * common[..., 1:q].square()).sum((1, 2))
        d_common[..., 1:q] += ridge * common[..., 1:q]
        return value, d_common, torch.where(self.free[:, None], d_leaf + self.strength[:, None] * away, 0.0)

    def _by_operators(
        self,
        offset: Tensor,  # (M, 1 or L, N)
        level: Tensor,  # (M, L)
        shape: Tensor,  # (M, L, K)
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Mean loss (M,), and its derivatives by offsets, levels and shapes."""
        if self.shared:
            at_row = offset + level.gather(1, self.leaf)[:, None]
        else:
            at_row = (offset * self.member).sum(1, keepdim=True)
        loss, slopes = row_terms(self.problem, at_row, shape, self.leaf)
        total, d_shape = self.pulled(shape, slopes)
        value = (self.problem.weight * loss).sum((1, 2))
        return value, total if self.shared else self.member * total, (self.member @ total.mT)[..., 0], d_shape

    def pulled(self, shape: Tensor, slopes: Slopes) -> tuple[Tensor, Tensor]:
        """Derivatives by the offsets (M, 1, N) and by the shapes (M, L, K)."""
        p = self.problem
        total = p.weight * slopes.at_time
        d_shape = p.family.baseline_pullback(
            shape, p.per_tree(p.features), self.member * total, self.member * (p.weight * slopes.log_slope)
        )
        for slope, features in ((slopes.at_entry, p.entry_features), (slopes.at_upper, p.upper_features)):
            if slope is not None and features is not None:
                more = p.weight * slope
                total = total + more
                own = self.member * more
                d_shape = d_shape + p.family.baseline_pullback(shape, p.per_tree(features), own, torch.zeros_like(own))
        return total, d_shape


def fit_leaves(
    problem: Problem,
    leaf: Tensor,  # (M, N)
    n_leaves: int,
    penalties: LeafPenalties,
    start: Tensor | None = None,  # (M, 1 + L, Q + K)
    settings: LbfgsSettings = FIT,
    budget: StopSignal | None = None,
) -> Minimum:
    """Fit the leaves of every tree; the point is common models and deviations as one tensor (M, 1 + L, Q + K).

    The result lies on the device of the problem; the leaves of the rows and the penalties may lie on the host.
    """
    q = problem.design.shape[-1]
    if start is None:
        start = problem.design.new_zeros(problem.n_trees, 1 + n_leaves, q + problem.family.n_shape)
        start[:, 0, q:] = problem.family.initial_shape(problem.time_scale[0])
        baseline = problem.family.baseline(start[: problem.n_groups, :1, q:], problem.features)[0]
        start[:, 0, 0] = problem.per_tree(-baseline.mean((1, 2)))  # a spline's baseline may be far from 0
    objective = LeafObjective(problem, leaf, n_leaves, penalties)
    own = torch.where(objective.free[:, None], start[:, 1:], 0.0)
    metric = leaf_metric(objective.leaves, start[:, 0, q:])
    end = minimise(objective, (start[:, :1], own), settings, metric, budget)
    return Minimum((torch.cat(end.point, 1),), end.loss, end.converged)


def leaf_models(model: Tensor) -> Tensor:
    """Parameters of each leaf (M, L, Q + K) from common models and deviations (M, 1 + L, Q + K)."""
    return model[:, :1] + model[:, 1:]


def row_terms(
    problem: Problem,
    offset: Tensor,  # (M, 1, N)
    shape: Tensor,  # (M, L, K)
    leaf: Tensor,  # (M, N)
) -> tuple[Tensor, Slopes]:
    """Loss of every row (M, 1, N) in its leaf, and its slopes."""
    p = problem

    def at_leaf(values: Tensor) -> Tensor:
        return values if values.shape[1] == 1 else values.expand(len(leaf), -1, -1).gather(1, leaf[:, None])

    def z_at(features: Tensor) -> Tensor:
        return offset + at_leaf(p.family.baseline(shape, features)[0])

    value, log_slope = (at_leaf(part) for part in p.family.baseline(shape, p.per_tree(p.features)))
    return p.losses(offset + value, log_slope, z_at)


def losses_in_leaves(problem: Problem, leaves: Tensor) -> Tensor:
    """Loss of every row in every leaf, (M, L, N), for leaf parameters (M, L, Q + K)."""
    q, (m, n_leaves) = problem.design.shape[-1], leaves.shape[:2]
    offset = linear(leaves[..., :q], problem.design)
    only = torch.zeros(m, 1, dtype=torch.int64, device=leaves.device)
    parts = [row_terms(problem, offset[:, k : k + 1], leaves[:, k : k + 1, q:], only)[0] for k in range(n_leaves)]
    return torch.cat(parts, 1)


def in_double(problem: Problem) -> Problem:
    """The problem in double precision, as differences need."""
    if problem.design.dtype == torch.float64:
        return problem
    parts: dict[str, Any] = {f.name: getattr(problem, f.name) for f in fields(problem)}
    real = {name for name, value in parts.items() if isinstance(value, Tensor) and value.is_floating_point()}
    return replace(problem, **{name: parts[name].double() for name in real})


def second_order(problem: Problem, model: Tensor) -> Tensor:
    """Slopes and curvatures (M, N, 5) of each row's loss in level and shape, at a common model (M, 1, Q + K).

    Minus the slope of level and of shape; the curvatures level-level, level-shape and shape-shape. A shape correction
    is added to all shape parameters alike. The values are central differences, which serve every family and every kind
    of censoring. Curvatures below 0 are set to 0.
    """
    q, h, problem, model = problem.design.shape[-1], STEP, in_double(problem), model.double()
    offset = linear(model[..., :q], problem.design)
    only = torch.zeros(len(model), 1, dtype=torch.int64, device=model.device)

    def at(level: float, shape: float) -> Tensor:
        return row_terms(problem, offset + level, model[..., q:] + shape, only)[0][:, 0]

    middle, up, down, wide, narrow = at(0, 0), at(h, 0), at(-h, 0), at(0, h), at(0, -h)
    cross = (at(h, h) + at(-h, -h) + 2 * middle - up - down - wide - narrow) / (2 * h**2)
    curvatures = [(up - 2 * middle + down) / h**2, cross, (wide - 2 * middle + narrow) / h**2]
    slopes = [(down - up) / (2 * h), (narrow - wide) / (2 * h)]
    return torch.stack([*slopes, curvatures[0].clamp(min=0), cross, curvatures[2].clamp(min=0)], -1)
