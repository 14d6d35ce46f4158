"""Prices of sides and the best roots that follow from them, on numbers made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from oracles.plain_python import array_at, plain

from softsurv.exact.base_cases.leaf_prices import best_roots, price_sides


def least_sum(problem, sums, stride, n, cost):
    """The cost of a leaf is the least of its two sums; called as `task_costs.price` is."""
    array_at(cost, (n,))[:] = array_at(sums, (2, stride))[:, :n].min(axis=0)


def problem(**given):
    return SimpleNamespace(calls=SimpleNamespace(price=least_sum), **given)


def local_of(splits, **values):
    arrays = {"batch": np.zeros((2, 2 * splits + 1)), "cost": np.zeros(2 * splits + 1), "value": np.zeros(5)}
    sides = {name: np.full((2, splits), np.nan) for name in ("leaf", "stump")}
    size = np.array([0, 0, splits, 0])
    return SimpleNamespace(**(arrays | sides | {"size": size, "root": np.zeros(5, np.int64)} | values))


def test_the_right_side_is_what_the_left_leaves():
    local = local_of(2, side=np.array([[3.0, 1.0], [1.0, 6.0]]), total=np.array([5.0, 8.0]))
    plain(price_sides)(problem(), local)
    np.testing.assert_array_equal(local.leaf, [[1.0, 1.0], [2.0, 2.0]])
    np.testing.assert_array_equal(local.stump, local.leaf)


@pytest.fixture
def roots():
    """Three splits: the first is best with two leaves, the second with three, the third with four."""
    leaf, stump = np.array([[2.0, 3.0, 4.0], [2.0, 3.0, 4.0]]), np.array([[2.0, 0.5, 0.6], [1.9, 2.9, 0.6]])
    return local_of(3, leaf=leaf, stump=stump, total=np.array([9.0, 9.0]))


def test_best_roots_by_number_of_leaves(roots):
    plain(best_roots)(problem(branching=False), roots)
    np.testing.assert_allclose(roots.value, [9.0, 9.0, 4.0, 3.5, 1.2])
    np.testing.assert_array_equal(roots.root, [-1, -1, 0, 1, 2])


def test_no_split_is_chosen_that_does_not_pay(roots):
    roots.total[:] = 1.0
    plain(best_roots)(problem(branching=False), roots)
    np.testing.assert_allclose(roots.value, 1.0)
    assert (roots.root == -1).all()


def test_the_whole_subset_pays_for_the_test_of_its_root(roots):
    prices = SimpleNamespace(test_of=np.array([0, 1]), column=1)
    paying = problem(branching=True, prices=prices, feature_of=np.array([0, 0, 1]))
    roots.split_code, roots.due = np.array([0, 1, 2]), np.array([0.1, 0.3])
    plain(best_roots)(paying, roots)
    np.testing.assert_allclose(roots.value[2:], [4.0 + 0.9, 3.5 + 0.9, 1.2 + 2.7])
