"""F1, Matthews correlation and the front of two errors against all trees and scikit-learn."""

import fuzz_exact
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.enumeration import all_points, nondominated
from oracles.two_classes import continuous, error_search, few, tiny

from softsurv.exact.bounds import Bounds
from softsurv.exact.objectives.linear import ERRORS
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.whole_trees import measures
from softsurv.exact.whole_trees.measures import MEASURES, maximise, pareto_front
from softsurv.results import Status
from softsurv.stopping import StopSignal

seeds = st.integers(0, 10_000)


@few
@given(seeds, st.integers(0, 3), st.sampled_from(sorted(MEASURES)), st.booleans())
def test_best_measure_is_that_of_all_trees(seed, depth, name, weighted):
    columns, label, rng = tiny(seed)
    weight = rng.integers(1, 8, len(label)) / 4 if weighted else np.ones(len(label))
    search = error_search(columns, label, depth, weight)
    negatives, positives = search.totals
    best = maximise(name, search, StopSignal())
    points = all_points(search)
    assert best.status == Status.OPTIMAL
    assert best.value == pytest.approx(max(MEASURES[name](v, positives, negatives) for v in points))
    assert best.bound == pytest.approx(best.value)
    np.testing.assert_allclose(search.value(best.candidate.tree), best.candidate.v)


@few
@given(seeds, st.integers(0, 3), st.booleans())
def test_front_in_two_phases_is_that_of_all_trees(seed, depth, weighted):
    columns, label, rng = tiny(seed)
    weight = rng.integers(1, 8, len(label)) / 4 if weighted else np.ones(len(label))
    search = error_search(columns, label, depth, weight)
    front = pareto_front(search, StopSignal())
    expected = nondominated(all_points(search), [False, False])
    assert front.status == Status.OPTIMAL
    np.testing.assert_allclose(np.array([one.v for one in front.trees]), expected, atol=1e-9)
    for one in front.trees:
        np.testing.assert_allclose(search.value(one.tree), one.v, atol=1e-9)


@few
@given(seeds)
def test_measures_agree_with_scikit_learn(seed):
    from sklearn.metrics import f1_score, matthews_corrcoef

    _, label, rng = tiny(seed)
    guess = rng.integers(0, 2, len(label))
    v = np.array([((label == 1) & (guess == 0)).sum(), ((label == 0) & (guess == 1)).sum()], float)
    counts = float(label.sum()), float((1 - label).sum())
    assert MEASURES["f1"](v, *counts) == pytest.approx(f1_score(label, guess, zero_division=0))
    assert MEASURES["mcc"](v, *counts) == pytest.approx(matthews_corrcoef(label, guess))


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_an_interrupted_search_keeps_what_it_found(monkeypatch, calls):
    """The search ends in one of its minimisations; the best tree of all of them, that one included, is returned."""
    columns, label, _ = tiny(5, n=200, splits=9)
    search = error_search(columns, label, 3)
    negatives, positives = search.totals
    best = maximise("mcc", search, StopSignal())
    stop, found, minimise = StopSignal(), [], VectorSearch.best

    def interrupted(self, *args):
        stop.interrupted = len(found) + 1 == calls
        found.append(minimise(self, *args))
        return found[-1]

    monkeypatch.setattr(VectorSearch, "best", interrupted)
    early = maximise("mcc", search, stop)
    assert early.status == Status.INTERRUPTED
    assert len(found) == calls
    values = [MEASURES["mcc"](one.v, positives, negatives) for one in found]
    assert early.value == max(values)
    assert 0 < early.value <= best.value <= early.bound  # the trees without splits have 0
    np.testing.assert_allclose(search.value(early.candidate.tree), early.candidate.v)


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_nothing_is_searched_where_the_local_search_took_all_the_time(monkeypatch, name):
    columns, label, _ = tiny(5, n=200, splits=9)
    search = error_search(columns, label, 3)
    best, stop = maximise(name, search, StopSignal()), StopSignal()

    def changed(*_):
        stop.interrupted = True
        return best.candidate

    monkeypatch.setattr(measures, "_changed", changed)
    monkeypatch.setattr(VectorSearch, "best", None)  # not to be called
    with fuzz_exact.taken_for_long():
        early = maximise(name, search, stop)
    assert early.candidate is best.candidate
    assert (early.value, early.bound, early.status) == (pytest.approx(best.value), 1.0, Status.INTERRUPTED)


@pytest.mark.parametrize("name", sorted(MEASURES))
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("limits", ["none", "rows", "weight", "leaves"])
def test_a_measure_over_very_many_cuts_is_that_of_the_recursion(name, depth, limits):
    for seed in range(3 if depth == 2 else 1):
        table, label, weight, _ = continuous(seed)
        how = {"rows": {"min_leaf": 7}, "weight": {"min_leaf": 11.3, "size": weight}}.get(limits, {})
        statistics = np.where(np.arange(2) == label[:, None], weight[:, None], 0.0)
        found = []
        for bounds in (Bounds(), Bounds(cuts=False)):
            search = VectorSearch(ERRORS, *table, statistics, depth, cuts=True, bounds=bounds, **how)
            assert search.by_cuts == bounds.cuts
            best = maximise(name, search, StopSignal(), 3 if limits == "leaves" else None)
            np.testing.assert_allclose(search.value(best.candidate.tree)[:2], best.candidate.v)
            assert best.status == Status.OPTIMAL
            found.append((best.value, best.bound))
        assert found[0] == pytest.approx(found[1])


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_over_very_many_cuts_the_best_shallower_tree_comes_first(monkeypatch, name):
    """Within a time limit a tree of depth three was worse than the best one of depth two."""
    table, label, weight, _ = continuous(1)
    statistics = np.where(np.arange(2) == label[:, None], weight[:, None], 0.0)
    search, best_of, asked = VectorSearch(ERRORS, *table, statistics, 3, cuts=True), VectorSearch.best, list[int]()

    def noted(self, stop, upper, leaves, depth):
        asked.append(depth)
        return best_of(self, stop, upper, leaves, depth)

    monkeypatch.setattr(VectorSearch, "best", noted)
    maximise(name, search, StopSignal())
    assert asked == sorted(asked)
    assert set(asked) == {2, 3}


def test_a_tree_that_ends_a_search_early_has_the_best_labels_by_the_measure(monkeypatch):
    """Those with the fewest errors call a group of rows negative that F1 calls positive."""
    sizes, positives = [4, 20, 36], [4, 9, 1]
    columns = np.repeat(np.array([[True, True], [True, False], [False, False]]), sizes, axis=0)
    label = np.concatenate([np.arange(n) < k for n, k in zip(sizes, positives, strict=True)]).astype(int)
    search, best_of = error_search(columns, label, 2), VectorSearch.best

    def ends(self, stop, *args, **how):
        best = best_of(self, stop, *args, **how)
        stop.interrupted = True
        return best

    monkeypatch.setattr(VectorSearch, "best", ends)
    best = maximise("f1", search, StopSignal())
    assert best.status == Status.INTERRUPTED
    assert best.value == pytest.approx(2 * 13 / (2 * 13 + 1 + 11))
    np.testing.assert_allclose(search.value(best.candidate.tree), [1, 11])
