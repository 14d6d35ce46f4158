"""Objectives that are weighted sums: the rule, and errors of either kind."""

import numpy as np
import pytest
from oracles.plain_python import plain

from softsurv.exact.objectives.linear import ERRORS, LINEAR, weighted_sums


def test_weighted_sums_of_every_label_and_objective():
    rng = np.random.default_rng(0)
    weights, sums, out = rng.normal(size=(3, 2, 4)), rng.normal(size=5), np.full((3, 2), np.nan)
    plain(weighted_sums)(sums, weights, out)
    np.testing.assert_allclose(out, np.einsum("ldk,k->ld", weights, sums[:4]))
    assert LINEAR.task.linear


@pytest.mark.parametrize(("negatives", "positives"), [(3.0, 5.0), (0.0, 2.0), (4.0, 0.0)])
def test_a_label_makes_the_errors_of_the_other_class(negatives, positives):
    points = ERRORS.points(np.array([[negatives, positives]]))[0]
    np.testing.assert_array_equal(points, [[positives, 0.0], [0.0, negatives]])
