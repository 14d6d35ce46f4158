"""The cost of leaves as kernels call it: the task's, the cost per leaf, and the limit on the size of a leaf."""

from types import SimpleNamespace

import numpy as np
import pytest
from oracles.plain_python import plain

from softsurv.exact.compile import price_of
from softsurv.exact.objectives import label_costs, squared_error, survival_fairness

SUMS = np.array([[3.0, 0.0, 5.0, 1.0], [1.0, 0.0, 7.0, 4.0], [4.0, 0.0, 12.0, 2.0]])  # the last row: sizes


def problem(width, n_statistics, **given):
    none = {"complexity": 0.0, "use_size": False, "min_leaf": 1.0, "parameters": np.zeros(0)}
    return SimpleNamespace(**(none | {"stats": np.zeros((1, width)), "n_statistics": n_statistics} | given))


def prices(task, given, sums, n=None):
    out = np.full(sums.shape[1], -1.0)
    plain(price_of(task))(given, np.ascontiguousarray(sums), sums.shape[1], n or sums.shape[1], out)
    return out


def test_the_task_prices_the_columns_that_it_reads():
    np.testing.assert_array_equal(prices(label_costs.TASK, problem(3, 2), SUMS), [1.0, 0.0, 5.0, 1.0])
    np.testing.assert_array_equal(prices(label_costs.TASK, problem(3, 3), SUMS), [1.0, 0.0, 5.0, 1.0])
    np.testing.assert_allclose(prices(squared_error.TASK, problem(3, 2), SUMS), [-1 / 3, 0.0, -49 / 5, -16.0])


def test_cost_per_leaf_and_size():
    given = problem(3, 2, complexity=0.5, use_size=True, min_leaf=3.0)
    np.testing.assert_array_equal(prices(label_costs.TASK, given, SUMS), [1.5, np.inf, 5.5, np.inf])
    np.testing.assert_array_equal(prices(label_costs.TASK, problem(3, 2, complexity=0.5), SUMS), [1.5, 0.5, 5.5, 1.5])


def test_leaves_beyond_the_batch_are_not_touched():
    out = prices(label_costs.TASK, problem(3, 2, complexity=0.5), SUMS, 2)
    np.testing.assert_array_equal(out, [1.5, 0.5, -1.0, -1.0])


def test_a_parametric_task_is_given_its_numbers():
    task = survival_fairness.TASK
    numbers = np.array([2.0, 1.0, 0.5, 2.0, 0.7, 3.0])  # groups, times, half a subject, weight, Lambda, slope
    sums = np.array([[2.0], [4.0], [0.3], [0.8]])
    expected = -2.0 * 2.0 * np.log(0.5) + 3.0 * 0.5 * np.exp(-0.5 * 0.7)
    assert prices(task, problem(4, 4, parameters=numbers), sums)[0] == pytest.approx(expected)
