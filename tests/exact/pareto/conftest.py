"""All trees of a Pareto task by enumeration: the slow twin of the search."""

import numpy as np
import pytest


def all_points(task, columns, statistics, params, depth, min_leaf=1):
    """Objectives of every tree of at most this depth over the rows, (T, D), equal ones once."""

    def leaves(rows):
        if len(rows) < min_leaf:
            return np.zeros((0, task.n_objectives))
        return task.points(statistics[rows].sum(axis=0, keepdims=True), params)[0]

    def trees(rows, depth):
        found = [leaves(rows)]
        if depth > 0:
            for column in columns.T:
                goes_left = column[rows]
                left, right = rows[goes_left], rows[~goes_left]
                if len(left) and len(right):
                    a, b = trees(left, depth - 1), trees(right, depth - 1)
                    found.append((a[:, None] + b[None, :]).reshape(-1, task.n_objectives))
        return np.unique(np.concatenate(found).round(9), axis=0)

    return trees(np.arange(len(columns)), depth)


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


@pytest.fixture(name="all_points")
def _all_points():
    return all_points


@pytest.fixture(name="nondominated")
def _nondominated():
    return nondominated
