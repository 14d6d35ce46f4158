"""Lower bounds of the integrated-Brier-score objective, each with its theorem (paper `osst`, section 2.3)."""

from __future__ import annotations

import math


def least_objective(leaf: float, bound: float, depth: int, complexity: float) -> float:
    """Least objective of a node: as a leaf, or with one split more.

    Theorem 2.6 with one-step look-ahead (eq. 11): a tree with at least two leaves on the rows loses at least
    the equivalent-points bound and pays two leaves.
    """
    as_leaf = leaf + complexity
    return as_leaf if depth == 0 else min(as_leaf, bound + 2.0 * complexity)


def floor_with_split(as_leaf: float, bound: float, complexity: float) -> float:
    """`least_objective` of a node that may be split, from its objective as a leaf."""
    return min(as_leaf, bound + 2.0 * complexity)


def useful_depth(
    leaf: float, bound: float, size: float, complexity: float, min_rows: float, depth: int
) -> int:
    """Depth beyond which no tree on a node can beat the node as a leaf.

    A tree with k leaves has an objective >= bound + k * complexity, so it beats leaf + complexity only while
    k - 1 < (leaf - bound) / complexity; a tree of depth d that uses its depth has at least d + 1 leaves. Leaves hold
    min_rows rows, so there are at most size / min_rows of them. Corollary of Theorems 2.3 and 2.6; with
    complexity 0 only the rows limit the depth.
    """
    depth = min(depth, int(size // min_rows) - 1)
    gain = leaf - bound
    if complexity > 0.0:
        depth = min(depth, math.ceil(gain / complexity - 1e-9) - 1 if gain > complexity else 0)
    elif gain <= 0.0:
        depth = 0
    return max(depth, 0)
