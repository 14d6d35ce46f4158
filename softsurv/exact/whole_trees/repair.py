"""A tree made to meet the constraint: pruned and labelled anew, by a small integer program.

Every node of a tree may be a leaf with any label, or is left to the nodes below it. Wanted is the choice with the least
first objective that meets the constraint: one node on the way to every leaf is chosen, and the objectives of the chosen
nodes add up. With some sixty nodes that takes milliseconds. So trees that break the constraint lead to trees that meet
it, long before these are listed.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from softsurv.arrays import FloatArray
from softsurv.exact.tree import CodeTree, LabelledTree, TreeBuilder
from softsurv.exact.vector_search import VectorSearch

MOST_BRANCHES = 200
"""Nodes of the branch and bound of one integer program: what it has found by then will do."""


def repaired(search: VectorSearch, tree: CodeTree) -> tuple[FloatArray, LabelledTree] | None:
    """The best tree that meets the constraint within a tree that was read with its sums: (objectives, tree)."""
    goals = search.objectives
    points = goals.points(tree.sums)  # (nodes, L, D)
    paths = np.repeat(_paths(tree), goals.n_labels, axis=1)  # (leaves, nodes * L)
    flat = points.reshape(-1, goals.n)
    rows = flat @ goals.constraint.T  # (nodes * L, C)
    scale = np.maximum(np.abs(rows).max(axis=0), 1e-300)
    unit = max(float(np.abs(flat[:, 0]).max()), 1e-300)
    result = milp(
        flat[:, 0] / unit,
        integrality=np.ones(len(flat)),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(paths, 1, 1),
            LinearConstraint((rows / scale).T, -np.inf, (goals.limit + search.slack) / scale),
        ],
        options={"node_limit": MOST_BRANCHES},
    )
    if result.x is None:
        return None
    chosen = result.x.reshape(len(points), -1) > 0.5
    v = points[chosen].sum(axis=0)
    return (v, _pruned(tree, chosen)) if search.meets(v) else None


def _paths(tree: CodeTree) -> FloatArray:
    """Which nodes lie on the way to each leaf, (leaves, nodes)."""
    on_way = np.eye(len(tree.feature))
    for parent in np.flatnonzero(tree.feature >= 0):  # preorder: parents come first
        for child in (tree.left[parent], tree.right[parent]):
            on_way[child] += on_way[parent]
    return on_way[tree.leaves]


def _pruned(tree: CodeTree, chosen: np.ndarray) -> LabelledTree:
    """The tree that ends at the chosen nodes, (nodes, L), with their labels."""
    builder, label = TreeBuilder(), list[int]()

    def grow(node: int) -> int:
        if chosen[node].any():
            label.append(int(chosen[node].argmax()))
            return builder.add(tree.sums[node])
        at = builder.add(tree.sums[node], int(tree.feature[node]), int(tree.code[node]))
        builder.connect(at, grow(int(tree.left[node])), grow(int(tree.right[node])))
        return at

    grow(0)
    return LabelledTree(builder.tree(), np.array(label))
