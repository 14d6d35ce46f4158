"""Splits that cost something: prices along a path, and the optimum against enumeration."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.plain_python import plain
from oracles.small_codes import SEEDS, agree, small_codes

from softsurv.errors import InvalidParameterError
from softsurv.exact import split_costs as kernels
from softsurv.exact.bounds import Bounds
from softsurv.exact.objectives import label_costs
from softsurv.exact.search import Search
from softsurv.exact.split_costs import SplitCosts, paid, prices_after
from softsurv.exact.tree import CodeTree


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


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 4), st.integers(1, 8), st.sampled_from([0.0, 0.3]), st.booleans())
def test_paid_tests_equal_enumeration(seed, depth, leaves, complexity, bits):
    rng, codes, n_codes, nominal = small_codes(seed)
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


PRICES = SplitCosts(
    np.array([3.0, 2.0, 5.0, 1.0]), np.array([0, 1, 2, 3, 1]), np.ones(6), np.array([1.0, 0.5, 2.0, 1.0]),
    np.array([0, 0, 0, -1]),
).prices(np.arange(5), 0)  # fmt: skip


def test_prices_after_a_test():
    after = prices_after(PRICES, PRICES.full, 1)
    np.testing.assert_array_equal(after, [1.0, 0.0, 2.0, 1.0])
    np.testing.assert_array_equal(prices_after(PRICES, after, 0), [0.0, 0.0, 2.0, 1.0])  # what is free stays free
    np.testing.assert_array_equal(prices_after(PRICES, PRICES.full, 3), [3.0, 2.0, 5.0, 0.0])
    np.testing.assert_array_equal(PRICES.full, [3.0, 2.0, 5.0, 1.0])


def test_kernels_and_python_agree_on_prices():
    for first in range(4):
        due = prices_after(PRICES, PRICES.full, first)
        for second in range(4):
            after = np.empty(4)
            plain(kernels.pay)(PRICES, due, second, after)
            np.testing.assert_array_equal(after, prices_after(PRICES, due, second))
    shown, compiled = ({"due": np.zeros(4), "after": np.zeros((4, 4))} for _ in range(2))
    kernels.show_prices(PRICES, due, SimpleNamespace(**shown))
    plain(kernels.set_prices)(PRICES, due, SimpleNamespace(**compiled))
    for name in shown:
        np.testing.assert_array_equal(shown[name], compiled[name])


def test_contexts_are_the_same_where_prices_are():
    """Paths of the same tests in another order, and no others."""
    key_of = {}
    for path in permutations(range(4), 2):
        due = PRICES.full
        for test in path:
            due = prices_after(PRICES, due, test)
        key_of.setdefault(tuple(due), set()).add(tuple(map(int, plain(kernels.context_of)(PRICES, due))))
    assert all(len(keys) == 1 for keys in key_of.values())
    assert len({key for keys in key_of.values() for key in keys}) == len(key_of) == 6
    assert plain(kernels.context_of)(PRICES, PRICES.full) == (0, 0)


def test_contexts_of_a_node_are_those_after_each_test():
    nodes = SimpleNamespace(due=np.array([PRICES.full, np.zeros(4)]), context=np.zeros((2, 4, 2), np.uint64))
    plain(kernels.open_contexts)(PRICES, 0, nodes)
    for test in range(4):
        expected = plain(kernels.context_of)(PRICES, prices_after(PRICES, PRICES.full, test))
        assert tuple(nodes.context[0, test]) == expected


def test_what_the_rows_of_a_tree_pay():
    """The root asks test 0, its left side test 1 of the same group, and again test 0 for nothing."""
    tree = CodeTree(
        np.array([0, 1, 0, -1, -1, -1, -1]), np.zeros(7, int), np.array([1, 2, 3, -1, -1, -1, -1]),
        np.array([6, 5, 4, -1, -1, -1, -1]), np.zeros((7, 1)),
    )  # fmt: skip
    costs = SplitCosts(np.array([3.0, 2.0]), np.array([0, 1]), np.ones(6), np.array([1.0, 0.5]), np.array([0, 0]))
    weight = np.array([6.0, 4.0, 3.0, 1.0, 2.0, 1.0, 2.0])
    assert paid(tree, costs, weight) == 6.0 * 3.0 + 4.0 * 0.5 + 0.0


@pytest.mark.parametrize("full", [[np.inf], [-1.0], [np.nan]])
def test_prices_that_are_no_prices_are_refused(full):
    with pytest.raises(InvalidParameterError, match="finite with 0 <= reduced <= full"):
        SplitCosts(np.array(full), np.array([0]), np.ones(4))
