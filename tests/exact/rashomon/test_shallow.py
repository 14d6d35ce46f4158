"""Every tree of depth at most two over some rows, against all of them written down."""

from collections import Counter

import numpy as np
import pytest
from oracles.near_trees import divisions_of, every_tree, problem_of

from softsurv.exact.rashomon.shallow import Shallow
from softsurv.exact.tree import LEAF


def written(divisions, rows, splits):
    """A tree of three splits as `all_trees` writes one, over the rows as given."""
    problem = divisions.problem

    def below(rows, split, left=LEAF, right=LEAF):
        if split == LEAF:
            return ()
        column = problem.codes[rows, divisions.feature[split]]
        code = divisions.code[split]
        goes = column == code if problem.nominal[divisions.feature[split]] else column <= code
        sides = below(rows[goes], left), below(rows[~goes], right)
        return (int(divisions.feature[split]), tuple(rows[goes].tolist()), *sides)

    return below(rows, *splits)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("with_idle", [False, True])
@pytest.mark.parametrize("min_leaf", [1, 3])
def test_trees_by_cost_and_number_of_leaves(depth, with_idle, min_leaf):
    problem = problem_of(depth, min_leaf=min_leaf)
    divisions = divisions_of(problem, depth, with_idle)
    rows = np.arange(len(divisions.goes_left), dtype=np.int32)
    every = every_tree(problem, depth, 4, with_idle)
    limit = min(cost for cost, _, _ in every) + 1.5
    most = divisions.in_units(limit + 1e-7)
    shallow = Shallow(divisions, rows, depth)
    counted, listed = shallow.costs(most, 4), shallow.listed(most)
    for leaves in range(1, 1 + (1 << depth)):
        want = [(cost, tree) for cost, n, tree in every if n == leaves and cost <= limit + 1e-7]
        assert counted[leaves - 1].count.sum() == len(want) == len(listed[leaves].cost)
        np.testing.assert_allclose(listed[leaves].cost * divisions.unit, sorted(cost for cost, _ in want), atol=1e-6)
        trees = [written(divisions, np.arange(len(problem.codes)), one) for one in listed[leaves].splits.tolist()]
        assert Counter(trees) == Counter(tree for _, tree in want)


def test_gains_are_what_each_split_takes_off_the_leaves():
    problem = problem_of(3)
    divisions = divisions_of(problem)
    rows = np.arange(len(divisions.goes_left), dtype=np.int32)
    shallow = Shallow(divisions, rows, 2)
    most = shallow.leaf + 10**12
    for leaves, found in shallow.listed(most).items():
        taken = found.gains.sum(axis=1)
        np.testing.assert_array_equal(shallow.leaf + (leaves - 1) * divisions.per_leaf - taken, found.cost)
        assert ((found.gains != 0) <= (found.splits != LEAF)).all()


def test_the_least_cost_of_depth_one():
    problem = problem_of(4)
    divisions = divisions_of(problem)
    rows = np.arange(len(divisions.goes_left), dtype=np.int32)
    best = min(cost for cost, _, _ in every_tree(problem, 1, 2))
    assert Shallow(divisions, rows, 1).least * divisions.unit == pytest.approx(best, abs=1e-6)
    assert Shallow(divisions, rows, 0).least * divisions.unit == pytest.approx(
        problem.statistics.sum(axis=0).min() + problem.complexity, abs=1e-6
    )
