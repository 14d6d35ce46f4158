"""The recursion as plain Python against enumeration of every tree; bounds where no tree is below the limit."""

import numpy as np
import pytest
from oracles.enumeration import least_objective
from oracles.plain_search import body, run_state, small

from softsurv.exact.bounds import Bounds
from softsurv.exact.kernels.nodes import LEAF, UNKNOWN
from softsurv.exact.kernels.recursion import leaf_value
from softsurv.exact.objectives import relative_risk

KINDS = {
    "lanes": Bounds(bits=False),
    "sums": Bounds(bits=False, lanes=False),
    "bits": Bounds(),
    "plain": Bounds(base_case=False),
    "no cache": Bounds(cache=False),
}


def survival(n):
    rng = np.random.default_rng(n)
    return relative_risk.statistics(rng.random(n) < 0.6, rng.exponential(size=n))


def solve(found, depth, leaves, upper=np.inf, level=1):
    cache, shared = run_state(found, leaves, upper)
    value = found.problem.calls.solve(
        found.problem, found.rows, len(found.rows), *found.search.key, depth, leaves, upper, level, found.nodes,
        found.local, found.lanes, cache, shared,
    )  # fmt: skip
    return value, float(found.nodes.choice[level]), shared


def expected(found, depth, leaves, **limits):
    offset = np.zeros(len(found.codes))
    value = least_objective(
        found.search.task, found.codes, found.nominal, found.statistics, offset, depth, leaves, **limits
    )
    return value - found.search.constant


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("depth", "leaves"), [(2, 3), (3, 5), (3, 8), (4, 6)])
def test_the_optimum_of_labels(kind, depth, leaves):
    found = small(n=12, seed=depth, bounds=KINDS[kind], complexity=0.3)
    value, _, _ = solve(found, depth, leaves)
    assert value == pytest.approx(expected(found, depth, leaves, complexity=0.3))


@pytest.mark.parametrize("kind", ["lanes", "sums"])
@pytest.mark.parametrize("min_leaf", [1, 3])
def test_the_optimum_of_survival(kind, min_leaf):
    found = small(
        n=12, levels=4, task=relative_risk.TASK, statistics=survival(12), bounds=KINDS[kind], min_leaf=min_leaf
    )
    value, _, _ = solve(found, 3, 7)
    assert value == pytest.approx(expected(found, 3, 7, min_leaf=min_leaf))


@pytest.mark.parametrize("kind", ["lanes", "bits"])
def test_a_limit_below_the_optimum_gives_a_bound(kind):
    found = small(n=12, seed=5, bounds=KINDS[kind], complexity=0.3)
    best = expected(found, 3, 8, complexity=0.3)
    for upper in (best - 0.2, best - 1.5):
        value, choice, _ = solve(found, 3, 8, upper)
        assert upper - 1e-9 <= value <= best + 1e-9
        assert choice == UNKNOWN
    assert solve(found, 3, 8, best + 0.2)[0] == pytest.approx(best)


def test_the_root_shares_its_solution():
    found = small(n=12, seed=5, bounds=KINDS["sums"], complexity=0.3)
    value, _, shared = solve(found, 3, 8, np.inf, level=0)
    assert value == shared.best[0] == pytest.approx(expected(found, 3, 8, complexity=0.3))
    assert shared.choice[0] > UNKNOWN
    assert shared.next[0] > len(shared.order)  # every split was taken


def test_rows_that_no_split_improves_are_a_leaf():
    statistics = np.ones((12, 2))
    found = small(n=12, statistics=statistics, complexity=0.5, bounds=Bounds(cancel=False, bits=False))
    value, choice, _ = solve(found, 3, 8)
    assert value == pytest.approx(12.5)
    assert choice == LEAF
    rows = found.rows[:3].copy()
    total = found.problem.stats[rows, 0].sum()
    assert body(leaf_value)(found.problem, rows, 3, found.local) == pytest.approx(total + 0.5)
