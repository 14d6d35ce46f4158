"""Rows with the same codes are one, and a search that leaves them apart finds the same tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv.exact import equal_rows
from softsurv.exact.equal_rows import as_words, merge_equal_rows
from softsurv.exact.objectives import relative_risk
from softsurv.exact.problem import (
    sum_by_group,
)
from softsurv.exact.search import Search
from softsurv.results import Status


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
