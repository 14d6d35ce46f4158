"""Nested and exclusive 0/1 columns as one feature: the same splits, the same optimum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from softsurv.exact.bounds import Bounds
from softsurv.exact.nesting import group_columns
from softsurv.exact.search import Search
from softsurv.exact.tasks import relative_risk


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
