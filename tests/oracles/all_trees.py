"""Every tree over some rows, written down: the slow twin of the counted set of near-optimal trees."""

from __future__ import annotations

import numpy as np
from oracles.enumeration import splits_of


def all_trees(task, codes, nominal, statistics, depth, leaves, min_leaf=1, complexity=0.0, with_idle=False):
    """(cost, tree) of every tree; a tree is () at a leaf, else (feature, rows left of it, left tree, right tree).

    Splits of one feature that divide the rows of a node alike are one. A split between two leaves has to lower the
    cost, unless ``with_idle``.
    """

    def cost_of(rows):
        return task.costs(statistics[rows].sum(axis=0, keepdims=True))[0]

    def trees(rows, depth, leaves):
        found = []
        if len(rows) >= min_leaf:
            found.append((cost_of(rows) + complexity, 1, ()))
        if depth == 0 or leaves == 1:
            return found
        seen = set()
        for feature, _, left in splits_of(codes, nominal, rows):
            sides = frozenset([frozenset(rows[left].tolist()), frozenset(rows[~left].tolist())])
            if (feature, sides) in seen:
                continue
            seen.add((feature, sides))
            leaf = cost_of(rows) + complexity
            right_trees = trees(rows[~left], depth - 1, leaves - 1)
            for one, n_one, first in trees(rows[left], depth - 1, leaves - 1):
                found += [
                    (one + other, n_one + n_other, (feature, tuple(rows[left].tolist()), first, second))
                    for other, n_other, second in right_trees
                    if n_one + n_other <= leaves
                    and (with_idle or n_one + n_other > 2 or one + other < leaf + complexity - 1e-9)
                ]
        return found

    return trees(np.arange(len(codes)), depth, leaves)
