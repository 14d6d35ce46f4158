"""From training rows to the arrays of a search, and what is refused at that door."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv.errors import InvalidParameterError
from softsurv.exact.bounds import Bounds
from softsurv.exact.objectives import label_costs, squared_error
from softsurv.exact.prepare import as_size, check_sums, check_weights, prepare
from softsurv.exact.search import Search
from softsurv.exact.split_costs import SplitCosts


def test_checks_of_the_arguments():
    codes, sides = np.zeros((4, 1), np.int32), (np.array([2]), np.zeros(1, bool))
    with pytest.raises(InvalidParameterError, match="statistics must have the 2 columns"):
        Search(squared_error.TASK, codes, *sides, np.ones((4, 3)))
    with pytest.raises(InvalidParameterError, match="codes must lie in"):
        Search(label_costs.TASK, codes + 2, *sides, np.ones((4, 2)))
    with pytest.raises(InvalidParameterError, match="0 <= reduced <= full"):
        SplitCosts(np.array([1.0]), np.array([0]), np.ones(4), np.array([2.0]))


@pytest.mark.parametrize("min_leaf", [1, 5])
def test_errors_of_a_rare_class_are_counted_in_any_unit(min_leaf):
    rng = np.random.default_rng(0)
    codes, label = rng.integers(0, 2, (500, 20)).astype(np.int32), (np.arange(500) < 20).astype(int)
    costs = 0.3 * label_costs.misclassification(label, 2)
    search = Search(label_costs.TASK, codes, np.full(20, 2), np.zeros(20, bool), costs, min_leaf=min_leaf)
    assert search.problem.row_kinds.unit == pytest.approx(0.3)


@pytest.mark.parametrize("weight", [[1.0, 1e-15], [1e308, 1e308], [np.inf, 1.0]])
def test_weights_that_rounding_would_lose_are_refused(weight):
    with pytest.raises(InvalidParameterError, match="leave out the rows that weigh next to nothing"):
        check_weights(np.array(weight))


def test_weights_of_zero_are_not_the_lightest():
    check_weights(np.array([0.0, 1e-13, 1.0]))
    with pytest.raises(InvalidParameterError, match="weights must not differ"):
        check_weights(np.array([0.0, 1e-15, 1.0]))


def test_sums_that_cannot_be_squared_are_refused():
    check_sums(np.array([[1e149, -1e149]]))
    for statistics in ([[9e149], [-9e149]], [[1e308], [1e308]]):
        with pytest.raises(InvalidParameterError, match="divide the weights or the targets"):
            check_sums(np.array(statistics))


def test_the_size_that_limits_a_leaf():
    assert as_size(1, None, 5) == (1, None)
    least, size = as_size(2.5, None, 5)
    assert least == 3
    np.testing.assert_array_equal(size, np.ones(5))
    weight = np.array([0.5, 0.5, 2.0])
    assert as_size(3.0, weight, 3) == (3.0, weight)
    with pytest.raises(InvalidParameterError, match=r"at most the total, 3, got 3\.5"):
        as_size(3.5, weight, 3)


def arrays_of(codes, statistics, nominal=(False, True), bounds=None, offset=None, split_costs=None):
    nominal = np.array(nominal)
    return prepare(
        label_costs.TASK, codes, np.full(codes.shape[1], 3), nominal, statistics, offset, None, 1, 0.0,
        bounds or Bounds(), split_costs,
    )  # fmt: skip


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (40, 2)).astype(np.int32)
    return codes, rng.integers(0, 9, (40, 2)).astype(float)


@pytest.mark.parametrize("bits", [True, False])
@pytest.mark.parametrize("cancel", [True, False])
def test_every_split_divides_the_statistics_as_the_given_rows_do(table, bits, cancel):
    """With what cancelled put back: sums of the distinct rows that go left, less their least column at most."""
    codes, statistics = table
    ready = arrays_of(codes, statistics, bounds=Bounds(bits=bits, cancel=cancel))
    problem, splits, seen = ready.problem, ready.splits, set()
    for g, f in enumerate(problem.feature_of):
        column = problem.gcode[:, f]
        goes_left = (column == g if problem.nominal[f] else column <= g) != splits.swapped[g]
        feature, code = int(splits.feature[g]), int(splits.code[g])
        given = codes[:, feature] == code if feature == 1 else codes[:, feature] <= code
        np.testing.assert_allclose(ready.sums[goes_left].sum(axis=0), statistics[given].sum(axis=0))
        gap, left = np.array([1.0, -1.0]), problem.stats[goes_left].sum(axis=0)
        assert left @ gap == pytest.approx(statistics[given].sum(axis=0) @ gap)
        seen.add((feature, code))
    assert seen >= {(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)}
    total = problem.stats.sum(axis=0) + ready.cancelled
    np.testing.assert_allclose(total, statistics.sum(axis=0))
    assert (ready.cancelled > 0) == cancel


def test_a_floor_is_what_equal_rows_cost_at_the_least(table):
    codes, statistics = table
    ready = arrays_of(codes, statistics)
    distinct = np.unique(codes, axis=0)
    least = sum(statistics[(codes == one).all(axis=1)].sum(axis=0).min() for one in distinct)
    assert ready.problem.floor.sum() + ready.cancelled == pytest.approx(least)
    without = arrays_of(codes, statistics, bounds=Bounds(equivalent_points=False), offset=np.full(40, 0.25))
    assert without.problem.floor.sum() == pytest.approx(-10.0)
    assert without.offset == pytest.approx(10.0)


def test_equal_columns_are_one_feature_unless_their_tests_differ(table):
    codes, statistics = table
    twice = np.column_stack([codes, codes[:, 0]])
    nominal = (False, True, False)
    assert set(arrays_of(twice, statistics, nominal).splits.feature) == {0, 1}
    costs = SplitCosts(np.array([1.0, 0.1]), np.array([0, 0, 1]), np.ones(40))
    paid = arrays_of(twice, statistics, nominal, split_costs=costs)
    assert set(paid.splits.feature) == {0, 1, 2}
    assert paid.problem.branching
    np.testing.assert_array_equal(paid.sums[:, -1].sum(), 40.0)  # the weight that pays


def test_rows_that_cost_the_same_under_every_label_are_not_looked_at(table):
    codes, statistics = table
    dull = (codes == codes[0]).all(axis=1)
    statistics[dull] = 3.0
    ready = arrays_of(codes, statistics)
    kept = ready.problem.gcode[ready.rows]
    assert len(kept) == len(ready.problem.gcode) - 1
    assert not ready.problem.stats[np.setdiff1d(np.arange(len(ready.problem.gcode)), ready.rows)].any()
    assert len(arrays_of(codes, statistics, bounds=Bounds(cancel=False)).rows) == len(ready.problem.gcode)
