"""The listing of trees against enumeration of all of them."""

import numpy as np
import pytest
from oracles.enumeration import nondominated, splits_of
from oracles.plain_search import body, run_state, small

from softsurv.exact.bounds import Bounds
from softsurv.exact.compile import points_of
from softsurv.exact.kernels.listing import front
from softsurv.exact.kernels.lists import new_listing
from softsurv.exact.objectives.linear import LINEAR, weighted_sums
from softsurv.exact.vector_task import objectives

ERRORS = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
"""Statistics are what either label costs: label 0 adds the first to the first objective, label 1 the second."""


def list_trees(found, depth, upper=np.inf, min_leaf=1, constraint=None, limit=None):
    goals = objectives(LINEAR, ERRORS, constraint=constraint, limit=limit)
    listing = new_listing(found.problem, goals, depth, 256, 4096, np.zeros(goals.n_limits))
    listing.w[:] = 1.0
    listing = listing._replace(front=body(front))
    if constraint is not None:  # with weights of 1 a tree costs its first objective and at most the limit
        listing = listing._replace(constrained=True, shift=limit[0])
    calls = found.problem.calls._replace(leaf_points=body(points_of(weighted_sums)))
    cache, shared = run_state(found)
    body(front)(
        found.problem._replace(calls=calls), found.rows, len(found.rows), *found.search.key, depth, upper, 0,
        found.nodes, found.local, found.lanes, cache, shared, listing,
    )  # fmt: skip
    start, end = listing.span[0]
    return listing.filed_point[start:end], listing.filed_reduced[start:end]


def all_trees(found, depth, min_leaf=1):
    """Objectives of every tree, equal ones once."""

    def trees(rows, depth):
        total, points = found.statistics[rows].sum(axis=0), []
        if len(rows) >= min_leaf:
            points = [(total[0], 0.0), (0.0, total[1])]
        if depth > 0:
            for _, _, left in splits_of(found.codes, found.nominal, rows):
                for a in trees(rows[left], depth - 1):
                    points += [(a[0] + b[0], a[1] + b[1]) for b in trees(rows[~left], depth - 1)]
        return sorted(set(points))

    return np.array(trees(np.arange(len(found.codes)), depth))


@pytest.mark.parametrize("bits", [True, False])
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_the_front_is_that_of_all_trees(bits, depth):
    found = small(n=10, levels=2, seed=depth, bounds=Bounds(cancel=False, bits=bits))
    points, cost = list_trees(found, depth)
    expected = nondominated(all_trees(found, depth), [False, False])
    np.testing.assert_allclose(points[np.lexsort(points.T[::-1])], expected)
    np.testing.assert_allclose(cost, points.sum(axis=1))
    assert (np.diff(cost) >= 0).all()


def test_only_trees_below_the_limit_are_listed():
    found = small(n=10, seed=4, bounds=Bounds(cancel=False, bits=False))
    points, _ = list_trees(found, 3)
    cost = points.sum(axis=1)
    upper = np.unique(cost)[1]
    below, _ = list_trees(found, 3, upper)
    np.testing.assert_allclose(below, points[cost < upper - 1e-9])
    assert 0 < len(below) < len(points)


def test_leaves_below_the_least_size_are_left_out():
    found = small(n=12, levels=2, seed=2, min_leaf=4, bounds=Bounds(cancel=False))
    points, _ = list_trees(found, 2)
    np.testing.assert_allclose(points[np.lexsort(points.T[::-1])], nondominated(all_trees(found, 2, 4), [False, False]))


@pytest.mark.parametrize("limit", [0.0, 2.0, 5.0])
def test_a_constrained_listing_finds_the_least_first_objective(limit):
    found = small(n=10, levels=2, seed=6, bounds=Bounds(cancel=False, bits=False))
    points, _ = list_trees(found, 2, constraint=[[0.0, 1.0]], limit=[limit])
    trees = all_trees(found, 2)
    assert len(points) == 1
    assert points[0, 0] == pytest.approx(trees[trees[:, 1] <= limit, 0].min())
    assert points[0, 1] <= limit
