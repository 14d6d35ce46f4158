"""One run of the recursion: what its threads share, what it has proven, and how much work it is."""

import math
from itertools import pairwise

import numpy as np
import pytest
from oracles.enumeration import least_objective
from oracles.plain_search import small

from softsurv.exact.bounds import Bounds
from softsurv.exact.depth_run import DepthRun, details_of, new_shared, root_bounds, work_of
from softsurv.exact.kernels.cache import new_cache
from softsurv.exact.kernels.nodes import UNKNOWN
from softsurv.exact.kernels.subsets import BLOCKS, CALLS


def best_side(found, rows, depth, complexity):
    """Least cost of some distinct rows, in any tree of a depth."""
    codes = found.problem.gcode[rows]
    stats = found.problem.stats[rows]
    return least_objective(
        found.search.task, codes, found.problem.nominal, stats, np.zeros(len(rows)), depth, 1 << depth, 1, complexity
    )


@pytest.mark.parametrize("solved", [True, False])
@pytest.mark.parametrize("look_ahead", [True, False])
def test_both_sides_of_a_split_cost_at_least_their_bounds(solved, look_ahead):
    found = small(n=12, complexity=0.4, bounds=Bounds(bits=False, look_ahead=look_ahead))
    found.problem.calls.solve_two(found.problem, found.rows, len(found.rows), 2, found.local)
    sides = root_bounds(found.problem, found.local if solved else None)
    for left, code in found.splits():
        for side, rows in enumerate((found.rows[left[found.rows]], found.rows[~left[found.rows]])):
            assert sides[side, code] <= best_side(found, rows, 3, 0.4) + 1e-9
            assert sides[side, code] >= found.problem.floor[rows].sum() - 1e-9
            if look_ahead:  # a leaf at the least
                assert sides[side, code] >= min(0.4 + found.problem.floor[rows].sum(), found.cost(rows)) - 1e-9


def run_of(bound, order, **how):
    """A run of depth two that shares bounds (T, 2, G)."""
    order = np.array(order, np.int32)
    shared = new_shared(np.zeros(8, np.int64), order, len(bound), 10.0, np.zeros((2, np.shape(bound)[2])))
    shared.bound[:] = bound
    return DepthRun(shared, 2, len(bound), **({"floor": None} | how))


def test_an_incumbent_begins_without_a_tree():
    shared = new_shared(np.zeros(8, np.int64), np.arange(3, dtype=np.int32), 4, 7.0, np.ones((2, 3)))
    assert shared.best.tolist() == [7.0]
    assert shared.choice.tolist() == [UNKNOWN]
    assert shared.bound.shape == (4, 2, 3)
    shared.bound[0] = 5.0  # each way to share the leaves has bounds of its own
    assert (shared.bound[1:] == 1.0).all()


def test_what_is_proven_is_the_least_promise_of_a_first_split():
    bound = np.zeros((2, 2, 3))
    bound[:] = [[1.0, 4.0, 0.0], [2.0, 3.5, 0.0]]
    run = run_of(bound, [0, 1])
    np.testing.assert_allclose(run.promise(), [3.0, 7.5, 0.0])
    assert run.proven() == 3.0  # the third code is no split of the root
    run.shared.best[0] = 2.5
    assert run.proven() == run.incumbent == 2.5
    assert run_of(bound, []).proven() == 10.0


def test_a_run_over_shallower_trees_proves_the_floor_alone():
    assert run_of(np.full((2, 2, 3), 9.0), [0, 1], floor=1.5).proven() == 1.5
    run = run_of(np.full((2, 2, 3), 9.0), [0, 1], floor=1.5)
    run.shared.best[0] = 1.0
    assert run.proven() == 1.0


@pytest.mark.parametrize(("taken", "done"), [(0, 0.0), (1, 0.5), (2, 1.0), (9, 1.0)])
def test_the_share_that_is_done(taken, done):
    run = run_of(np.zeros((2, 2, 3)), [0, 1])
    run.shared.next[1] = taken
    assert run.done == done


def test_work_grows_with_depth_and_with_what_a_base_case_looks_at():
    problem = small(n=12).problem
    works = [work_of(problem, 12, depth, "sums", False) for depth in range(1, 6)]
    assert works[0] == works[1]
    splits = len(problem.feature_of)
    assert [b / a for a, b in pairwise(works[1:])] == pytest.approx([splits] * 3)
    assert work_of(problem, 24, 2, "sums", False) > works[1] > work_of(problem, 12, 2, "bits", False)
    assert work_of(problem, 12, 2, "sums", True) != works[1]


def test_details_of_a_search():
    control, cache = np.zeros(8, np.int64), new_cache(0.0)
    control[CALLS], control[BLOCKS] = 7, 3
    cache.used[0] = len(cache.tags) + 5  # threads count a place that was refused too
    assert details_of(control, cache, 12) == {
        "base_cases": 7, "lane_runs": 3, "cache_entries": len(cache.tags), "cache_full": True, "distinct_rows": 12,
    }  # fmt: skip
    cache.used[0] = 1
    assert not details_of(control, cache, 12)["cache_full"]
    assert math.isclose(details_of(control, cache, 12)["cache_entries"], 1)
