"""The bins of the tree to start from."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv.sparse import start
from softsurv.sparse.kernels import causes_of, gain_of_leaf
from softsurv.sparse.short_numbers import short_between
from softsurv.sparse.splits import SplitData
from softsurv.sparse.start import StartProblem, bins_of, number_bins, tree_grown_on, trees_of_corrections
from softsurv.trees.linear_rule import LinearRule, leaf_of


def one_by_one(values, rows, n_bins):
    """Codes and rules of each column by itself: every cut, or those after the lower quantiles."""
    codes, rules = [], []
    for column, row in enumerate(values):
        known = np.unique(row[rows])
        lower = np.quantile(row[rows], np.arange(1, n_bins) / n_bins, method="lower")
        edges = np.unique(lower) if len(known) > n_bins else known[:-1]
        edges = edges[edges < known[-1]]
        above = known[np.searchsorted(known, edges, side="right")]
        if len(edges):
            codes.append(np.searchsorted(edges, row))
            pairs = zip(edges.tolist(), above.tolist(), strict=True)
            rules.append([LinearRule((column,), (1.0,), short_between(*pair)) for pair in pairs])
    return np.array(codes).reshape(len(codes), values.shape[1]), rules


@pytest.mark.parametrize("seed", range(40))
def test_columns_are_binned_together_as_they_are_one_by_one(seed):
    rng = np.random.default_rng(seed)
    n, n_bins = int(rng.integers(1, 60)), int(rng.choice([2, 3, 12, 31, 100]))
    values = np.stack([rng.integers(0, most, n) * 0.37 for most in (1, 2, 5, 13, 40, 1000)])
    rows = np.sort(rng.choice(n, int(rng.integers(1, n + 1)), replace=False))
    data = SplitData(values, tuple(range(6)), ())
    problem = StartProblem(data, rows, np.zeros((n, 5)), np.ones(n), 1.0, 1.0, number_bins(data, rows, n_bins))
    bins, (codes, rules) = bins_of(problem, most=None), one_by_one(values, rows, n_bins)
    assert np.array_equal(bins.codes, codes)
    assert [list(own) for own in bins.rules] == rules
    assert bins.n_codes.tolist() == [len(own) + 1 for own in rules]


def test_of_many_features_those_looked_at_in_time_are_kept(monkeypatch):
    monkeypatch.setattr(start, "FEATURES_A_CALL", 1)
    rng = np.random.default_rng(0)
    values, looked = rng.random((40, 30)), iter([False] * 6 + [True])
    problem = StartProblem(
        SplitData(values, tuple(range(40)), ()), np.arange(30), rng.random((30, 5)), np.ones(30), 1.0, 1.0
    )
    kept = bins_of(problem, most=5, stop=lambda: next(looked))
    assert {own[0].columns[0] for own in kept.rules} <= set(range(6))
    assert len(kept.rules) == 5


def problem_of(seed, n=200, least=5.0):
    """Rows whose corrections depend on three of five features."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 8, (5, n)) / 8
    slope = np.where((values[0] > 0.4) ^ (values[1] > 0.6), 1.0, -1.0) + 0.5 * (values[2] > 0.5)
    sums = np.stack([slope + rng.normal(0, 0.3, n), rng.normal(0, 0.3, n), *np.ones((1, n)), *np.zeros((2, n))], 1)
    sums[:, 4] = 1.0
    return StartProblem(SplitData(values, tuple(range(5)), ()), np.arange(n), sums, np.ones(n), least, 1.0)


def gain_in_leaves(problem, rules):
    """What a tree gains, leaf by leaf; its leaves; its smallest one."""
    leaf = leaf_of(rules, problem.data.values)
    causes = causes_of(problem.sums)
    parts = [leaf == k for k in np.unique(leaf)]
    gain = sum(float(gain_of_leaf(problem.sums[part].sum(0), problem.penalty, causes)) for part in parts)
    return gain, len(parts), min(problem.size[part].sum() for part in parts)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("first", "last"), [(2, 3), (2, 4), (3, 4), (4, 6), (4, 8), (3, 8)])
def test_a_tree_grown_on_keeps_its_rules_and_gains(seed, first, last):
    problem = problem_of(seed)
    small = trees_of_corrections(problem, 2)[first]
    rules = (*small, *(None,) * ((7 if last > 4 else 3) - len(small)))
    grown = tree_grown_on(problem, rules, last)
    assert all(new == old for new, old in zip(grown, rules, strict=True) if old is not None)
    gain, n_leaves, least = gain_in_leaves(problem, grown)
    assert n_leaves == last
    assert least >= problem.least
    assert gain > gain_in_leaves(problem, rules)[0]


@pytest.mark.parametrize("seed", range(5))
def test_the_leaf_that_gains_most_is_split(seed):
    problem = problem_of(seed)
    rules = (LinearRule((3,), (1.0,), 0.45), None, None)  # noise: either side has something to gain
    grown = tree_grown_on(problem, rules, 3)
    one_more = [
        (rules[0], *below) for own in bins_of(problem).rules for rule in own for below in ((rule, None), (None, rule))
    ]
    allowed = [tree for tree in one_more if gain_in_leaves(problem, tree)[1:] >= (3, problem.least)]
    best = max(gain_in_leaves(problem, tree)[0] for tree in allowed)
    assert gain_in_leaves(problem, grown)[0] == pytest.approx(best)


def test_where_rows_allow_no_more_leaves_there_are_fewer():
    problem = problem_of(0, least=40.0)
    rules = (LinearRule((0,), (1.0,), 0.4), *(None,) * 6)
    grown = tree_grown_on(problem, rules, 8)
    assert 2 < gain_in_leaves(problem, grown)[1] < 8
    assert gain_in_leaves(problem, grown)[2] >= 40
    assert tree_grown_on(problem_of(0, least=80.0), rules, 8) is None
