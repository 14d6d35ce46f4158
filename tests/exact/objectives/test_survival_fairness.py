"""Survival trees under a limit on differences of predicted survival, against enumeration; what is separable."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles.enumeration import all_points, nondominated
from oracles.two_classes import coded

from softsurv.exact.objectives.survival_fairness import fair_survival_search, fairness_front
from softsurv.exact.tree import LabelledTree, TreeBuilder
from softsurv.exact.whole_trees.constraint import constrained_optimum
from softsurv.results import Status
from softsurv.stopping import StopSignal

few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def tiny(seed, n_groups=2, n=16, splits=3):
    rng = np.random.default_rng(seed)
    columns = rng.random((n, splits)) < rng.uniform(0.2, 0.8, splits)
    event = rng.random(n) < 0.6
    event[0] = True
    statistics = np.column_stack([event, rng.exponential(size=n) + 0.05])
    group = np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, n - n_groups)])
    return columns, statistics, group


def full_tree(*features):
    """The tree that asks for one feature on each level."""
    builder = TreeBuilder()

    def grow(level):
        if level == len(features):
            return builder.add(np.zeros(0))
        node = builder.add(np.zeros(0), features[level], 0)
        builder.connect(node, grow(level + 1), grow(level + 1))
        return node

    grow(0)
    return LabelledTree(builder.tree(), np.zeros(1 << len(features), int))


def relative_survival(statistics, leaf, hazard_at):
    """Predicted survival (N, H) of the rows in their leaves, from the definition."""
    out = np.empty((len(leaf), len(hazard_at)))
    for k in np.unique(leaf):
        events, hazard = statistics[leaf == k].sum(axis=0)
        out[leaf == k] = np.exp(-(events if events > 0 else 0.5) / hazard * np.asarray(hazard_at))
    return out


@few
@given(st.integers(0, 10_000), st.integers(0, 2), st.sampled_from([2, 3]), st.sampled_from([0.0, 0.02, 0.1]),
       st.sampled_from([[0.5], [0.3, 1.5]]), st.sampled_from([None, 2, 3]))  # fmt: skip
def test_tree_is_the_best_that_meets_the_limit(seed, depth, n_groups, tolerance, hazard_at, leaves):
    columns, statistics, group = tiny(seed, n_groups)
    weight = np.ones(len(group))
    search = fair_survival_search(
        *coded(columns), statistics, group, weight, np.array(hazard_at), tolerance, depth, leaves=leaves
    )
    state = constrained_optimum(search, StopSignal())
    points = all_points(search)
    meets = (points @ search.objectives.constraint.T <= search.objectives.limit + 1e-9).all(axis=1)
    assert state.status == Status.OPTIMAL
    assert state.value == pytest.approx(points[meets, 0].min(), abs=1e-7)
    survival = relative_survival(statistics, state.tree.leaf_of(search.codes, search.nominal), hazard_at)
    means = np.array([survival[group == g].mean(axis=0) for g in range(n_groups)])
    assert (means.max(axis=0) - means.min(axis=0) <= tolerance + 1e-9).all()
    assert leaves is None or len(state.tree.label) <= leaves


@few
@given(st.integers(0, 10_000), st.integers(1, 2))
def test_front_of_deviance_leaves_and_difference(seed, depth):
    columns, statistics, group = tiny(seed, n=12)
    search = fair_survival_search(
        *coded(columns), statistics, group, np.ones(12), np.array([0.7]), 1.0, depth, count=True
    )
    found, status = fairness_front(search, StopSignal(), leaves=1 << depth, resolution=1e-7)
    points = all_points(search)
    points[:, 1] = np.abs(points[:, 1])
    expected = np.unique(nondominated(points, [False, False, False]).round(6), axis=0)
    assert status == Status.OPTIMAL
    got = np.array([[p.deviance, p.difference, p.leaves] for p in found])
    got = got[np.lexsort(got.T[::-1])]
    np.testing.assert_allclose(got, expected[np.lexsort(expected.T[::-1])], atol=2e-6)


def test_equal_leaves_are_not_needed_for_an_equal_tree():
    """A limit on every subtree is another constraint: here both sides of the root differ, and the tree does not."""
    columns = np.array([[1, 1], [1, 0], [0, 1], [0, 0]], dtype=bool)
    statistics = np.array([[1.0, 0.5], [1.0, 2.0], [1.0, 2.0], [1.0, 0.5]])
    group = np.array([0, 1, 0, 1])
    four = full_tree(0, 1).leaf_of(*coded(columns)[::2])
    survival = relative_survival(statistics, four, [1.0])[:, 0]
    left, right = survival[:2], survival[2:]
    assert abs(left[0] - left[1]) > 0.3
    assert abs(right[0] - right[1]) > 0.3
    assert survival[group == 0].mean() == pytest.approx(survival[group == 1].mean())
    search = fair_survival_search(*coded(columns), statistics, group, np.ones(4), np.array([1.0]), 1e-9, 2)
    state = constrained_optimum(search, StopSignal())
    assert len(state.tree.label) == 4


def test_an_integral_of_differences_does_not_add_over_leaves():
    """Two leaves with differences of opposite sign: 0 for the tree, not the sum of the leaves' absolute values."""
    columns = np.array([[1], [1], [0], [0]], dtype=bool)
    statistics = np.array([[1.0, 1.0]] * 4)
    group = np.array([0, 0, 1, 1])
    search = fair_survival_search(*coded(columns), statistics, group, np.ones(4), np.array([1.0, 2.0]), 1.0, 1)
    by_leaf = search.objectives.points(search.statistics[:2].sum(axis=0, keepdims=True))[0, 0, 1:]
    other = search.objectives.points(search.statistics[2:].sum(axis=0, keepdims=True))[0, 0, 1:]
    tree = search.value(full_tree(0))[1:]
    np.testing.assert_allclose(by_leaf + other, tree, atol=1e-12)
    assert np.abs(tree).sum() == pytest.approx(0.0)
    assert np.abs(by_leaf).sum() + np.abs(other).sum() > 0.5
