"""Group fairness as a penalty on the distance of the groups' survival functions (paper `sst`, eq. 3-4).

    rho sum_{i in A} sum_{j in B} int (S_i(t) - S_j(t))^2 dt

in O(N T) by ``sum_ij (a_i - b_j)^2 = |B| sum a^2 + |A| sum b^2 - 2 sum a sum b``. The paper sums over the
training times; here the integral is the trapezoid rule on a grid, divided by the length of the grid. S_i is the
probability-weighted mixture of the leaves, so that the penalty has a derivative by the routing as well. Sample weights
weigh the pairs: |A|, |B| and the sums are weighted ones. The sum over pairs is divided by |A| |B|.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidSurvivalDataError
from softsurv.soft.groups import Groups
from softsurv.soft.problem import Problem, taken
from softsurv.trees.routing import (
    hard_reach,
    reach_probability,
    routing_slopes,
    side_probability,
    subtree_costs,
)
from softsurv.trees.topology import level_slice


def trapezoid_weights(times: Tensor) -> Tensor:
    """Weights of the trapezoid rule on an increasing grid, (T,)."""
    steps = times.diff()
    zero = steps.new_zeros(1)
    return 0.5 * (torch.cat([steps, zero]) + torch.cat([zero, steps]))


def pairwise_distance(
    survival: Tensor,  # (M, N, T)
    in_group: Tensor,  # (M, N) or (1, N): 1 in the group, 0 outside
    weight: Tensor,  # (M, N) or (1, N): weight of the row
    step: Tensor,  # (T,) weights of the integral
) -> tuple[Tensor, Tensor]:
    """Sum over weighted pairs of the integrated squared difference (M,); its derivative by each survival (M, N, T)."""
    inside, outside = (in_group * weight)[..., None], ((1 - in_group) * weight)[..., None]
    n_in, n_out = inside.sum(1), outside.sum(1)  # (M, 1)
    a, b = (inside * survival).sum(1), (outside * survival).sum(1)  # (M, T)
    squares_in = (inside * survival.square()).sum(1)
    squares_out = (outside * survival.square()).sum(1)
    value = ((n_out * squares_in + n_in * squares_out - 2 * a * b) * step).sum(-1)
    slope = inside * (n_out[:, None] * survival - b[:, None]) + outside * (n_in[:, None] * survival - a[:, None])
    return value, 2 * step * slope


@dataclass(frozen=True)
class GroupFairness:
    """Penalty of a stack of trees.

    Attributes
    ----------
    rho : Tensor (M,)
        Strength: with 1 a mean squared distance of 1 costs as much as one nat of loss.
    in_group : Tensor (G, N)
        1.0 for rows of the sensitive group.
    grid_features : Tensor (G, F, T)
        The family's time features on the grid.
    step : Tensor (T,)
        Weights of the trapezoid rule, summing to one.
    others : tuple of Tensor (G, F, T)
        Where events have causes: the features of the other causes, whose time scales differ.
    sizes : tuple of int (G,), optional
        Trees of each group; equally many by default.
    """

    rho: Tensor
    in_group: Tensor
    grid_features: Tensor
    step: Tensor
    others: tuple[Tensor, ...] = ()
    sizes: tuple[int, ...] | None = None

    @cached_property
    def groups(self) -> Groups:
        """Which trees share rows."""
        return Groups.equal(len(self.rho), len(self.in_group)) if self.sizes is None else Groups(self.sizes)

    def take(self, trees: Tensor) -> GroupFairness:
        """The penalty of some trees; their numbers (m,) are on the host."""
        left, groups = self.groups.take(trees, self.in_group)
        part = replace(self, rho=taken(self.rho, trees), sizes=left.sizes)
        if groups is None:
            return part
        return replace(
            part,
            in_group=taken(self.in_group, groups),
            grid_features=taken(self.grid_features, groups),
            others=tuple(taken(own, groups) for own in self.others),
        )

    def value_and_gradient(
        self, problem: Problem, routing: Tensor, leaves: Tensor, hard_levels: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Penalty (M,) and its gradients over routing (M, B, Q) and leaves (M, L, Q + K)."""
        split, top = problem.linear(routing), level_slice(hard_levels).start
        sides = side_probability(split[:, top:])
        probability = reach_probability(sides, hard_reach(split, hard_levels, torch.ones_like(problem.weight)))
        grids = [self.groups.per_tree(own) for own in (self.grid_features, *self.others)]
        causes = list(zip(problem.blocks(leaves), grids, strict=True))
        hazards, hazard_slopes = zip(*(_hazard(problem, own, grid) for own, grid in causes), strict=True)
        survival = torch.exp(-sum(hazards))  # (M, L, N, T)
        mixture = (probability[-1][..., None] * survival).sum(1)
        weight = problem.weight[:, 0].to(survival)
        in_group = self.groups.per_tree(self.in_group)
        value, by_survival = pairwise_distance(mixture, in_group, weight, self.step)
        n_in = (in_group * weight).sum(1)
        n_out = ((1 - in_group) * weight).sum(1)
        pairs = n_in * n_out  # none where a fold lacks one of the groups
        scale = torch.where(pairs > 0, self.rho / torch.where(pairs > 0, pairs, 1.0), 0.0)
        by_survival = by_survival * scale[:, None, None]
        leaf_cost = (survival * by_survival[:, None]).sum(-1)  # (M, L, N)
        _, gaps = subtree_costs(sides, leaf_cost, hard_levels)
        slopes = problem.pullback(routing_slopes(sides, probability, gaps))
        by_hazard = -probability[-1][..., None] * survival * by_survival[:, None]  # (M, L, N, T)
        pulled = [
            _hazard_pullback(problem, own, grid, by_hazard * slope)
            for (own, grid), slope in zip(causes, hazard_slopes, strict=True)
        ]
        return value * scale, pad(slopes, (0, 0, top, 0)), torch.cat(pulled, -1)


def _hazard(problem: Problem, leaves: Tensor, grid: Tensor) -> tuple[Tensor, Tensor]:
    """Cumulative hazard of every row in every leaf on the grid, (M, L, N, T), and its slope over the predictor."""
    columns = problem.design.shape[-1]
    baseline, _ = problem.family.baseline(leaves[..., columns:], grid)  # (M, L, T)
    offset = problem.linear(leaves[..., :columns])  # (M, L, N)
    hazard, slope, _ = problem.family.link.cumulative_hazard(offset[..., None] + baseline[:, :, None])
    return hazard, slope


def _hazard_pullback(problem: Problem, leaves: Tensor, grid: Tensor, by_z: Tensor) -> Tensor:
    """Gradient over the leaves (M, L, Q + K) from the slopes over the predictors (M, L, N, T)."""
    by_time = by_z.sum(2)
    shape = leaves[..., problem.design.shape[-1] :]
    d_shape = problem.family.baseline_pullback(shape, grid, by_time, torch.zeros_like(by_time))
    return torch.cat([problem.pullback(by_z.sum(-1)), d_shape], -1)


def fairness_of(data: SurvivalData, problem: Problem, rho: float, n_times: int = 50) -> GroupFairness | None:
    """Penalty for a problem of one data set, on quantiles of its event times; None where rho is 0.

    Raises
    ------
    InvalidSurvivalDataError
        If the data have no group column, or not two groups.
    """
    if rho == 0:
        return None
    if data.group is None:
        raise InvalidSurvivalDataError("fairness > 0 needs the group of each row; pass group= to fit")
    codes = data.group.unique()
    if codes.numel() != 2:
        raise InvalidSurvivalDataError(
            f"fairness compares two groups, got {codes.numel()}; merge them into the sensitive group and the others"
        )
    counts = data.event & (data.time > 0)
    if not counts.any():  # events in intervals only: no event has an exact time
        counts = data.time > 0
    weight = None if data.weight is None else data.weight[counts].numpy()
    share = np.linspace(0, 1, n_times)
    quantiles = np.quantile(data.time[counts].numpy(), share, weights=weight, method="inverted_cdf")
    times = torch.from_numpy(np.unique(quantiles))
    scales = [own.time_scale.double().cpu() for own in problem.of_causes]
    features, *others = (problem.family.time_features(times.log()[None], scale) for scale in scales)
    step = trapezoid_weights(times)
    like = problem.design
    return GroupFairness(
        rho=like.new_full((problem.n_trees,), rho),
        in_group=(data.group == codes.max())[None].to(like),
        grid_features=features.to(like),
        step=(step / step.sum().clamp(min=1e-300)).to(like),
        others=tuple(own.to(like) for own in others),
    )
