"""What a search keeps between calls: the cache, what other costs make of it, and the objective of any tree."""

import gc
import weakref
from contextlib import contextmanager

import numpy as np
import pytest
from oracles.plain_search import small
from oracles.small_codes import small_codes

from softsurv.exact.bounds import Bounds
from softsurv.exact.cuts.scratch import bytes_of_cuts
from softsurv.exact.objectives import label_costs
from softsurv.exact.prepare import prepare
from softsurv.exact.search import Search
from softsurv.exact.split_costs import SplitCosts
from softsurv.exact.tree import TreeBuilder
from softsurv.stopping import StopSignal


@contextmanager
def without_collection():
    """No circles of references are freed meanwhile."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def stump(search, codes, statistics, weight=None):
    """A tree that asks the first feature once."""
    builder, left = TreeBuilder(), codes[:, 0] <= 0
    columns = statistics if weight is None else np.column_stack([statistics, weight])
    root = builder.add(columns.sum(axis=0), 0, 0)
    builder.connect(root, builder.add(columns[left].sum(axis=0)), builder.add(columns[~left].sum(axis=0)))
    return builder.tree(), left


@pytest.mark.parametrize("cancel", [True, False])
def test_the_objective_of_any_tree(cancel):
    rng = np.random.default_rng(0)
    statistics, offset = rng.integers(1, 9, (14, 2)).astype(float), rng.random(14)
    found = small(statistics=statistics, offset=offset, complexity=0.3, bounds=Bounds(cancel=cancel))
    tree, left = stump(found.search, found.codes, statistics)
    expected = sum(statistics[side].sum(axis=0).min() for side in (left, ~left)) + offset.sum() + 0.6
    assert found.search.objective(tree) == pytest.approx(expected)


def test_the_objective_of_a_tree_whose_tests_are_paid():
    statistics, weight = np.random.default_rng(0).integers(1, 9, (14, 2)).astype(float), np.arange(14.0)
    found = small(statistics=statistics, split_costs=SplitCosts(np.array([0.5]), np.zeros(3, int), weight))
    tree, left = stump(found.search, found.codes, statistics, weight)
    expected = sum(statistics[side].sum(axis=0).min() for side in (left, ~left)) + 0.5 * weight.sum()
    assert found.search.objective(tree) == pytest.approx(expected)


def prepared(codes, n_codes, nominal, statistics):
    bounds = Bounds(cancel=False, bits=False)
    return prepare(label_costs.TASK, codes, n_codes, nominal, statistics, None, None, 1, 0.3, bounds, None)


def test_other_costs_of_the_same_rows_meet_no_old_value():
    rng, codes, n_codes, nominal = small_codes(8, 40)
    one, other = (rng.integers(0, 9, (len(codes), 2)).astype(float) for _ in range(2))
    first = prepared(codes, n_codes, nominal, one)
    search = Search.over(first, 1e6)
    before = search.solve(4).report.objective
    assert search.n_cached > 0
    search.take(prepared(codes, n_codes, nominal, other))
    assert search.n_cached == 0
    alone = Search.over(prepared(codes, n_codes, nominal, other), 1e6).solve(4).report.objective
    assert search.solve(4).report.objective == pytest.approx(alone)
    assert alone != pytest.approx(before)


def test_a_cache_is_made_when_it_is_needed_and_emptied():
    search = small().search
    assert search.n_cached == 0
    cache = search.cache
    assert search.cache is cache
    cache.used[0] = 3
    assert search.n_cached == 3
    search.empty()
    assert search.n_cached == 0
    assert search.cache is not cache


def test_scratch_grows_with_the_threads_and_never_shrinks():
    search = small().search
    search.take_scratch(3)
    three, held = list(search.scratch), search.held
    assert len(three) == 3
    search.take_scratch(1)
    assert search.scratch == three
    assert held > small().search.held


def test_long_searches_are_those_of_much_work():
    search = small().search
    depths = [search.is_long(depth, 1e3) for depth in range(2, 11)]
    assert depths == sorted(depths)
    assert [depths[0], depths[-1]] == [False, True]
    assert not small(bounds=Bounds(first_trees=False)).search.is_long(10, 1e9)


def test_what_was_compiled_for_one_call_serves_the_later_ones():
    rng, codes, n_codes, nominal = small_codes(8, 40)
    search = Search.over(prepared(codes, n_codes, nominal, rng.random((len(codes), 2))), 1e6)
    deep = search.make_ready(4, StopSignal())
    assert search.make_ready(2) is deep
    assert search.problem.calls.solve != 0


def test_a_search_at_rest_knows_what_it_knew_and_goes_without_a_collection_of_circles():
    rng, codes, n_codes, nominal = small_codes(8, 40)
    search = Search.over(prepared(codes, n_codes, nominal, rng.random((len(codes), 2))), 1e7)
    objective, known, room = search.solve(4).report.objective, search.n_cached, len(search.cache.tags)
    search.rest(1e6)
    assert search.n_cached == known > 0
    assert len(search.cache.tags) == room  # asked for, it has its room again
    search.rest(1e6)
    assert search.solve(4).report.objective == objective
    search.rest(0.0)
    assert search.n_cached == 0
    gone = weakref.ref(search)
    with without_collection():
        del search
        assert gone() is None


def test_a_search_by_cuts_counts_none_of_the_scratch_that_it_does_not_touch():
    search = small(n=200, levels=9, nominal=[False] * 3).search
    scratch, rows = search.scratch_bytes, search.needed - search.scratch_bytes
    search.by_cuts = True
    assert scratch > 0.0
    assert search.needed == pytest.approx(rows + bytes_of_cuts(search.problem, search.similar))
