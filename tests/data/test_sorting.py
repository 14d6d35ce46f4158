"""Orders of many rows against `numpy.lexsort`."""

from itertools import pairwise

import numpy as np
import pytest

from softsurv.data import sorting, threads
from softsurv.data.sorting import break_ties, fields_order, order_in_runs, stable_order, tied_places


@pytest.fixture(params=[False, True], ids=["one thread", "threads"])
def many(request, monkeypatch):
    """Small tables are sorted as large ones are."""
    monkeypatch.setattr(sorting, "MANY_ROWS", 1)
    monkeypatch.setattr(sorting, "RUN_ROWS", 8)
    if request.param:
        monkeypatch.setattr(sorting, "threads_for", lambda cells: 3)


def values_of(kind, rng, n):
    values = {
        "distinct": rng.permutation(n) / 7,
        "few ties": rng.integers(0, 20 * n, n) / 7,
        "many ties": rng.integers(0, 5, n) / 7,
        "days": rng.integers(0, 40, n).astype(float),
        "wide days": rng.integers(0, 200_000, n).astype(float),
        "negative": rng.normal(size=n).round(1),
        "one": np.full(n, 2.5),
        "zeros": rng.choice([-0.0, 0.0, 0.5], n),
        "endless": rng.choice([1.0, 1.5, 3.0, np.inf], n),
        "float32": rng.random(n, dtype=np.float32).astype(float).round(3),
    }
    return values[kind]


KINDS = [
    "distinct",
    "few ties",
    "many ties",
    "days",
    "wide days",
    "negative",
    "one",
    "zeros",
    "endless",
    "float32",
]


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 9, 5000])
def test_places_by_size_are_those_of_a_stable_sort(kind, n):
    values = values_of(kind, np.random.default_rng(n), n)
    np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_small_table_is_sorted_at_once(kind):
    values = values_of(kind, np.random.default_rng(0), 50)
    np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("n", [1, 2, 5000])
@pytest.mark.parametrize("seed", range(4))
def test_rows_of_many_fields_are_those_of_a_lexsort(n, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    first = values_of(["few ties", "many ties", "days", "distinct"][seed], rng, n)
    second, third = rng.choice([0.0, 1.0], n), rng.choice([-0.0, 0.0, 2.0, np.inf], n)
    fields = [first, second, third]
    expected, expected_same = fields_order(fields)
    np.testing.assert_array_equal(expected, np.lexsort(fields[::-1]))
    monkeypatch.setattr(sorting, "MANY_ROWS", 1)
    monkeypatch.setattr(sorting, "RUN_ROWS", 64)
    monkeypatch.setattr(threads, "MANY_CELLS", 1)
    order, same = fields_order(fields)
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(same, expected_same)
    rows = np.array(fields)[:, expected].T.tolist()
    assert expected_same.tolist() == [False, *(a == b for a, b in pairwise(rows)), False]


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("most", [1, 3, 30, 400])
def test_rows_of_a_run_are_ordered_by_keys_and_keep_their_order(most):
    rng = np.random.default_rng(most)
    run = np.sort(rng.integers(0, most, 300))
    keys = [rng.integers(0, 3, 300).astype(np.uint64), rng.choice([-0.0, 0.0, 1.0], 300)]
    np.testing.assert_array_equal(order_in_runs(run, keys), np.lexsort((*keys[::-1], run)))


def test_ties_are_broken_in_place_and_those_left_are_known():
    order = np.array([4, 1, 3, 0, 2])
    same = np.array([False, True, True, False, True, False])  # two runs: 4, 1, 3 and 0, 2
    tied = tied_places(same)
    assert tied.tolist() == [0, 1, 2, 3, 4]
    key = np.array([7.0, 4.0, 0.0, 5.0, 5.0])  # of the rows 0 to 4
    assert break_ties(order, same, tied, [key[order]]).tolist() == [1, 0, 2, 4, 3]
    assert order.tolist() == [1, 4, 3, 2, 0]
    assert tied_places(same).tolist() == [1, 2]  # the rows 4 and 3
