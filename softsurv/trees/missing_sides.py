"""Sides of missing values that training did not decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsurv.arrays import FloatArray
from softsurv.trees.hard_tree import HardTree


def larger_sides(tree: HardTree, table: Mapping[str, NDArray[Any]], weight: FloatArray) -> HardTree:
    """The tree with a side for missing values at splits that met none in training: that of more training weight.

    Parameters
    ----------
    tree : HardTree
        A tree that routes missing values.
    table : mapping of str to ndarray (N,)
        Columns of the training rows, as ``Binarizer.filled`` gives them.
    weight : ndarray (N,)
    """
    members, sides = {0: np.arange(len(weight))}, list(tree.missing)
    for node in np.flatnonzero(tree.feature >= 0).tolist():  # preorder: parents first
        rows, rule = members.pop(node), tree.rule(node)
        values = table[tree.sources[rule.feature].name][rows]
        yes = rule.answers(values)
        members[int(tree.left[node])], members[int(tree.right[node])] = rows[yes], rows[~yes]
        if not rule.asks_missing and not pd.isna(values).any():
            sides[node] = bool(weight[rows[yes]].sum() > weight[rows[~yes]].sum())
    return replace(tree, missing=tuple(sides))
