"""Roots of rising functions against halving."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsurv.roots import MOST_ROUNDS, rising_root

LOW, HIGH, RESOLUTION = -60.0, 10.0, 1e-12

CURVES = {
    "straight": lambda x, at: x - at,
    "steep": lambda x, at: np.clip(1e6 * (x - at), -700.0, 700.0),
    "exponential": lambda x, at: np.exp(x) - np.exp(at),
    "levelling off": lambda x, at: np.log1p(np.exp(-at)) - np.log1p(np.exp(-x)),
    "cubic": lambda x, at: (x - at) ** 3,
    "step": lambda x, at: np.where(x >= at, 1e-5, -700.0),
    "coarse": lambda x, at: (x - at).astype(np.float32).astype(float),
}


def halved(function, at):
    """The crossing of each function by halving alone."""
    low, high = np.full(len(at), LOW), np.full(len(at), HIGH)
    for _ in range(100):
        middle = 0.5 * (low + high)
        over = function(middle, at) >= 0
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return high


@pytest.mark.parametrize("name", CURVES)
@given(st.lists(st.floats(LOW + 1, HIGH - 1), min_size=1, max_size=5))
def test_it_is_the_point_that_halving_finds(name, at):
    at, rounds = np.array(at), []

    def function(x):
        rounds.append(len(x))
        return CURVES[name](x, at)

    found, reached = rising_root(function, np.full(len(at), LOW), np.full(len(at), HIGH), RESOLUTION)
    assert reached.all()
    assert (CURVES[name](found, at) >= 0).all()
    np.testing.assert_allclose(found, halved(CURVES[name], at), rtol=0, atol=2 * RESOLUTION)
    assert len(rounds) < MOST_ROUNDS


def test_a_smooth_curve_takes_few_rounds():
    rounds = []

    def function(x):
        rounds.append(x)
        return np.log1p(np.exp(x - 3)) - 0.7

    rising_root(function, np.array([LOW]), np.array([HIGH]), RESOLUTION)
    assert len(rounds) < 20


def test_ends():
    """A function that stays below 0 is not reached; one that is above 0 from the beginning crosses there."""
    found, reached = rising_root(lambda x: x - [20.0, -80.0, 1.0], np.full(3, LOW), np.full(3, HIGH), RESOLUTION)
    assert reached.tolist() == [False, True, True]
    assert found[:2].tolist() == [HIGH, LOW]
    assert found[2] == pytest.approx(1.0, abs=RESOLUTION)
