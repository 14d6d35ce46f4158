"""Soft routing: split -> routing probability -> leaf probability -> HBP leaf (paper `sst`, section 3.1).

Samples are the last axis: (M, B, N) and (M, L, N), so that each node's row is contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

from softsurv.trees.topology import level_slice


def linear(
    coefficients: Tensor,  # (M, R, Q) rows of intercept and weights
    design: Tensor,  # (G, N, Q) with a leading column of ones; M is a multiple of G
) -> Tensor:  # (M, R, N)
    """Linear combinations of the features, group by group: trees of group g are rows g*M/G to (g+1)*M/G."""
    return product_by_group(coefficients, design.mT)


def linear_pullback(
    grad: Tensor,  # (M, R, N)
    design: Tensor,  # (G, N, Q)
) -> Tensor:  # (M, R, Q)
    """Gradient of :func:`linear` with respect to the coefficients."""
    return product_by_group(grad, design)


def product_by_group(
    left: Tensor,  # (M, R, X)
    right: Tensor,  # (G, X, Y)
    sizes: Sequence[int] | None = None,  # (G,) trees of each group, equally many by default
) -> Tensor:  # (M, R, Y)
    """Products of the trees' matrices with those of their groups; the trees of a group follow each other."""
    trees, rows, inner = left.shape
    if sizes is None:
        groups = len(right)
        return (left.reshape(groups, trees // groups * rows, inner) @ right).view(trees, rows, right.shape[2])
    out, heights = left.new_empty(trees * rows, right.shape[2]), [size * rows for size in sizes]
    tables = left.reshape(-1, inner).split_with_sizes(heights), right.unbind(), out.split_with_sizes(heights)
    for own, shared, found in zip(*tables, strict=True):
        torch.mm(own, shared, out=found)
    return out.view(trees, rows, right.shape[2])


def hard_reach(
    split: Tensor,  # (M, B, N) linear combinations
    levels: int,
    start: Tensor,  # (M, 1, N) mass that enters the root, such as 1 or the sample weight
) -> Tensor:  # (M, 2^levels, N)
    """Mass at the nodes of a level when the branch nodes above it send rows to one side: left where split >= 0."""
    if levels == 0:
        return start
    left = (split[:, : level_slice(levels).start] >= 0).to(split.dtype)
    return reach_probability(torch.stack([left, 1 - left], 2), start)[-1]


def side_probability(split: Tensor) -> Tensor:  # (M, B, N) -> (M, B, 2, N)
    """Probability of going left and of going right at each branch node."""
    return torch.sigmoid(split[:, :, None] * _signs(split.device, split.dtype))


@cache
def _signs(device: torch.device, dtype: torch.dtype) -> Tensor:
    """1 for going left and -1 for going right, (2, 1)."""
    return torch.tensor([[1.0], [-1.0]], device=device, dtype=dtype)


def levels_from(first: int, nodes: int) -> list[slice]:
    """Slices of the levels in a table of ``nodes`` branch nodes that begins with the nodes of level ``first``."""
    found, begin, width = [], 0, 2**first
    while begin < nodes:
        found.append(slice(begin, begin + width))
        begin, width = begin + width, 2 * width
    return found


def reach_probability(
    sides: Tensor,  # (M, B, 2, N) of the branch nodes from some level on
    start: Tensor,  # (M, S, N) mass that enters the S nodes of that level
) -> list[Tensor]:
    """Mass at the nodes of every level from there on: tensors (M, 2^level, N); the last one is the leaves'."""
    reach = [start]
    for nodes in levels_from(_level(start), sides.shape[1]):
        reach.append((reach[-1][:, :, None] * sides[:, nodes]).flatten(1, 2))
    return reach


def leaf_probability(
    go_left: Tensor,  # (M, B, N)
) -> Tensor:  # (M, L, N), columns sum to 1
    """Product of p or 1 - p along each leaf's path."""
    start = go_left.new_ones(go_left.shape[0], 1, go_left.shape[-1])
    return reach_probability(torch.stack([go_left, 1 - go_left], 2), start)[-1]


def subtree_costs(
    sides: Tensor,  # (M, B, 2, N) of the branch nodes from some level on
    leaf_cost: Tensor,  # (M, L, N)
    first_level: int = 0,
) -> tuple[list[Tensor], list[Tensor]]:
    """Expected cost below each node, and by how much its left side costs more than its right side.

    Both are lists of tensors (M, 2^level, N), one for each level from ``first_level`` on. The last cost is that of the
    leaves themselves.
    """
    costs, gaps = [leaf_cost], list[Tensor]()
    for nodes in reversed(levels_from(first_level, sides.shape[1])):
        below = costs[0].unflatten(1, (-1, 2))
        gaps.insert(0, below[:, :, 0] - below[:, :, 1])
        costs.insert(0, torch.addcmul(below[:, :, 1], sides[:, nodes, 0], gaps[0]))
    return costs, gaps


def routing_slopes(
    sides: Tensor,  # (M, B, 2, N) of the branch nodes from some level on
    reach: list[Tensor],
    gaps: list[Tensor],
) -> Tensor:  # (M, B, N)
    """Derivative of the expected cost by each split: reach p(1 - p)(cost left - cost right)."""
    here = sides[:, :, 0]
    if not gaps:
        return torch.zeros_like(here)
    by_node = [mass * gap for mass, gap in zip(reach, gaps, strict=False)]  # leaves have no gap
    return torch.ops.aten.sigmoid_backward(torch.cat(by_node, 1) if len(by_node) > 1 else by_node[0], here)


def _level(start: Tensor) -> int:
    """The level of the S nodes of a table (M, S, N)."""
    return start.shape[1].bit_length() - 1


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
