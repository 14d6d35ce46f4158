"""A tree pruned and labelled anew: against every way to prune and label it."""

from itertools import product

import fuzz_exact
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.two_classes import coded, few, tiny

from softsurv.exact.objectives.fairness import KINDS, fair_search
from softsurv.exact.whole_trees.constraint import constrained_optimum
from softsurv.exact.whole_trees.repair import repaired
from softsurv.stopping import StopSignal

seeds = st.integers(0, 10_000)


def problem(seed, depth, tolerance, leaves=None, n=40):
    columns, label, rng = tiny(seed, n=n)
    group = rng.integers(0, 2, len(label))
    group[:4], label[:4] = [0, 1, 0, 1], [0, 0, 1, 1]
    return fair_search(*coded(columns), label, group, KINDS[0], tolerance, depth, leaves=leaves)


def every_way(tree, points, node=0):
    """Objectives of every way to prune and label a tree below a node."""
    ways = list(points[node])
    if tree.feature[node] >= 0:
        below = [every_way(tree, points, child) for child in (tree.left[node], tree.right[node])]
        ways += [a + b for a, b in product(*below)]
    return ways


@few
@given(seeds, st.sampled_from([0.0, 0.05, 0.3]), st.sampled_from([None, 3]))
def test_the_best_of_all_ways_to_prune_and_label(seed, tolerance, leaves):
    search = problem(seed, 3, tolerance, leaves)
    tree = search.best(StopSignal()).tree.tree
    found = repaired(search, tree)
    ways = [v for v in every_way(tree, search.objectives.points(tree.sums)) if search.meets(v)]
    v, mended = found
    assert v[0] == pytest.approx(min(way[0] for way in ways))
    assert search.meets(v)
    np.testing.assert_allclose(search.value(mended), v, atol=1e-9)


@few
@given(seeds, st.sampled_from([0.0, 0.1]), st.sampled_from([None, 3, 5]))
def test_a_long_search_finds_what_a_short_one_does(seed, tolerance, leaves):
    plain = constrained_optimum(problem(seed, 3, tolerance, leaves), StopSignal(), unit=1.0)
    with fuzz_exact.taken_for_long():
        search = problem(seed, 3, tolerance, leaves)
        long = constrained_optimum(search, StopSignal(), unit=1.0)
    assert long.value == pytest.approx(plain.value)
    assert long.bound == pytest.approx(plain.bound)
    assert search.meets(long.v)
    np.testing.assert_allclose(search.value(long.tree), long.v, atol=1e-9)
