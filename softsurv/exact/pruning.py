"""Cutting a tree back at a cost per leaf (Breiman et al. 1984, chapter 3)."""

from __future__ import annotations

import numpy as np

from softsurv.arrays import BoolArray, FloatArray
from softsurv.exact.tree import LEAF, CodeTree, TreeBuilder


def pruned(tree: CodeTree, cost: FloatArray, price: float, top: CodeTree | None = None) -> CodeTree:
    """The subtree with the same root of least cost, where each leaf costs a price more; of equal ones the smallest.

    Parameters
    ----------
    tree : CodeTree
        V nodes.
    cost : (V,)
        Of each node as a leaf.
    price : float
    top : CodeTree, optional
        A tree that ``tree`` begins with. Its splits stay.
    """
    least, split = cost + price, np.zeros(len(cost), np.bool_)
    firm = np.zeros(len(cost), np.bool_) if top is None else _shared(tree, top)
    for node in np.flatnonzero(tree.feature != LEAF)[::-1]:  # children come after their parents
        sides = float(least[tree.left[node]] + least[tree.right[node]])
        split[node] = firm[node] or sides < least[node]
        if split[node]:
            least[node] = sides
    builder = TreeBuilder()

    def add(node: int) -> int:
        """Add a node with what stays below it; its number."""
        if not split[node]:
            return builder.add(tree.sums[node])
        feature, code, left, right = tree.branch(node)
        here = builder.add(tree.sums[node], feature, code)
        builder.connect(here, add(left), add(right))
        return here

    add(0)
    return builder.tree()


def _shared(tree: CodeTree, top: CodeTree) -> BoolArray:
    """Which nodes (V,) of a tree are splits of the tree that it begins with."""
    shared, pairs = np.zeros(len(tree.feature), np.bool_), [(0, 0)]
    while pairs:
        node, above = pairs.pop()
        if top.feature[above] != LEAF:
            shared[node] = True
            pairs += [(int(tree.left[node]), int(top.left[above])), (int(tree.right[node]), int(top.right[above]))]
    return shared
