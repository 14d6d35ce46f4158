"""Slow, obvious twins of the exact search: enumeration of all trees."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest


def splits_of(codes, nominal, rows):
    """Every split that divides the rows: (feature, code, mask of those that go left)."""
    for f in range(codes.shape[1]):
        values = np.unique(codes[rows, f])
        for code in values if nominal[f] else values[:-1]:
            left = codes[rows, f] == code if nominal[f] else codes[rows, f] <= code
            if left.any() and not left.all():
                yield f, int(code), left


def brute_force(task, codes, nominal, statistics, offset, depth, leaves, min_leaf=1, complexity=0.0):
    """Least objective by enumeration of every tree: depth, leaves, rows per leaf and cost per leaf as the search."""

    @cache
    def best(rows, depth, leaves):
        index = np.array(rows)
        value = np.inf
        if len(rows) >= min_leaf:
            value = task.costs(statistics[index].sum(axis=0, keepdims=True))[0] + complexity
        if depth == 0 or leaves == 1:
            return value
        for _, _, left in splits_of(codes, nominal, index):
            a, b = tuple(index[left]), tuple(index[~left])
            if min(len(a), len(b)) < min_leaf:
                continue
            for k in range(1, leaves):
                value = min(value, best(a, depth - 1, k) + best(b, depth - 1, leaves - k))
        return value

    return best(tuple(range(len(codes))), depth, leaves) + offset.sum()


@pytest.fixture
def enumerate_trees():
    """The brute-force oracle."""
    return brute_force
