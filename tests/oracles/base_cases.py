"""What a base case must find, by enumeration of both splits."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv.exact.split_costs import prices_after, show_prices


def due_after(small, test):
    """Prices of all tests once one has been made."""
    prices = small.problem.prices
    return prices_after(prices, prices.full, test) if small.problem.branching else None


def price_of_split(small, code, rows, due):
    """What some rows pay for a split at given prices."""
    if not small.problem.branching:
        return 0.0
    prices = small.problem.prices
    return small.problem.stats[rows, prices.column].sum() * due[prices.test_of[small.problem.feature_of[code]]]


def best_stump(small, rows, due=None):
    """Least cost of some rows with at most one split."""
    best = small.cost(rows)
    for code in range(len(small.problem.feature_of)):
        left = small.goes_left(code)[rows]
        if left.any() and not left.all():
            value = small.cost(rows[left]) + small.cost(rows[~left]) + price_of_split(small, code, rows, due)
            best = min(best, value)
    return best


def check_base_case(small, rows=None, depth=2):
    """Run the base case of a small search on some of its rows, and compare all that it says with enumeration."""
    rows = small.rows if rows is None else rows
    show_prices(small.problem.prices, small.problem.prices.full, small.local)
    small.problem.calls.solve_two(small.problem, rows, len(rows), depth, small.local)
    local, full = small.local, small.problem.prices.full
    value = np.full(5, small.cost(rows))
    by_split = []
    for s, (goes_left, code) in enumerate(small.splits()):
        left = goes_left[rows]
        assert 0 < left.sum() < len(left)
        after = due_after(small, small.problem.prices.test_of[small.problem.feature_of[code]])
        leaf, stump = np.empty(2), np.empty(2)
        for side, part in enumerate((rows[left], rows[~left])):
            leaf[side], stump[side] = small.cost(part), best_stump(small, part, after)
            if depth == 2:
                at = side ^ local.flipped[s]
                assert local.leaf[at, s] == pytest.approx(leaf[side])
                assert local.stump[at, s] == pytest.approx(stump[side])
        both = [leaf.sum(), min(leaf[0] + stump[1], stump[0] + leaf[1]), stump.sum()]
        by_split.append(np.array(both) + price_of_split(small, code, rows, full))
        value[2:] = np.minimum(value[2:], by_split[-1])
    for leaves in range(1, 1 + (4 if depth == 2 else 2)):
        assert local.value[leaves] == pytest.approx(value[leaves])
        root = local.root[leaves]
        assert root < 0 or by_split[root][leaves - 2] == pytest.approx(value[leaves])
        assert (root < 0) == bool(value[leaves] >= value[1] - 1e-12)
