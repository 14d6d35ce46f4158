"""The base case by partitions of the rows, against enumeration of both splits."""

import numpy as np
import pytest
from oracles.base_cases import differences
from oracles.plain_python import plain
from oracles.plain_search import small

from softsurv.exact.base_cases.plain import best_stump
from softsurv.exact.base_cases.plain import test_cost as cost_of_test
from softsurv.exact.bounds import Bounds
from softsurv.exact.split_costs import SplitCosts

PLAIN = Bounds(base_case=False)


@pytest.mark.parametrize("how", [{}, {"complexity": 0.6}, {"min_leaf": 3}, {"levels": 2, "features": 4}])
def test_all_values_are_those_of_enumeration(how):
    found = small(bounds=PLAIN, **how)
    assert found.search.base == "plain"
    assert differences(found) == []


def test_depth_one_looks_at_one_split():
    assert differences(small(bounds=PLAIN, seed=1), depth=1) == []


def test_the_price_of_a_test_depends_on_the_one_before():
    prices = SplitCosts(np.array([0.04, 0.02]), np.array([0, 1, 0]), np.arange(1.0, 15.0))
    found = small(bounds=PLAIN, split_costs=prices)
    assert differences(found) == []
    cost, whole = plain(cost_of_test), np.arange(1.0, 15.0).sum()
    code = int(found.problem.code_start[2])  # the third feature asks the first test
    plain(best_stump)(found.problem, found.rows, len(found.rows), found.local, -1)
    assert cost(found.problem, found.local, code, -1) == pytest.approx(0.04 * whole)
    assert cost(found.problem, found.local, code, 0) == 0.0
    assert cost(small(bounds=PLAIN).problem, found.local, code, -1) == 0.0
