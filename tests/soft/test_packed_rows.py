"""Rows put side by side, and two products of them, against numpy."""

import numpy as np
import pytest
from oracles.plain_python import plain

from softsurv.soft.packed_rows import (
    add_few_products,
    add_linear,
    add_products,
    fill_few,
    packed,
    packed_columns,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("count", [0, 3, 6])
def test_rows_in_order_one_behind_the_other(count):
    table, order = RNG.normal(size=(8, 5)), np.array([7, 0, 3, 3, 2, 1])
    by_row, by_column = np.full((5, 6), np.nan), np.full((5, 6), np.nan)
    plain(packed)(table, order, count, by_row)
    plain(packed_columns)(table.T.copy(), order, count, by_column)
    np.testing.assert_array_equal(by_row, by_column)
    np.testing.assert_array_equal(by_row[:, :count], table[order[:count]].T)
    assert np.isnan(by_row[:, count:]).all()


@pytest.mark.parametrize("columns", [1, 3, 4, 5, 9])  # four at a time, and what is left
def test_products_of_a_part_of_the_rows(columns):
    table, weights, slope = RNG.normal(size=(columns, 10)), RNG.normal(size=columns), RNG.normal(size=4)
    z, out = RNG.normal(size=4), RNG.normal(size=columns)
    expected = z + weights @ table[:, 3:7], out + table[:, 3:7] @ slope
    plain(add_linear)(weights, table, 3, 7, z)
    plain(add_products)(table, 3, 7, slope, out)
    np.testing.assert_allclose(z, expected[0])
    np.testing.assert_allclose(out, expected[1])


def test_products_of_rows_of_few_numbers_are_those_of_the_table():
    table, order = RNG.normal(size=(8, 5)) * (RNG.random((8, 5)) < 0.3), np.array([7, 0, 3, 5, 2, 1])
    row, column = np.nonzero(table)
    begin, value = np.searchsorted(row, np.arange(9)), table[row, column]
    weights, slope = RNG.normal(size=5), RNG.normal(size=3)
    z, out = np.full(4, np.nan), RNG.normal(size=5)
    expected = out + slope @ table[order[2:5]]
    plain(fill_few)(weights, order, begin, column, value, 2, 5, z)
    plain(add_few_products)(order, begin, column, value, 2, 5, slope, out)
    np.testing.assert_allclose(z[:3], table[order[2:5]] @ weights)
    assert np.isnan(z[3])
    np.testing.assert_allclose(out, expected)
