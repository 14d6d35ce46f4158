"""Splits that change nothing go, levels without rules too, and rules become routing weights."""

import numpy as np
import pytest
import torch

from softsurv.data.encoding import OutputColumn
from softsurv.sparse import finish
from softsurv.sparse.finish import LEAST_DIFFERENCE, collapse, routing_of, shallower, sharpened
from softsurv.sparse.splits import SplitData
from softsurv.trees.linear_rule import LinearRule, leaf_of
from softsurv.trees.soft_tree import SURE

VALUES = np.random.default_rng(0).normal(size=(3, 40))
SPLIT = SplitData(VALUES, (0, 1, 2), ())
RULES = tuple(LinearRule((k,), (1.0,), t) for k, t in ((0, 0.1), (1, -0.2), (2, 0.0)))
SMALL, LARGE = 0.5 * LEAST_DIFFERENCE, 2 * LEAST_DIFFERENCE


def curves_of(*levels):
    """Survival of every row in each leaf at two times."""
    return np.array([np.tile([1.0, 0.5 + level], (40, 1)) for level in levels])


def collapsed(rules, curves):
    """`collapse` with the curves (L, N, T) of all rows."""
    return collapse(rules, SPLIT, lambda rows: curves[:, rows])


def test_splits_that_matter_stay():
    rules, gone = collapsed(RULES, curves_of(0.0, LARGE, 2 * LARGE, 3 * LARGE))
    assert rules == RULES
    assert gone == []


def test_a_split_that_changes_nothing_is_taken_out():
    rules, gone = collapsed(RULES, curves_of(0.0, LARGE, 3 * LARGE, 3 * LARGE + SMALL))
    assert rules == (RULES[0], RULES[1], None)
    assert [one.rule for one in gone] == [RULES[2]]
    assert gone[0].difference == pytest.approx(SMALL)


def test_one_row_that_differs_keeps_a_split():
    curves = curves_of(0.0, 0.0, 3 * LARGE, 3 * LARGE)
    row = int(np.flatnonzero(leaf_of(RULES, VALUES) == 1)[0])
    curves[1, row, 1] += LARGE
    rules, _ = collapsed(RULES, curves)
    assert rules == (RULES[0], RULES[1], None)
    other = curves_of(0.0, 0.0, 3 * LARGE, 3 * LARGE)
    other[1, int(np.flatnonzero(leaf_of(RULES, VALUES) == 3)[0]), 1] += LARGE  # a row that never comes there
    assert collapsed(RULES, other)[0] == (RULES[0], None, None)


def test_many_rows_are_looked_at_in_blocks(monkeypatch):
    monkeypatch.setattr(finish, "BLOCK", 7)
    curves, seen = curves_of(0.0, SMALL, 3 * LARGE, 4 * LARGE), []

    def of_rows(rows):
        seen.append(len(rows))
        return curves[:, rows]

    rules, gone = collapse(RULES, SPLIT, of_rows)
    assert (rules, gone) == collapsed(RULES, curves)
    assert max(seen) <= 7
    assert sum(seen) < 80  # the sides of the root and of one split differ in their first block


def test_with_a_root_of_two_equal_sides_its_right_side_goes():
    rules = (RULES[0], RULES[1], RULES[1])
    found, gone = collapsed(rules, curves_of(0.0, LARGE, SMALL, LARGE))
    assert found == (None, RULES[1], None)
    assert [one.rule for one in gone] == [RULES[0]]


def test_a_tree_of_one_curve_loses_all_splits():
    rules, gone = collapsed(RULES, curves_of(0.3, 0.3, 0.3, 0.3))
    assert rules == (None, None, None)
    assert [one.difference for one in gone] == [0.0, 0.0, 0.0]


def test_levels_without_a_rule_go():
    models = (torch.arange(5.0, dtype=torch.float64)[None, :, None],)
    rules, kept = shallower((RULES[0], None, None), models)
    assert rules == (RULES[0],)
    assert kept[0].ravel().tolist() == [0.0, 1.0, 3.0]  # the common model, and the left leaf of each pair
    rules, kept = shallower((None, None, None), models)
    assert rules == ()
    assert kept[0].ravel().tolist() == [0.0, 1.0]
    assert shallower(RULES, models) == (RULES, models)


def test_routing_weights_send_rows_where_the_rules_do():
    columns = [OutputColumn(f"x{k}", f"x{k}", "number", None, 2.0 * k, 1.0 + k) for k in range(3)]
    rules = (LinearRule((0, 2), (1.5, -1.0), 0.25), None, LinearRule((1,), (-1.0,), 0.3))
    routing = routing_of(rules, SPLIT, columns)
    encoded = np.array([(v - c.offset) / c.scale for v, c in zip(VALUES, columns, strict=True)])
    logits = routing[:, :1] + routing[:, 1:] @ encoded
    np.testing.assert_array_equal(logits[0] > 0, rules[0].holds(VALUES))
    np.testing.assert_array_equal(logits[2] > 0, rules[2].holds(VALUES))
    assert logits[0].std() == pytest.approx(1.0)  # sharpness one per standard deviation
    assert (logits[1] == SURE).all()


def test_only_what_asks_becomes_sharper():
    routing = torch.tensor([[[2.0, 0.0, 1.0], [SURE, 0.0, 0.0]]])
    assert sharpened(routing, 4.0).tolist() == [[[8.0, 0.0, 4.0], [SURE, 0.0, 0.0]]]
