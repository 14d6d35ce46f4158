"""The root of depth three: one thread does it all, the others return."""

import numpy as np
import pytest
from oracles.enumeration import least_objective
from oracles.plain_search import body, run_state, small

from softsurv.exact.bounds import Bounds
from softsurv.exact.kernels.nodes import UNKNOWN
from softsurv.exact.kernels.root import solve_root


def enter(found, shared, cache, leaves):
    body(solve_root)(
        found.problem, found.rows, len(found.rows), *found.search.key, leaves, np.inf, found.nodes, found.local,
        found.lanes, cache, shared,
    )  # fmt: skip


@pytest.mark.parametrize("leaves", [4, 7, 8])
def test_the_first_thread_finds_the_optimum_and_the_second_returns(leaves):
    found = small(n=12, seed=1, bounds=Bounds(bits=False), complexity=0.2)
    cache, shared = run_state(found, leaves)
    enter(found, shared, cache, leaves)
    best = least_objective(
        found.search.task, found.codes, found.nominal, found.statistics, np.zeros(12), 3, leaves, complexity=0.2
    )
    assert shared.best[0] + found.search.constant == pytest.approx(best)
    assert shared.choice[0] > UNKNOWN
    before = shared.best[0], shared.choice[0], shared.control.copy()
    shared.best[0] = np.inf
    enter(found, shared, cache, leaves)
    assert shared.best[0] == np.inf
    np.testing.assert_array_equal(shared.control, before[2])


def test_bounds_of_the_splits_are_below_their_trees():
    found = small(n=12, seed=1, bounds=Bounds(bits=False), complexity=0.2)
    cache, shared = run_state(found, 8)
    enter(found, shared, cache, 8)
    codes = found.local.split_code[: found.local.size[2]]
    assert shared.bound[0][:, codes].sum(axis=0).min() == pytest.approx(shared.best[0])
