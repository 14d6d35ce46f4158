"""Nested and exclusive 0/1 columns as one feature: the same splits, the same optimum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from softsurv.exact.bounds import Bounds
from softsurv.exact.nesting import _groups_of, group_columns, plain_groups_of
from softsurv.exact.objectives import relative_risk
from softsurv.exact.objectives.linear import ERRORS
from softsurv.exact.search import Search
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.whole_trees.auc import AucSearch
from softsurv.stopping import StopSignal


def table(rng, n=60):
    """Cuts of two numbers, three levels, a column by itself and an ordered feature; columns in any order."""
    age, size, level = rng.integers(0, 6, n), rng.integers(0, 4, n), rng.integers(0, 3, n)
    columns = [age <= k for k in range(5)] + [size > k for k in range(3)] + [level == k for k in range(3)]
    columns = [np.asarray(c, int) for c in columns] + [rng.integers(0, 2, n), rng.integers(0, 5, n)]
    order = rng.permutation(len(columns))
    codes = np.column_stack([columns[k] for k in order]).astype(np.int32)
    return codes, codes.max(axis=0) + 1, np.zeros(len(columns), bool)


def left_of(codes, n_codes, nominal):
    """Who goes left of every split, by feature and code."""
    for f, (n, by_name) in enumerate(zip(n_codes, nominal, strict=True)):
        for code in range(n if by_name else n - 1):
            yield f, code, codes[:, f] == code if by_name else codes[:, f] <= code


@pytest.mark.parametrize("seed", range(5))
def test_the_splits_are_those_of_the_columns(seed):
    codes, n_codes, nominal = table(np.random.default_rng(seed))
    grouped = group_columns(codes, n_codes, nominal)
    start = np.cumsum(grouped.n_codes) - grouped.n_codes
    seen = set()
    for f, code, left in left_of(grouped.codes, grouped.n_codes, grouped.nominal):
        split = start[f] + code
        feature, given = grouped.splits.feature[split], grouped.splits.code[split]
        assert np.array_equal(left, (codes[:, feature] <= given) != grouped.splits.swapped[split])
        seen.add((feature, given))
    assert seen == {(f, code) for f, code, _ in left_of(codes, n_codes, nominal)}


def test_cuts_of_a_number_become_one_feature():
    codes, n_codes, nominal = table(np.random.default_rng(0), n=300)
    grouped = group_columns(codes, n_codes, nominal)
    assert sorted(grouped.n_codes.tolist()) == [2, 3, 4, 5, 6]
    assert grouped.nominal.sum() == 1


def test_chains_are_as_few_as_can_be():
    """{1}, {1, 2}, {3}, {1, 2, 3}: a greedy choice by size could end {1, 2, 3} with {3} and leave {1}, {1, 2} open."""
    members = [{0}, {0, 1}, {2}, {0, 1, 2}, {4}, {2, 4}]
    codes = np.array([[0 if row in some else 1 for some in members] for row in range(6)], np.int32)
    n_codes = group_columns(codes, np.full(6, 2), np.zeros(6, bool)).n_codes

    def is_chain(some):
        ordered = sorted(some, key=len)
        return all(a < b for a, b in itertools.pairwise(ordered))

    def fewest(rest):
        if not rest:
            return 0
        first, others = rest[0], rest[1:]
        sizes = range(len(others) + 1)
        picks = (set(pick) for size in sizes for pick in itertools.combinations(range(len(others)), size))
        return 1 + min(
            fewest([o for k, o in enumerate(others) if k not in pick])
            for pick in picks
            if is_chain([first, *(others[k] for k in pick)])
        )

    assert len(n_codes) == fewest(members)


@pytest.mark.parametrize("seed", range(60))
def test_the_groups_are_the_same_before_the_kernel_is_compiled(seed):
    rng = np.random.default_rng(seed)
    wide = np.array(table(rng)[0].T[:11] % 2)
    few = (rng.random((60, int(rng.integers(3, 9)))) < rng.random((60, 1))).astype(np.int32)
    for answers in (rng.permutation(np.unique(some, axis=0)) for some in (wide, few)):
        for one, other in zip(_groups_of(answers), plain_groups_of(answers), strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("min_leaf", [1, 5])
def test_the_optimum_stays(seed, min_leaf):
    rng = np.random.default_rng(seed)
    codes, n_codes, nominal = table(rng)
    time = rng.exponential(size=len(codes)) + 0.1
    statistics = relative_risk.statistics(rng.random(len(codes)) < 0.6, time)
    found = []
    for nesting in (True, False):
        search = Search(
            relative_risk.TASK, codes, n_codes, nominal, statistics, min_leaf=min_leaf, bounds=Bounds(nesting=nesting)
        )
        for depth, leaves in ((2, 3), (3, 8), (4, 7)):
            solution = search.solve(depth, leaves)
            leaf = solution.tree.node_of(codes, nominal)  # the tree is one of the given columns
            sums = np.stack([statistics[leaf == node].sum(axis=0) for node in solution.tree.leaves])
            assert np.allclose(sums, solution.tree.sums[solution.tree.leaves])
            assert min((leaf == node).sum() for node in solution.tree.leaves) >= min_leaf
            found.append(solution.report.objective)
    assert np.allclose(found[:3], found[3:], rtol=1e-9)


@pytest.fixture
def searches():
    """A search for trees of two errors with columns put together and without, over the same rows."""

    def both(seed, depth):
        rng = np.random.default_rng(seed)
        codes, n_codes, nominal = table(rng)
        level = codes @ rng.normal(size=codes.shape[1])
        positive = level + rng.normal(size=len(codes)) > np.median(level)
        errors = np.column_stack([~positive, positive]).astype(float)
        return [
            VectorSearch(ERRORS, codes, n_codes, nominal, errors, depth, bounds=Bounds(nesting=nesting))
            for nesting in (True, False)
        ]

    return both


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("depth", [2, 3])
def test_trees_of_several_objectives_stay(seed, depth, searches):
    found = []
    for search in searches(seed, depth):
        search.use(np.array([1.0, 1.5]))
        best = search.best(StopSignal())
        points = search.points(StopSignal(), upper=1.2 * best.value)
        for place, v in zip(points.place, points.v, strict=True):
            assert np.allclose(search.value(search.tree(place)), v)  # the tree is one of the given columns
        assert np.allclose(search.value(best.tree), best.v)
        found.append((best.value, sorted(map(tuple, points.v))))
    assert found[0][0] == pytest.approx(found[1][0])
    assert np.allclose(found[0][1], found[1][1])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("leaves", [3, None])
def test_the_largest_auc_stays(seed, leaves, searches):
    losses = []
    for search in searches(seed, 2):
        result = AucSearch(search, leaves=leaves).solve(StopSignal())
        rows = result.tree.leaf_of(search.codes, search.nominal)
        sums = result.tree.tree.sums[result.tree.tree.leaves]
        own = np.stack([search.statistics[rows == k].sum(axis=0) for k in range(len(sums))])
        assert np.allclose(own, sums[:, :2])  # the tree is one of the given columns
        losses.append(result.loss)
    assert losses[0] == pytest.approx(losses[1])


def test_the_first_offer_of_the_auc_is_the_tree_of_least_error(searches):
    for seed in range(4):
        search, _ = searches(seed, 2)
        auc = AucSearch(search)
        auc.best, auc.loss = auc.nodes.close(search.rows.rows), np.inf
        auc._offer_accurate(StopSignal())
        errors = sum(min(end.sums[0] / auc.negatives, end.sums[1] / auc.positives) for end in auc.best.leaves())
        assert errors == pytest.approx(search.best(StopSignal()).value)
