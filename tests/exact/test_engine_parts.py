"""The parts of the exact engine: logarithm, grid, merging, cache, tasks of one's own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from oracles.enumeration import least_objective

from softsurv.exact.jit import FAST
from softsurv.exact.kernels.cache import ENTRY_BYTES, find, insert, new_cache, tag_of
from softsurv.exact.kernels.log_ratio import log_ratio
from softsurv.exact.objectives import label_costs, relative_risk
from softsurv.exact.problem import merge_equal_rows, round_to_grid, sum_by_group
from softsurv.exact.search import Search
from softsurv.exact.task import Task, per_leaf


@njit(**FAST)
def ratios(a, b, out):
    for i in range(a.size):
        out[i] = log_ratio(a[i], b[i])


@njit
def insert_and_find(cache, n):
    """Insert n entries under keys that share their chain, and count those found again."""
    found = 0
    for i in range(n):
        insert(cache, np.uint64(7), np.uint64(i), tag_of(2, 0), float(i), 0.0, 0.0, 0)
    for i in range(n):
        at = find(cache, np.uint64(7), np.uint64(i), tag_of(2, 0))
        if at >= 0 and cache.values[at, 0] == i:
            found += 1
    return found, find(cache, np.uint64(7), np.uint64(0), tag_of(3, 8))


def test_log_ratio_is_accurate_over_the_range_of_sums():
    rng = np.random.default_rng(0)
    a = np.concatenate([np.exp(rng.uniform(-25, 25, 5000)), np.arange(1.0, 200.0)])
    b = np.concatenate([a[:5000] * np.exp(rng.uniform(-3, 3, 5000)), np.arange(200.0, 1.0, -1.0)])
    out = np.empty(a.size)
    ratios(a, b, out)
    exact = np.log(a.astype(np.longdouble) / b.astype(np.longdouble)).astype(float)
    assert np.max(np.abs(out - exact) / np.maximum(np.abs(exact), 1.0)) < 4e-16


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 500))
def test_sums_on_the_grid_are_exact_in_any_order(seed, n):
    rng = np.random.default_rng(seed)
    raw = rng.exponential(size=(n, 2)) * 10.0 ** rng.integers(-8, 8)
    stats = round_to_grid(raw)
    for k in range(2):
        total = math.fsum(stats[:, k])
        assert stats[:, k].cumsum()[-1] == total
        assert stats[rng.permutation(n), k].cumsum()[-1] == total
        part = rng.random(n) < 0.5
        assert total - stats[part, k].cumsum()[-1] == stats[~part, k].sum() if part.any() else True
    assert np.abs(stats - raw).max() <= raw.sum(axis=0).max() * 2.0**-51


def test_equal_rows_are_merged_in_order():
    codes = np.array([[1, 0], [0, 1], [1, 0], [0, 1], [0, 0]])
    first, group = merge_equal_rows(codes)
    assert len(first) == 3
    np.testing.assert_array_equal(codes[first][group], codes)
    np.testing.assert_array_equal(sum_by_group(np.ones((5, 1)), group, 3)[group].ravel(), [2, 2, 2, 2, 1])


def test_no_features_make_one_group():
    first, group = merge_equal_rows(np.zeros((4, 0), int))
    assert len(first) == 1
    assert not group.any()


def test_cache_chains_and_tags():
    found, other_limits = insert_and_find(new_cache(1e6), 300)
    assert found == 300
    assert other_limits == -1


def test_full_cache_refuses_quietly():
    cache = new_cache(1024 * (ENTRY_BYTES + 2))
    found, _ = insert_and_find(cache, 2000)
    assert found == len(cache.tags)


def test_digest_follows_the_leaf_cost():
    def one(sums):
        return sums[0] * 2.0

    def other(sums):
        return sums[0] * 3.0

    digests = [Task("mine", 1, per_leaf(f)).digest() for f in (one, one, other)]
    assert digests[0] == digests[1] != digests[2]


def test_leaf_costs_of_the_tasks():
    sums = np.array([[3.0, 6.0], [0.0, 2.0], [0.0, 0.0]])
    np.testing.assert_allclose(relative_risk.TASK.costs(sums), [-3 * math.log(0.5), 0.0, 0.0])
    np.testing.assert_allclose(relative_risk.relative_risk(sums[:2]), [0.5, 0.25])
    np.testing.assert_allclose(label_costs.TASK.costs(sums), [3.0, 0.0, 0.0])
    np.testing.assert_allclose(label_costs.TASK.costs(np.array([[3.0, 4.0, 2.0]])), [2.0])


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
