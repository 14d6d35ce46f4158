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


def differences(small, rows=None, depth=2):
    """What the base case of a small search says of some of its rows and enumeration does not: none if all is well."""
    rows = small.rows if rows is None else rows
    show_prices(small.problem.prices, small.problem.prices.full, small.local)
    small.problem.calls.solve_two(small.problem, rows, len(rows), depth, small.local)
    leaf, stump, by_split = enumerated(small, rows)
    local = small.local
    wrong = [f"split {code} divides nothing" for left, code in small.splits() if len(set(left[rows])) == 1]
    for s in range(len(by_split) if depth == 2 else 0):
        for side in (0, 1):
            at = side ^ local.flipped[s]
            said = local.leaf[at, s], local.stump[at, s]
            if said != pytest.approx((leaf[s, side], stump[s, side])):
                wrong.append(f"split {s}, side {side}: {said} for {leaf[s, side]}, {stump[s, side]}")
    value = np.append(np.full(2, small.cost(rows)), np.minimum(small.cost(rows), by_split.min(axis=0, initial=np.inf)))
    for leaves in range(1, 1 + (4 if depth == 2 else 2)):
        said, root = local.value[leaves], local.root[leaves]
        is_best = root < 0 or by_split[root, leaves - 2] == pytest.approx(value[leaves])
        if said != pytest.approx(value[leaves]) or not is_best or (root < 0) != (value[leaves] >= value[1] - 1e-12):
            wrong.append(f"{leaves} leaves: {said} with root {root} for {value[leaves]}")
    return wrong


def enumerated(small, rows):
    """For each split the costs of both sides as leaves and as stumps (S, 2), and of both with 2 to 4 leaves (S, 3)."""
    leaf, stump, both = [], [], []
    for goes_left, code in small.splits():
        left = goes_left[rows]
        after = due_after(small, small.problem.prices.test_of[small.problem.feature_of[code]])
        parts = rows[left], rows[~left]
        leaf.append([small.cost(part) for part in parts])
        stump.append([best_stump(small, part, after) for part in parts])
        (l0, l1), (s0, s1) = leaf[-1], stump[-1]
        paid = price_of_split(small, code, rows, small.problem.prices.full)
        both.append([l0 + l1 + paid, min(l0 + s1, s0 + l1) + paid, s0 + s1 + paid])
    return (np.array(table).reshape(-1, width) for table, width in ((leaf, 2), (stump, 2), (both, 3)))
