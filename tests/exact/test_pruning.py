"""Cutting back: against every subtree with the same root."""

import numpy as np
import pytest
from oracles.small_codes import small_codes

from softsurv.exact.objectives import label_costs
from softsurv.exact.pruning import pruned
from softsurv.exact.search import Search
from softsurv.stopping import StopSignal


def grown(seed, depth=3):
    rng, codes, n_codes, nominal = small_codes(seed, 40)
    statistics = rng.integers(0, 9, (len(codes), 2)).astype(float)
    search = Search(label_costs.TASK, codes, n_codes, nominal, statistics)
    return search, search.solve(depth).tree


def subtrees(tree, cost, node=0):
    """(cost, leaves) of every subtree from a node."""
    yield cost[node], 1
    if tree.feature[node] >= 0:
        for left, right in (
            (a, b) for a in subtrees(tree, cost, tree.left[node]) for b in subtrees(tree, cost, tree.right[node])
        ):
            yield left[0] + right[0], left[1] + right[1]


@pytest.mark.parametrize("price", [0.0, 0.7, 3.0, 20.0, 1e9])
def test_no_subtree_costs_less_and_of_equal_ones_the_smallest_is_taken(price):
    for seed in range(8):
        search, tree = grown(seed)
        cost = search.costs(tree.sums)
        found = pruned(tree, cost, price)
        paid = search.costs(found.sums)[found.leaves].sum() + price * found.n_leaves
        every = [(total + price * leaves, leaves) for total, leaves in subtrees(tree, cost)]
        least = min(total for total, _ in every)
        assert paid == pytest.approx(least)
        assert found.n_leaves == min(leaves for total, leaves in every if total <= least + 1e-9)


def test_nothing_is_cut_where_leaves_are_free_and_all_where_they_cost_too_much():
    search, tree = grown(3)
    cost = search.costs(tree.sums)
    assert pruned(tree, cost, 1e9).n_leaves == 1
    whole = pruned(tree, cost, 0.0)
    assert whole.n_leaves > 4
    np.testing.assert_array_equal(whole.sums[0], tree.sums[0])


def test_the_splits_of_the_top_stay():
    search, top = grown(5, depth=1)
    whole = search.continued(top, 2, 2, StopSignal())
    assert whole.n_leaves > top.n_leaves
    back = pruned(whole, search.costs(whole.sums), 1e9, top)
    for name in ("feature", "code", "left", "right", "sums"):
        np.testing.assert_array_equal(getattr(back, name), getattr(top, name))
