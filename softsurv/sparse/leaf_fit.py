"""Leaf models under hard routing: common coefficients and each leaf's deviation from them, fitted jointly.

Every row is in one leaf of each tree, so one loss for each row and tree is enough, whatever the number of leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from softsurv.hazards.likelihood import Slopes, general_loss, right_censored_loss
from softsurv.soft.optimise import Settings, minimise
from softsurv.soft.precondition import inverse_gram
from softsurv.soft.problem import Problem
from softsurv.trees.routing import linear, linear_pullback

FIT = Settings(max_iterations=100, ftol=1e-8)
"""How far leaves are fitted."""

CURVATURE = 0.25
"""Typical curvature of a row's loss in its level: scales the first steps."""


@dataclass(frozen=True)
class LeafPenalties:
    """Quadratic penalties of leaf models, one value per tree (M,), in units of the mean loss.

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

    def take(self, trees: Tensor) -> LeafPenalties:
        return LeafPenalties(self.ridge[trees], self.baseline[trees], self.slopes[trees])


def row_terms(problem: Problem, offset: Tensor, shape: Tensor, leaf: Tensor) -> tuple[Tensor, Slopes]:
    """Loss of every row (M, 1, N) and its slopes, from offsets (M, 1, N) and shapes of leaves (M, L, K)."""
    p = problem

    def at_leaf(values: Tensor) -> Tensor:
        if values.shape[1] == 1:
            return values
        return values.expand(len(leaf), -1, -1).gather(1, leaf[:, None])

    def predictor(features: Tensor | None) -> Tensor | None:
        return None if features is None else offset + at_leaf(p.family.baseline(shape, p.per_tree(features))[0])

    value, log_slope = p.family.baseline(shape, p.per_tree(p.features))
    z, log_slope, event = offset + at_leaf(value), at_leaf(log_slope), p.per_tree(p.event)
    if p.entry_features is None and p.upper_features is None:
        return right_censored_loss(p.family.link, z, log_slope, event)
    started = torch.ones_like(p.event, dtype=torch.bool) if p.started is None else p.started
    return general_loss(
        p.family.link,
        z,
        log_slope,
        event,
        started=p.per_tree(started),
        z_entry=predictor(p.entry_features),
        truncated=None if p.truncated is None else p.per_tree(p.truncated),
        z_upper=predictor(p.upper_features),
        interval=None if p.interval is None else p.per_tree(p.interval),
    )


def fit_leaves(
    problem: Problem,
    leaf: Tensor,  # (M, N) leaf of each row
    n_leaves: int,
    penalties: LeafPenalties,
    start: Tensor | None = None,  # (M, 1 + L, Q + K)
    settings: Settings = FIT,
) -> tuple[Tensor, Tensor]:
    """Common model and deviations of the leaves (M, 1 + L, Q + K), and the objective (M,)."""
    m, q, k = problem.n_trees, problem.design.shape[-1], problem.family.n_shape
    size = q + k
    if start is None:
        start = problem.design.new_zeros(m, 1 + n_leaves, size)
        start[:, 0, q:] = problem.family.initial_shape(problem.clock[0])
    own_slopes = torch.isfinite(penalties.slopes)
    shared = not bool(own_slopes.any())
    member = torch.nn.functional.one_hot(leaf, n_leaves).to(problem.design).mT  # (M, L, N)
    share = (member * problem.weight).sum(-1)  # (M, L)
    strength = problem.design.new_zeros(m, size)
    strength[:, 0] = penalties.baseline
    strength[:, q:] = penalties.baseline[:, None]
    strength[:, 1:q] = torch.where(own_slopes, penalties.slopes, 0.0)[:, None]
    free = torch.ones_like(strength, dtype=torch.bool)
    free[:, 1:q] = own_slopes[:, None]
    single = n_leaves == 1
    inverse = inverse_gram(problem.design)
    group_of = torch.arange(m) // (m // problem.n_groups)
    scale = 1 / (CURVATURE * share[..., None] + strength[:, None])  # (M, L, size)
    scale = torch.where(free[:, None], scale, 0.0) if not single else torch.zeros_like(scale)

    def function(x: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        at = slice(None) if rows is None else rows
        p = problem if rows is None else problem.take(rows)
        v = x.view(len(x), 1 + n_leaves, size)
        common, deviation = v[:, :1], v[:, 1:]
        leaves = common + deviation
        inside = member[at]
        if shared:
            offset = linear(common[..., :q], p.design) + (inside * deviation[..., :1]).sum(1, keepdim=True)
        else:
            offset = (linear(leaves[..., :q], p.design) * inside).sum(1, keepdim=True)
        loss, slopes = row_terms(p, offset, leaves[..., q:], leaf[at])
        value = (p.weight * loss).sum((1, 2))
        pull = p.weight * slopes.at_time
        d_shape = p.family.baseline_pullback(
            leaves[..., q:], p.per_tree(p.features), inside * pull, inside * (p.weight * slopes.log_slope)
        )
        total = pull
        for slope, features in ((slopes.at_entry, p.entry_features), (slopes.at_upper, p.upper_features)):
            if slope is not None and features is not None:
                more = p.weight * slope
                total = total + more
                d_shape = d_shape + p.family.baseline_pullback(
                    leaves[..., q:], p.per_tree(features), inside * more, torch.zeros_like(inside)
                )
        if shared:
            d_common = linear_pullback(total, p.design)
            d_leaf = torch.cat([(inside * total).sum(-1, keepdim=True), torch.zeros_like(leaves[..., 1:q]), d_shape], -1)
            g_common = torch.cat([d_common, d_shape.sum(1, keepdim=True)], -1)
        else:
            d_leaf = torch.cat([linear_pullback(inside * total, p.design), d_shape], -1)
            g_common = d_leaf.sum(1, keepdim=True)
        pen = strength[at][:, None]
        value = value + 0.5 * (pen * deviation.square()).sum((1, 2))
        value = value + 0.5 * penalties.ridge[at] * common[..., 1:q].square().sum((1, 2))
        g_common = g_common.clone()
        g_common[..., 1:q] += penalties.ridge[at][:, None, None] * common[..., 1:q]
        g_leaf = torch.where(free[at][:, None], d_leaf + pen * deviation, 0.0)
        if single:
            g_leaf = torch.zeros_like(g_leaf)
        return value, torch.cat([g_common, g_leaf], 1).flatten(1)

    def metric(gradient: Tensor, rows: Tensor | None) -> Tensor:
        at = slice(None) if rows is None else rows
        v = gradient.view(len(gradient), 1 + n_leaves, size)
        of = inverse if len(inverse) == 1 else inverse[group_of[at]]
        first = torch.cat([linear(v[:, :1, :q], of) / CURVATURE, v[:, :1, q:]], -1)
        return torch.cat([first, scale[at] * v[:, 1:]], 1).flatten(1)

    x, value = minimise(function, start.flatten(1), settings, problem.whole_groups, metric=metric)
    return x.view(m, 1 + n_leaves, size), value


def leaf_models(fitted: Tensor) -> Tensor:
    """Parameters of each leaf (M, L, Q + K) from the common model and deviations (M, 1 + L, Q + K)."""
    return fitted[:, :1] + fitted[:, 1:]


def losses_in_leaves(problem: Problem, leaves: Tensor) -> Tensor:
    """Loss of every row in every leaf, (M, L, N)."""
    q = problem.design.shape[-1]
    offset = linear(leaves[..., :q], problem.design)
    m, n_leaves = leaves.shape[:2]
    parts = [
        row_terms(problem, offset[:, k : k + 1], leaves[:, k : k + 1, q:], torch.zeros(m, 1, dtype=torch.int64))[0]
        for k in range(n_leaves)
    ]
    return torch.cat(parts, 1)


def second_order(problem: Problem, model: Tensor, step: float = 1e-3) -> Tensor:
    """Slopes and curvatures (M, N, 5) of each row's loss in its leaf's level and shape, at a common model (M, 1, Q + K).

    The shape correction adds to all shape parameters at once. By central differences, so for every family and every
    kind of censoring alike; curvatures below 0 are taken as 0.
    """
    q = problem.design.shape[-1]
    offset = linear(model[..., :q], problem.design)
    nowhere = torch.zeros(len(model), 1, dtype=torch.int64)

    def at(level: float, shape: float) -> Tensor:
        return row_terms(problem, offset + level, model[..., q:] + shape, nowhere)[0][:, 0]

    h = step
    middle, up, down = at(0, 0), at(h, 0), at(-h, 0)
    wide, narrow, both, neither = at(0, h), at(0, -h), at(h, h), at(-h, -h)
    level_level = (up - 2 * middle + down) / h**2
    shape_shape = (wide - 2 * middle + narrow) / h**2
    cross = (both + neither + 2 * middle - up - down - wide - narrow) / (2 * h**2)
    stats = [
        -(up - down) / (2 * h),
        -(wide - narrow) / (2 * h),
        level_level.clamp(min=0),
        cross,
        shape_shape.clamp(min=0),
    ]
    return torch.stack(stats, -1)
