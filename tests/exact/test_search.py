"""The exact search against enumeration of all trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles.enumeration import least_objective
from oracles.small_codes import agree, small_codes

from softsurv.exact.bounds import Bounds
from softsurv.exact.objectives import label_costs, relative_risk
from softsurv.exact.search import Search
from softsurv.nonparametric import nelson_aalen
from softsurv.results import Status

QUICK = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
SWITCHES = ("equivalent_points", "interval", "look_ahead", "cache", "lanes")


@st.composite
def survival_problem(draw, max_rows=11):
    """Small data with ties, duplicates, weights, nominal features, any share of events."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p = draw(st.integers(1, max_rows)), draw(st.integers(1, 3))
    n_codes = rng.integers(1, 5, p)
    codes = np.column_stack([rng.integers(0, m, n) for m in n_codes]).astype(np.int32)
    nominal = rng.random(p) < 0.4
    time = rng.integers(1, 6, n).astype(float)
    event = rng.random(n) < draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    weight = rng.integers(1, 4, n).astype(float) if draw(st.booleans()) else np.ones(n)
    if draw(st.booleans()):
        weight = weight * rng.uniform(0.5, 1.5, n)
    hazard = relative_risk.baseline_hazard(nelson_aalen(time, event, weight)(time), n)
    offset = np.where(event, -weight * np.log(hazard), 0.0)
    return codes, n_codes, nominal, relative_risk.statistics(event, hazard, weight), offset


def close(a, b):
    return a == pytest.approx(b, rel=1e-9, abs=1e-8)


@QUICK
@given(
    data=survival_problem(),
    depth=st.integers(0, 3),
    leaves=st.integers(1, 8),
    min_leaf=st.integers(1, 3),
    complexity=st.sampled_from([0.0, 0.05, 0.4]),
)
def test_equals_enumeration(data, depth, leaves, min_leaf, complexity):
    codes, n_codes, nominal, statistics, offset = data
    min_leaf = min(min_leaf, len(codes))
    search = Search(
        relative_risk.TASK,
        codes,
        n_codes,
        nominal,
        statistics,
        offset,
        min_leaf=min_leaf,
        complexity=complexity,
        memory_limit=1e6,
    )
    solution = search.solve(depth, leaves)
    expected = least_objective(
        relative_risk.TASK, codes, nominal, statistics, offset, depth, leaves, min_leaf, complexity
    )
    assert close(solution.report.objective, expected)
    assert solution.report.status == Status.OPTIMAL
    assert solution.report.gap == 0
    tree = solution.tree
    assert tree.depth <= depth
    assert tree.n_leaves <= leaves
    node = tree.node_of(codes, nominal)
    assert set(node) == set(tree.leaves)
    assert min(np.bincount(node)[tree.leaves]) >= min_leaf
    sums = np.stack([statistics[node == leaf].sum(axis=0) for leaf in tree.leaves])
    np.testing.assert_allclose(sums, tree.sums[tree.leaves], atol=1e-9)


@QUICK
@given(data=survival_problem(max_rows=30), depth=st.integers(2, 6), leaves=st.integers(2, 20), seed=st.integers(0, 63))
def test_switches_do_not_change_the_result(data, depth, leaves, seed):
    codes, n_codes, nominal, statistics, offset = data
    on = {name: bool(seed >> i & 1) for i, name in enumerate(SWITCHES)}
    values = [
        Search(relative_risk.TASK, codes, n_codes, nominal, statistics, offset, bounds=bounds, memory_limit=1e6)
        .solve(depth, leaves)
        .report.objective
        for bounds in (Bounds(), Bounds(**on))
    ]
    assert close(*values)


@QUICK
@given(data=survival_problem(max_rows=25), depth=st.integers(2, 4))
def test_base_case_equals_partitioning(data, depth):
    codes, n_codes, nominal, statistics, offset = data
    values = [
        Search(relative_risk.TASK, codes, n_codes, nominal, statistics, offset, bounds=bounds, memory_limit=1e6)
        .solve(depth)
        .report.objective
        for bounds in (Bounds(), Bounds(base_case=False))
    ]
    assert close(*values)


@QUICK
@given(data=survival_problem(max_rows=10), depth=st.integers(1, 3))
def test_path_is_the_optimum_of_every_size(data, depth):
    codes, n_codes, nominal, statistics, offset = data
    search = Search(relative_risk.TASK, codes, n_codes, nominal, statistics, offset, memory_limit=1e6)
    path = search.path(depth)
    assert len(path) == 2**depth
    for most, solution in enumerate(path, 1):
        expected = least_objective(relative_risk.TASK, codes, nominal, statistics, offset, depth, most)
        assert close(solution.report.objective, expected)
        assert solution.tree.n_leaves <= most


@QUICK
@given(
    seed=st.integers(0, 2**32 - 1),
    depth=st.integers(1, 3),
    complexity=st.sampled_from([0.0, 0.5, 1.5]),
    leaves=st.integers(1, 8),
)
def test_misclassification_equals_enumeration(seed, depth, complexity, leaves):
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(1, 12)), 2 if seed % 2 else 3
    n_codes = rng.integers(2, 5, 3)
    codes = np.column_stack([rng.integers(0, m, n) for m in n_codes]).astype(np.int32)
    nominal = rng.random(3) < 0.4
    task = label_costs.TASK
    statistics = label_costs.misclassification(rng.integers(0, n_classes, n), n_classes)
    search = Search(task, codes, n_codes, nominal, statistics, complexity=complexity, memory_limit=1e6)
    expected = least_objective(task, codes, nominal, statistics, np.zeros(n), depth, leaves, 1, complexity)
    assert close(search.solve(depth, leaves).report.objective, expected)


@pytest.mark.parametrize("kind", ["all_censored", "one_row", "constant_column", "equal_rows"])
def test_degenerate_data(kind):
    n = 1 if kind == "one_row" else 8
    codes = np.zeros((n, 2), np.int32)
    codes[:, 0] = 0 if kind in ("constant_column", "equal_rows") else np.arange(n)
    event = np.full(n, kind != "all_censored")
    hazard = relative_risk.baseline_hazard(nelson_aalen(np.arange(1.0, n + 1), event)(np.arange(1.0, n + 1)), n)
    search = Search(
        relative_risk.TASK, codes, np.array([n, 1]), np.zeros(2, bool), relative_risk.statistics(event, hazard)
    )
    solution = search.solve(4)
    assert solution.report.status == Status.OPTIMAL
    assert np.isfinite(solution.report.objective)
    if kind != "constant_column" and n == 8 and kind != "equal_rows":
        assert solution.tree.n_leaves == (1 if kind == "all_censored" else solution.tree.n_leaves)
    else:
        assert solution.tree.n_leaves == 1


def test_least_weight_of_a_leaf():
    rng, codes, n_codes, nominal = small_codes(3, 12)
    codes = np.repeat(codes, 3, axis=0)
    statistics = rng.integers(0, 5, (len(codes), 2)).astype(float)
    search = Search(
        label_costs.TASK, codes, n_codes, nominal, statistics,
        min_leaf=8.0, size=np.full(len(codes), 2.0), memory_limit=1e6,
    )  # fmt: skip
    expected = least_objective(label_costs.TASK, codes, nominal, statistics, np.zeros(len(codes)), 3, 8, 4)
    assert agree(search.solve(3).report.objective, expected)


@pytest.mark.parametrize("least", [60, 75, 100])
def test_sides_too_small_for_more_leaves_are_not_opened(least):
    """They are leaves, or trees of two leaves, which the base case of the node above has found."""
    rng = np.random.default_rng(0)
    codes, event = rng.integers(0, 5, (300, 8)).astype(np.int32), rng.integers(0, 2, 300).astype(float)
    statistics = np.column_stack([event, rng.exponential(size=300)])
    reports = []
    for look_ahead in (True, False):
        search = Search(
            relative_risk.TASK, codes, np.full(8, 5), np.zeros(8, bool), statistics, min_leaf=least,
            bounds=Bounds(look_ahead=look_ahead),
        )  # fmt: skip
        reports.append(search.solve(4, 16).report)
    assert reports[0].objective == pytest.approx(reports[1].objective)
    assert reports[0].lower_bound == pytest.approx(reports[0].objective)
    assert 4 * reports[0].details["base_cases"] < reports[1].details["base_cases"]
