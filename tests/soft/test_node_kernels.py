"""Parts of the compiled rounds over leaves and branch nodes; whole rounds are in `test_node_rounds`."""

import numpy as np
import pytest
from oracles.plain_python import plain

from softsurv.soft import node_kernels as kernels
from softsurv.soft.row_kernels import BLOCK, HAZARDS, ODDS


def test_rows_are_listed_by_the_node_that_they_pass():
    weight = np.zeros((2, 2, 5))
    weight[0, 0, [1, 4]], weight[0, 1, 1], weight[1, 1, [0, 2]] = 0.5, 0.2, 1.0
    order, begin = np.full(5, -1), np.zeros(3, int)
    plain(kernels.rows_by_node)(weight, order, begin)
    assert begin.tolist() == [0, 2, 4]
    assert order.tolist() == [1, 4, 0, 2, -1]


@pytest.mark.parametrize(
    ("tops", "node", "expected"),
    [(1, 0, [0, 1, 2, 3, 4, 5, 6]), (2, 0, [0, 2, 3]), (2, 1, [1, 4, 5]), (4, 2, [2])],
)
def test_branch_nodes_of_a_subtree(tops, node, expected):
    """Numbered level by level from the level of its top on."""
    numbers = np.empty(len(expected), int)
    plain(kernels.number_below)(node, tops, numbers)
    assert numbers.tolist() == expected


def test_a_quadratic_penalty_and_its_slope():
    point, curvature, centre = np.array([1.0, -2.0]), np.array([2.0, 0.5]), np.array([0.5, 0.0])
    gradient = np.ones(2)
    value = plain(kernels.add_penalty)(point, curvature, centre, gradient)
    assert value == pytest.approx(0.5 * (2.0 * 0.25 + 0.5 * 4.0))
    np.testing.assert_allclose(gradient, 1 + curvature * (point - centre))


def scratch_of(kinds):
    return (np.zeros(BLOCK), *(np.empty(BLOCK) for _ in range(4)), np.empty(max(kinds, 1) + 9))


def predictors(baseline, point, q, x, time):
    z, shapes = point[:q] @ x, np.exp(point[q:])
    if baseline == kernels.GIVEN:
        return z + time[0], time[1]
    k = len(shapes)
    z = z + shapes @ time[:k]
    return z, np.full(x.shape[1], point[q]) if baseline == kernels.LOG_LINEAR else np.log(shapes @ time[k:])


@pytest.mark.parametrize("link", [HAZARDS, ODDS])
@pytest.mark.parametrize(("baseline", "kinds"), [(kernels.GIVEN, 0), (kernels.LOG_LINEAR, 1), (kernels.SUMS, 3)])
def test_loss_of_a_leaf_and_its_slopes(link, baseline, kinds):
    rng, q, n = np.random.default_rng(kinds), 3, 20
    x, event, mass = rng.normal(size=(q, n)), (rng.random(n) < 0.6).astype(float), rng.random(n)
    time = rng.random((max(2 * kinds, 2), n)) + 0.1
    point = 0.4 * rng.normal(size=q + kinds)

    def expected(point):
        z, rise = predictors(baseline, point, q, x[:, 4:15], time[:, 4:15])
        e = event[4:15]
        loss = np.exp(z) - e * (z + rise) if link == HAZARDS else np.logaddexp(0, z) * (1 + e) - e * (z + rise)
        return (mass[4:15] * loss).sum()

    gradient = np.zeros(q + kinds)
    value = plain(kernels.leaf_block)(link, baseline, point, x, time, event, mass, 4, 15, gradient, scratch_of(kinds))
    assert value == pytest.approx(expected(point))
    for i, step in enumerate(1e-6 * np.eye(q + kinds)):
        numeric = (expected(point + step) - expected(point - step)) / 2e-6
        assert gradient[i] == pytest.approx(numeric, rel=1e-5, abs=1e-7)


def test_expected_loss_of_a_subtree_and_its_slopes():
    rng, q, n = np.random.default_rng(0), 2, 12
    x, loss, mass = rng.normal(size=(q, n)), rng.normal(size=(4, n)), rng.random(n)
    point = rng.normal(size=(5, q))
    numbers = np.array([1, 3, 4])

    def expected(point):
        left = 1 / (1 + np.exp(-point[numbers] @ x))
        reach = [left[0] * left[1], left[0] * (1 - left[1]), (1 - left[0]) * left[2], (1 - left[0]) * (1 - left[2])]
        return (mass * np.array(reach) * loss)[:, 2:].sum()

    shapes = (3, BLOCK), (1, BLOCK), (7, BLOCK), (7, BLOCK), (3, BLOCK), (3, BLOCK), (3, BLOCK)
    gradient = np.zeros((5, q))
    value = plain(kernels.subtree_value)(
        point, numbers, x, loss, mass, 2, n, gradient, tuple(np.empty(shape) for shape in shapes)
    )
    assert value == pytest.approx(expected(point))
    for node in range(5):
        for i in range(q):
            step = np.zeros((5, q))
            step[node, i] = 1e-6
            numeric = (expected(point + step) - expected(point - step)) / 2e-6
            assert gradient[node, i] == pytest.approx(numeric, rel=1e-5, abs=1e-7)
