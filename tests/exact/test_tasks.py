"""The additive tasks: enumeration, splits that cost something, bits or no bits, and the checks of tasks."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba import njit
from oracles.enumeration import least_objective

from softsurv.errors import InvalidParameterError
from softsurv.exact.bounds import Bounds
from softsurv.exact.check import check_task
from softsurv.exact.kernels.simd import transpose
from softsurv.exact.objectives import label_costs, relative_risk, squared_error
from softsurv.exact.objectives.policy import lost_rewards, treatment_scores
from softsurv.exact.search import Search
from softsurv.exact.split_costs import SplitCosts
from softsurv.exact.task import Task
from softsurv.results import Status

SHARED = [HealthCheck.function_scoped_fixture]
SEEDS = st.integers(0, 2**32 - 1)


def small(seed, max_rows=12):
    """Codes, numbers of codes and kinds of three features, and the generator."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, max_rows))
    n_codes = rng.integers(2, 4, 3)
    codes = np.column_stack([rng.integers(0, m, n) for m in n_codes]).astype(np.int32)
    return rng, codes, n_codes, rng.random(3) < 0.4


def agree(a, b):
    return a == pytest.approx(b, rel=1e-9, abs=1e-9)


@settings(max_examples=40, deadline=None, suppress_health_check=SHARED)
@given(SEEDS, st.integers(0, 4), st.integers(1, 8), st.sampled_from([0.0, 0.4]))
def test_costs_per_row_equal_enumeration(seed, depth, leaves, complexity):
    rng, codes, n_codes, nominal = small(seed)
    statistics = rng.integers(0, 5, (len(codes), int(rng.integers(2, 5)))).astype(float)
    search = Search(label_costs.TASK, codes, n_codes, nominal, statistics, complexity=complexity, memory_limit=1e6)
    expected = least_objective(
        label_costs.TASK, codes, nominal, statistics, np.zeros(len(codes)), depth, leaves, 1, complexity
    )
    assert agree(search.solve(depth, leaves).report.objective, expected)


@settings(max_examples=30, deadline=None, suppress_health_check=SHARED)
@given(SEEDS, st.integers(0, 4), st.integers(1, 8))
def test_squared_error_equals_enumeration(seed, depth, leaves):
    rng, codes, n_codes, nominal = small(seed)
    y, weight = rng.normal(size=len(codes)), rng.integers(1, 3, len(codes)).astype(float)
    statistics, offset = squared_error.statistics(y, weight), squared_error.offset(y, weight)
    search = Search(squared_error.TASK, codes, n_codes, nominal, statistics, offset, memory_limit=1e6)
    expected = least_objective(squared_error.TASK, codes, nominal, statistics, offset, depth, leaves)
    assert agree(search.solve(depth, leaves).report.objective, expected)


def cheapest(codes, nominal, statistics, costs, depth, leaves, complexity):
    """Least cost by enumeration where rows pay for splits."""
    group, reduced = costs.group, costs.reduced

    def after(due, test):
        other = [min(d, r) if g >= 0 and g == group[test] else d for d, r, g in zip(due, reduced, group, strict=True)]
        return tuple(0.0 if t == test else d for t, d in enumerate(other))

    @cache
    def best(rows, depth, leaves, due):
        index = np.array(rows)
        value = statistics[index].sum(axis=0).min() + complexity
        if depth == 0 or leaves == 1:
            return value
        for f, test in enumerate(costs.test_of):
            seen = np.unique(codes[index, f])
            for code in seen if nominal[f] else seen[:-1]:
                left = codes[index, f] == code if nominal[f] else codes[index, f] <= code
                if left.all():
                    continue
                test_cost, then = costs.weight[index].sum() * due[test], after(due, test)
                sides = tuple(index[left].tolist()), tuple(index[~left].tolist())
                for k in range(1, leaves):
                    both = best(sides[0], depth - 1, k, then) + best(sides[1], depth - 1, leaves - k, then)
                    value = min(value, test_cost + both)
        return value

    return best(tuple(range(len(codes))), depth, leaves, tuple(costs.full))


@settings(max_examples=60, deadline=None, suppress_health_check=SHARED)
@given(SEEDS, st.integers(1, 4), st.integers(1, 8), st.sampled_from([0.0, 0.3]), st.booleans())
def test_paid_tests_equal_enumeration(seed, depth, leaves, complexity, bits):
    rng, codes, n_codes, nominal = small(seed)
    statistics = rng.integers(0, 9, (len(codes), int(rng.integers(2, 4)))).astype(float)
    full = rng.integers(0, 4, 3) * 0.4
    costs = SplitCosts(
        full, np.array([0, 1, int(rng.integers(1, 3))]), rng.integers(1, 3, len(codes)).astype(float),
        full * rng.random(3), rng.integers(-1, 2, 3),
    )  # fmt: skip
    search = Search(
        label_costs.TASK, codes, n_codes, nominal, statistics,
        split_costs=costs, complexity=complexity, memory_limit=1e6, bounds=Bounds(bits=bits),
    )  # fmt: skip
    expected = cheapest(codes, nominal, statistics, costs, depth, leaves, complexity)
    assert agree(search.solve(depth, leaves).report.objective, expected)


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("off", ["bits", "similar", "cancel", "interval"])
def test_bits_and_bounds_do_not_change_the_optimum(n_labels, off):
    rng = np.random.default_rng(n_labels)
    codes = rng.integers(0, 2, (150, 12)).astype(np.int32)
    codes[:, 6] = 1 - codes[:, 0]
    label = np.where(rng.random(150) < 0.2, rng.integers(0, n_labels, 150), codes[:, :3].sum(axis=1) % n_labels)
    statistics = label_costs.misclassification(label, n_labels)

    def solve(bounds):
        search = Search(
            label_costs.TASK, codes, np.full(12, 2), np.zeros(12, bool), statistics, bounds=bounds, memory_limit=1e7
        )
        return search.solve(4).report

    every, without = solve(Bounds()), solve(Bounds(**{off: False}))
    assert every.status == without.status == Status.OPTIMAL
    assert every.objective == without.objective
    assert off != "bits" or without.details["lane_runs"] > every.details["lane_runs"] == 0


def test_least_weight_of_a_leaf():
    rng, codes, n_codes, nominal = small(3, 12)
    codes = np.repeat(codes, 3, axis=0)
    statistics = rng.integers(0, 5, (len(codes), 2)).astype(float)
    search = Search(
        label_costs.TASK, codes, n_codes, nominal, statistics,
        min_leaf=8.0, size=np.full(len(codes), 2.0), memory_limit=1e6,
    )  # fmt: skip
    expected = least_objective(label_costs.TASK, codes, nominal, statistics, np.zeros(len(codes)), 3, 8, 4)
    assert agree(search.solve(3).report.objective, expected)


def test_transpose_of_bits():
    block = np.random.default_rng(0).integers(0, 2**64, 64, dtype=np.uint64)
    before = np.unpackbits(block.view(np.uint8), bitorder="little").reshape(64, 64)
    njit(lambda words: transpose(words))(block)
    np.testing.assert_array_equal(np.unpackbits(block.view(np.uint8), bitorder="little").reshape(64, 64), before.T)


# -- scores of treatments ------------------------------------------------------------------------------------------
def test_treatment_scores():
    outcome, given_, chance = np.array([1.0, 0.0]), np.array([0, 1]), np.array([0.5, 0.25])
    predicted = np.array([[0.4, 0.2], [0.6, 0.8]])
    ips = treatment_scores("ips", outcome, given_, 2, chance, None)
    robust = treatment_scores("doubly_robust", outcome, given_, 2, chance, predicted)
    np.testing.assert_allclose(treatment_scores("direct", outcome, given_, 2, None, predicted), predicted)
    np.testing.assert_allclose(ips, [[2.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(robust, [[0.4 + 0.6 / 0.5, 0.2], [0.6, 0.8 - 0.8 / 0.25]])
    np.testing.assert_allclose(lost_rewards(predicted, np.array([1.0, 2.0])), [[0.0, 0.2], [0.4, 0.0]])
    with pytest.raises(InvalidParameterError, match="propensity must be given"):
        treatment_scores("ips", outcome, given_, 2, None, None)


# -- checks of tasks -----------------------------------------------------------------------------------------------
def test_the_tasks_keep_their_promises():
    rng = np.random.default_rng(0)
    y, ones = rng.normal(size=60), np.ones(60)
    kept = [  # it raises where a promise is broken: see the tests below
        check_task(label_costs.TASK, rng.random((60, 3))),
        check_task(squared_error.TASK, squared_error.statistics(y, ones), squared_error.offset(y, ones)),
    ]
    hazard = rng.random(60) + 0.1
    event = rng.random(60) < 0.6
    kept += [check_task(relative_risk.TASK, relative_risk.statistics(event, hazard), np.where(event, 20.0, 0.0))]
    assert kept == [None] * 3


def not_empty(sums, n, out):
    out[:n] = sums[0, :n] + 1.0


def negative(sums, n, out):
    out[:n] = -sums[0, :n]


def concave(sums, n, out):
    out[:n] = np.sqrt(sums[0, :n])


def of_the_batch(sums, n, out):
    out[:n] = sums[0, :n] * n


def broken(sums, n, out):
    out[:n] = np.where(sums[0, :n] > 0, np.nan, 0.0)


@pytest.mark.parametrize(
    ("cost", "flags", "sentence"),
    [
        (not_empty, {}, "an empty leaf must cost 0"),
        (negative, {}, "at least 0"),
        (concave, {}, "set superadditive=False"),
        (of_the_batch, {}, "its own sums alone"),
        (broken, {}, "costs must be finite"),
        (concave, {"superadditive": False, "linear": True}, "set linear=False"),
    ],
)
def test_a_broken_promise_is_told(cost, flags, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        check_task(Task("broken", 1, cost, **flags), np.random.default_rng(0).random((30, 1)) + 0.1)


def test_checks_of_the_arguments():
    codes, sides = np.zeros((4, 1), np.int32), (np.array([2]), np.zeros(1, bool))
    with pytest.raises(InvalidParameterError, match="statistics must have the 2 columns"):
        Search(squared_error.TASK, codes, *sides, np.ones((4, 3)))
    with pytest.raises(InvalidParameterError, match="codes must lie in"):
        Search(label_costs.TASK, codes + 2, *sides, np.ones((4, 2)))
    with pytest.raises(InvalidParameterError, match="0 <= reduced <= full"):
        SplitCosts(np.array([1.0]), np.array([0]), np.ones(4), np.array([2.0]))
