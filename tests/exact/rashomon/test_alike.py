"""Splits of several features of one raw column: those that divide some rows alike are found."""

import numpy as np
import pytest

from softsurv.exact.rashomon.alike import raw_columns


def division(goes_left, rows):
    """Two sides of some rows, whatever their names."""
    return frozenset([tuple(rows[goes_left[rows]]), tuple(rows[~goes_left[rows]])])


@pytest.mark.parametrize(("kinds", "n_splits"), [(4, 9), (150, 40)])
def test_of_splits_that_divide_rows_alike_all_but_the_first_are_repeated(kinds, n_splits):
    rng = np.random.default_rng(kinds)
    n = 2 * kinds
    of_kind = rng.random((kinds, n_splits)) < 0.5
    goes_left = np.column_stack([of_kind[rng.integers(0, kinds, n)], rng.random(n) < 0.5])
    goes_left[:, n_splits // 2] = ~goes_left[:, 0]  # alike over all rows
    feature = np.append(np.arange(n_splits) % 3, 3)
    (column,) = raw_columns(["age", "age", "age", "sex"], feature, goes_left)
    assert column.splits.tolist() == list(range(n_splits))
    splits = np.sort(rng.choice(n_splits + 1, n_splits, replace=False))
    rows = np.sort(rng.choice(n, 7, replace=False))
    among = (rng.random((7, 5)) < 0.5).astype(float)
    repeated = column.repeated(splits, rows, among)
    for some, found in zip(among.T.astype(bool), repeated, strict=True):
        divisions = [division(goes_left[:, g], rows[some]) for g in splits]
        expected = [one in divisions[:k] and splits[k] < n_splits for k, one in enumerate(divisions)]
        assert found.tolist() == expected
    assert repeated.any()
    everywhere = column.repeated(np.arange(n_splits + 1), np.arange(n), np.ones(n))
    assert everywhere[n_splits // 2]


def test_a_raw_column_of_one_feature_needs_no_comparison():
    goes_left = np.array([[True, False], [False, True]])
    assert raw_columns(["a", "b"], np.arange(2), goes_left) == ()
    assert raw_columns((), np.arange(2), goes_left) == ()
