"""Trees of a table, made one after the other: all of them, each once, the best first."""

from itertools import islice

import numpy as np
import pytest
from oracles.near_trees import divisions_of, every_tree, problem_of

from softsurv.exact.rashomon import trees as module
from softsurv.exact.rashomon.table import TreeTable
from softsurv.exact.rashomon.trees import END, Subtree, Trees
from softsurv.stopping import StopSignal


def table_of(problem, depth, leaves, distance):
    every = every_tree(problem, depth, leaves)
    limit = min(cost for cost, _, _ in every) + distance + 1e-7
    divisions = divisions_of(problem, depth)
    divisions.search.solve(depth, leaves)
    table = TreeTable(divisions, depth, leaves, divisions.in_units(limit), StopSignal(), 1e8)
    table.fill()
    return table, sorted(cost for cost, _, _ in every if cost <= limit)


def cost_of(table, part, rows):
    """Cost of a tree in units, leaf by leaf."""
    divisions = table.divisions
    if part.left is None:
        return int(divisions.leaf_costs(divisions.statistics[rows].sum(axis=0)[:, None])[0])
    left = divisions.goes_left[rows, part.split]
    return cost_of(table, part.left, rows[left]) + cost_of(table, part.right, rows[~left])


@pytest.mark.parametrize(("kept", "depth"), [(512, 3), (0, 3), (512, 2), (512, 0)])
def test_all_trees_come_in_the_order_of_their_costs(monkeypatch, kept, depth):
    """Groups of trees are kept, or made again each time."""
    monkeypatch.setattr(module, "GROUP", kept)
    table, expected = table_of(problem_of(5, n=9), depth, 1 << depth, 1.2)
    rows, found = np.arange(len(table.divisions.goes_left)), list(Trees(table))
    assert len(found) == len(expected) == sum(table.count())
    assert [cost for cost, _ in found] == sorted(cost for cost, _ in found)
    np.testing.assert_allclose([cost * table.divisions.unit for cost, _ in found], expected, atol=1e-6)
    for cost, part in found:
        assert abs(cost_of(table, part, rows) - cost) <= 8  # each leaf is rounded once
    assert len({part for _, part in found}) == len(found)


def test_gains_make_up_for_the_leaf():
    table, _ = table_of(problem_of(6, n=9), 3, 8, 1.2)
    per_leaf = table.divisions.per_leaf
    for cost, part in Trees(table):
        gains = [gain for _, gain in part.gains()]
        assert cost == table.root.leaf + len(gains) * per_leaf - sum(gains)


def test_the_first_trees_are_made_without_the_others():
    table, expected = table_of(problem_of(5, n=9), 3, 8, 1.2)
    first = [cost for cost, _ in islice(Trees(table), 3)]
    np.testing.assert_allclose(np.array(first) * table.divisions.unit, expected[:3], atol=1e-6)


def test_splits_of_a_subtree():
    tree = Subtree(4, Subtree(2, END, END, 7), END, 5)
    assert list(tree.gains()) == [(4, 5), (2, 7)]
    assert list(END.gains()) == []
