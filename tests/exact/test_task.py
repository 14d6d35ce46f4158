"""The declaration of a task: its digest, its costs, and a task of one's own in the search."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.enumeration import least_objective

from softsurv.exact.objectives import label_costs, relative_risk
from softsurv.exact.search import Search
from softsurv.exact.task import Task, per_leaf


def test_digest_follows_the_leaf_cost():
    def one(sums):
        return sums[0] * 2.0

    def other(sums):
        return sums[0] * 3.0

    digests = [Task("mine", 1, per_leaf(f)).digest() for f in (one, one, other)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.slow
@pytest.mark.parametrize("superadditive", [True, False])
def test_a_task_of_ones_own(superadditive):
    def squared_error(sums):
        return sums[2] - sums[1] * sums[1] / max(sums[0], 1e-300)

    task = Task("squared_error_test", 3, per_leaf(squared_error), superadditive=superadditive)
    rng = np.random.default_rng(3)
    for _ in range(20):
        codes = rng.integers(0, 4, (10, 3)).astype(np.int32)
        y = rng.normal(size=10)
        statistics = np.column_stack([np.ones(10), y, y**2])
        search = Search(task, codes, np.full(3, 4), np.array([True, False, False]), statistics, memory_limit=1e6)
        expected = least_objective(task, codes, search.problem.nominal, statistics, np.zeros(10), 3, 6)
        assert search.solve(3, 6).report.objective == pytest.approx(expected, abs=1e-9)


def of_sums(cost):
    """A batch function that is not compiled."""

    def leaf_costs(sums, n, out, *more):
        out[:n] = cost(sums[:, :n], *more)

    return leaf_costs


def test_costs_come_leaf_by_leaf_in_order():
    task = Task("plain", 2, of_sums(lambda sums: sums[0] - sums[1]))
    np.testing.assert_array_equal(task.costs(np.array([[3, 1], [5, 7]])), [2.0, -2.0])
    given = Task("given", 2, of_sums(lambda sums, numbers: numbers[0] * sums[0]), parametric=True)
    np.testing.assert_array_equal(given.costs(np.array([[3.0, 1.0]]), np.array([4.0])), [12.0])


def test_the_most_that_a_row_can_cost_is_known_of_linear_tasks_alone():
    rows = np.array([[1.0, 5.0], [2.0, 0.0]])
    np.testing.assert_array_equal(label_costs.TASK.worst(rows), [5.0, 2.0])
    assert np.isinf(relative_risk.TASK.worst(rows)).all()


def test_digest_follows_what_a_cost_closes_over_and_calls():
    def scaled(factor):
        return of_sums(lambda sums: factor * sums[0])

    assert Task("t", 1, scaled(2.0)).digest() == Task("t", 1, scaled(2.0)).digest()
    assert Task("t", 1, scaled(2.0)).digest() != Task("t", 1, scaled(3.0)).digest()
    assert Task("t", 1, scaled(2.0)).digest() != Task("t", 1, scaled(2.0), parametric=True).digest()
    assert label_costs.TASK.digest() != relative_risk.TASK.digest()
