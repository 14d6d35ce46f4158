"""The best rule at a node against plain enumeration."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from softsurv.data.encoding import OutputColumn
from softsurv.sparse.kernels import causes_of, gain_of_leaf
from softsurv.sparse.short_numbers import short_number
from softsurv.sparse.splits import CLEAR, SHORT_COST, Cut, NodeRows, SplitData, best_rule
from softsurv.trees.linear_rule import LinearRule


def node(n=60, seed=0, columns=3, one=False, least=5.0):
    random = np.random.default_rng(seed)
    values = random.normal(size=(columns, n)).round(2)
    h = random.uniform(0.1, 1, n)
    table = np.column_stack([random.normal(size=n), random.normal(size=n), h, 0.1 * h, h])
    table[:, 0] += np.where(values[0] > 0.2, 1.0, -1.0)
    data = SplitData(values, tuple(range(columns)), ())
    return NodeRows(data, np.arange(n), table[:, :1].copy() if one else table, np.ones(n), least, 2.0)


def plain_best(rows):
    """Best gain over all cuts of single columns, by enumeration."""
    best = -np.inf
    for values in rows.data.values:
        for cut in np.unique(values)[:-1]:
            low = values <= cut
            if min(rows.size[low].sum(), rows.size[~low].sum()) < rows.least:
                continue
            if rows.table.shape[1] == 1:
                gain = max(-rows.table[low].sum(), -rows.table[~low].sum())
            else:
                causes = causes_of(rows.table)
                gain = sum(gain_of_leaf(rows.table[side].sum(0), rows.penalty, causes) for side in (low, ~low))
            best = max(best, gain)
    return best


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


def test_levels_are_grouped_by_what_they_ask_for():
    random = np.random.default_rng(2)
    level = random.integers(0, 4, 400)
    values = np.array([level == k for k in range(4)], dtype=float)
    table = np.zeros((400, 5))
    table[:, 0] = np.where(np.isin(level, (1, 3)), 1.0, -1.0)
    table[:, 2] = table[:, 4] = 0.3
    rows = NodeRows(SplitData(values, (), ((0, 1, 2, 3),)), np.arange(400), table, np.ones(400), 10, 2.0)
    choice = best_rule(rows, LinearRule((0,), (1.0,), 0.5), max_terms=1)
    assert set(choice.rule.columns) in ({1, 3}, {0, 2})


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


def test_a_short_threshold_is_found_again():
    rows = node()
    first = best_rule(rows, LinearRule((0,), (1.0,), 99.0), max_terms=1)
    again = best_rule(rows, first.rule, max_terms=1)
    assert again.rule == first.rule
    assert rows.gain(first.rule) >= first.gain - SHORT_COST


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
