"""Rows as masks over words: the same sums and the same trees as row by row."""

import math

import numpy as np
import pytest
from oracles.brier_rows import in_order, in_python, rules_of
from oracles.plain_python import plain

from softsurv.exact.brier.base_case import solve_shallow
from softsurv.exact.brier.bit_columns import bound_sums, mask_words


@pytest.fixture
def packed_everywhere(monkeypatch):
    """Features as words, and coarse bins of time, also for few rows."""
    monkeypatch.setattr("softsurv.exact.brier.prepare.PACK_FACTOR", 0)
    monkeypatch.setattr("softsurv.exact.brier.prepare.COARSE_BINS", 1)
    monkeypatch.setattr("softsurv.exact.brier.prepare.COARSE_ROWS", 7)


def test_a_mask_has_the_bits_of_its_rows(packed_everywhere):
    x, _, rows = in_order(1, n=200, n_times=20)
    index = np.array([0, 5, 6, 70, 71, 199])
    words, mask = plain(mask_words)(rows.coarse, index)
    assert np.bitwise_count(mask).sum() == len(index)
    assert (mask != 0).all()
    assert (np.diff(words) > 0).all()
    for f in range(x.shape[1]):
        here = sum(int(np.bitwise_count(rows.coarse.bits[w, f] & m)) for w, m in zip(words, mask, strict=True))
        assert here == x[index, f].sum()
    no_words, no_mask = plain(mask_words)(rows.coarse, index[:0])
    assert len(no_words) == len(no_mask) == 0


def test_bounds_add_up_over_the_rows_with_a_feature():
    x, _, rows = in_order(2, n=40)
    index = np.arange(1, 40, 3)
    bound = plain(bound_sums)(rows, index)
    assert bound[-1] == pytest.approx(rows.bound[index].sum())
    np.testing.assert_allclose(bound[:-1], x[index].T @ rows.bound[index])
    assert bound[-1] > 0


@pytest.mark.parametrize("step", [1, 2])
def test_masked_words_find_the_trees_that_gathered_rows_do(packed_everywhere, monkeypatch, step):
    _, _, masked = in_order(3, n=120, n_times=4)
    monkeypatch.undo()
    _, _, gathered = in_order(3, n=120, n_times=4)
    index = np.arange(0, 120, step)
    found = [
        plain(solve_shallow)(rows, index, in_python(rules_of(rows, min_rows=3.0)), 2, math.inf, np.zeros(4))
        for rows in (masked, gathered)
    ]
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-14)
    np.testing.assert_array_equal(found[0][1], found[1][1])
