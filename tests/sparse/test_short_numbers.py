"""Numbers of few digits for coefficients and thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsurv.sparse.short_numbers import short_between, short_number, shortest
from softsurv.trees.linear_rule import LinearRule


@given(st.floats(-1e6, 1e6, allow_nan=False), st.floats(1e-9, 1e3))
def test_short_numbers_lie_between(low, width):
    high = low + width
    value = short_between(low, high)
    assert low <= value < high or high <= low


@given(st.lists(st.integers(-10_000, 10_000), min_size=2, max_size=8, unique=True), st.integers(0, 4), st.data())
def test_a_threshold_of_sums_is_no_sum(whole, places, data):
    scores = np.sort(np.array(whole)) / 10.0**places
    place = data.draw(st.integers(0, len(scores) - 2))
    near = 0.5 * scores[place] + 0.5 * scores[place + 1]
    found = shortest(scores, near, avoid=True)
    assert scores[0] < found < scores[-1]
    assert found not in scores


def test_a_sum_that_the_machine_rounds_up_is_no_gap():
    """0.88 + 0.029 * 2 is 0.938, which the machine's sum exceeds."""
    scores = np.array([0.9369999999999999, 0.9380000000000001])
    assert scores[0] < shortest(scores, 0.9375, avoid=True) < 0.938
    rule = LinearRule((0, 1), (1.0, 0.029), 0.938)
    assert rule.score(np.array([[0.88], [2.0]])) > 0.938
    assert not rule.holds(np.array([[0.88], [2.0]])).any()


def test_short_numbers_are_short():
    assert short_between(50, 51) == 50
    assert short_between(3, 4) == 3
    assert short_between(0.12345, 0.98765) == 0.6
    assert short_number(0.023456) == 0.023


@pytest.mark.parametrize(("value", "digits", "found"), [(1234.0, 2, 1200.0), (-0.00456, 1, -0.005), (9.96, 2, 10.0)])
def test_significant_digits(value, digits, found):
    assert short_number(value, digits) == found


def test_of_equally_short_numbers_the_nearest():
    assert shortest(np.array([3.2, 5.9]), 4.4, avoid=False) == 4.0
    assert shortest(np.array([3.2, 5.9]), 4.6, avoid=False) == 5.0
    assert shortest(np.array([-0.4, 0.3]), -0.01, avoid=False) == 0.0
    assert str(shortest(np.array([-0.4, 0.3]), -0.01, avoid=False)) == "0.0"  # no negative zero


def test_scores_are_avoided_where_digits_tell_them_apart():
    assert shortest(np.array([3.2, 4.0, 5.0, 5.9]), 4.4, avoid=False) == 4.0
    assert shortest(np.array([3.2, 4.0, 5.0, 5.9]), 4.4, avoid=True) == 4.4
    assert shortest(np.array([1.0, 1.0]), 1.0, avoid=True) == 1.0  # nothing lies between


@given(st.floats(-100, 100), st.floats(1e-6, 1.0), st.floats(1e-12, 1e-8))
def test_a_threshold_has_room_below_the_next_score(low, width, clearance):
    found = short_between(low, low + width, clearance)
    assert low <= found
    assert low + width - found > clearance


def test_a_threshold_stays_clear_of_a_score_that_is_nearly_equal():
    """Measured genes have a value of 1e-11 where others are 0."""
    scores = np.array([-0.02, -0.0067, 1.1e-11, 0.0116])
    assert shortest(scores, -0.003, avoid=False) == 0
    found = shortest(scores, -0.003, avoid=False, clearance=5e-9)
    assert found != 0
    assert (scores[scores > found] - found > 5e-9).all()
    assert shortest(np.array([0.0, 2e-9]), 1e-9, avoid=False, clearance=1.5e-9) == 0.0  # no room but at the score
