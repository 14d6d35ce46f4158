"""Leaves that choose the cheapest label: costs, statistics, and the optimum against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.enumeration import least_objective
from oracles.small_codes import SEEDS, agree, small_codes

from softsurv.exact.objectives import label_costs
from softsurv.exact.search import Search


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(0, 4), st.integers(1, 8), st.sampled_from([0.0, 0.4]))
def test_costs_per_row_equal_enumeration(seed, depth, leaves, complexity):
    rng, codes, n_codes, nominal = small_codes(seed)
    statistics = rng.integers(0, 5, (len(codes), int(rng.integers(2, 5)))).astype(float)
    search = Search(label_costs.TASK, codes, n_codes, nominal, statistics, complexity=complexity, memory_limit=1e6)
    expected = least_objective(
        label_costs.TASK, codes, nominal, statistics, np.zeros(len(codes)), depth, leaves, 1, complexity
    )
    assert agree(search.solve(depth, leaves).report.objective, expected)


def test_a_leaf_takes_the_cheapest_label():
    sums = np.array([[3.0, 4.0, 2.0], [1.0, 4.0, 1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(label_costs.TASK.costs(sums), [2.0, 1.0, 0.0])
    np.testing.assert_array_equal(label_costs.TASK.costs(sums[:, :2]), [3.0, 1.0, 0.0])
    np.testing.assert_array_equal(label_costs.best_label(sums), [2, 0, 0])  # of equally cheap labels the first
    rounded = np.array([[0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1], [1e-13, 0.0]])  # the same sum in two orders, and another
    np.testing.assert_array_equal(label_costs.best_label(rounded), [0, 1])


@pytest.mark.parametrize("weight", [None, np.array([1.0, 2.0, 0.5])])
def test_misclassification_is_what_a_wrong_label_costs(weight):
    label = np.array([1, 0, 2])
    w = np.ones(3) if weight is None else weight
    statistics = label_costs.misclassification(label, 3, weight)
    for row in range(3):
        for one in range(3):
            assert statistics[row, one] == (0.0 if one == label[row] else w[row])
    assert label_costs.misclassification(np.zeros(2, int), 1).shape == (2, 2)  # one class has a wrong label too


def test_costs_of_a_matrix_are_those_of_the_class():
    matrix = np.array([[0.0, 5.0], [1.0, 0.0], [2.0, 3.0]])
    label, weight = np.array([2, 0]), np.array([1.0, 10.0])
    np.testing.assert_array_equal(label_costs.from_matrix(label, matrix), [[2.0, 3.0], [0.0, 5.0]])
    np.testing.assert_array_equal(label_costs.from_matrix(label, matrix, weight), [[2.0, 3.0], [0.0, 50.0]])
