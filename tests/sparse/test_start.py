"""The bins of the tree to start from."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv.sparse.splits import SplitData, short_between
from softsurv.sparse.start import StartProblem, bins_of
from softsurv.trees.linear_rule import LinearRule


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
    problem = StartProblem(SplitData(values, tuple(range(6)), ()), rows, np.zeros((n, 5)), np.ones(n), 1.0, 1.0)
    bins, (codes, rules) = bins_of(problem, n_bins, most=None), one_by_one(values, rows, n_bins)
    assert np.array_equal(bins.codes, codes)
    assert [list(own) for own in bins.rules] == rules
    assert bins.n_codes.tolist() == [len(own) + 1 for own in rules]


def test_of_many_features_those_looked_at_in_time_are_kept():
    rng = np.random.default_rng(0)
    values, looked = rng.random((40, 30)), iter([False] * 6 + [True])
    problem = StartProblem(
        SplitData(values, tuple(range(40)), ()), np.arange(30), rng.random((30, 5)), np.ones(30), 1.0, 1.0
    )
    kept = bins_of(problem, most=5, stop=lambda: next(looked))
    assert {own[0].columns[0] for own in kept.rules} <= set(range(6))
    assert len(kept.rules) == 5
