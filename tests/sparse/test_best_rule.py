"""The best rule at a node against plain enumeration."""

import numpy as np
import pytest
from oracles.branch_rows import node, plain_best

from softsurv.sparse.best_rule import best_rule
from softsurv.sparse.short_numbers import short_number
from softsurv.sparse.splits import SHORT_COST, NodeRows, SplitData
from softsurv.trees.linear_rule import LinearRule


def test_the_gains_of_causes_add():
    one, two = node(seed=1), node(seed=2)
    rows = NodeRows(one.data, one.rows, np.hstack([one.table, two.table]), one.size, one.least, one.penalty)
    rule = LinearRule((1,), (1.0,), 0.3)
    apart = [NodeRows(one.data, one.rows, table, one.size, one.least, one.penalty) for table in (one.table, two.table)]
    assert rows.gain(rule) == pytest.approx(sum(part.gain(rule) for part in apart), rel=1e-12)
    choice = best_rule(rows, LinearRule((0,), (1.0,), 99.0), max_terms=1)
    assert choice.gain == pytest.approx(plain_best(rows), abs=2e-6)


@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_axis_parallel_rule_is_the_best_of_all_cuts(seed, one):
    rows = node(seed=seed, one=one)
    old = LinearRule((0,), (1.0,), 99.0)
    choice = best_rule(rows, old, max_terms=1)
    assert choice.gain == pytest.approx(plain_best(rows), abs=2e-6)  # an old rule as good as the best stays
    sides = rows.table[choice.rule.holds(rows.data.values) == choice.swap]
    told = -sides.sum() if one else rows.gain(choice.rule)
    assert choice.gain - SHORT_COST - 2e-6 <= told <= choice.gain + 2e-6


def test_a_direction_is_found_and_has_few_digits():
    random = np.random.default_rng(1)
    values = random.normal(size=(4, 800))
    values[1] *= 100  # another unit
    table = np.zeros((800, 5))
    table[:, 0] = np.where(values[0] + values[1] / 100 > 0.3, 1.0, -1.0)
    table[:, 2] = 0.3
    table[:, 4] = 0.3
    rows = NodeRows(SplitData(values, (0, 1, 2, 3), ()), np.arange(800), table, np.ones(800), 10, 2.0)
    choice = best_rule(rows, LinearRule((0,), (1.0,), 0.0), max_terms=3)
    assert set(choice.rule.columns) == {0, 1}
    weights = dict(zip(choice.rule.columns, choice.rule.coefficients, strict=True))
    assert weights[0] / weights[1] == pytest.approx(100, rel=0.25)
    agreement = np.mean(choice.rule.holds(values) == (table[:, 0] > 0))
    assert max(agreement, 1 - agreement) > 0.95
    assert all(c == short_number(c) for c in choice.rule.coefficients)


def rows_of_levels():
    """Four levels of which the second and the last ask for one correction, the others for another."""
    level = np.random.default_rng(2).integers(0, 4, 400)
    values = np.array([level == k for k in range(4)], dtype=float)
    table = np.zeros((400, 5))
    table[:, 0] = np.where(np.isin(level, (1, 3)), 1.0, -1.0)
    table[:, 2] = table[:, 4] = 0.3
    return NodeRows(SplitData(values, (), ((0, 1, 2, 3),)), np.arange(400), table, np.ones(400), 10, 2.0)


def test_levels_are_grouped_by_what_they_ask_for():
    choice = best_rule(rows_of_levels(), LinearRule((0,), (1.0,), 0.5), max_terms=1)
    assert set(choice.rule.columns) in ({1, 3}, {0, 2})


@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_set_of_levels_is_the_best_end_of_their_order(seed, one):
    """Some rows are in no level; they go right."""
    random = np.random.default_rng(seed)
    level = random.integers(0, 6, 300)
    values = np.array([level == k for k in range(5)], dtype=float)
    h = random.uniform(0.1, 1, 300)
    table = np.column_stack([random.normal(size=300) + 0.3 * level, random.normal(size=300), h, 0.1 * h, h])
    table = table[:, :1].copy() if one else table
    rows = NodeRows(SplitData(values, (), ((0, 1, 2, 3, 4),)), np.arange(300), table, np.ones(300), 10.0, 2.0)
    asked = [table[level == k, 0].sum() / ((level == k).sum() if one else h[level == k].sum() + 2.0) for k in range(5)]
    ends = [tuple(np.sort(np.argsort(asked)[k:]).tolist()) for k in range(1, 5)]
    ends.append((0,))  # the old rule, cut anew
    best = max(rows.gain(LinearRule(chosen, (1.0,) * len(chosen), 0.5)) for chosen in ends)
    choice = best_rule(rows, LinearRule((0,), (1.0,), 99.0), max_terms=1)
    assert choice.gain == pytest.approx(rows.gain(choice.rule), abs=2e-6)
    assert choice.gain == pytest.approx(best, abs=2e-6)


def test_no_rule_leaves_a_side_below_the_least_size():
    rows = node(n=20, least=10.0)
    choice = best_rule(rows, LinearRule((0,), (1.0,), 99.0), max_terms=3)
    high = choice.rule.holds(rows.data.values)
    assert high.sum() in (0, 10, 20)


def test_a_short_threshold_is_found_again():
    rows = node()
    first = best_rule(rows, LinearRule((0,), (1.0,), 99.0), max_terms=1)
    again = best_rule(rows, first.rule, max_terms=1)
    assert again.rule == first.rule
    assert rows.gain(first.rule) >= first.gain - SHORT_COST


@pytest.mark.parametrize("old", [LinearRule((0, 1), (1.0, 0.87), 0.93), LinearRule((2,), (1.0,), 0.5)])
@pytest.mark.parametrize("one", [False, True])
def test_the_coefficients_of_a_direction_are_those_that_all_rows_ask_for(old, one):
    """A ratio of .93 lies between those that are tried on a part of the rows: it was rounded to .87 or 1."""
    rng = np.random.default_rng(3)
    values = rng.random((3, 3000))
    above = values[0] + 0.93 * values[1] > 0.965
    table = np.zeros((3000, 5))
    table[:, 0] = rng.normal(size=3000) + np.where(above, 1.0, -1.0)
    table[:, 2] = table[:, 4] = 0.5
    own = table[:, :1].copy() if one else table
    rows = NodeRows(SplitData(values, (0, 1, 2), ()), np.arange(3000), own, np.ones(3000), 10.0, 2.0)
    choice = best_rule(rows, old, max_terms=3)
    agreement = np.mean(choice.rule.holds(values) == above)
    assert max(agreement, 1 - agreement) > 0.993
    assert all(c == short_number(c) for c in choice.rule.coefficients)


def test_the_coefficients_of_sets_of_levels_stay_one():
    old = LinearRule((1, 3), (1.0, 1.0), 0.5)
    assert best_rule(rows_of_levels(), old, max_terms=3).rule == old
