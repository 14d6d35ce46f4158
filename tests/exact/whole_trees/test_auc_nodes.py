"""Nodes of partly grown trees: replaced ends, and costs that no tree falls below."""

import numpy as np
import pytest
from oracles.two_classes import error_search, tiny

from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.whole_trees.auc_nodes import AucNodes, PartTree
from softsurv.results import Status
from softsurv.stopping import Stopped


@pytest.fixture(scope="module")
def search():
    columns, label, _ = tiny(3, n=20, splits=4)
    return error_search(columns, label, 3, min_leaf=2)


def end(depth, row):
    return PartTree(np.array([row], np.int32), depth, np.zeros(2), np.ones(2))


def test_an_end_is_replaced_and_the_rest_shared():
    one, two, three = end(0, 1), end(1, 2), end(0, 3)
    inner = PartTree(np.array([1, 2], np.int32), 0, np.zeros(2), np.ones(2), 5, one, two)
    root = PartTree(np.array([1, 2, 3], np.int32), 0, np.zeros(2), np.ones(2), 4, inner, three)
    assert root.leaves() == [one, two, three]
    assert root.open
    closed = root.with_leaf(two, end(0, 2))
    assert not closed.open
    assert closed.right is three
    assert closed.left.left is one
    assert root.leaves()[1] is two
    assert root.with_leaf(end(0, 9), one) is root  # not in the tree: nothing changes


def least_cost(nodes, rows, depth):
    """Least weighted misclassification in each direction, by enumeration."""
    sums = nodes.problem.stats[rows].sum(axis=0)
    size = sums[-1] if nodes.problem.use_size else np.inf
    whole = np.minimum(nodes.directions[:, 0] * sums[1], nodes.directions[:, 1] * sums[0])
    best = np.where(size >= nodes.problem.min_leaf, whole, np.inf)
    for split in range(len(nodes.problem.feature_of) if depth else 0):
        left, right = nodes.sides(rows, split)
        if len(left) and len(right):
            best = np.minimum(best, least_cost(nodes, left, depth - 1) + least_cost(nodes, right, depth - 1))
    return best


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_no_tree_of_a_node_costs_less_in_any_direction(search, depth):
    nodes, rows = AucNodes(search, 1e9), search.rows.rows
    node = nodes.open(rows, depth)
    best = least_cost(nodes, rows, depth)
    assert (node.cost <= best + 1e-12).all()
    if depth < 2 or not nodes.problem.use_size:  # a further split of a side may leave a leaf too small
        np.testing.assert_allclose(node.cost, best, atol=1e-12)
    assert nodes.open(rows, depth) is node  # worked out once
    np.testing.assert_allclose(node.sums[:2], search.statistics.sum(axis=0))


def test_splits_leave_enough_rows_on_both_sides(search):
    nodes, rows = AucNodes(search, 1e9), search.rows.rows
    splits = nodes.splits(nodes.open(rows, 2))
    allowed = []
    for split in range(len(nodes.problem.feature_of)):
        sides = nodes.sides(rows, split)
        if all(nodes.problem.stats[side, -1].sum() >= 2 for side in sides):
            allowed.append(frozenset(side.tobytes() for side in sides))
    found = [frozenset(side.tobytes() for side in nodes.sides(rows, split)) for split in splits]
    assert len(found) == len(splits) > 0
    assert set(found) == set(allowed)


def test_directions_go_from_flat_lines_to_steep_ones(search):
    directions = AucNodes(search, 1e9).directions
    assert (directions > 0).all()
    assert (np.diff(directions[:, 1] / directions[:, 0]) > 0).all()


def test_memory_and_the_flag_end_the_search(search):
    nodes = AucNodes(search, 1e4)
    nodes.check()
    for split in range(3):
        nodes.close(nodes.sides(search.rows.rows, split)[0])
    nodes.memory_left -= 1e4
    with pytest.raises(Stopped) as told:
        nodes.check()
    assert told.value.status == Status.MEMORY_LIMIT
    nodes.memory_left = 1.0
    nodes.local.control[STOP] = 1
    try:
        with pytest.raises(Stopped):
            nodes.check()
    finally:
        nodes.local.control[STOP] = 0
