"""Compiled rounds of logistic regressions, against numpy and numeric slopes."""

import numpy as np
import pytest
from oracles.plain_python import plain

from softsurv.soft import logistic_kernels as kernels
from softsurv.soft.row_kernels import BLOCK


def node(n=BLOCK + 7, q=3, seed=0):
    rng = np.random.default_rng(seed)
    x = np.vstack([np.ones(n), rng.normal(size=(q - 1, n))])
    return x, rng.random(n), (rng.random(n) < 0.4).astype(float), np.array([0.0, *rng.uniform(0.1, 1, q - 1)])


def loss_of(weights, x, mass, labels, penalty):
    v = weights @ x
    return (mass * (np.logaddexp(0, v) - labels * v)).sum() + 0.5 * (penalty * weights**2).sum()


def test_loss_and_its_derivatives():
    x, mass, labels, penalty = node()
    weights, q = np.array([0.3, -1.2, 2.0]), 3
    found = plain(kernels.loss)(x, mass, labels, penalty, weights, np.empty(BLOCK))
    assert found == pytest.approx(loss_of(weights, x, mass, labels, penalty))
    gradient, curvature = np.empty(q), np.full((q, q), np.nan)
    scratch = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    plain(kernels.slopes)(x, mass, labels, penalty, weights, gradient, curvature, scratch)
    step = 1e-5 * np.eye(q)

    def central(function, i):
        return (function(weights + step[i]) - function(weights - step[i])) / 2e-5

    numeric = [central(lambda w: loss_of(w, x, mass, labels, penalty), i) for i in range(q)]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7)
    p = 1 / (1 + np.exp(-(weights @ x)))
    hessian = (x * (mass * p * (1 - p))) @ x.T + np.diag(penalty)
    np.testing.assert_allclose(np.tril(curvature), np.tril(hessian), rtol=1e-10)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_positive_systems_are_solved_from_their_lower_half(size):
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, size))
    matrix, target, found = root @ root.T + np.eye(size), rng.normal(size=size), np.empty(size)
    lower = np.where(np.tri(size, dtype=bool), matrix, np.nan)
    plain(kernels.solve_positive)(lower, target, found)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, target))


def test_newton_comes_to_where_the_slope_is_flat_and_leaves_others_alone():
    n, q = 40, 3
    rng = np.random.default_rng(1)
    design = np.concatenate([np.ones((1, n, 1)), rng.normal(size=(1, n, q - 1))], 2)
    mass, labels = rng.random((2, n)) * (rng.random((2, n)) < 0.8), (rng.random((2, n)) < 0.5).astype(float)
    penalty, weights = np.tile([0.0, 0.5, 0.5], (2, 1)), np.zeros((2, q))
    value = np.array([loss_of(np.zeros(q), design[0].T, m, y, penalty[0]) for m, y in zip(mass, labels, strict=True)])
    before, size, moving = value.copy(), np.ones(2), np.array([True, False])
    plain(kernels.newton)(design, mass, labels, penalty, weights, value, size, moving, (1e-8, 2.0**-20, 1e-10), 50)
    assert not moving.any()
    assert not weights[1].any()
    assert value[0] == pytest.approx(loss_of(weights[0], design[0].T, mass[0], labels[0], penalty[0]))
    assert value[0] < before[0]
    p = 1 / (1 + np.exp(-design[0] @ weights[0]))
    np.testing.assert_allclose(design[0].T @ (mass[0] * (p - labels[0])) + penalty[0] * weights[0], 0, atol=1e-7)
