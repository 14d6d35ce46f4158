"""Trees with several objectives against enumeration: the best one for given weights, and lists of them."""

import dataclasses
import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.enumeration import all_points, nondominated
from oracles.two_classes import coded, error_search, few, tiny

from softsurv.errors import InvalidParameterError
from softsurv.exact import search_state, vector_search
from softsurv.exact.bounds import Bounds
from softsurv.exact.kernels.lists import FULL
from softsurv.exact.objectives.fairness import KINDS, fair_search
from softsurv.exact.objectives.linear import ERRORS
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.whole_trees.constraint import constrained_optimum
from softsurv.results import Status
from softsurv.stopping import StopSignal

seeds = st.integers(0, 10_000)


@few
@given(seeds, st.integers(0, 3), st.booleans(), st.sampled_from([1, 3]))
def test_front_is_that_of_all_trees(seed, depth, weighted, min_leaf):
    columns, label, rng = tiny(seed)
    weight = rng.integers(1, 8, len(label)) / 4 if weighted else None
    search = error_search(columns, label, depth, weight, min_leaf=min_leaf)
    search.use(np.ones(2))
    found = search.points(StopSignal())
    expected = nondominated(all_points(search, min_leaf), [False, False])
    assert found.status == Status.OPTIMAL
    np.testing.assert_allclose(found.v[np.lexsort(found.v.T[::-1])], expected)
    for v, place in zip(found.v, found.place, strict=True):
        tree = search.tree(place)
        np.testing.assert_allclose(search.value(tree), v)
        assert tree.tree.depth <= depth
        assert np.bincount(tree.leaf_of(search.codes, search.nominal)).min() >= min_leaf


@few
@given(seeds, st.integers(0, 3), st.tuples(st.floats(-2, 2), st.floats(-2, 2)))
def test_optimum_of_a_scalarisation(seed, depth, w):
    columns, label, _ = tiny(seed)
    search = error_search(columns, label, depth)
    points = all_points(search)
    for one in (np.array(w), np.array(w)[::-1]):  # a second scalarisation does not see the first one's cache
        search.use(one)
        best = search.best(StopSignal())
        assert best.status == Status.OPTIMAL
        assert best.value == pytest.approx((points @ one).min(), abs=1e-9)
        assert best.bound == pytest.approx(best.value, abs=1e-12)
        np.testing.assert_allclose(search.value(best.tree), best.v, atol=1e-12)
        above = search.best(StopSignal(), best.value - 0.25)
        assert best.value - 0.25 - 1e-9 <= above.bound <= best.value + 1e-9


SWITCHES = [field.name for field in dataclasses.fields(Bounds)]


@pytest.mark.parametrize("off", [*SWITCHES, "all of them"])
def test_a_bound_changes_neither_the_best_tree_nor_the_list(off):
    names = SWITCHES if off == "all of them" else [off]
    bounds = dataclasses.replace(Bounds(), **dict.fromkeys(names, False))
    for seed in range(15):
        columns, label, rng = tiny(seed, n=40, splits=5)
        weight = rng.integers(1, 4, len(label)) / 2 if seed % 2 else None
        how = {"min_leaf": 1 + 2 * (seed % 3 == 0)}
        with_all, without = (
            error_search(columns, label, 2 + seed % 3, weight, bounds=one, **how) for one in (Bounds(), bounds)
        )
        for search in (with_all, without):
            search.use(np.array([1.0, 1.5]))
        right = with_all.best(StopSignal()).value
        assert without.best(StopSignal()).value == pytest.approx(right)
        lists = [search.points(StopSignal(), right + 3.0).v for search in (with_all, without)]
        first, second = (one[np.lexsort(one.T[::-1])] for one in lists)
        np.testing.assert_allclose(first, second, atol=1e-9)


def test_list_that_is_too_long_ends_the_search_with_a_status(monkeypatch):
    columns, label, rng = tiny(5, n=60, splits=8)
    group = rng.integers(0, 2, len(label))
    full = constrained_optimum(fair_search(*coded(columns), label, group, KINDS[0], 0.0, 3), StopSignal(), unit=1.0)
    monkeypatch.setattr(vector_search, "LIST_POINTS", 2)
    short = constrained_optimum(fair_search(*coded(columns), label, group, KINDS[0], 0.0, 3), StopSignal(), unit=1.0)
    assert full.status == Status.OPTIMAL
    assert short.status == Status.MEMORY_LIMIT
    assert short.bound <= full.value <= short.value


def test_numbers_that_cannot_be_computed_are_refused():
    columns, label, _ = tiny(1)
    with pytest.raises(InvalidParameterError, match="statistics must add up to at most"):
        error_search(columns, label, 1, np.full(len(label), 1e200))


def test_what_a_listing_calls_is_compiled_with_the_rest(monkeypatch):
    """Where a list is sure to be asked for: in two steps the first fit on a machine took twice as long."""
    asked, ready = [], search_state.ready

    def noted(*task, **how):
        asked.append(how["leaf_points"] is not None)
        return ready(*task, **how)

    monkeypatch.setattr(search_state, "ready", noted)
    columns, label, rng = tiny(3)
    fair_search(*coded(columns), label, rng.integers(0, 2, len(label)), KINDS[0], 0.5, 2)
    assert asked == [True]


def test_the_same_weights_keep_what_was_found_until_memory_is_full():
    columns, label, _ = tiny(4)
    search = error_search(columns, label, 3)
    search.use(np.array([1.0, 2.0]))
    listed = search.points(StopSignal(), 4.0)
    entries = search.search.n_cached
    assert entries > 0
    search.use(np.array([1.0, 2.0]), 3.0)
    assert (search.shift, search.search.n_cached) == (3.0, entries)
    np.testing.assert_allclose(search.value(search.tree(listed.place[0])), listed.v[0])
    search.search.control[FULL] = 1
    search.use(np.array([1.0, 2.0]))
    assert search.search.n_cached == 0
    again = search.points(StopSignal(), 4.0)
    np.testing.assert_allclose(again.v, listed.v)


@pytest.mark.parametrize("depth", [2, 3])
def test_a_list_for_which_no_time_is_left_holds_no_tree_of_an_earlier_one(depth):
    """Trees that break the constraint were taken for such as meet it."""
    columns, label, _ = tiny(4)
    search, stop = error_search(columns, label, depth), StopSignal()
    search.use(np.ones(2))
    assert len(search.points(stop).v)
    stop.interrupted = True
    search.use(np.array([1.0, 2.0]))
    late = search.points(stop, constrained=True)
    assert (len(late.v), late.status) == (0, Status.INTERRUPTED)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_the_least_objective_without_a_tree(depth):
    for seed in range(8):
        columns, label, _ = tiny(seed)
        search = error_search(columns, label, depth)
        search.use(np.array([1.0, 1.5]))
        least = search.search.least(depth, StopSignal())
        assert least == pytest.approx((all_points(search) @ [1.0, 1.5]).min(), abs=1e-9)
        above = search.best(StopSignal(), least - 0.25)
        assert above.tree.tree.n_leaves == 1  # no tree is wanted, none is read
        assert above.bound == pytest.approx(least - 0.25)
    stop = StopSignal(0.0)
    assert search.search.least(depth, stop) == -np.inf


def test_a_search_ends_with_its_last_user():
    """A cycle kept the memory of its lists until Python looked for cycles."""
    columns, label, rng = tiny(3)
    search = fair_search(*coded(columns), label, rng.integers(0, 2, len(label)), KINDS[0], 0.5, 2)
    gone = weakref.ref(search)
    gc.disable()
    try:
        constrained_optimum(search, StopSignal(), unit=1.0)
        search.tree(search.points(StopSignal()).place[-1])
        del search
        assert gone() is None
    finally:
        gc.enable()


def of_many_rows(depth, size=None, **how):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, (2500, 6)).astype(np.int32)
    score = codes @ rng.normal(size=6) + (codes[:, 0] == codes[:, 1]) + 2 * rng.normal(size=len(codes))
    statistics = np.where(np.arange(2) == (score > 0).astype(int)[:, None], rng.integers(1, 6, len(codes))[:, None], 0)
    size = None if size is None else rng.random(len(codes))
    return VectorSearch(ERRORS, codes, np.full(6, 5), np.arange(6) > 3, statistics, depth, size=size, **how)


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("least", [None, 40.0])
def test_trees_of_many_rows_are_compared_by_joint_sums_for_all_weights(depth, least):
    how = {} if least is None else {"size": "random", "min_leaf": least}
    joined, apart = of_many_rows(depth, **how), of_many_rows(depth, bounds=Bounds(joint=False), **how)
    assert joined.search.by_joint
    assert not apart.search.by_joint
    for w in ([1.0, 1.0], [1.0, 3.0], [1.0, 1.0], [2.5, 1.0]):
        found = []
        for search in (joined, apart):
            search.use(np.array(w))
            best = search.best(StopSignal())
            np.testing.assert_allclose(search.value(best.tree), best.v)
            found.append((best.value, best.bound, best.status))
            assert len(set(search.search.promising(StopSignal()))) == 4 * 4 + 2 * 5
        assert found[0] == pytest.approx(found[1])
        above = joined.best(StopSignal(), found[1][0] - 1.0)
        assert found[1][0] - 1.0 <= above.bound <= found[1][0]


def test_a_list_after_joint_sums_is_that_of_the_recursion():
    lists = []
    for bounds in (Bounds(), Bounds(joint=False)):
        search = of_many_rows(2, bounds=bounds)
        search.use(np.array([1.0, 1.5]))
        listed = search.points(StopSignal(), search.best(StopSignal()).value + 10.0).v
        lists.append(listed[np.lexsort(listed.T)])
    assert len(lists[0]) > 1
    np.testing.assert_allclose(*lists)


def test_joint_sums_count_as_memory():
    search = of_many_rows(3)
    assert search.search.held > search.search.needed
    assert not of_many_rows(3, memory_limit=0.5 * search.search.held).search.by_joint
