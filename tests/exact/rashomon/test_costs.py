"""Costs of many trees as counted whole numbers, against lists of trees written down."""

from collections import Counter
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsurv.exact.rashomon.costs import IMPOSSIBLE, Costs, add_pairs, count_pairs, n_pairs, pairs, put_together

SOME = st.lists(st.integers(0, 12), max_size=15)


def costs(values):
    return Costs.of(np.array(values, np.int64))


def as_counter(some):
    return Counter(dict(zip(some.cost.tolist(), map(int, some.count), strict=True)))


@given(SOME)
def test_equal_costs_are_one_and_counted(values):
    some = costs(values)
    assert as_counter(some) == Counter(values)
    assert (np.diff(some.cost) > 0).all()
    assert some.least == min(values, default=IMPOSSIBLE)
    assert some.cumulated().tolist() == [sum(v < c for v in values) for c in [*some.cost, 10**6]]


@given(SOME, SOME, st.integers(0, 24))
def test_pairs_of_trees_within_a_cost(left, right, most):
    one, other = costs(left), costs(right)
    sums = Counter(a + b for a in left for b in right if a + b <= most)
    assert count_pairs(one, other, most) == sum(sums.values())
    assert as_counter(put_together([add_pairs(one, other, most)])) == sums
    i, j = pairs(one.cost, other.cost, most)
    assert n_pairs(one, other, most) == len(i) == sum(a + b <= most for a in set(left) for b in set(right))
    assert (one.cost[i] + other.cost[j] <= most).all()


@given(st.lists(SOME, max_size=4))
def test_lists_are_put_together(parts):
    assert as_counter(put_together([costs(part) for part in parts])) == Counter(chain(*parts))


def test_counts_beyond_64_bits_stay_exact():
    huge = Costs(np.array([1, 2]), np.array([2**61, 2**61 + 1]))
    assert count_pairs(huge, huge, 4) == (2**62 + 1) ** 2
    both = put_together([add_pairs(huge, huge, 4)])
    assert as_counter(both) == {2: 2**122, 3: 2 * 2**61 * (2**61 + 1), 4: (2**61 + 1) ** 2}
    twice = put_together([huge, huge, huge])
    assert twice.count.tolist() == [3 * 2**61, 3 * 2**61 + 3]
    assert twice.cumulated()[-1] == 6 * 2**61 + 3


def test_counts_of_different_costs_add_up_beyond_64_bits():
    huge = Costs.of(np.array([2, 1]), np.array([2**62, 2**62 + 1]))
    assert huge.count.tolist() == [2**62 + 1, 2**62]
    assert count_pairs(huge, costs([1]), 9) == count_pairs(costs([1]), huge, 9) == 2**63 + 1  # was below 0


@pytest.mark.parametrize("order", [[3, 1, 2], [2, 2, 1]])
def test_given_counts_follow_their_costs(order):
    some = Costs.of(np.array(order), np.array([10, 20, 30]))
    expected = Counter()
    for cost, count in zip(order, (10, 20, 30), strict=True):
        expected[cost] += count
    assert as_counter(some) == expected


def test_no_tree():
    none = Costs.none()
    assert len(none) == 0
    assert none.least == IMPOSSIBLE
    assert count_pairs(none, costs([1]), 9) == 0
    assert len(put_together([])) == 0
    assert none.n_bytes == 0
    assert costs([1, 1, 5]).n_bytes == 32
