"""Best next splits where the cost of a leaf is the least of its sums: the shortcuts against the definition."""

import numpy as np
import pytest
from oracles.plain_cuts import cutting
from oracles.plain_search import body

from softsurv.exact.cuts.labels import few_labels, mark_members, total_labels, two_labels
from softsurv.exact.cuts.sweep import leaf_sides, mark_sides


def by_definition(made, rows):
    """Least cost of some rows with at most one split on any column."""
    stats = made.problem.stats
    best = stats[rows].sum(axis=0).min()
    for code in made.cuts.code:
        for value in np.unique(code[rows])[:-1]:
            left = code[rows] <= value
            best = min(best, stats[rows[left]].sum(axis=0).min() + stats[rows[~left]].sum(axis=0).min())
    return best


@pytest.mark.parametrize("features", [1, 3, 9])  # nine columns take two vectors
@pytest.mark.parametrize("share", [0.1, 0.4, 0.8])
def test_two_labels_by_extreme_differences(features, share):
    made = cutting(n=20, levels=5, features=features, seed=features, nominal=[False] * features)
    cuts, order = made.cuts, made.cuts.order[0, : made.n]
    at = max(1, int(share * made.n))
    body(mark_members)(cuts, 0, at, made.n)
    assert cuts.member[order].tolist() == [1.0] * at + [0.0] * (made.n - at)
    body(leaf_sides)(made.problem, cuts, 0, 0, at, made.n)
    cuts.stump[:] = np.inf
    body(two_labels)(cuts, made.n)
    for side, rows in enumerate((order[:at], order[at:])):
        assert cuts.stump[side] == cuts.stump[2 + side] == pytest.approx(by_definition(made, rows))


@pytest.mark.parametrize("labels", [3, 5, 8])
@pytest.mark.parametrize("at", [1, 6, 15])
def test_few_labels_skip_only_cuts_that_cannot_win(labels, at):
    statistics = np.random.default_rng(labels).integers(0, 9, (20, labels)).astype(float)
    made = cutting(n=20, levels=5, features=3, seed=labels, statistics=statistics, nominal=[False] * 3)
    assert made.cuts.few_labels
    cuts, order = made.cuts, made.cuts.order[0, : made.n]
    body(mark_sides)(cuts, 0, 0, 0, at, made.n)
    body(leaf_sides)(made.problem, cuts, 0, 0, at, made.n)
    body(total_labels)(cuts)
    assert cuts.stump[:2].tolist() == [made.problem.stats[one].sum(axis=0).min() for one in (order[:at], order[at:])]
    for f in range(3):
        body(few_labels)(cuts, f, f, made.n)
    for side, rows in enumerate((order[:at], order[at:])):
        assert cuts.stump[side] == cuts.stump[2 + side] == pytest.approx(by_definition(made, rows))
