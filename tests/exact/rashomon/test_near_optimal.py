"""The counted and listed set of near-optimal trees against every tree, written down."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.all_trees import all_trees

from softsurv.exact.objectives import label_costs, relative_risk
from softsurv.exact.rashomon.near_optimal import NearOptimal
from softsurv.exact.rashomon.problem import SearchProblem
from softsurv.results import Status
from softsurv.stopping import StopSignal

OFFSET = 3.0
"""Of each row: costs of relative risks alone may be negative."""


def a_problem(seed, kind, n=10, n_features=3):
    """Few rows, so that every tree can be written down; some features say the same."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, n + 1)), int(rng.integers(1, n_features + 1))
    n_codes, nominal = rng.integers(1, 5, p), rng.random(p) < 0.4
    codes = np.stack([rng.integers(0, k, n) for k in n_codes], axis=1).astype(np.int32)
    if p > 1 and rng.random() < 0.3:
        codes[:, 1], n_codes[1], nominal[1] = codes[:, 0], n_codes[0], nominal[0]
    if kind == "labels":
        task, weight = label_costs.TASK, rng.choice([1.0, 0.5], n)
        statistics = label_costs.misclassification(rng.integers(0, 3, n), 3, weight)
    else:
        task = relative_risk.TASK
        statistics = relative_risk.statistics(rng.random(n) < 0.6, rng.exponential(size=n) + 0.1)
    least, complexity = int(rng.integers(1, 3)), float(rng.choice([0.0, 0.01, 0.3]))
    given = SearchProblem(task, codes, n_codes, nominal, statistics, np.full(n, OFFSET), least, None, complexity)
    depth = int(rng.integers(0, 5))
    leaves = int(rng.integers(1, min(2**depth, 6) + 1))
    return given, depth, leaves, float(rng.choice([0.0, 0.1, 0.5, 2.0]))


def found(problem, depth, leaves, distance, seconds=60.0, memory_limit=1e9, with_idle=False):
    """The set of trees within a distance of the optimum."""
    near, stop = NearOptimal(problem, depth, leaves, memory_limit, with_idle), StopSignal(seconds)
    near.find(near.solve(stop).report.objective + distance, stop)
    return near


def written(tree, problem):
    """A listed tree as `all_trees` writes one."""

    def below(node, rows):
        feature = int(tree.feature[node])
        if feature < 0:
            return ()
        code = problem.codes[rows, feature]
        left = code == tree.code[node] if problem.nominal[feature] else code <= tree.code[node]
        sides = below(tree.left[node], rows[left]), below(tree.right[node], rows[~left])
        return (feature, tuple(rows[left].tolist()), *sides)

    return below(0, np.arange(len(problem.codes)))


@pytest.mark.parametrize("with_idle", [False, True])
@pytest.mark.parametrize("kind", ["labels", "risks"])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_set_is_complete_and_holds_nothing_else(kind, with_idle, seed):
    problem, depth, leaves, distance = a_problem(seed, kind)
    p = problem
    if len(p.codes) < p.min_leaf:
        return
    every = all_trees(p.task, p.codes, p.nominal, p.statistics, depth, leaves, p.min_leaf, p.complexity, with_idle)
    offset = OFFSET * len(p.codes)
    near = found(problem, depth, leaves, distance, with_idle=with_idle)
    most = min(cost for cost, _, _ in every) + distance + 1e-9
    want = [(cost, n, tree) for cost, n, tree in every if cost <= most]
    assert near.status == Status.OPTIMAL
    assert near.n_by_leaves == [sum(n == k + 1 for _, n, _ in want) for k in range(len(near.n_by_leaves))]
    listed = list(near)
    cost = [one.objective - offset for one in listed]
    np.testing.assert_allclose(cost, sorted(cost for cost, _, _ in want), atol=1e-8)
    assert Counter(written(near.tree(one), problem) for one in listed) == Counter(tree for _, _, tree in want)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_gains_of_features_are_what_their_splits_take_off(seed):
    problem, depth, leaves, distance = a_problem(seed, "risks")
    if len(problem.codes) < problem.min_leaf:
        return
    near = found(problem, depth, leaves, distance)
    for one in near:
        tree = near.tree(one)
        cost, gains = problem.task.costs(tree.sums), np.zeros(problem.codes.shape[1])
        for node in np.flatnonzero(tree.feature >= 0):
            gains[tree.feature[node]] += cost[node] - cost[tree.left[node]] - cost[tree.right[node]]
        np.testing.assert_allclose(one.gains, gains, atol=1e-8)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_best_tree_without_a_feature(seed):
    problem, depth, leaves, _ = a_problem(seed, "labels")
    p = problem
    if len(p.codes) < p.min_leaf:
        return
    every = all_trees(p.task, p.codes, p.nominal, p.statistics, depth, leaves, p.min_leaf, p.complexity)

    def asks(tree):
        return set() if tree == () else {tree[0]} | asks(tree[2]) | asks(tree[3])

    near = NearOptimal(problem, depth, leaves)
    best = near.without([0], StopSignal(60.0)).report.objective - OFFSET * len(p.codes)
    assert best == pytest.approx(min(cost for cost, _, tree in every if 0 not in asks(tree)), abs=1e-9)


def larger(n=400, p=8, seed=0):
    """A problem with many near-optimal trees."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 8, (n, p)).astype(np.int32)
    statistics = relative_risk.statistics(rng.random(n) < 0.6, rng.exponential(size=n) + 0.1)
    return SearchProblem(
        relative_risk.TASK, codes, np.full(p, 8), np.zeros(p, bool), statistics, np.full(n, OFFSET), min_leaf=10
    )


def test_a_set_that_memory_does_not_hold_says_so():
    whole = found(larger(), 4, None, 6.0)
    part = found(larger(), 4, None, 6.0, memory_limit=1e6)
    assert whole.status == Status.OPTIMAL
    assert part.status == Status.MEMORY_LIMIT
    assert 0 <= sum(part.n_by_leaves) < sum(whole.n_by_leaves)


def test_a_set_without_time_says_so():
    near = found(larger(), 4, None, 6.0, seconds=0.0)
    assert near.status == Status.TIME_LIMIT
    assert sum(near.n_by_leaves) == len(list(near)) <= 1


def test_counts_beyond_64_bits_are_exact():
    """A parity of five bits, each of them in eight columns: every full tree of depth five errs nowhere."""
    n = 64
    bits = (np.arange(n)[:, None] >> np.arange(6) & 1).astype(np.int32)
    codes = np.tile(bits[:, :5], (1, 8))
    label = bits[:, :5].sum(axis=1) % 2
    problem = SearchProblem(
        label_costs.TASK, codes, np.full(40, 2), np.zeros(40, bool), label_costs.misclassification(label, 2)
    )
    near = found(problem, 5, None, 0.0)
    # five bits in any order at each node, each asked by one of eight columns
    orders = 1
    for level in range(5):
        orders *= ((5 - level) * 8) ** (2**level)
    assert near.n_by_leaves[31] == orders > 2**64


def test_no_tree_is_sought_near_an_optimum_that_was_not_proven():
    """On 100,000 rows the splits were put side by side for seconds after the time limit."""
    near, stop = NearOptimal(a_problem(3, "labels")[0], 2, 4), StopSignal()
    best = near.solve(stop)
    near.best = replace(best, report=replace(best.report, status=Status.TIME_LIMIT))
    assert near.find(best.report.objective + 1.0, stop) == Status.TIME_LIMIT
    assert near.n_by_leaves == [0] * 4
    assert list(near) == []
