"""Squared error of constant leaves: the formula, and the optimum against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.enumeration import least_objective
from oracles.small_codes import SEEDS, agree, small_codes

from softsurv.exact.objectives import squared_error
from softsurv.exact.search import Search


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(0, 4), st.integers(1, 8))
def test_squared_error_equals_enumeration(seed, depth, leaves):
    rng, codes, n_codes, nominal = small_codes(seed)
    y, weight = rng.normal(size=len(codes)), rng.integers(1, 3, len(codes)).astype(float)
    statistics, offset = squared_error.statistics(y, weight), squared_error.offset(y, weight)
    search = Search(squared_error.TASK, codes, n_codes, nominal, statistics, offset, memory_limit=1e6)
    expected = least_objective(squared_error.TASK, codes, nominal, statistics, offset, depth, leaves)
    assert agree(search.solve(depth, leaves).report.objective, expected)


@pytest.mark.parametrize("weight", [np.ones(5), np.array([1.0, 2.0, 0.5, 3.0, 1.0])])
def test_cost_and_offset_are_the_error_about_the_mean(weight):
    y = np.array([1.0, -2.0, 0.5, 4.0, 0.0])
    sums = squared_error.statistics(y, weight).sum(axis=0, keepdims=True)
    mean = np.average(y, weights=weight)
    assert squared_error.best_value(sums)[0] == pytest.approx(mean)
    cost = squared_error.TASK.costs(sums)[0] + squared_error.offset(y, weight).sum()
    assert cost == pytest.approx((weight * (y - mean) ** 2).sum())


def test_an_empty_leaf_costs_nothing_and_predicts_zero():
    assert squared_error.TASK.costs(np.zeros((1, 2)))[0] == 0.0
    assert squared_error.best_value(np.zeros((1, 2)))[0] == 0.0
