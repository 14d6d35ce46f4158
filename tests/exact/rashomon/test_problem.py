"""A problem as one value: searched again whole, or without some features."""

import numpy as np
import pytest
from oracles.enumeration import least_objective

from softsurv.exact.bounds import Bounds
from softsurv.exact.objectives import label_costs
from softsurv.exact.rashomon.problem import SearchProblem


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (14, 3)).astype(np.int32)
    costs = rng.integers(0, 5, (14, 2)).astype(float)
    return SearchProblem(
        label_costs.TASK, codes, np.full(3, 3), np.array([False, True, False]), costs, np.full(14, 0.5), 2, None, 0.3
    )


def optimum(problem, codes, nominal):
    return least_objective(
        problem.task, codes, nominal, problem.statistics, problem.offset, 2, 4, problem.min_leaf, problem.complexity
    )


def test_the_search_has_every_limit_of_the_problem(problem):
    found = problem.search(1e6, Bounds(bits=False)).solve(2)
    assert found.report.objective == pytest.approx(optimum(problem, problem.codes, problem.nominal))


@pytest.mark.parametrize("features", [[0], [1], [0, 2], [0, 1, 2]])
def test_without_features_no_tree_asks_them(problem, features):
    before = problem.codes.copy()
    solution = problem.without(features).search(1e6).solve(2)
    assert not set(solution.tree.feature.tolist()) & set(features)
    kept = [f for f in range(3) if f not in features]
    expected = optimum(problem, problem.codes[:, kept], problem.nominal[kept])
    assert solution.report.objective == pytest.approx(expected)
    np.testing.assert_array_equal(problem.codes, before)
    assert problem.n_codes.tolist() == [3, 3, 3]
