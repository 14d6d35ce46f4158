"""Paths of sizes: the best tree with so many leaves or at a cost per leaf, and which costs are tried."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsurv.estimators.optimal.sizes import FoldPath, Size, compared, prices, standard_error


def test_a_cost_per_leaf_is_compared_on_the_path():
    """The trees of a path at a cost per leaf are those of searches at that cost; its turns are where they change."""
    path = FoldPath(np.arange(1, 5), np.array([10.0, 7.0, 6.5, 4.0]), np.array([[9.0], [8.0], [7.0], [6.0]]))
    assert path.turns() == [1.5, 3.0]  # of three leaves never
    assert [path.at_price(price) for price in (0.0, 1.4, 1.6, 2.9, 3.1)] == [3, 3, 1, 1, 0]
    other = replace(path, objective=np.array([10.0, 7.0, 5.0, 4.5]))
    found = {size: (n, loss.tolist()) for size, n, loss in compared([path, other], 2, 4, 0.0, [5.0], priced=True)}
    assert [size.complexity for size in found][:2] == [0.0, 0.0]
    assert found[Size(2, 4, 0.0, 5.0)] == (4.0, [6.0, 6.0])
    priced = {size.complexity: (n, loss) for size, (n, loss) in found.items() if size.complexity}
    assert set(priced) <= set(prices([path, other], 2))
    assert (2.5, [8.0, 7.0]) in priced.values()  # two leaves in one fold, three in the other
    assert not any(size.complexity for size, _, _ in compared([path, other], 2, 4, 0.0, [5.0], priced=False))


def path_of(objectives):
    """A path of one leaf, two leaves, ... whose held-out loss is the number of leaves."""
    n = np.arange(1, len(objectives) + 1)
    return FoldPath(n, np.array(objectives, dtype=float), n[:, None].astype(float))


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=6))
def test_the_tree_of_a_cost_per_leaf_changes_at_the_turns_alone(drops):
    path = path_of(100.0 - np.cumsum([0.0, *drops]))
    turns = path.turns()
    assert turns == sorted(turns)
    middles = [0.5 * (a + b) for a, b in zip([0.0, *turns], [*turns, (turns or [0.0])[-1] + 1.0], strict=True)]
    total = path.objective[:, None] + np.array(middles) * path.n_leaves[:, None]
    for price, column in zip(middles, total.T, strict=True):
        assert column[path.at_price(price)] == pytest.approx(column.min())
    places = [path.at_price(price) for price in middles]
    assert places == sorted(places, reverse=True)
    assert places[-1] == 0  # a leaf that costs more than all splits gain stays alone


def test_of_two_trees_that_are_as_good_the_smaller_is_taken():
    assert path_of([10.0, 8.0, 7.0]).at_price(2.0) == 0
    assert path_of([10.0, 10.0]).turns() == [0.0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("leaves", [[1, 2, 2, 4], [1, 1, 2, 2], [1, 1]])
def test_a_leaf_more_that_changes_nothing_is_no_turn(leaves):
    """A limit of three leaves may bring a tree of two again."""
    n = np.array(leaves)
    path = FoldPath(n, 10.0 - n, n[:, None].astype(float))
    assert path.turns() == [1.0] * (leaves[-1] > 1)


def test_a_path_ends_where_more_leaves_do_not_help():
    path = path_of([10.0, 8.0])
    assert [path.at_most(leaves) for leaves in (1, 2, 3, 8)] == [0, 1, 1, 1]


def test_costs_are_spread_between_the_turns_and_short():
    assert prices([path_of([10.0]), path_of([5.0, 5.0])], 3) == []  # no turn above 0
    (one,) = prices([path_of([10.0, 7.0])], 4)
    assert one == 3.0
    many = prices([path_of([100.0, 50.0, 20.0, 19.0]), path_of([100.0, 99.0, 98.9])], 3)
    assert many == sorted(set(many))
    assert len(many) <= 3
    assert all(float(f"{price:.3g}") == price for price in many)
    assert 0.1 <= many[0] <= many[-1] <= 50.0


def test_every_limit_is_compared_under_every_shrinkage():
    path = replace(path_of([10.0, 8.0, 7.0]), loss=np.arange(6.0).reshape(3, 2))
    found = list(compared([path], 1, 4, 0.5, [5.0, 10.0], priced=False))
    assert [size for size, _, _ in found] == [
        Size(1, leaves, 0.5, strength) for leaves in (2, 3, 4) for strength in (5.0, 10.0)
    ]
    assert [loss.tolist() for _, _, loss in found] == [[2.0], [3.0], [4.0], [5.0], [4.0], [5.0]]


def test_the_error_of_a_mean_over_folds():
    losses = np.random.default_rng(0).normal(size=(3, 2, 10))
    np.testing.assert_allclose(standard_error(losses), losses.std(axis=2, ddof=1) / np.sqrt(10))
    assert standard_error(np.array([2.0])) == 0
