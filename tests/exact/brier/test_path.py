"""Best trees of every size, against enumeration; what a limit leaves."""

import numpy as np
import pytest
from oracles.brier_rows import in_order, least_losses, rules_of

from softsurv.exact.brier.bounds import IbsBounds
from softsurv.exact.brier.nodes import leaf_count
from softsurv.exact.brier.path import SizePath
from softsurv.exact.brier.search import BrierSearch


def path_of(rows, depth, leaves, bounds=None, **rules):
    search = BrierSearch(rows, rules_of(rows, **rules), bounds=bounds or IbsBounds())
    path = SizePath(search)
    path.solve(search.root, depth, leaves)
    return path


def exact(x, score, rows, depth, leaves):
    """Least loss with at most so many leaves, by enumeration."""
    best = score.leaf_loss(rows)
    if depth == 0 or leaves == 1:
        return best
    for f in range(x.shape[1]):
        ones, zeros = rows[x[rows, f] == 1], rows[x[rows, f] == 0]
        if len(ones) and len(zeros):
            for k in range(1, leaves):
                both = exact(x, score, ones, depth - 1, k) + exact(x, score, zeros, depth - 1, leaves - k)
                best = min(best, both)
    return best


@pytest.mark.parametrize("base_case", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_losses_of_every_size(depth, base_case):
    x, score, rows = in_order(3, n=14, p=3)
    path = path_of(rows, depth, 6, IbsBounds(base_case=base_case))
    losses = [loss for loss, _ in path.incumbent]
    assert losses == sorted(losses, reverse=True)
    for k in range(1, 7):
        found = losses[min(k, len(losses)) - 1]
        assert found == pytest.approx(exact(x, score, np.arange(14), depth, k), abs=1e-12)
    for k, (_, plan) in enumerate(path.incumbent, start=1):
        assert leaf_count(plan) <= k


def test_the_chosen_tree_pays_for_its_leaves():
    x, score, rows = in_order(4, n=20)
    for complexity in (0.0, 0.01, 10.0):
        value, plan = path_of(rows, 2, 4, complexity=complexity).chosen()
        losses = least_losses(x, score)
        assert value == pytest.approx(min(losses[k] + complexity * k for k in range(1, 5)))
        assert value == pytest.approx(losses[leaf_count(plan)] + complexity * leaf_count(plan))
    assert plan is None


def test_a_leaf_that_meets_its_bound_needs_no_second():
    _, score, _ = in_order(4, n=20)
    x = np.zeros((20, 2), np.uint8)
    from softsurv.exact.brier.prepare import prepare_rows

    path = path_of(prepare_rows(x, score), 3, 5)
    assert [plan for _, plan in path.incumbent] == [None] * len(path.incumbent)
