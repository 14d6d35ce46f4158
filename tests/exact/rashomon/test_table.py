"""The table of near-optimal trees: counts against all trees written down, and limits that end it."""

from collections import Counter

import numpy as np
import pytest
from oracles.near_trees import divisions_of, every_tree, problem_of

from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.rashomon.table import TreeTable
from softsurv.results import Status
from softsurv.stopping import StopSignal


def filled(problem, depth, leaves, distance, memory=1e8):
    every = every_tree(problem, depth, leaves)
    limit = min(cost for cost, _, _ in every) + distance + 1e-7
    divisions = divisions_of(problem, depth)
    divisions.search.solve(depth, leaves)
    table = TreeTable(divisions, depth, leaves, divisions.in_units(limit), StopSignal(), memory)
    return table, table.fill(), Counter(n for cost, n, _ in every if cost <= limit)


@pytest.mark.parametrize(("depth", "leaves"), [(0, 1), (1, 2), (2, 4), (3, 5), (3, 8)])
@pytest.mark.parametrize("distance", [0.0, 1.0])
def test_trees_are_counted_by_their_leaves(depth, leaves, distance):
    table, status, expected = filled(problem_of(depth, n=9), depth, leaves, distance)
    assert status == Status.OPTIMAL
    assert table.count() == [expected[k + 1] for k in range(leaves)]


def test_every_node_knows_its_best_tree_and_keeps_to_its_limit():
    table, _, _ = filled(problem_of(3, n=10), 3, 8, 1.0)
    assert table.nodes
    for node in table.nodes.values():
        assert all((costs.cost <= node.most).all() for costs in node.costs)
        assert node.least == min(costs.least for costs in node.costs)
        for split, left, right in node.openings:
            goes_left = table.divisions.goes_left[node.rows, split]
            np.testing.assert_array_equal(left.rows, node.rows[goes_left])
            np.testing.assert_array_equal(right.rows, node.rows[~goes_left])
            assert table.gain(node, left, right) == node.leaf - left.leaf - right.leaf + table.divisions.per_leaf


def test_the_first_split_of_the_optimum_is_opened_first():
    """The splits were opened in the order of their columns: a set that was cut off held no tree, or bad ones."""
    problem = problem_of(3, n=10)
    table, _, _ = filled(problem, 3, 8, 1.0)
    splits = [split for split, _, _ in table.root.openings]
    assert len(splits) > 1
    other = TreeTable(table.divisions, 3, 8, table.root.most, StopSignal(), 1e8, first=splits[-1])
    assert other.fill() == Status.OPTIMAL
    assert [split for split, _, _ in other.root.openings] == [splits[-1], *splits[:-1]]
    assert other.count() == table.count()


def test_memory_ends_the_table():
    _, status, _ = filled(problem_of(3, n=12), 3, 8, 2.0, memory=3_000)
    assert status == Status.MEMORY_LIMIT


def test_a_stop_flag_ends_the_table():
    problem = problem_of(3, n=12)
    divisions = divisions_of(problem, 3)
    divisions.search.solve(3)
    stop = StopSignal(0.0)
    table = TreeTable(divisions, 3, 8, 10**15, stop, 1e8)
    divisions.search.control[STOP] = 1
    assert table.fill() == stop.reason == Status.TIME_LIMIT
    assert table.count()[0] == 1  # the tree without splits is there at once
