"""Trees read out of the cache are those whose objective the search reports, within the limits asked for."""

import gc
import weakref

import numpy as np
import pytest
from oracles.small_codes import small_codes

from softsurv.exact.bounds import Bounds
from softsurv.exact.objectives import label_costs
from softsurv.exact.reconstruct import share_leaves
from softsurv.exact.search import Search
from softsurv.exact.split_costs import SplitCosts, paid
from softsurv.stopping import StopSignal


def searched(seed, **how):
    rng, codes, n_codes, nominal = small_codes(seed, 40)
    statistics = rng.integers(0, 9, (len(codes), 2)).astype(float)
    search = Search(label_costs.TASK, codes, n_codes, nominal, statistics, memory_limit=1e6, **how)
    return search, codes, nominal, statistics


def cost_of(tree, codes, nominal, statistics, complexity):
    """Objective of a tree, from the rows that it sends to its leaves."""
    node = tree.node_of(codes, nominal)
    return sum(statistics[node == leaf].sum(axis=0).min() + complexity for leaf in np.unique(node))


@pytest.mark.parametrize("bits", [True, False])
@pytest.mark.parametrize("leaves", [1, 2, 3, 4, 5, 8])
def test_a_tree_costs_what_the_report_says(bits, leaves):
    for seed in range(6):
        search, codes, nominal, statistics = searched(seed, complexity=0.4, bounds=Bounds(bits=bits))
        solution = search.solve(3, leaves)
        assert solution.tree.n_leaves <= leaves
        assert solution.tree.depth <= 3
        cost = cost_of(solution.tree, codes, nominal, statistics, 0.4)
        assert cost == pytest.approx(solution.report.objective)


def test_sums_of_the_nodes_are_those_of_the_rows():
    search, codes, nominal, statistics = searched(3)
    tree = search.solve(3).tree
    assert tree.n_leaves > 2
    np.testing.assert_allclose(tree.sums[0], statistics.sum(axis=0))
    for node in np.flatnonzero(tree.feature >= 0):
        np.testing.assert_allclose(tree.sums[tree.left[node]] + tree.sums[tree.right[node]], tree.sums[node])
    reached = tree.node_of(codes, nominal)
    for leaf in tree.leaves:
        np.testing.assert_allclose(tree.sums[leaf], statistics[reached == leaf].sum(axis=0))


def test_a_cache_without_room_changes_no_tree():
    """Choices that the cache has lost are solved for again."""
    full, codes, nominal, statistics = searched(5, complexity=0.4)
    none = searched(5, complexity=0.4, bounds=Bounds(cache=False))[0]
    one, other = (cost_of(search.solve(4).tree, codes, nominal, statistics, 0.4) for search in (full, none))
    assert one == pytest.approx(other)


@pytest.mark.parametrize("leaves", [3, 4, 6])
def test_paid_tests_are_read_at_the_prices_of_their_path(leaves):
    rng, codes, n_codes, nominal = small_codes(1, 40)
    statistics, weight = rng.integers(0, 9, (len(codes), 2)).astype(float), np.ones(len(codes))
    costs = SplitCosts(np.array([0.6, 0.5]), np.array([0, 1, 0]), weight, np.array([0.1, 0.1]), np.array([0, 0]))
    search = Search(label_costs.TASK, codes, n_codes, nominal, statistics, split_costs=costs, memory_limit=1e6)
    solution = search.solve(3, leaves)
    tests = paid(solution.tree, costs, solution.tree.sums[:, -1])
    assert tests > 0
    assert cost_of(solution.tree, codes, nominal, statistics, 0.0) + tests == pytest.approx(solution.report.objective)


@pytest.mark.parametrize("most", [2, 4, 8])
def test_leaves_are_shared_as_fewer_were(most):
    for of in range(2, 2 * most + 1):
        for left in range(1, of):
            for leaves in range(of, 2 * most + 1):
                share = share_leaves(left, of, leaves, most)
                assert 1 <= share <= most
                assert 1 <= leaves - share <= most
                possible = [one for one in range(1, leaves) if one <= most and leaves - one <= most]
                nearest = min(abs(one / leaves - left / of) for one in possible)
                assert abs(share / leaves - left / of) == pytest.approx(nearest, abs=1e-12)


@pytest.mark.parametrize("horizon", [1, 2])
@pytest.mark.parametrize("bits", [True, False])
def test_a_tree_goes_on_by_the_first_splits_of_the_best_trees_of_its_rows(bits, horizon):
    """Against a search of its own over the rows of each node below the leaves."""
    splits = 0
    for seed in range(6):
        search, codes, nominal, statistics = searched(seed, complexity=0.4, bounds=Bounds(bits=bits))
        top = search.solve(1).tree
        tree = search.continued(top, 2, horizon, StopSignal())
        assert tree.depth <= top.depth + 2
        rows = [np.arange(len(codes))] + [np.empty(0, int)] * (len(tree.feature) - 1)
        below = np.full(len(tree.feature), 0)  # levels above a node
        for node in np.flatnonzero(tree.feature >= 0):
            value, here = codes[rows[node], tree.feature[node]], rows[node]
            left = value == tree.code[node] if nominal[tree.feature[node]] else value <= tree.code[node]
            rows[tree.left[node]], rows[tree.right[node]] = here[left], here[~left]
            below[[tree.left[node], tree.right[node]]] = below[node] + 1
        for node in range(len(tree.feature)):
            np.testing.assert_allclose(tree.sums[node], statistics[rows[node]].sum(axis=0))
            if below[node] < top.depth:
                continue
            depth = min(horizon, top.depth + 2 - below[node])
            own = Search(
                label_costs.TASK, codes[rows[node]], codes.max(axis=0) + 1, nominal, statistics[rows[node]],
                complexity=0.4,
            )  # fmt: skip
            best = own.solve(depth)
            if tree.feature[node] < 0:
                assert best.tree.n_leaves == 1
                continue
            splits += 1
            sides = [
                Search(
                    label_costs.TASK, codes[rows[side]], codes.max(axis=0) + 1, nominal, statistics[rows[side]],
                    complexity=0.4,
                ).solve(depth - 1).report.objective
                for side in (tree.left[node], tree.right[node])
            ]  # fmt: skip
            assert sum(sides) == pytest.approx(best.report.objective)  # ties: a first split of one of the best
    assert splits > 3


def test_no_tree_falls_below_the_floor():
    for seed in range(6):
        search = searched(seed, complexity=0.4)[0]
        assert search.floor <= search.solve(4).report.objective + 1e-9


def test_nothing_is_kept_of_a_search_that_is_gone():
    """No garbage is collected here: a function that calls itself inside a method would keep its tables until then."""
    gc.disable()
    try:
        search, *_ = searched(0, complexity=0.4)
        search.by_joint = True
        assert search.continued(search.solve(3).tree, 2, 2, StopSignal()) is not None
        kept, run = weakref.ref(search), weakref.ref(search.joint)
        del search
        assert kept() is None
        assert run() is None
    finally:
        gc.enable()


def test_a_tree_that_is_told_to_stop_does_not_go_on():
    search, *_ = searched(0, complexity=0.4)
    top, over = search.solve(1).tree, StopSignal(0.0)
    assert search.continued(top, 2, 2, over) is None
    assert search.continued(top, 2, 2, StopSignal()).n_leaves > top.n_leaves  # and the next call may
