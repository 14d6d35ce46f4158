"""The arrays of a search: exact sums, equal rows and features, scratch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.plain_search import small

from softsurv.exact import equal_rows
from softsurv.exact.equal_rows import as_words, merge_equal_rows
from softsurv.exact.objectives import relative_risk
from softsurv.exact.problem import (
    aligned,
    distinct_features,
    round_to_grid,
    shape_of,
    sum_by_group,
)
from softsurv.exact.search import Search
from softsurv.exact.split_costs import SplitCosts
from softsurv.results import Status


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


@pytest.mark.parametrize(("equal", "looked_for"), [("none", False), ("neighbours", True), ("far apart", True)])
def test_equal_rows_are_looked_for_unless_a_sample_has_none(monkeypatch, equal, looked_for):
    monkeypatch.setattr(equal_rows, "MANY_ROWS", 100)
    monkeypatch.setattr(equal_rows, "SAMPLE", 80)
    codes = np.arange(400).reshape(200, 2)
    if equal == "neighbours":
        codes[1] = codes[0]
    elif equal == "far apart":
        codes[100:] = codes[99]
    first, group = merge_equal_rows(codes)
    np.testing.assert_array_equal(codes[first][group], codes)
    assert (len(first) < len(codes)) == looked_for


def test_a_search_over_equal_rows_that_were_not_merged_finds_the_same_tree(monkeypatch):
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, (300, 4)).astype(np.int32)
    event = rng.random(300) < 0.6
    statistics = relative_risk.statistics(event, rng.exponential(size=300))
    offset = np.where(event, -np.log(statistics[:, 1]), 0.0)

    def best():
        search = Search(relative_risk.TASK, codes, np.full(4, 3), np.arange(4) == 0, statistics, offset)
        return search, search.solve(4).report

    search, merged = best()
    monkeypatch.setattr(equal_rows, "MANY_ROWS", 1)
    monkeypatch.setattr(equal_rows, "_look_distinct", lambda codes: True)
    other, plain = best()
    assert len(search.rows) < len(other.rows) == 300
    assert plain.status == merged.status == Status.OPTIMAL
    assert plain.objective == pytest.approx(merged.objective)


def test_counts_weigh_the_kinds_of_rows():
    kinds, counts = np.array([[0.1, 0.3], [0.7, 0.0]]), np.array([1000.0, 3.0])
    rounded = round_to_grid(kinds, counts)
    expanded = round_to_grid(np.repeat(kinds, counts.astype(int), axis=0))
    np.testing.assert_array_equal(rounded, expanded[[0, -1]])


def test_features_that_divide_alike_are_dropped():
    """Equal columns, and swapped ones of two codes; not a swapped one of three codes, nor one of another test."""
    a, b = np.array([0, 1, 1, 0, 0]), np.array([0, 1, 2, 1, 0])
    codes = np.column_stack([a, 1 - a, a, b, 2 - b, b, b])
    nominal = np.array([False, False, True, False, False, True, False])
    before = codes.copy()
    assert distinct_features(codes, nominal, np.zeros(7, int)).tolist() == [0, 3, 4, 5]
    assert distinct_features(codes, nominal, np.arange(7)).tolist() == list(range(7))
    np.testing.assert_array_equal(codes, before)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), most=st.sampled_from([1, 2, 300, 2**31 - 1]), p=st.integers(1, 70))
def test_words_order_rows_as_their_codes_do(seed, most, p):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, most + 1, (6, p)) * rng.integers(0, 2, p)
    codes[rng.integers(0, 6)] = codes[0]  # an equal pair, perhaps
    words = as_words(codes)
    for i in range(6):
        for j in range(6):
            assert (tuple(codes[i]) < tuple(codes[j])) == (tuple(words[:, i]) < tuple(words[:, j]))


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
