"""The quasi-Newton memory tree by tree, against the textbook's two loops and the rules of a line search."""

import numpy as np
import pytest
from oracles.plain_python import plain

from softsurv.soft import step_kernels as kernels

CURVATURE = 1e-10


def empty(k, size, x, gradient, metric):
    """A tree's table: S, P Y, P g, x, g, Y."""
    rows = np.zeros((3 * k + 3, size))
    rows[2 * k], rows[2 * k + 1], rows[2 * k + 2] = metric * gradient, x, gradient
    return rows


def two_loops(pairs, gradient, metric):
    """-H g by the two-loop recursion (Nocedal & Wright, algorithm 7.4) from pairs (s, y), the oldest first."""
    q, alphas = gradient.copy(), []
    for s, y in reversed(pairs):
        alphas.append((s @ q) / (s @ y))
        q = q - alphas[-1] * y
    scale = (pairs[-1][0] @ pairs[-1][1]) / (pairs[-1][1] @ (metric * pairs[-1][1])) if pairs else 1.0
    r = scale * metric * q
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        r = r + s * (alpha - (y @ r) / (s @ y))
    return -r


@pytest.mark.parametrize("steps", [0, 1, 3, 7])  # three pairs are remembered
def test_the_direction_is_that_of_the_two_loops(steps):
    rng, k, size = np.random.default_rng(steps), 3, 5
    hessian = np.diag(rng.uniform(1, 4, size))
    metric, x = rng.uniform(0.5, 2, size), rng.normal(size=size)
    rows, at, pairs = empty(k, size, x, hessian @ x, metric), 0, []
    for _ in range(steps):
        new = x + rng.normal(size=size)
        at = plain(kernels.move_tree)(rows, at, new, hessian @ new, metric * (hessian @ new), CURVATURE)
        pairs = [*pairs, (new - x, hessian @ (new - x))][-k:]
        x = new
    direction = np.empty(size)
    slope = plain(kernels.descend_tree)(rows, at, direction, (np.empty((4, k)), np.empty((2, k, k))))
    np.testing.assert_allclose(direction, two_loops(pairs, hessian @ x, metric), rtol=1e-9)
    assert slope == pytest.approx(direction @ (hessian @ x))
    assert slope < 0


@pytest.mark.parametrize(("to", "kept"), [(6.0, False), (4.0, True)])
def test_a_pair_is_kept_where_its_curvature_is_positive(to, kept):
    """From 5 to either side, while the gradient falls from 3 to 1; the point moves in any case."""
    rows = empty(2, 2, np.full(2, 5.0), np.full(2, 3.0), np.full(2, 0.5))
    at = plain(kernels.move_tree)(rows, 0, np.full(2, to), np.ones(2), np.full(2, 0.5), CURVATURE)
    assert at == int(kept)
    assert rows[4:7, 0].tolist() == [0.5, to, 1.0]  # P g, x and g
    pair = [rows[0, 0], rows[2, 0], rows[7, 0]]  # s, P y and y
    assert pair == ([to - 5.0, -1.0, -2.0] if kept else [0.0, 0.0, 0.0])


def test_trees_that_refuse_their_point_stay():
    table = np.stack([empty(2, 2, np.zeros(2), np.ones(2), np.ones(2)) for _ in range(2)])
    slot, before = np.zeros((2, 1), np.int64), table[1].copy()
    new = np.full((2, 2), 0.5)
    plain(kernels.move)(table, slot, np.arange(2), new, 2 * new + 1, 2 * new + 1, np.array([True, False]), CURVATURE)
    assert slot.ravel().tolist() == [1, 0]
    np.testing.assert_array_equal(table[1], before)
    direction, slope = np.empty((2, 2)), np.empty(2)
    plain(kernels.descend)(table, slot, np.arange(2), direction, slope)
    np.testing.assert_allclose(direction[1], -before[6])  # without a pair: down the gradient


LIMITS = 1e-4, CURVATURE, 1e-9, 1e-6, 50


def state_of(x, gradient, value):
    table = empty(2, len(x), x, gradient, np.ones(len(x)))[None]
    slope, slot, taken = -(gradient @ gradient), np.zeros((1, 1), np.int64), np.zeros(1, np.int64)
    moving = np.array([True])
    return (
        table, slot, np.array([value]), -gradient[None].copy(), np.array([slope]), np.ones(1), np.array([1e-8]), taken,
        moving,
    )  # fmt: skip


@pytest.mark.parametrize(("value", "factor"), [(np.inf, 0.1), (np.nan, 0.1), (2.0, 0.4), (1.0, 0.5), (1e9, 0.1)])
def test_a_step_too_far_is_shortened_by_the_parabola(value, factor):
    """f = 1, slope -4 along the step: the parabola through the trial has its minimum at 4 / (2 (value - 1 + 4))."""
    state = state_of(np.zeros(1), np.array([2.0]), 1.0)
    room = np.empty((4, 2)), np.empty((2, 2, 2))
    plain(kernels.advance_tree)(state, 0, np.ones(1), value, np.ones(1), np.ones(1), LIMITS, room)
    assert state[5][0] == pytest.approx(factor)
    assert state[2][0] == 1.0
    assert state[8][0]
    assert state[7][0] == 0


def test_steps_come_to_the_minimum_of_a_parabola_and_stop():
    scale, x = np.array([1.0, 9.0]), np.array([3.0, -2.0])
    state, room = state_of(x, scale * x, 0.5 * (scale * x * x).sum()), (np.empty((4, 2)), np.empty((2, 2, 2)))
    for _ in range(60):
        if not state[8][0]:
            break
        trial = state[0][0, 5] + state[5][0] * state[3][0]
        gradient = scale * trial
        plain(kernels.advance_tree)(state, 0, trial, 0.5 * (gradient * trial).sum(), gradient, gradient, LIMITS, room)
    assert not state[8][0]
    np.testing.assert_allclose(state[0][0, 5], 0.0, atol=1e-4)
    assert state[2][0] == pytest.approx(0.0, abs=1e-8)
