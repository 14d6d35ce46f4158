"""Splits that divide the rows of a node, each once, and costs of leaves in whole units."""

import numpy as np
import pytest
from oracles.near_trees import divisions_of, problem_of

from softsurv.exact.rashomon.costs import IMPOSSIBLE


def ways(divisions, rows):
    """Ways to divide some rows: (feature, sides), each once."""
    found = set()
    for g, feature in enumerate(divisions.feature.tolist()):
        left = divisions.goes_left[rows, g]
        if left.any() and not left.all():
            found.add((feature, frozenset([rows[left].tobytes(), rows[~left].tobytes()])))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_splits_of_some_rows_are_each_division_once(seed):
    divisions = divisions_of(problem_of(seed, n=20))
    rng = np.random.default_rng(seed)
    for size in (2, 5, len(divisions.goes_left)):
        rows = np.sort(rng.choice(len(divisions.goes_left), size, replace=False))
        splits, left = divisions.of_rows(rows)
        ours = [
            (int(divisions.feature[g]), frozenset([rows[one].tobytes(), rows[~one].tobytes()]))
            for g, one in zip(splits, left.T.astype(bool), strict=True)
        ]
        assert len(ours) == len(set(ours))
        assert set(ours) == ways(divisions, rows)


def test_splits_are_those_of_the_given_features():
    problem = problem_of(1, n=20)
    divisions = divisions_of(problem)
    distinct = np.unique(problem.codes, axis=0)
    for g, (feature, code) in enumerate(zip(divisions.feature, divisions.code, strict=True)):
        column = distinct[:, feature]
        expected = (column == code).sum() if problem.nominal[feature] else (column <= code).sum()
        assert divisions.goes_left[:, g].sum() == expected
        assert divisions.split_of(feature, code) == g
    assert divisions.split_of(0, 99) == -1
    assert divisions.statistics[:, -1].sum() == len(distinct)


@pytest.mark.parametrize("min_leaf", [1, 4])
def test_leaves_cost_whole_units_or_are_impossible(min_leaf):
    problem = problem_of(2, n=20, min_leaf=min_leaf)
    divisions = divisions_of(problem)
    rows = [np.arange(len(divisions.statistics)), np.arange(3), np.arange(0)]
    sums = np.array([divisions.statistics[one].sum(axis=0) for one in rows]).T
    costs = divisions.leaf_costs(sums)
    size = [divisions.statistics[one, -2 if min_leaf > 1 else -1].sum() for one in rows]
    for cost, one, many in zip(costs, rows, size, strict=True):
        if many < min_leaf:
            assert cost == IMPOSSIBLE
        else:
            least = divisions.statistics[one, :2].sum(axis=0).min() + problem.complexity
            assert cost * divisions.unit == pytest.approx(least, abs=2 * divisions.unit)
    assert divisions.leaf_costs(sums.reshape(-1, 3, 1)).shape == (3, 1)
    assert divisions.in_units(problem.complexity) == divisions.per_leaf


def test_idle_splits_lower_no_cost():
    gain = np.array([-5, 0, 63, 64, 10**9])
    assert divisions_of(problem_of()).is_idle(gain).tolist() == [True, True, True, False, False]
    assert not divisions_of(problem_of(), with_idle=True).is_idle(gain).any()
