"""Parts of the compiled rounds over leaf models; whole rounds are in `test_fit_rounds`."""

import numpy as np
import pytest
from oracles.plain_python import plain

from softsurv.sparse.fit_kernels import next_step, rows_by_leaf


def test_rows_that_weigh_are_listed_leaf_by_leaf():
    mass, leaf = np.array([1.0, 0.0, 0.5, 2.0, 1.0]), np.array([2, 0, 0, 2, 0])
    order, begin = np.full(5, -1), np.full(4, -1)
    plain(rows_by_leaf)(mass, leaf, order, begin)
    assert begin.tolist() == [0, 2, 2, 4]
    assert order[:4].tolist() == [2, 4, 0, 3]


@pytest.mark.parametrize("reach", [0, 3, 5])
def test_a_step_is_the_metric_times_the_gradient(reach):
    """Three columns and two shapes; the matrix is of none of them, of the columns, or of all."""
    rng, columns, size, leaves = np.random.default_rng(reach), 3, 5, 2
    matrix, diagonal = rng.normal(size=(1, reach, reach)), rng.random((1, 0 if reach else columns))
    unit, scale = rng.random((1, 2)) + 0.5, rng.random((1, leaves, size))
    at, free = np.array([0, 3]), np.array([[True, False]])
    of_leaf = rng.normal(size=(1, leaves, 2, 2))
    gradient, out, room = rng.normal(size=(leaves + 1) * size), np.empty((leaves + 1) * size), np.empty(size)
    alone = np.zeros((1, 0, 0, 0))
    plain(next_step)(0, 0, columns, gradient, (matrix, diagonal, unit, scale, of_leaf, at, free, alone), out, room)
    scaled = np.append(np.ones(columns), unit[0])
    common = np.diag(np.append(diagonal[0] if not reach else np.ones(columns), np.ones(2)))
    common[:reach, :reach] = matrix[0]
    np.testing.assert_allclose(out[:size], scaled * (common @ (scaled * gradient[:size])))
    for k in range(leaves):
        own = gradient[(k + 1) * size : (k + 2) * size]
        expected = scale[0, k] * own
        expected[at] = np.where(free[0], of_leaf[0, k] @ own[at], 0.0)
        np.testing.assert_allclose(out[(k + 1) * size : (k + 2) * size], expected)


def test_a_step_with_coupling_is_that_of_both_models():
    rng, columns, size, leaves = np.random.default_rng(0), 2, 3, 2
    matrix, of_leaf = rng.normal(size=(1, size, size)), rng.normal(size=(1, leaves, size, size))
    coupling, gradient = rng.normal(size=(1, leaves, size, size)), rng.normal(size=(leaves + 1) * size)
    unit, scale, out = np.ones((1, size - columns)), np.zeros((1, leaves, size)), np.empty((leaves + 1) * size)
    metric = matrix, np.zeros((1, 0)), unit, scale, of_leaf, np.arange(size), np.ones((1, size), bool), coupling
    plain(next_step)(0, 0, columns, gradient, metric, out, np.empty(size))
    first, *others = gradient.reshape(-1, size)
    common = matrix[0] @ (first - sum(one @ own for one, own in zip(coupling[0], others, strict=True)))
    np.testing.assert_allclose(out[:size], common)
    for k, own in enumerate(others):
        expected = of_leaf[0, k] @ own - coupling[0, k].T @ common
        np.testing.assert_allclose(out[(k + 1) * size : (k + 2) * size], expected)
