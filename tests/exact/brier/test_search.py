"""Branch and bound over sets of rows: optima, and bounds where a budget is too small."""

import math

import numpy as np
import pytest
from oracles.brier_rows import in_order, rules_of

from softsurv.exact.brier.bounds import IbsBounds
from softsurv.exact.brier.leaf_costs import IPCW
from softsurv.exact.brier.nodes import leaf_count
from softsurv.exact.brier.search import BrierSearch

COMPLEXITY = 0.004


def exact(x, score, rows, depth, leaf="km"):
    """Least objective by enumeration."""
    best = score.leaf_loss(rows, leaf) + COMPLEXITY
    for f in range(x.shape[1] if depth else 0):
        ones, zeros = rows[x[rows, f] == 1], rows[x[rows, f] == 0]
        if len(ones) and len(zeros):
            best = min(best, exact(x, score, ones, depth - 1, leaf) + exact(x, score, zeros, depth - 1, leaf))
    return best


def search_over(rows, mode=0, **how):
    return BrierSearch(rows, rules_of(rows, mode, complexity=COMPLEXITY), **how)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("base_case", [True, False])
def test_the_optimum(depth, base_case):
    x, score, rows = in_order(depth, n=18, p=4)
    search = search_over(rows, bounds=IbsBounds(base_case=base_case))
    value, found = search.solve(search.root, search.everyone, depth, math.inf)
    assert found
    assert value == pytest.approx(exact(x, score, np.arange(18), depth), abs=1e-12)
    entry = search.entry(search.root, depth)
    assert entry is None or leaf_count(entry.plan) >= 1


def test_a_budget_below_the_optimum_gives_a_bound():
    x, score, rows = in_order(9, n=18, p=4)
    best = exact(x, score, np.arange(18), 3)
    for budget in (0.9 * best, best - 1e-6):
        search = search_over(rows)
        value, found = search.solve(search.root, search.everyone, 3, budget)
        assert budget - 1e-12 <= value <= best + 1e-12
        assert not found or value == pytest.approx(best)
        assert search.root_floor() <= best + 1e-12
        again, solved = search.solve(search.root, search.everyone, 3, math.inf)  # the cache must not lie
        assert solved
        assert again == pytest.approx(best)


def test_the_pointwise_minimiser_loses_least():
    x, score, rows = in_order(4, n=16, p=3)
    search = search_over(rows, IPCW)
    value, _ = search.solve(search.root, search.everyone, 2, math.inf)
    assert value == pytest.approx(exact(x, score, np.arange(16), 2, "ipcw"), abs=1e-12)
    assert value <= exact(x, score, np.arange(16), 2) + 1e-12


def test_children_come_best_stump_first_and_divide_the_rows():
    x, score, rows = in_order(6, n=20, p=4)
    search = search_over(rows)
    options, _ = search.children(search.everyone)
    losses = [one.leaf + zero.leaf for _, (one, zero) in options]
    assert losses == sorted(losses)
    for split, (one, zero) in options:
        assert (one.size, zero.size) == (x[:, split].sum(), 20 - x[:, split].sum())
        assert one.leaf == pytest.approx(score.leaf_loss(np.flatnonzero(x[:, split])), abs=1e-13)


def test_incumbents_are_noted_as_they_improve():
    _, _, rows = in_order(6, n=20)
    search = search_over(rows)
    for value in (3.0, 4.0, 2.0, 2.0, 1.5):
        search.note(value)
    assert search.trace == [3.0, 2.0, 1.5]


def test_many_rows_without_features_are_a_leaf(monkeypatch):
    monkeypatch.setattr("softsurv.exact.brier.search.are_worth_it", lambda *_: True)
    monkeypatch.setattr("softsurv.exact.brier.search.coarse_floor", lambda *_: np.zeros(0))
    x, score, rows = in_order(1)
    rows = rows._replace(x=x[:, :0], bound=np.zeros(len(x)))
    search = search_over(rows)
    value, found = search.solve(search.root, search.everyone, 2, math.inf)
    assert found
    assert value == pytest.approx(score.leaf_loss(np.arange(len(x))) + COMPLEXITY)
