"""The best tree under a constraint against all trees, and where it ends early."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.enumeration import all_points
from oracles.two_classes import coded, continuous, few, tiny

from softsurv.exact.bounds import Bounds
from softsurv.exact.objectives.fairness import KINDS, difference, fair_search
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.whole_trees.constraint import constrained_optimum
from softsurv.results import Status
from softsurv.stopping import StopSignal

seeds = st.integers(0, 10_000)


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


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_goes_from_the_first_bound_to_the_optimum(n_jobs):
    columns, label, rng = tiny(11, n=400, splits=12)
    group, told = rng.integers(0, 2, len(label)), []
    search = fair_search(*coded(columns), label, group, KINDS[0], 0.02, 3, n_jobs=n_jobs)
    state = constrained_optimum(search, StopSignal(), unit=1.0, progress=lambda *now: told.append(now))
    done, bound, incumbent = np.array(told).T
    assert (np.diff(bound) >= 0).all()
    assert (np.diff(incumbent) <= 0).all()
    assert done[0] < done[-1] == 1.0
    assert bound[-1] == incumbent[-1] == state.value
    alone = constrained_optimum(fair_search(*coded(columns), label, group, KINDS[0], 0.02, 3), StopSignal(), unit=1.0)
    assert alone.value == state.value


def test_stopped_search_states_a_bound_below_its_tree():
    columns, label, rng = tiny(3, n=300, splits=30)
    group = rng.integers(0, 2, len(label))
    full = constrained_optimum(fair_search(*coded(columns), label, group, KINDS[0], 0.01, 3), StopSignal(), unit=1.0)
    stopped = constrained_optimum(
        fair_search(*coded(columns), label, group, KINDS[0], 0.01, 3), StopSignal(0.0), unit=1.0
    )
    assert stopped.status == Status.TIME_LIMIT
    assert stopped.bound <= full.value <= stopped.value


def test_ctrl_c_keeps_the_best_tree_so_far():
    import os
    import signal
    import threading
    import time

    columns, label, rng = tiny(7, n=600, splits=60)
    group = rng.integers(0, 2, len(label))
    search = fair_search(*coded(columns), label, group, KINDS[0], 0.0, 4)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    begin = time.process_time()  # other work on the machine takes none of it
    with StopSignal(300.0) as clock:
        timer.start()
        state = constrained_optimum(search, clock, unit=1.0)
    assert state.status == Status.INTERRUPTED
    assert time.process_time() - begin < 10
    assert state.bound <= state.value
    np.testing.assert_allclose(search.value(state.tree), state.v)


def test_a_tree_that_is_proven_when_time_ends_is_optimal(monkeypatch):
    """The bound of the last listing meets the best tree: no other tree can be better, whatever the clock says."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, (80, 4))
    y = (X[:, 0] + 0.7 * X[:, 1] + rng.normal(size=80) > 2.5).astype(int)
    given = X.astype(np.int32), np.full(4, 4), np.zeros(4, bool), y, (X[:, 2] > 1).astype(int)
    asked = []

    def best():
        return constrained_optimum(fair_search(*given, "demographic_parity", 0.1, 2), StopSignal(), unit=1.0)

    def late(ask):
        def answer(*args, **how):
            asked.append(0)
            found = ask(*args, **how)
            return replace(found, status=Status.TIME_LIMIT) if len(asked) == 6 else found

        return answer

    whole = best()
    for name in ("best", "points"):
        monkeypatch.setattr(VectorSearch, name, late(getattr(VectorSearch, name)))
    state = best()
    assert len(asked) == 6
    assert (state.status, state.bound) == (Status.OPTIMAL, state.value)
    assert state.value == whole.value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [{}, {"min_leaf": 7}, {"leaves": 3}, {"complexity": 1.5}])
def test_a_fair_tree_over_very_many_cuts_is_that_of_the_recursion(kind, how):
    for seed in range(4):
        table, label, weight, rng = continuous(seed)
        group = (table[0][:, 0] + 60 * rng.normal(size=len(label)) > 60).astype(int)
        group[:4] = 0, 1, 0, 1
        found = []
        for bounds in (Bounds(), Bounds(cuts=False)):
            search = fair_search(*table, label, group, kind, 0.04, 2, weight=weight, bounds=bounds, **how)
            assert search.by_cuts == bounds.cuts
            state = constrained_optimum(search, StopSignal(), unit=0.5)
            assert state.status == Status.OPTIMAL
            np.testing.assert_allclose(search.value(state.tree), state.v, atol=1e-9)
            assert search.meets(state.v)
            found.append((state.value, state.bound))
        assert found[0] == pytest.approx(found[1])


def test_over_very_many_cuts_a_search_that_ends_early_has_a_good_tree_and_its_bound():
    """Lists of near-optimal trees took all of the time, and neither was there."""
    rng = np.random.default_rng(0)
    columns = rng.random((4000, 6))
    label = ((columns[:, 0] > columns[:, 1]) + (columns[:, 2] > 0.5) + rng.normal(size=4000) > 1).astype(int)
    group = (columns[:, 0] + rng.normal(size=4000) > 0.5).astype(int)
    codes = columns.argsort(axis=0).argsort(axis=0).astype(np.int32)
    table = codes, np.full(6, 4000), np.zeros(6, bool)
    search = fair_search(*table, label, group, KINDS[0], 0.01, 2)
    state = constrained_optimum(search, StopSignal(6.0), unit=1.0)
    leaf = min(label.sum(), 4000 - label.sum())
    assert state.value < 0.95 * leaf
    assert state.bound > 0.95 * state.value
