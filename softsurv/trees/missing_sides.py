"""Sides of missing values that training did not decide."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray
from softsurv.trees.hard_tree import HardTree


def larger_sides(tree: HardTree, known: Set[str], table: Mapping[str, NDArray[Any]], weight: FloatArray) -> HardTree:
    """The tree with missing values on the side of more training weight where the search chose none.

    Parameters
    ----------
    tree : HardTree
    known : set of str
        Columns that had no missing value in training; the other nodes stay as they are.
    table : mapping of str to ndarray (N,)
        Columns of the training rows, as ``Binarizer.filled`` gives them.
    weight : ndarray (N,)
    """
    size = np.bincount(tree.node_of(table, len(weight)), weight, tree.n_nodes)
    for node in np.flatnonzero(tree.feature >= 0)[::-1]:  # preorder: children come after their parents
        size[node] = size[tree.left[node]] + size[tree.right[node]]

    def side(node: int) -> bool | None:
        if tree.feature[node] < 0 or tree.sources[tree.feature[node]].name not in known:
            return tree.missing[node]
        return bool(size[tree.left[node]] > size[tree.right[node]])

    return replace(tree, missing=tuple(side(node) for node in range(tree.n_nodes)))
