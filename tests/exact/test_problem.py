"""The arrays of a search: exact sums, equal rows and features, scratch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.plain_search import small

from softsurv.exact.problem import (
    aligned,
    column_sums,
    distinct_features,
    round_to_grid,
    row_minima,
    shape_of,
)
from softsurv.exact.split_costs import SplitCosts


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


def test_a_total_that_is_a_power_of_two_takes_one_grid_in_any_order():
    """Classes that weigh the same have such totals, but for the rounding of their sums."""
    raw = np.repeat([1 / 3, 1 / 26], [3, 26])[:, None]
    orders = [np.random.default_rng(seed).permutation(len(raw)) for seed in range(30)]
    assert {float(column_sums(raw[order])[0]) > 2.0 for order in orders} == {True, False}
    for order in orders:
        np.testing.assert_array_equal(round_to_grid(raw[order]), round_to_grid(raw)[order])


def test_counts_weigh_the_kinds_of_rows():
    kinds, counts = np.array([[0.1, 0.3], [0.7, 0.0]]), np.array([1000.0, 3.0])
    rounded = round_to_grid(kinds, counts)
    expanded = round_to_grid(np.repeat(kinds, counts.astype(int), axis=0))
    np.testing.assert_array_equal(rounded, expanded[[0, -1]])


def test_one_number_stays_one_number_in_every_column():
    """Errors of a rare class weigh as much as those of a frequent one."""
    rare = 0.3 * np.eye(2)[[0] * 3 + [1] * 997]
    assert np.unique(round_to_grid(rare)).size == 2
    assert np.unique(round_to_grid(0.3 * np.eye(2), np.array([3.0, 997.0]))).size == 2
    other = np.where(rare > 0, rare, 0.1)  # columns of several numbers have grids of their own
    for k in range(2):
        np.testing.assert_array_equal(round_to_grid(other)[:, k], round_to_grid(other[:, [k]])[:, 0])


def test_features_that_divide_alike_are_dropped():
    """Equal columns, and swapped ones of two codes; not a swapped one of three codes, nor one of another test."""
    a, b = np.array([0, 1, 1, 0, 0]), np.array([0, 1, 2, 1, 0])
    codes = np.column_stack([a, 1 - a, a, b, 2 - b, b, b])
    nominal = np.array([False, False, True, False, False, True, False])
    before = codes.copy()
    assert distinct_features(codes, nominal, np.zeros(7, int)).tolist() == [0, 3, 4, 5]
    assert distinct_features(codes, nominal, np.arange(7)).tolist() == list(range(7))
    np.testing.assert_array_equal(codes, before)


@pytest.mark.parametrize("size", [1, 8, 13, 1000])
def test_aligned_memory_starts_on_a_cache_line(size):
    one = aligned(size)
    assert one.shape == (size,)
    assert one.ctypes.data % 64 == 0
    assert not one.any()


def test_scratch_begins_at_full_prices_and_reads_the_shared_flags():
    costs = SplitCosts(np.array([0.3, 0.7]), np.array([0, 1, 0]), np.ones(14))
    search = small(split_costs=costs).search
    problem, scratch = search.problem, search.scratch[0]
    assert (scratch.nodes.value.due == [0.3, 0.7]).all()
    assert scratch.local.value.due.tolist() == [0.3, 0.7]
    assert scratch.local.value.control is search.control
    assert scratch.nbytes == tuple(part.layout.nbytes for part in scratch)
    shape = shape_of(problem)
    assert (shape.rows, shape.features, shape.codes, shape.tests) == (*problem.gcode.shape, len(problem.feature_of), 2)
    assert shape.most_codes == np.diff(problem.code_start).max()


@pytest.mark.parametrize("shape", [(0, 2), (1, 1), (40, 1), (40, 3)])
def test_sums_of_columns_and_least_of_rows(shape):
    values = np.random.default_rng(0).integers(-9, 9, shape).astype(float)
    np.testing.assert_array_equal(column_sums(values), values.sum(axis=0))
    np.testing.assert_array_equal(row_minima(values), values.min(axis=1))
    words = np.random.default_rng(1).integers(0, 2**64, shape, dtype=np.uint64)
    np.testing.assert_array_equal(column_sums(words), words.sum(axis=0, dtype=np.uint64))  # modulo 2**64
