"""Slow, obvious twins of the exact searches: enumeration of all trees."""

from __future__ import annotations

from functools import cache

import numpy as np


def splits_of(codes, nominal, rows):
    """Every split that divides the rows: (feature, code, mask of those that go left)."""
    for f in range(codes.shape[1]):
        values = np.unique(codes[rows, f])
        for code in values if nominal[f] else values[:-1]:
            left = codes[rows, f] == code if nominal[f] else codes[rows, f] <= code
            if left.any() and not left.all():
                yield f, int(code), left


def least_objective(task, codes, nominal, statistics, offset, depth, leaves, min_leaf=1, complexity=0.0):
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


def all_points(search, min_leaf=1):
    """Objectives of every tree of a `VectorSearch` within its depth, (T, D), equal ones once."""
    goals, statistics, depth = search.objectives, search.statistics, search.depth

    def leaves(rows):
        if len(rows) < min_leaf:
            return np.zeros((0, goals.n))
        return goals.points(statistics[rows].sum(axis=0, keepdims=True))[0]

    def trees(rows, depth):
        found = [leaves(rows)]
        if depth > 0:
            for _, _, left in splits_of(search.codes, search.nominal, rows):
                a, b = trees(rows[left], depth - 1), trees(rows[~left], depth - 1)
                found.append((a[:, None] + b[None, :]).reshape(-1, goals.n))
        return np.unique(np.concatenate(found).round(9), axis=0)

    return trees(np.arange(len(statistics)), depth)


def nondominated(points, kept):
    """Points that no other one dominates: equal in the kept objectives, no worse in the others."""
    kept = np.asarray(kept)
    out = []
    for p in points:
        same = (np.abs(points[:, kept] - p[kept]) < 1e-9).all(axis=1)
        no_worse = (points[:, ~kept] <= p[~kept] + 1e-9).all(axis=1)
        better = (points[:, ~kept] < p[~kept] - 1e-9).any(axis=1)
        if not (same & no_worse & better).any():
            out.append(p)
    return np.array(out)
