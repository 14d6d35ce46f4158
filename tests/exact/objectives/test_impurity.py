"""Impurities of classes, by their definitions, and what the bounds need of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.plain_python import plain

from softsurv.exact.objectives import impurity

DEFINED = {
    "gini": lambda n: n.sum() * (1 - ((n / n.sum()) ** 2).sum()),
    "entropy": lambda n: -sum(k * np.log(k / n.sum()) for k in n if k > 0),
    "root_gini": lambda n: n.sum() * np.sqrt(1 - ((n / n.sum()) ** 2).sum()),
}

weights = st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0, 40.0]), min_size=3, max_size=3)


def costs(name, sums):
    """Costs of leaves from their sums (L, K), as the compiled code takes them: class by class."""
    out = np.full(len(sums), np.nan)
    plain(impurity.TASKS[name].leaf_costs)(np.array(sums, dtype=float).T.copy(), len(sums), out)
    return out


@pytest.mark.parametrize("name", DEFINED)
def test_costs_are_those_of_the_definition(name):
    sums = np.array([[1.0, 2.0, 3.0], [5.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    np.testing.assert_allclose(costs(name, sums), [DEFINED[name](n) for n in sums], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", DEFINED)
def test_an_empty_leaf_and_a_pure_one_cost_nothing(name):
    np.testing.assert_array_equal(costs(name, [[0.0, 0.0, 0.0], [0.0, 7.0, 0.0]]), [0.0, 0.0])


@pytest.mark.parametrize("name", DEFINED)
@given(left=weights, right=weights)
def test_two_leaves_cost_no_more_than_both_together(name, left, right):
    one, other, both = costs(name, [left, right, np.add(left, right)])
    assert one + other <= both + 1e-9


def test_statistics_and_labels_of_leaves():
    table = impurity.statistics(np.array([2, 0, 2]), 3, np.array([1.0, 0.5, 2.0]))
    np.testing.assert_array_equal(table, [[0, 0, 1], [0.5, 0, 0], [0, 0, 2]])
    assert impurity.statistics(np.zeros(2, int), 1, np.ones(2)).shape == (2, 2)
    np.testing.assert_array_equal(impurity.most_frequent(np.array([[1.0, 3.0], [2.0, 2.0]])), [1, 0])
