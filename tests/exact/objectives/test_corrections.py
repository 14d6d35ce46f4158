"""The leaf cost of corrections to a common regression: against its definition, enumeration, and its bound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.enumeration import least_objective

from softsurv.exact.check import check_task
from softsurv.exact.objectives import corrections
from softsurv.exact.search import Search


def a_table(rng, n, causes=1):
    """Slopes and curvatures of rows, some of whose curvatures are no positive semidefinite matrix."""
    g = rng.normal(size=(n, causes, 2))
    h = np.stack(
        [rng.exponential(size=(n, causes)), rng.normal(size=(n, causes)), rng.exponential(size=(n, causes))], -1
    )
    return np.concatenate([g, h], -1).reshape(n, -1)


def gain(sums, penalty):
    """Most that a correction gains, by its definition."""
    total = 0.0
    for g0, g1, a, b, c in np.asarray(sums).reshape(-1, 5):
        g, h = np.array([g0, g1]), np.array([[a, b], [b, c]]) + penalty * np.eye(2)
        d = np.linalg.solve(h, g)
        total += g @ d - 0.5 * d @ h @ d
    return total


@pytest.mark.parametrize("causes", [1, 2])
@pytest.mark.parametrize("penalty", [0.5, 4.0])
def test_the_cost_is_minus_the_gain(causes, penalty):
    rng = np.random.default_rng(causes)
    table = a_table(rng, 30, causes)
    scaled = corrections.statistics(table, penalty)
    most = np.sqrt(table[:, 2] * table[:, 4])
    table[:, 3] = np.clip(table[:, 3], -most, most)
    for k in range(5, table.shape[1], 5):
        most = np.sqrt(table[:, k + 2] * table[:, k + 4])
        table[:, k + 3] = np.clip(table[:, k + 3], -most, most)
    leaves = [rng.choice(30, size, replace=False) for size in (1, 5, 30)]
    sums = np.array([scaled[leaf].sum(axis=0) for leaf in leaves])
    expected = [-gain(table[leaf].sum(axis=0), penalty) for leaf in leaves]
    np.testing.assert_allclose(corrections.TASK.costs(sums), expected)
    assert corrections.TASK.costs(np.zeros((1, 5 * causes)))[0] == 0


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), causes=st.integers(1, 2), penalty=st.sampled_from([0.1, 1.0, 20.0]))
def test_no_leaf_costs_less_than_its_rows_offsets(seed, causes, penalty):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    scaled = corrections.statistics(a_table(rng, n, causes), penalty)
    offset = corrections.offset(scaled)
    leaf = rng.random(n) < rng.random()
    cost = corrections.TASK.costs(scaled[leaf].sum(axis=0, keepdims=True))[0]
    assert cost + offset[leaf].sum() >= -1e-9


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_tree_is_that_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(4, 13)), 2
    codes = rng.integers(0, 4, (n, p)).astype(np.int32)
    scaled = corrections.statistics(a_table(rng, n), float(rng.choice([0.2, 4.0])))
    offset, nominal = corrections.offset(scaled), np.zeros(p, bool)
    complexity = float(rng.choice([0.0, 0.3]))
    for depth, leaves in ((2, 3), (3, 8)):
        search = Search(corrections.TASK, codes, np.full(p, 4), nominal, scaled, offset, complexity=complexity)
        expected = least_objective(
            corrections.TASK, codes, nominal, scaled, offset, depth, leaves, complexity=complexity
        )
        report = search.solve(depth, leaves).report
        assert report.objective == pytest.approx(expected)
        assert report.gap == 0


def test_the_task_keeps_its_promises():
    rng = np.random.default_rng(0)
    scaled = corrections.statistics(a_table(rng, 60), 4.0)
    assert check_task(corrections.TASK, scaled, corrections.offset(scaled)) is None  # it raises where one is broken
