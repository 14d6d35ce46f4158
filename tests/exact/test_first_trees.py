"""Trees before the search: within the limits, no better than the optimum, and in time where the search is cut short."""

import fuzz_exact
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.two_classes import coded, few, tiny

from softsurv.exact.bounds import Bounds
from softsurv.exact.objectives import label_costs
from softsurv.exact.search import Search


def search_of(seed, n, splits, first_trees=True, **how):
    columns, label, _ = tiny(seed, n=n, splits=splits)
    statistics = label_costs.misclassification(label.astype(int), 2)
    return Search(label_costs.TASK, *coded(columns), statistics, bounds=Bounds(first_trees=first_trees), **how)


def deepest(tree, node=0):
    """Branch nodes on the longest path."""
    if tree.feature[node] < 0:
        return 0
    return 1 + max(deepest(tree, tree.left[node]), deepest(tree, tree.right[node]))


@few
@given(st.integers(0, 10_000), st.integers(3, 6), st.integers(2, 40), st.sampled_from([0.0, 1.0]))
def test_every_tree_taken_ahead_keeps_the_limits_and_is_no_better_than_the_optimum(seed, depth, leaves, complexity):
    plain = search_of(seed, 120, 7, first_trees=False, complexity=complexity).solve(depth, leaves)
    with fuzz_exact.taken_for_long():
        search = search_of(seed, 120, 7, complexity=complexity)
        solution = search.solve(depth, leaves)
    assert solution.report.objective == pytest.approx(plain.report.objective)
    assert solution.report.lower_bound == pytest.approx(plain.report.objective)
    if search.ahead is None or search.ahead.best.tree is None:
        return
    ahead = search.ahead.best
    assert ahead.tree.n_leaves <= min(leaves, 1 << depth)
    assert deepest(ahead.tree) <= depth
    assert search.objective(ahead.tree) == pytest.approx(ahead.value + search.constant)
    assert ahead.value + search.constant >= plain.report.objective - 1e-9


def test_a_search_without_time_for_the_last_depth_has_a_tree_of_that_depth(monkeypatch):
    """The run over the last depth never starts: what was taken ahead is deeper than the last depth that was solved."""
    from softsurv.exact import search_state as module
    from softsurv.exact.depth_run import DepthRun

    full = search_of(1, 400, 14).solve(4).report.objective
    search = search_of(1, 400, 14)
    shares, nothing = DepthRun.shares, [lambda: None]
    monkeypatch.setattr(module, "LONG_WORK", 0.0)
    monkeypatch.setattr(DepthRun, "shares", lambda run, *args: nothing if run.depth == 5 else shares(run, *args))
    search.solve(5)
    assert search.ahead.best.value + search.constant < full
    assert deepest(search.ahead.best.tree) == 5


def test_shares_of_leaves():
    from softsurv.exact.reconstruct import share_leaves

    for most in (4, 8, 16):
        for leaves in range(2, 2 * most + 1):
            for left in (1, 2, 3):
                mine = share_leaves(left, 4, leaves, most)
                assert 1 <= mine <= most
                assert 1 <= leaves - mine <= most
    assert share_leaves(2, 4, 16, 8) == 8
    assert np.sign(share_leaves(3, 4, 12, 8) - 6) == 1
