"""Soft routing: split -> routing probability -> leaf probability -> HBP leaf (paper `sst`, section 3.1).

Samples are the last axis: (M, B, N) and (M, L, N), so that each node's row is contiguous.
"""

from __future__ import annotations

import torch
from torch import Tensor

from softsurv.trees.topology import level_slice


def linear(
    coefficients: Tensor,  # (M, R, Q) rows of intercept and weights
    design: Tensor,  # (G, N, Q) with a leading column of ones; M is a multiple of G
) -> Tensor:  # (M, R, N)
    """Linear combinations of the features, group by group: trees of group g are rows g*M/G to (g+1)*M/G."""
    groups = design.shape[0]
    m, rows, q = coefficients.shape
    out = coefficients.reshape(groups, (m // groups) * rows, q) @ design.mT
    return out.view(m, rows, design.shape[1])


def linear_pullback(
    grad: Tensor,  # (M, R, N)
    design: Tensor,  # (G, N, Q)
) -> Tensor:  # (M, R, Q)
    """Gradient of :func:`linear` with respect to the coefficients."""
    groups = design.shape[0]
    m, rows, n = grad.shape
    out = grad.reshape(groups, (m // groups) * rows, n) @ design
    return out.view(m, rows, design.shape[2])


def harden(
    go_left: Tensor,  # (M, B, N) routing probability
    levels: int,
) -> Tensor:
    """Routing with the branch nodes above ``levels`` decided: 1 where p >= 0.5, else 0."""
    top = level_slice(levels).start
    if top == 0:
        return go_left
    return torch.cat([(go_left[:, :top] >= 0.5).to(go_left.dtype), go_left[:, top:]], 1)


def reach_probability(
    go_left: Tensor,  # (M, B, N)
    depth: int,
    start: Tensor,  # (M, 1, N) mass that enters the root, 1 or the sample weight
) -> list[Tensor]:
    """Mass at the nodes of every level, root first: tensors (M, 2^level, N); the last one is the leaves'."""
    reach = [start]
    for level in range(depth):
        p = go_left[:, level_slice(level)]
        left = reach[-1] * p
        both = torch.stack([left, reach[-1] - left], 2)
        reach.append(both.flatten(1, 2))
    return reach


def leaf_probability(
    go_left: Tensor,  # (M, B, N)
    depth: int,
) -> Tensor:  # (M, L, N), columns sum to 1
    """Product of p or 1 - p along each leaf's path."""
    start = go_left.new_ones(go_left.shape[0], 1, go_left.shape[-1])
    return reach_probability(go_left, depth, start)[-1]


def subtree_costs(
    go_left: Tensor,  # (M, B, N)
    leaf_cost: Tensor,  # (M, L, N)
    depth: int,
) -> list[Tensor]:
    """Expected cost below the nodes of every level, root first; the last entry is the leaves' own cost."""
    costs = [leaf_cost]
    for level in reversed(range(depth)):
        p = go_left[:, level_slice(level)]
        left, right = costs[0][:, 0::2], costs[0][:, 1::2]
        costs.insert(0, right + p * (left - right))
    return costs


def routing_slopes(
    go_left: Tensor,  # (M, B, N)
    reach: list[Tensor],
    costs: list[Tensor],
    depth: int,
    first_level: int = 0,
) -> Tensor:  # (M, B, N)
    """Derivative of the expected cost by each split: reach p(1 - p)(cost left - cost right)."""
    slopes = [torch.zeros_like(go_left[:, : level_slice(first_level).start])]
    for level in range(first_level, depth):
        p = go_left[:, level_slice(level)]
        below = costs[level + 1]
        slopes.append(reach[level] * p * (1 - p) * (below[:, 0::2] - below[:, 1::2]))
    return torch.cat(slopes, 1)


def hbp_leaf(
    split: Tensor,  # (M, B, N) linear combinations, >= 0 goes left
    depth: int,
) -> Tensor:  # (M, N) int64
    """Leaf at the end of the highest-branch-probability path."""
    m, _, n = split.shape
    leaf = torch.zeros(m, n, dtype=torch.int64, device=split.device)
    for level in range(depth):
        at = split[:, level_slice(level)].gather(1, leaf[:, None])[:, 0]
        leaf = 2 * leaf + (at < 0).long()
    return leaf
