"""BFGS with whole matrices, tree by tree: its update, its shortened steps, and where it ends."""

import numpy as np
import pytest
from oracles.plain_python import plain

from softsurv.soft.dense_kernels import advance, learn, shortened


def test_an_update_is_that_of_bfgs():
    rng, d = np.random.default_rng(0), 4
    inverse = np.eye(d) + 0.1 * np.ones((d, d))
    s = rng.normal(size=d)
    y = np.diag([1.0, 2.0, 3.0, 4.0]) @ s
    left = np.eye(d) - np.outer(s, y) / (s @ y)
    expected = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
    plain(learn)(inverse, s, y, np.empty(d), 1e-10)
    np.testing.assert_allclose(inverse, expected)
    np.testing.assert_allclose(inverse @ y, s)  # the secant equation


@pytest.mark.parametrize("y", [[-1.0, 0.0], [0.0, 5.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_no_update_without_positive_curvature(y):
    inverse = np.eye(2)
    plain(learn)(inverse, np.array([1.0, 0.0]), np.array(y), np.empty(2), 1e-10)
    np.testing.assert_array_equal(inverse, np.eye(2))


@pytest.mark.parametrize(("rise", "promised"), [(1.0, -4.0), (0.0, -4.0), (1e9, -4.0), (np.inf, -4.0), (np.nan, -1.0)])
def test_a_failed_step_is_shortened_to_the_minimum_of_the_parabola(rise, promised):
    """Through 0 with slope ``promised`` and ``rise`` at 1, kept between a tenth and a half."""
    factor = plain(shortened)(rise, promised)
    if np.isfinite(rise):
        grid = np.linspace(0.1, 0.5, 4001)
        parabola = promised * grid + (rise - promised) * grid**2
        assert factor == pytest.approx(grid[parabola.argmin()], abs=1e-3)
    else:
        assert factor == 0.1


def test_every_tree_comes_to_its_own_minimum_and_others_wait():
    centres, scale = np.array([[1.0, -2.0], [3.0, 0.5], [7.0, 7.0]]), np.array([1.0, 20.0])
    x = np.zeros((3, 2))
    f, g = 0.5 * (scale * (x - centres) ** 2).sum(1), scale * (x - centres)
    inverse, moving = np.repeat(np.eye(2)[None], 3, 0), np.array([True, True, False])
    state = x, f, g, inverse, -g.copy(), np.ones(3), np.zeros(3, np.int64), np.zeros(3, np.int64), moving
    for _ in range(200):
        if not moving.any():
            break
        trial = x + state[5][:, None] * state[4]
        value = 0.5 * (scale * (trial - centres) ** 2).sum(1)
        plain(advance)(state, trial, value, scale * (trial - centres), (1e-4, 1e-10, 1e-12, 100, 30))
    assert not moving.any()
    np.testing.assert_allclose(x[:2], centres[:2], atol=1e-4)
    assert x[2].tolist() == [0.0, 0.0]
    assert (f[:2] < 1e-8).all()


@pytest.mark.parametrize(("iterations", "halvings", "value"), [(1, 30, -1.0), (100, 0, np.inf)])
def test_limits_on_rounds_and_on_halvings_end_a_tree(iterations, halvings, value):
    moving = np.array([True])
    state = (
        np.zeros((1, 1)), np.zeros(1), np.ones((1, 1)), np.eye(1)[None], -np.ones((1, 1)), np.ones(1),
        np.zeros(1, np.int64), np.zeros(1, np.int64), moving,
    )  # fmt: skip
    plain(advance)(
        state, -np.ones((1, 1)), np.array([value]), np.full((1, 1), 0.5), (1e-4, 1e-10, 1e-12, iterations, halvings)
    )
    assert not moving[0]
    assert state[7][0] == int(np.isfinite(value))
