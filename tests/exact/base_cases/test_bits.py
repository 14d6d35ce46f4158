"""The base case by population counts, against enumeration of both splits."""

import numpy as np
import pytest
from oracles.base_cases import differences
from oracles.plain_search import small

from softsurv.exact.bounds import Bounds
from softsurv.exact.kernels.small_counts import MOST
from softsurv.exact.objectives import label_costs
from softsurv.exact.search import Search
from softsurv.exact.split_costs import SplitCosts


def bit_search(**how):
    found = small(**how)
    assert found.search.base == "bits"
    return found


@pytest.mark.parametrize("how", [{}, {"complexity": 0.6}, {"min_leaf": 3}, {"features": 5, "levels": 2, "seed": 4}])
def test_all_values_are_those_of_enumeration(how):
    assert differences(bit_search(**how)) == []


@pytest.mark.parametrize("labels", [2, 3])
def test_other_numbers_of_kinds_and_labels(labels):
    rng = np.random.default_rng(labels)
    costs = np.array([[0.0, 2.0, 5.0], [3.0, 0.0, 1.0], [1.0, 4.0, 0.0]])[rng.integers(0, 3, 14), :labels]
    assert differences(bit_search(statistics=costs)) == []


@pytest.mark.parametrize("labels", [2, 3, 5])
@pytest.mark.parametrize("how", [{}, {"complexity": 0.3}, {"min_leaf": 3, "complexity": 0.1}])
def test_errors_are_counted(labels, how):
    """Two kinds, several, and more members than a short word and than a long one have; more splits than a vector."""
    for n, features, levels in ((14, 3, 3), (90, 5, 3), (200, 5, 9)):
        label = np.random.default_rng(n + labels).integers(0, labels, n)
        costs = 0.25 * label_costs.misclassification(label, labels)
        found = bit_search(n=n, features=features, levels=levels, statistics=costs, **how)
        assert found.problem.row_kinds.unit == 0.25
        assert found.problem.row_kinds.least == how.get("min_leaf", 0)
        if n < 200 or labels == 2:
            assert differences(found) == []
        assert differences(found, found.rows[:: 1 + n // 30].copy()) == []


@pytest.mark.parametrize("least", [1, 300])
def test_errors_of_more_rows_than_a_small_count_holds(least):
    """The root counts in float64, what lies below it in small counts."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (MOST + 5000, 16)).astype(np.int32)
    label = (codes[:, 0] & codes[:, 1]) ^ (rng.random(len(codes)) < 0.2)
    costs = label_costs.misclassification(label, 2)
    found = []
    for bits in (True, False):
        search = Search(
            label_costs.TASK, codes, np.full(16, 2), np.zeros(16, bool), costs, min_leaf=least, complexity=2.0,
            bounds=Bounds(bits=bits),
        )  # fmt: skip
        assert search.base == ("bits" if bits else "sums")
        found += [search.solve(3, 8).report.objective]
    assert found[0] == found[1]
    assert found[0] < 0.21 * len(label)


def test_a_subset_is_packed_anew():
    found = bit_search(seed=2)
    assert differences(found) == []
    assert differences(found, found.rows[::2].copy()) == []


def test_second_tests_are_charged_at_the_prices_after_the_first():
    weight = np.arange(1.0, 15.0)
    costs = SplitCosts(
        np.array([0.03, 0.02, 0.05]), np.arange(3), weight, np.array([0.01, 0.0, 0.02]), np.array([0, 0, -1])
    )
    for bits in (True, False):
        assert differences(small(split_costs=costs, bounds=Bounds(bits=bits, base_case=True))) == []


def test_what_pairs_of_splits_share_at_most():
    found = bit_search(seed=3, bounds=Bounds())
    assert found.problem.use_similar
    found.local.bits.wanted[0] = 1
    found.problem.calls.solve_two(found.problem, found.rows, len(found.rows), 2, found.local)
    worst = found.search.task.worst(found.problem.stats)
    lefts = [left for left, _ in found.splits()]
    for s, one in enumerate(lefts):
        for t in range(s, len(lefts)):
            shared = found.rows[(one & lefts[t])[found.rows]]
            assert found.local.bits.shared[s, t] >= worst[shared].sum() - 1e-9
            units = found.problem.row_kinds.kind_count[shared] @ found.problem.row_kinds.worst
            assert found.local.bits.shared[s, t] == pytest.approx(units.sum())
