"""Rules of few terms: what they say, where they send rows, and as routing weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsurv.data.encoding import OutputColumn
from softsurv.trees.linear_rule import LinearRule, answers_of, leaf_of

COLUMNS = (
    OutputColumn("age", "age", "number", None, 20.0, 60.0),
    OutputColumn("nodes", "nodes", "number", None, 1.0, 50.0),
    OutputColumn("grade=I", "grade", "level", "I"),
    OutputColumn("grade=II", "grade", "level", "II"),
    OutputColumn("grade=<=20mm", "grade", "level", "<=20mm"),
)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (LinearRule((0,), (1.0,), 45.0), "age > 45"),
        (LinearRule((0,), (-1.0,), -45.5), "age < 45.5"),
        (LinearRule((0, 1), (1.0, -2.5), 0.0), "age - 2.5 nodes > 0"),
        (LinearRule((2,), (1.0,), 0.5), "grade = I"),
        (LinearRule((2, 3), (1.0, 1.0), 0.5), "grade in {I, II}"),
        (LinearRule((4,), (1.0,), 0.5), 'grade = "<=20mm"'),
        (LinearRule((0, 3), (1.0, 12.0), 60.25), "age + 12 [grade = II] > 60.25"),
    ],
)
def test_text(rule, words):
    assert rule.text(COLUMNS) == words


@given(
    st.lists(st.tuples(st.integers(20, 80), st.integers(1, 51)), min_size=1, max_size=30),
    st.floats(-3, 3, allow_nan=False).map(lambda v: round(v, 1)).filter(bool),
    st.integers(0, 120),
)
def test_routing_weights_send_rows_where_the_rule_does(rows, ratio, threshold):
    """Ties included: a score that equals the threshold does not go left, whatever the encoding rounds."""
    values = np.zeros((5, len(rows)))
    values[:2] = np.array(rows, dtype=float).T
    rule = LinearRule((0, 1), (1.0, ratio), float(threshold))
    encoded = np.array([(values[k] - column.offset) / column.scale for k, column in enumerate(COLUMNS)])
    weights = rule.routing(COLUMNS, sharpness=7.0)
    score = weights[0] + weights[1:] @ encoded
    near = np.abs(rule.score(values) - threshold) < 1e-9
    np.testing.assert_array_equal((score >= 0)[~near], rule.holds(values)[~near])
    assert not (score >= 0)[near].any()


def test_state_round_trip():
    rule = LinearRule((0, 3), (1.0, 12.0), 60.25)
    assert LinearRule.restore(rule.state()) == rule


def test_leaves_of_a_tree_with_a_missing_rule():
    rules = (LinearRule((0,), (1.0,), 50.0), None, LinearRule((1,), (1.0,), 5.0))
    values = np.zeros((5, 4))
    values[0], values[1] = [60, 40, 40, 50], [9, 9, 1, 6]
    assert leaf_of(rules, values).tolist() == [0, 2, 3, 2]
    assert answers_of(rules, values).shape == (3, 4)
