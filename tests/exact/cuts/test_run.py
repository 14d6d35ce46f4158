"""The search by cuts against enumeration and against the search over pairs of splits; its report when it is stopped."""

import dataclasses
import gc
import weakref

import fuzz_exact
import numpy as np
import pytest
from oracles.enumeration import least_objective

from softsurv.exact.bounds import Bounds
from softsurv.exact.cuts.scratch import sort_rows
from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.objectives import label_costs, relative_risk
from softsurv.exact.search import Search
from softsurv.results import Status
from softsurv.stopping import StopSignal


def search_by_cuts(task, codes, nominal, statistics, offset=None, **settings):
    search = Search(task, codes, codes.max(axis=0) + 1, nominal, statistics, offset, **settings)
    search.by_cuts = True
    return search


@pytest.mark.parametrize("seed", range(12))
def test_optimum_is_that_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    n, p, depth, leaves = int(rng.integers(2, 11)), 2, int(rng.integers(0, 4)), int(rng.integers(1, 9))
    codes = np.column_stack([np.unique(rng.integers(0, 9, n), return_inverse=True)[1] for _ in range(p)])
    nominal = np.array([False, seed % 3 == 0])
    event, hazard = (rng.random(n) < 0.6).astype(float), rng.integers(1, 6, n) * 0.31
    costs, offset, task = np.column_stack([event, hazard]), event * 10.0, relative_risk.TASK
    if seed % 2:
        costs, offset, task = rng.integers(0, 5, (n, 2 + seed % 3)).astype(float), np.zeros(n), label_costs.TASK
    limits = {"min_leaf": min(1 + seed % 3, n), "complexity": 0.3 * (seed % 2)}
    solution = search_by_cuts(task, codes, nominal, costs, offset, **limits).solve(depth, leaves)
    expected = least_objective(task, codes, nominal, costs, offset, depth, leaves, **limits)
    assert solution.report.objective == pytest.approx(expected)
    assert solution.report.lower_bound == pytest.approx(expected)
    assert solution.tree.depth <= depth
    assert solution.tree.n_leaves <= leaves
    assert np.bincount(solution.tree.node_of(codes, nominal))[solution.tree.leaves].min() >= limits["min_leaf"]


def test_similar_support_leaves_the_optimum():
    for seed in range(60):
        solve = fuzz_exact.cuts(np.random.default_rng(seed))
        every = solve(Bounds())
        assert not fuzz_exact.differ(every, solve(dataclasses.replace(Bounds(), similar=False))), seed
        assert not fuzz_exact.differ(every, solve(dataclasses.replace(Bounds(), cuts=False))), seed


def test_many_cuts_are_searched_one_by_one():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    codes = x.argsort(axis=0).argsort(axis=0)
    costs = label_costs.misclassification((x[:, 0] * x[:, 1] > 0).astype(int), 2)
    many = Search(label_costs.TASK, codes, np.full(3, 400), np.zeros(3, bool), costs)
    few = Search(label_costs.TASK, codes // 40, np.full(3, 10), np.zeros(3, bool), costs)
    off = Search(label_costs.TASK, codes, np.full(3, 400), np.zeros(3, bool), costs, bounds=Bounds(cuts=False))
    assert (many.by_cuts, few.by_cuts, off.by_cuts) == (True, False, False)
    assert many.solve(2).report.objective == 0.0  # the quadrants


def base_cases(n_labels=2, depth=3, leaves=None, bounds=None, **how):
    """Base cases that a search by cuts of random labels solves, and its objective."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 4))
    label = np.clip(np.round(x[:, 0] * x[:, 1] + x[:, 2] + 0.5 * rng.normal(size=400)), 0, n_labels - 1).astype(int)
    codes = x.argsort(axis=0).argsort(axis=0)
    costs = label_costs.misclassification(label, n_labels)
    table = codes, np.full(4, 400), np.zeros(4, bool)
    search = Search(label_costs.TASK, *table, costs, bounds=bounds or Bounds(), **how)
    assert search.by_cuts
    report = search.solve(depth, leaves).report
    return report.details["base_cases"], report.objective


@pytest.mark.parametrize("n_labels", [2, 3])
def test_similar_support_serves_a_least_size_of_leaves_too(n_labels):
    solved, objective = base_cases(n_labels, min_leaf=3)
    without, same = base_cases(n_labels, min_leaf=3, bounds=Bounds(similar=False))
    assert objective == same
    assert solved < 0.8 * without


def test_three_leaves_take_no_longer_than_four():
    """Their sides were bounded as stumps, so that hardly a cut was passed over."""
    three, four = base_cases(depth=2, leaves=3)[0], base_cases(depth=2, leaves=4)[0]
    assert three < 2 * four


@pytest.mark.parametrize("depth", [2, 3])
def test_each_search_gives_the_scratch_of_the_one_before_back(depth):
    """A cycle kept it until Python looked for cycles: a dozen searches for F1 took a dozen times the memory of one."""
    rng = np.random.default_rng(2)
    codes, costs = rng.integers(0, 30, (60, 2)), rng.integers(0, 5, (60, 2)).astype(float)
    search = search_by_cuts(label_costs.TASK, codes, np.zeros(2, bool), costs)
    gc.disable()
    try:
        search.solve(depth)
        gone = weakref.ref(search.run)
        search.solve(depth)
        assert gone() is None
    finally:
        gc.enable()


def test_a_stopped_search_has_a_tree_and_a_bound():
    rng = np.random.default_rng(1)
    n, p = 1500, 8
    codes = rng.normal(size=(n, p)).argsort(axis=0).argsort(axis=0)
    event, hazard = (rng.random(n) < 0.6).astype(float), rng.exponential(size=n)
    offset = event * 20.0
    search = search_by_cuts(
        relative_risk.TASK, codes, np.zeros(p, bool), np.column_stack([event, hazard]), offset
    )  # fmt: skip
    report = search.solve(4, time_limit=0.5).report
    assert report.status == Status.TIME_LIMIT
    assert report.lower_bound < report.objective < search.solve(1).report.objective


def of_columns(n, p, seed=1):
    """A search by cuts of risks over so many different values of each column."""
    rng = np.random.default_rng(seed)
    codes = rng.normal(size=(n, p)).argsort(axis=0).argsort(axis=0)
    event, hazard = (rng.random(n) < 0.6).astype(float), rng.exponential(size=n)
    costs = np.column_stack([event, hazard])
    return search_by_cuts(relative_risk.TASK, codes, np.zeros(p, bool), costs, event * 20.0)


def test_a_flag_ends_the_opening_of_columns_and_not_the_reading_of_a_tree():
    """All columns of a node were opened before a look at it: 5,000 columns of 2,000 rows took 9.3 s of a limit of 5."""
    search, stopped = of_columns(60, 5), StopSignal()
    whole = search.solve(2)
    run = search.run
    run.cuts.n_codes[:], run.control[STOP] = 0, 1
    run._solve(4, np.inf, stopped)
    assert np.count_nonzero(run.cuts.n_codes) == 1
    sort_rows(run.cuts, run.rows)  # reading has written over the root's
    tree = run.tree(search.exact_sums, search.splits)
    assert search.objective(tree) == whole.report.objective


def test_a_single_leaf_opens_one_column():
    search = of_columns(60, 5)
    assert search.solve(0).tree.n_leaves == search.solve(2, 1).tree.n_leaves == 1
    assert np.count_nonzero(search.run.cuts.n_codes) == 1


def test_a_tree_of_depth_two_touches_the_scratch_of_the_root_alone():
    search = of_columns(60, 5)
    search.solve(1)  # compiled, and a run whose scratch is to be seen
    search.run = None
    whole = search.solve(2)
    assert whole.tree.n_leaves == 4
    assert not search.run.cuts.n_codes[5:].any()


def test_a_side_above_the_base_case_may_have_one_split():
    """Its two leaves are told apart from what an earlier tree of the same node left there."""
    solve = fuzz_exact.cuts(np.random.default_rng(5241))
    assert not fuzz_exact.differ(solve(Bounds()), solve(Bounds(cuts=False)))


def test_rows_counted_by_kinds_cost_what_no_label_saves_too():
    """Their common cost is not taken off, so that a row bounds similar support by its dearest label."""
    solve = fuzz_exact.cuts(np.random.default_rng(94357))
    assert not fuzz_exact.differ(solve(Bounds()), solve(Bounds(cuts=False)))


@pytest.mark.parametrize("levels", [2, 3, 40])
def test_memory_is_counted_before_it_is_taken(levels):
    """Rows are as many as the search keeps apart; the intervals are left out, of which few are waiting."""
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.permutation(2000), rng.integers(0, levels, 2000), rng.permutation(2000)])
    nominal = np.array([False, True, False])
    statistics = np.column_stack([np.ones(2000), rng.exponential(size=2000)])
    search = search_by_cuts(relative_risk.TASK, codes, nominal, statistics)
    counted = []
    for search.by_cuts in (False, True):
        search.empty()
        counted.append(search.held - search.scratch_bytes)
    search.solve(2)
    held = [
        value.nbytes
        for name, value in search.run.cuts._asdict().items()
        if isinstance(value, np.ndarray) and name not in ("key", "slot", "back", "span", "side_bound")
    ]
    assert counted[1] - counted[0] == pytest.approx(sum(held), rel=0.15)
