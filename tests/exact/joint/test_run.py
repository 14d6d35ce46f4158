"""The search by joint sums against enumeration and against the recursion; when it is used; its report when stopped."""

import dataclasses

import fuzz_exact
import numpy as np
import pytest
from oracles.enumeration import least_objective

from softsurv.exact.bounds import Bounds
from softsurv.exact.joint import run as joint_run
from softsurv.exact.objectives import label_costs, relative_risk
from softsurv.exact.search import Search
from softsurv.results import Status
from softsurv.stopping import StopSignal


def codes_of(rng, n, p, most=5):
    return np.column_stack([np.unique(rng.integers(0, most, n), return_inverse=True)[1] for _ in range(p)])


def risks_of(rng, n):
    event, hazard = (rng.random(n) < 0.6).astype(float), rng.integers(1, 6, n) * 0.31
    return relative_risk.TASK, np.column_stack([event, hazard]), event * 10.0


def jointly(task, codes, nominal, statistics, offset=None, **settings):
    search = Search(task, codes, codes.max(axis=0) + 1, nominal, statistics, offset, **settings)
    search.by_joint = True
    return search


@pytest.mark.parametrize("seed", range(16))
def test_optimum_is_that_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    n, p, depth, leaves = int(rng.integers(2, 14)), 3, int(rng.integers(0, 4)), int(rng.integers(1, 9))
    codes, nominal = codes_of(rng, n, p, 4), rng.random(p) < 0.4
    task, costs, offset = risks_of(rng, n)
    if seed % 2:
        costs, offset, task = rng.integers(0, 5, (n, 2 + seed % 3)).astype(float), np.zeros(n), label_costs.TASK
    limits = {"min_leaf": min(1 + seed % 3, n), "complexity": 0.3 * (seed % 2)}
    solution = jointly(task, codes, nominal, costs, offset, **limits).solve(depth, leaves)
    expected = least_objective(task, codes, nominal, costs, offset, depth, leaves, **limits)
    assert solution.report.objective == pytest.approx(expected)
    assert solution.report.lower_bound == pytest.approx(expected)
    assert solution.tree.depth <= depth
    assert solution.tree.n_leaves <= leaves
    assert np.bincount(solution.tree.node_of(codes, nominal))[solution.tree.leaves].min() >= limits["min_leaf"]


@pytest.mark.parametrize("target", ["labels", "regression", "risk"])
def test_the_recursion_finds_the_same(target):
    for seed in range(40):
        solve = fuzz_exact.TARGETS[target](np.random.default_rng(seed))
        assert not fuzz_exact.differ(solve(Bounds()), solve(dataclasses.replace(Bounds(), joint=False))), seed


def test_one_table_serves_all_sizes_and_threads_change_nothing():
    rng = np.random.default_rng(3)
    codes, nominal = codes_of(rng, 300, 5), np.array([False, True, False, False, True])
    task, costs, offset = risks_of(rng, 300)
    recursion = Search(task, codes, codes.max(axis=0) + 1, nominal, costs, offset)
    one, two = (jointly(task, codes, nominal, costs, offset) for _ in range(2))
    sizes = [solution.report.objective for solution in recursion.path(3)]
    assert [solution.report.objective for solution in one.path(3)] == pytest.approx(sizes)
    summed = one.joint.joint.next.copy()
    trees = [one.solve(3).tree, two.solve(3, n_jobs=2).tree]
    assert np.array_equal(one.joint.joint.next, summed)
    for name in ("feature", "code", "left", "right"):
        assert np.array_equal(*(getattr(tree, name) for tree in trees))
    assert one.solve(4).report.objective == pytest.approx(recursion.solve(4).report.objective)


def test_sums_of_rows_left_of_two_splits():
    """Bins that do not occur among the rows, and columns of one bin, are left out."""
    rng = np.random.default_rng(4)
    codes = np.column_stack([rng.choice([0, 2, 5], 60), np.full(60, 1), rng.choice([1, 3, 4], 60)])
    task, costs, offset = risks_of(rng, 60)
    search = Search(task, codes, np.array([6, 2, 5]), np.array([False, False, True]), costs, offset)
    search.by_joint = True
    search.solve(2)
    run = search.joint
    assert search.splits.feature[run.split_code].tolist() == [0, 0, 2, 2, 2]
    assert search.splits.code[run.split_code].tolist() == [0, 2, 1, 3, 4]
    problem = search.problem
    goes_left = [
        problem.gcode[:, problem.feature_of[g]] == g
        if problem.nominal[problem.feature_of[g]]
        else problem.gcode[:, problem.feature_of[g]] <= g
        for g in run.split_code
    ]
    for s, first in enumerate(goes_left):
        for t, second in enumerate(goes_left):
            assert run.joint.sums[:, s, t] == pytest.approx(problem.stats[first & second].sum(axis=0))


def test_it_is_used_where_rows_are_many_and_cuts_few():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 8, (60_000, 8))
    costs = label_costs.misclassification(rng.integers(0, 2, 60_000), 2)

    def used(codes, **settings):
        n_codes, nominal = codes.max(axis=0) + 1, np.zeros(codes.shape[1], bool)
        return Search(label_costs.TASK, codes, n_codes, nominal, costs[: len(codes)], **settings).by_joint

    assert used(codes)
    assert not used(codes[:2_000])
    assert not used(codes, bounds=Bounds(joint=False))
    assert not used(np.minimum(codes, 1))  # as many triples of features as of cuts
    assert not used(rng.integers(0, 100, (60_000, 8)))


def test_a_stopped_search_has_a_tree_and_a_bound(monkeypatch):
    rng = np.random.default_rng(1)
    codes, nominal = codes_of(rng, 2000, 6), np.zeros(6, bool)
    task, costs, offset = risks_of(rng, 2000)
    search = jointly(task, codes, nominal, costs, offset)
    best_of_two, join = search.solve(2).report.objective, joint_run.JointRun._join_triples

    def stopped(run):
        run.control[0] = 1
        join(run)

    monkeypatch.setattr(joint_run.JointRun, "_join_triples", stopped)
    report = search.solve(3).report
    assert report.status == Status.INTERRUPTED
    assert report.lower_bound < report.objective == pytest.approx(best_of_two)
    monkeypatch.setattr(joint_run.JointRun, "_join_triples", join)
    assert search.solve(3).report.status == Status.OPTIMAL


@pytest.mark.parametrize("seed", range(4))
def test_deep_trees_begin_with_a_rolling_horizon(seed):
    rng = np.random.default_rng(seed)
    codes, nominal = codes_of(rng, 400, 6), rng.random(6) < 0.3
    task, costs, offset = risks_of(rng, 400)
    search, leaves = jointly(task, codes, nominal, costs, offset, complexity=0.5), (16, 11, 6, 5)[seed]
    first = search._by_sums(4, leaves, 1, StopSignal(1e9)) if search.make_ready(4) else []
    three, four = (search.objective(found.tree) for found in first)
    assert three == pytest.approx(search.solve(3, min(leaves, 8)).report.objective)
    assert search.solve(4, leaves).report.objective <= four + 1e-9
    assert four <= three + 1e-9
    assert first[1].tree.n_leaves <= leaves
    assert first[1].tree.depth <= 4


def test_rows_without_features_are_one_leaf():
    rng = np.random.default_rng(5)
    task, costs, offset = risks_of(rng, 20)
    solution = jointly(task, np.zeros((20, 2), int), np.zeros(2, bool), costs, offset).solve(3)
    assert solution.tree.n_leaves == 1
    assert solution.report.status == Status.OPTIMAL
