"""Trees over binary splits, and the splits of coded features as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsurv.exact.tree import CodeTree, TreeBuilder


@dataclass(frozen=True)
class SplitTree:
    """A tree over binary splits: a leaf with its label, or a split with the tree of the rows that have it and the rest.

    Attributes
    ----------
    split : int
        Column, -1 at a leaf.
    label : int
        Of a leaf.
    left, right : SplitTree or None
        Rows with 1 in the column go left.
    """

    split: int = -1
    label: int = 0
    left: SplitTree | None = None
    right: SplitTree | None = None

    def label_of(self, columns: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Label of each row of the columns (N, B)."""
        return np.array([leaf.label for leaf in self.leaves], np.int64)[self.leaf_of(columns)]

    def leaf_of(self, columns: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Leaf of each row (N,), numbered from the left."""
        if self.left is None or self.right is None:
            return np.zeros(len(columns), np.int64)
        right = len(self.left.leaves) + self.right.leaf_of(columns)
        return np.where(columns[:, self.split], self.left.leaf_of(columns), right)

    @property
    def leaves(self) -> list[SplitTree]:
        """Leaves from left to right."""
        if self.left is None or self.right is None:
            return [self]
        return self.left.leaves + self.right.leaves

    @property
    def depth(self) -> int:
        """Longest path in splits."""
        return 0 if self.left is None or self.right is None else 1 + max(self.left.depth, self.right.depth)

    def code_tree(self, splits: Sequence[tuple[int, int]]) -> CodeTree:
        """The tree over codes, with split b of the columns on the (feature, code) of ``splits[b]``; no sums."""
        builder = TreeBuilder()

        def grow(tree: SplitTree) -> int:
            if tree.left is None or tree.right is None:
                return builder.add(np.zeros(0))
            node = builder.add(np.zeros(0), *splits[tree.split])
            left, right = grow(tree.left), grow(tree.right)
            builder.connect(node, left, right)
            return node

        grow(self)
        return builder.tree()


def split_columns(
    codes: NDArray[np.integer], n_codes: NDArray[np.integer], nominal: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], list[tuple[int, int]]]:
    """Every split of coded features as a column (N, B), 1 where a row goes left, and its (feature, code).

    An ordered feature of two codes has one split, a nominal one of more than two as many as it has codes.
    """
    columns, splits = [], []
    for f, n in enumerate(n_codes):
        for code in range(int(n) if nominal[f] and n > 2 else int(n) - 1):
            columns.append(codes[:, f] == code if nominal[f] else codes[:, f] <= code)
            splits.append((f, code))
    return np.array(columns, dtype=bool).reshape(len(splits), len(codes)).T, splits


def distinct_columns(columns: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Places of the columns (N, B) that are no copy of an earlier one."""
    packed = np.packbits(columns, axis=0)
    seen: dict[bytes, int] = {}
    for place in range(columns.shape[1]):
        seen.setdefault(packed[:, place].tobytes(), place)
    return np.array(list(seen.values()), np.int64)


def equal_rows(columns: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First row of every group of equal rows (G,), and the group of each row (N,)."""
    if columns.shape[1] == 0:
        return np.zeros(1, np.int64), np.zeros(len(columns), np.int64)
    packed = np.ascontiguousarray(np.packbits(columns, axis=1))
    words = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, group = np.unique(words, return_index=True, return_inverse=True)
    return first, group
