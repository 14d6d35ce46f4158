"""Objectives of leaves: values by label, sizes, and the number of leaves as one more objective."""

import numpy as np
import pytest

from softsurv.exact.objectives.linear import LINEAR
from softsurv.exact.task import Task
from softsurv.exact.vector_task import LeafRule, objectives

WEIGHTS = np.random.default_rng(0).normal(size=(2, 3, 4))
SUMS = np.random.default_rng(1).random((5, 4))


def squares(sums, weights, out):
    for label in range(weights.shape[0]):
        for d in range(weights.shape[1]):
            out[label, d] = (weights[label, d] * sums[: weights.shape[2]] ** 2).sum()


CURVED = LeafRule(Task("curved", 4, None), squares)


def test_points_of_leaves_by_label():
    constant = np.array([0.5, 0.0, -1.0])
    linear = objectives(LINEAR, WEIGHTS, constant=constant).points(SUMS)
    curved = objectives(CURVED, WEIGHTS, constant=constant).points(SUMS)
    assert linear.shape == curved.shape == (5, 2, 3)
    for leaf in range(5):
        for label in range(2):
            np.testing.assert_allclose(linear[leaf, label], WEIGHTS[label] @ SUMS[leaf] + constant)
            np.testing.assert_allclose(curved[leaf, label], WEIGHTS[label] @ SUMS[leaf] ** 2 + constant)


def test_nothing_is_kept_limited_or_charged_unless_said():
    goals = objectives(LINEAR, WEIGHTS)
    assert (goals.n_labels, goals.n, goals.n_limits) == (2, 3, 0)
    assert not goals.kept.any()
    assert not goals.constant.any()
    assert goals.constraint.shape == (0, 3)


def test_the_size_of_an_objective_is_the_most_that_any_label_can_reach():
    totals = np.array([3.0, -2.0, 0.0, 1.0])
    size = objectives(LINEAR, WEIGHTS).size_of(totals)
    for d in range(3):
        reached = [np.abs(WEIGHTS[label, d] * totals).sum() for label in range(2)]
        assert size[d] == pytest.approx(max(reached))
    given = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(objectives(CURVED, WEIGHTS, size=given).size_of(totals), given)


def test_the_number_of_leaves_becomes_the_last_objective():
    goals = objectives(
        LINEAR, WEIGHTS, [True, False, False], constraint=[[1.0, 0.0, 2.0]], limit=[4.0], size=np.ones(3)
    )
    more = goals.with_most_leaves(6)
    points = more.points(SUMS)
    np.testing.assert_array_equal(points[..., :3], goals.points(SUMS))
    assert (points[..., 3] == 1.0).all()  # each leaf adds one
    assert more.kept.tolist() == [True, False, False, False]
    for n_leaves, v in ((6, [0.0, 0.0, 2.0]), (7, [0.0, 0.0, 2.0]), (6, [0.0, 0.0, 2.1])):
        holds = bool((more.constraint @ [*v, n_leaves] <= more.limit).all())
        assert holds == (n_leaves <= 6 and v[2] <= 2.0)
    assert more.size_of(np.zeros(4)).tolist() == [1.0, 1.0, 1.0, 1.0]
    assert goals.n == 3  # the first stays as it was
