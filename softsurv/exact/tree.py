"""A tree over codes: what the exact search returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.results import FitReport, Status

LEAF = -1
"""In the place of a split."""

SearchProgress = Callable[[float, float, float], None]
"""Called with (share of the root's splits done, lower bound, incumbent)."""


@dataclass(frozen=True)
class CodeTree:
    """Nodes in preorder (a node, its left subtree, its right subtree); node 0 is the root.

    Attributes
    ----------
    feature : (n_nodes,) int
        Feature of the split, -1 at a leaf.
    code : (n_nodes,) int
        Rows with code <= this go left on an ordered feature, rows with this code on a nominal one.
    left, right : (n_nodes,) int
        Children, -1 at a leaf.
    sums : (n_nodes, K)
        Task statistics summed over the training rows of each node.
    """

    feature: IntArray
    code: IntArray
    left: IntArray
    right: IntArray
    sums: FloatArray

    def branch(self, node: int) -> tuple[int, int, int, int]:
        """Feature, code, left child and right child of a branch node."""
        return int(self.feature[node]), int(self.code[node]), int(self.left[node]), int(self.right[node])

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int((self.feature == LEAF).sum())

    @property
    def depth(self) -> int:
        """Longest path from the root to a leaf, in splits."""
        depth = np.zeros(len(self.feature), int)
        for node in np.flatnonzero(self.feature != LEAF):  # preorder: parents come first
            depth[[self.left[node], self.right[node]]] = depth[node] + 1
        return int(depth.max())

    @property
    def leaves(self) -> IntArray:
        """Nodes that are leaves, from left to right."""
        return np.flatnonzero(self.feature == LEAF)

    def node_of(self, codes: NDArray[np.integer], nominal: BoolArray) -> IntArray:
        """Leaf node of each row of codes (N, P), as an array (N,)."""
        node = np.zeros(len(codes), np.int64)
        for parent in np.flatnonzero(self.feature != LEAF):
            here = np.flatnonzero(node == parent)
            value = codes[here, self.feature[parent]]
            goes_left = value == self.code[parent] if nominal[self.feature[parent]] else value <= self.code[parent]
            node[here] = np.where(goes_left, self.left[parent], self.right[parent])
        return node


@dataclass(frozen=True)
class LabelledTree:
    """A tree over codes with the label of each leaf (L,), leaves from left to right."""

    tree: CodeTree
    label: IntArray

    def leaf_of(self, codes: NDArray[np.integer], nominal: BoolArray) -> IntArray:
        """Leaf of each row of codes (N, P), numbered from the left, (N,)."""
        return np.searchsorted(self.tree.leaves, self.tree.node_of(codes, nominal))

    def label_of(self, codes: NDArray[np.integer], nominal: BoolArray) -> IntArray:
        """Label of each row of codes (N, P), as an array (N,)."""
        return self.label[self.leaf_of(codes, nominal)]


@dataclass(frozen=True)
class WeightedOptimum:
    """The best tree for some weights with its objectives (D,) and its cost, and a lower bound of the cost.

    Where no tree is below the upper bound asked for, ``value`` is at or above it.
    """

    tree: LabelledTree
    v: FloatArray
    value: float
    bound: float
    status: Status


@dataclass(frozen=True)
class Points:
    """Trees that a listing found: objectives (T, D), and where each lies in the memory of finished fronts."""

    v: FloatArray
    place: IntArray
    status: Status


@dataclass(frozen=True)
class Solution:
    """A tree with its objective, how good it is proven to be, and why the search ended."""

    tree: CodeTree
    report: FitReport


class TreeBuilder:
    """Collects the nodes of a tree in preorder."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, int]] = []
        self.sums: list[FloatArray] = []

    def add(self, sums: FloatArray, feature: int = LEAF, code: int = LEAF) -> int:
        """Add a node and return its number."""
        self.rows.append((feature, code, LEAF, LEAF))
        self.sums.append(sums)
        return len(self.rows) - 1

    def connect(self, parent: int, left: int, right: int) -> None:
        """Give a node its children."""
        self.rows[parent] = (*self.rows[parent][:2], left, right)

    def tree(self) -> CodeTree:
        """The tree of the nodes added so far."""
        feature, code, left, right = np.array(self.rows, np.int64).T
        return CodeTree(feature, code, left, right, np.array(self.sums))
