"""The base case by histograms, against enumeration of both splits."""

import numpy as np
import pytest
from oracles.base_cases import differences
from oracles.plain_search import small

from softsurv.exact.bounds import Bounds
from softsurv.exact.objectives import relative_risk, squared_error
from softsurv.exact.split_costs import SplitCosts

SUMS = Bounds(bits=False)


def survival(n=14, seed=0):
    rng = np.random.default_rng(seed)
    return relative_risk.statistics(rng.random(n) < 0.6, rng.exponential(size=n))


@pytest.mark.parametrize("how", [{}, {"complexity": 0.6}, {"min_leaf": 3}, {"levels": 5, "features": 2, "seed": 1}])
def test_all_values_are_those_of_enumeration(how):
    found = small(bounds=SUMS, task=relative_risk.TASK, statistics=survival(), **how)
    assert found.search.base == "sums"
    assert differences(found) == []


def test_any_number_of_statistics():
    one, other = survival(seed=1), survival(seed=2)
    assert differences(small(bounds=SUMS, task=relative_risk.TASK, statistics=np.hstack([one, other]))) == []
    y = np.random.default_rng(3).normal(size=14)
    statistics = squared_error.statistics(y - y.mean(), np.ones(14))
    assert differences(small(bounds=SUMS, task=squared_error.TASK, statistics=statistics, levels=4)) == []


def test_nominal_features_alone_and_a_feature_that_does_not_divide():
    assert differences(small(bounds=SUMS, nominal=[True, True, True], levels=4)) == []
    found = small(bounds=SUMS, seed=5)
    same = found.rows[found.problem.gcode[found.rows, 0] == found.problem.gcode[found.rows[0], 0]]
    assert differences(found, same) == []


def test_depth_one_looks_at_one_split():
    assert differences(small(bounds=SUMS), depth=1) == []


def test_rows_pay_for_the_second_test_what_is_due_after_the_first():
    costs = SplitCosts(np.array([0.04, 0.02]), np.array([0, 1, 0]), np.arange(1.0, 15.0))
    found = small(bounds=SUMS, split_costs=costs)
    assert differences(found) == []
