"""Rows and cuts at a branch node against plain enumeration."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from oracles.branch_rows import node

from softsurv.data.encoding import OutputColumn
from softsurv.sparse.splits import CLEAR, Cut, NodeRows, SplitData
from softsurv.trees.linear_rule import LinearRule


@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_sorted_columns_are_cut_as_a_score_is(seed, one):
    whole, random = node(seed=seed, one=one), np.random.default_rng(seed)
    whole.data.values[2] = random.integers(0, 2, 60)
    at = np.sort(random.choice(60, 35, replace=False))
    rows = NodeRows(whole.data, at, whole.table[at], random.integers(0, 2, 35).astype(float), 3.0, 2.0)
    found = rows.best_gains((2, 0))
    told = [[rows.cut(LinearRule((column,), (1.0,), 0.0), turn).gain for turn in rows.turns] for column in (2, 0)]
    np.testing.assert_array_equal(found, told)
    few = NodeRows(whole.data, at[:1], rows.table[:1], np.ones(1), 1.0, 2.0)
    assert (few.best_gains((0, 1, 2)) == -np.inf).all()


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_rows_on_a_rounded_grid_go_where_the_printed_rule_sends_them(digits):
    """Also those whose exact sum is the threshold: found on 12,000 rows of a set of employees."""
    rng = np.random.default_rng(0)
    x = np.round(rng.random((4, 400)), 2)
    written = [[Fraction(str(value)) for value in row] for row in x.T.tolist()]
    exact = [a - Fraction("5.2") * b + Fraction("1.1") * c for a, b, c, _ in written]
    threshold = round(float(np.median([float(one) for one in exact])), digits)
    rule = LinearRule((1, 0, 2), (-5.2, 1.0, 1.1), threshold)
    assert [one > Fraction(str(threshold)) for one in exact] == rule.holds(x).tolist()


def test_a_threshold_has_the_fewest_digits_that_cost_next_to_nothing():
    """Cuts between 40 and 47 gain nearly the same: 43 is one of them, though the best lies at 43.17."""
    scores = np.array([10.0, 39.2, 41.4, 43.1, 43.24, 46.9, 80.0])
    gains = np.array([1.0, 7.7, 7.9, 8.0, 7.6, 2.0])
    assert Cut(8.0, gains, scores).threshold(avoid=False) == 40
    assert Cut(8.0, gains - [0, 1, 0, 0, 0, 0], scores).threshold(avoid=False) == 43
    assert Cut(8.0, gains - [0, 1, 1, 0, 1, 0], scores).threshold(avoid=False) == 43.2


@pytest.mark.parametrize("scale", [(1.0, 1.0), (0.5, 4.0)])
def test_a_threshold_has_the_room_that_the_routing_takes(scale):
    """Where columns are not encoded, that is no share of their range."""
    values = np.random.default_rng(0).random((2, 50)) * 1e-3
    columns = [OutputColumn(name, name, "number", scale=wide) for name, wide in zip("ab", scale, strict=True)]
    data = SplitData(values, (0, 1), (), 1e-6, np.array(scale))
    for rule in (LinearRule((0,), (1.0,), 0.2), LinearRule((1, 0), (-0.3, 1.0), 0.2)):
        taken = rule.routing(columns, 1.0, 0.0)[0] - rule.routing(columns, 1.0, data.tie)[0]
        assert data.clearance(rule) == pytest.approx(CLEAR * taken)
        assert replace(data, scale=None).clearance(rule) == pytest.approx(CLEAR * data.tie)
