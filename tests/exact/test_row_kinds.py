"""Rows by kind: found, counted, and packed as bits, against loops over the rows."""

import numpy as np
import pytest

from softsurv.exact import row_kinds
from softsurv.exact.kernels.small_counts import NOTHING
from softsurv.exact.layout import Space
from softsurv.exact.row_kinds import (
    MAX_KINDS,
    bit_sizes,
    bit_spaces,
    bits_pay,
    errors_of,
    kinds_of,
    no_row_kinds,
    packed_splits,
    row_kinds_of,
    unit_of,
)


def worst(kinds):
    return kinds.max(axis=1)


def test_kinds_are_the_different_rows_in_order():
    columns = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [0.0, 1.0]])
    kinds, kind = kinds_of(columns)
    np.testing.assert_array_equal(kinds, np.unique(columns, axis=0))
    np.testing.assert_array_equal(kinds[kind], columns)


@pytest.mark.parametrize("first", [0, 200])
def test_too_many_kinds_are_none_wherever_they_begin(first):
    columns = np.zeros((300, 1))
    columns[first : first + MAX_KINDS] = np.arange(MAX_KINDS)[:, None]
    assert kinds_of(columns) is not None
    columns[first + MAX_KINDS] = 99.0
    assert kinds_of(columns) is None


def table(n=60, seed=0):
    """Distinct rows (27,) of three features with three codes, and which of them each of n rows is."""
    rng = np.random.default_rng(seed)
    codes = np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij"), -1).reshape(-1, 3)
    return codes, rng.integers(0, 27, n), rng


def test_counts_bits_and_nested_splits(monkeypatch):
    monkeypatch.setattr(row_kinds, "bits_pay", lambda *_, **__: True)
    codes, group, rng = table(n=2000)
    columns, start, nominal = (
        np.eye(2)[rng.integers(0, 2, 2000)],
        np.array([0, 3, 6, 9]),
        np.array([False, True, False]),
    )
    codes, group = np.repeat(codes, 20, axis=0), rng.integers(0, 540, 2000)
    found = row_kinds_of(columns, group, codes, start, nominal, False, worst)
    for u in (0, 17, 400):
        for c, kind in enumerate(found.kind_stats):
            assert found.kind_count[u, c] == ((group == u) & (columns == kind).all(axis=1)).sum()
    assert found.split_code.tolist() == [0, 1, 3, 4, 5, 6, 7]
    assert found.follows.tolist() == [0, 1, 0, 0, 0, 0, 1]
    for d, g in enumerate(found.split_code):
        f = int(np.searchsorted(start, g, side="right")) - 1
        left = codes[:, f] == g - start[f] if nominal[f] else codes[:, f] <= g - start[f]
        np.testing.assert_array_equal((found.row_bits[:, 0] >> np.uint64(d)) & np.uint64(1), left)
    np.testing.assert_array_equal(found.worst, worst(found.kind_stats))


def test_units_of_every_kind_together_cancel():
    codes, group, rng = table()
    start, nominal, columns = np.array([0, 3, 6, 9]), np.zeros(3, bool), np.eye(2)[rng.integers(0, 2, 60)]
    whole, rest = (row_kinds_of(columns, group, codes, start, nominal, cancel, worst) for cancel in (False, True))
    assert (rest.kind_count.min(axis=1) == 0).all()
    np.testing.assert_array_equal(np.ptp(whole.kind_count - rest.kind_count, axis=1), 0)
    uneven = columns * [1.0, 2.0]  # a unit of each kind does change something
    kept = row_kinds_of(uneven, group, codes, start, nominal, True, worst)
    np.testing.assert_array_equal(kept.kind_count.sum(), 60)


def test_more_splits_than_a_word_has_bits():
    codes = np.random.default_rng(0).integers(0, 100, (30, 1))
    bits = packed_splits(codes, np.zeros(99, int), np.arange(99), np.array([False]))
    assert bits.shape == (30, 2)
    for row in range(30):
        word = int(bits[row, 0]) | int(bits[row, 1]) << 64
        assert word == sum(1 << d for d in range(99) if codes[row, 0] <= d)


def test_bits_pay_with_few_rows_to_a_pair_of_splits():
    count = np.eye(2, dtype=np.int64)[np.arange(600) % 2]
    assert bits_pay(count, 20, 20, 2, errors=True, in_lanes=True)
    assert bits_pay(count, 600, 20, 2, errors=True, in_lanes=False)
    many = np.tile(count, (10, 1))
    assert not bits_pay(many, 200, 10, 2, errors=True, in_lanes=True)
    assert bits_pay(many, 600, 10, 2, errors=True, in_lanes=False)
    assert not bits_pay(10 * count, 20, 6, 2, errors=True, in_lanes=True)  # each row stands for ten
    assert bits_pay(count, 150, 20, 2, errors=True, in_lanes=True)
    assert not bits_pay(np.tile(count, 8), 150, 20, 16, errors=False, in_lanes=True)
    half = np.arange(2000) % 2  # two distinct rows
    codes, start = np.array([[0], [1]]), np.array([0, 2])
    assert row_kinds_of(np.eye(2)[half], half, codes, start, np.array([False]), False, worst) is None


def test_least_size_in_members():
    kinds = np.column_stack([1.0 - np.eye(2), np.full(2, 0.5)])
    assert errors_of(kinds[:, :2], 0.0) == (1.0, 0)
    assert errors_of(kinds, 1.5 * (1 - 1e-12)) == (1.0, 3)
    assert errors_of(kinds, 1.4) == (1.0, 3)
    assert errors_of(kinds, 1e9) == (1.0, NOTHING)
    assert errors_of(np.column_stack([1.0 - np.eye(2), [1.0, 2.0]]), 3.0) == (0.0, 0)
    assert errors_of(np.column_stack([1.0 - np.eye(2), [0.0, 0.0]]), 3.0) == (0.0, 0)


def test_errors_cost_a_member_of_any_kind_the_same():
    assert unit_of(2.5 - 2.5 * np.eye(3)[[1, 2, 0]]) == 2.5
    assert unit_of(1.0 - np.eye(4)[:2]) == 1.0  # two of four labels do not occur
    for wrong in ([[0.0, 1.0], [2.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]], [[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0, 2.0]]):
        assert unit_of(np.array(wrong)) == 0.0


@pytest.mark.parametrize("shares", [True, False])
def test_scratch_is_as_large_as_the_members_of_all_rows(shares):
    none = no_row_kinds(3)
    assert bit_sizes(none) == (0, 0, 0, 0)
    kinds = none._replace(
        kind_stats=np.eye(2), kind_count=np.array([[65, 1], [63, 0]]), split_code=np.arange(5, dtype=np.int32),
        row_bits=np.zeros((2, 1), np.uint64),
    )  # fmt: skip
    assert bit_sizes(kinds) == (2, 5, 64, 2 + 1)
    spaces = bit_spaces(bit_sizes(kinds), shares)
    assert spaces["member_row"] == Space((3 * 64,))
    assert spaces["shared"].shape == ((13, 13) if shares else (0, 0))
