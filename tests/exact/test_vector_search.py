"""Searches for trees with several objectives against enumeration: fronts, measures of two error counts, constraints."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles.enumeration import all_points, nondominated

from softsurv.exact import vector_search
from softsurv.exact.tasks.fairness import KINDS, difference, fair_search
from softsurv.exact.tasks.linear_objectives import ERRORS
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.whole_trees.constraint import constrained_optimum
from softsurv.exact.whole_trees.measures import MEASURES, maximise, pareto_front
from softsurv.results import Status
from softsurv.stopping import StopSignal


def tiny(seed, n=14, splits=3):
    rng = np.random.default_rng(seed)
    columns = rng.random((n, splits)) < rng.uniform(0.2, 0.8, splits)
    label = ((columns @ rng.normal(size=splits) + rng.normal(size=n)) > 0).astype(int)
    label[:2] = 0, 1
    return columns, label, rng


def error_search(columns, label, depth, weight=None, **how):
    w = np.ones(len(label)) if weight is None else weight
    statistics = np.where(np.arange(2) == label[:, None], w[:, None], 0.0)
    return VectorSearch(ERRORS, *coded(columns), statistics, depth, **how)


def coded(columns):
    """Columns as codes, numbers of codes and kinds."""
    return columns.astype(np.int32), np.full(columns.shape[1], 2), np.zeros(columns.shape[1], bool)


seeds = st.integers(0, 10_000)
few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


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


@few
@given(
    seeds, st.integers(0, 2), st.sampled_from(KINDS), st.sampled_from([0.0, 0.1, 0.25, 1.0]), st.sampled_from([2, 3]),
    st.booleans(), st.sampled_from([None, 3]),
)  # fmt: skip
def test_fair_tree_is_the_best_of_all(seed, depth, kind, tolerance, n_groups, weighted, leaves):
    columns, label, rng = tiny(seed, n=18)
    group = rng.integers(0, n_groups, len(label))
    group[: 2 * n_groups], label[: 2 * n_groups] = np.tile(np.arange(n_groups), 2), np.repeat([0, 1], n_groups)
    weight = rng.integers(1, 5, len(label)) / 2 if weighted else None
    search = fair_search(*coded(columns), label, group, kind, tolerance, depth, weight=weight, leaves=leaves)
    state = constrained_optimum(search, StopSignal(), unit=0.5)
    points = all_points(search)
    meets = (points @ search.objectives.constraint.T <= search.objectives.limit + 1e-9).all(axis=1)
    assert state.status == Status.OPTIMAL
    assert state.value == pytest.approx(points[meets, 0].min())
    assert state.bound == pytest.approx(state.value)
    np.testing.assert_allclose(search.value(state.tree), state.v, atol=1e-9)
    predicted = state.tree.label_of(search.codes, search.nominal)
    assert difference(predicted, label, group, kind, weight) <= tolerance + 1e-9
    assert leaves is None or len(state.tree.label) <= leaves


def test_stopped_search_states_a_bound_below_its_tree():
    columns, label, rng = tiny(3, n=300, splits=30)
    group = rng.integers(0, 2, len(label))
    full = constrained_optimum(fair_search(*coded(columns), label, group, KINDS[0], 0.01, 3), StopSignal(), unit=1.0)
    stopped = constrained_optimum(
        fair_search(*coded(columns), label, group, KINDS[0], 0.01, 3), StopSignal(0.0), unit=1.0
    )
    assert stopped.status == Status.TIME_LIMIT
    assert stopped.bound <= full.value <= stopped.value


def test_list_that_is_too_long_ends_the_search_with_a_status(monkeypatch):
    columns, label, rng = tiny(5, n=60, splits=8)
    group = rng.integers(0, 2, len(label))
    full = constrained_optimum(fair_search(*coded(columns), label, group, KINDS[0], 0.0, 3), StopSignal(), unit=1.0)
    monkeypatch.setattr(vector_search, "LIST_POINTS", 2)
    short = constrained_optimum(fair_search(*coded(columns), label, group, KINDS[0], 0.0, 3), StopSignal(), unit=1.0)
    assert full.status == Status.OPTIMAL
    assert short.status == Status.MEMORY_LIMIT
    assert short.bound <= full.value <= short.value


def test_ctrl_c_keeps_the_best_tree_so_far():
    import os
    import signal
    import threading

    columns, label, rng = tiny(7, n=600, splits=60)
    group = rng.integers(0, 2, len(label))
    search = fair_search(*coded(columns), label, group, KINDS[0], 0.0, 4)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    with StopSignal(30.0) as clock:
        timer.start()
        state = constrained_optimum(search, clock, unit=1.0)
    assert state.status == Status.INTERRUPTED
    assert clock.seconds < 10
    assert state.bound <= state.value
    np.testing.assert_allclose(search.value(state.tree), state.v)
