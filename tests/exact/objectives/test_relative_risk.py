"""Relative-risk deviance: the cost of a leaf is the least of a loss over the rows, and its constants."""

import math

import numpy as np
import pytest

from softsurv.errors import InvalidParameterError
from softsurv.exact.objectives import relative_risk


def test_leaf_costs_and_relative_risks():
    sums = np.array([[3.0, 6.0], [0.0, 2.0], [0.0, 0.0]])
    np.testing.assert_allclose(relative_risk.TASK.costs(sums), [-3 * math.log(0.5), 0.0, 0.0])
    np.testing.assert_allclose(relative_risk.relative_risk(sums[:2]), [0.5, 0.25])
    np.testing.assert_allclose(relative_risk.relative_risk(sums[:2], one=2.0), [0.5, 0.5])


def test_several_causes_add_up():
    rng = np.random.default_rng(0)
    one, other = rng.random((5, 2)), rng.random((5, 2))
    both = relative_risk.TASK.costs(np.hstack([one, other]))
    np.testing.assert_allclose(both, relative_risk.TASK.costs(one) + relative_risk.TASK.costs(other))


@pytest.mark.parametrize("weight", [None, np.array([1.0, 2.0, 0.5, 1.0])])
def test_cost_and_constant_are_the_least_likelihood_loss(weight):
    """Of all theta: sum of w (theta Lambda - event (log theta + log Lambda)), less the weight of the events."""
    event, hazard = np.array([True, False, True, True]), np.array([0.3, 0.9, 1.4, 0.2])
    w = np.ones(4) if weight is None else weight
    sums = relative_risk.statistics(event, hazard, weight).sum(axis=0)

    def loss(theta):
        return (w * (theta * hazard - event * np.log(theta * hazard))).sum()

    theta = relative_risk.relative_risk(sums[None])[0]
    deviance = relative_risk.TASK.costs(sums[None])[0] + relative_risk.constant(event, hazard, weight)
    assert deviance == pytest.approx(loss(theta) - (w * event).sum())
    assert loss(theta) <= min(loss(0.99 * theta), loss(1.01 * theta))


def test_constants_count_subjects():
    assert relative_risk.one_subject(np.array([3.0, 0.0, 2.0])) == 2.0
    np.testing.assert_allclose(relative_risk.baseline_hazard(np.array([0.0, 0.4]), 9), [0.1, 0.4])


def test_weights_of_a_design_count_as_many_subjects_as_are_effective():
    """One row of little weight changes next to nothing; numbers of repeated rows are counted in any unit."""
    weight = np.ones(500)
    weight[0] = 1e-3
    assert relative_risk.one_subject(weight) == pytest.approx(1.0, rel=1e-4)
    drawn = np.random.default_rng(0).lognormal(size=200)
    effective = drawn.sum() ** 2 / (drawn**2).sum()
    assert drawn.sum() / relative_risk.one_subject(drawn) == pytest.approx(effective)
    for unit in (7e-9, 1e20):  # all floats as large as the latter are whole numbers
        assert relative_risk.one_subject(unit * drawn) == pytest.approx(unit * relative_risk.one_subject(drawn))
    assert relative_risk.one_subject(0.3 * np.array([1, 5, 40])) == pytest.approx(0.3)
    assert relative_risk.one_subject(np.array([1.0, 5000.0])) == 1.0
    for unit in (1.0, 0.001, 1e12, 0.25):  # multiples of one unit, though not of the smallest weight
        assert relative_risk.one_subject(unit * np.array([2, 3, 5, 40])) == pytest.approx(2 * unit)


def test_a_weight_that_would_be_lost_is_refused():
    with pytest.raises(InvalidParameterError, match="weights must not differ by more than"):
        relative_risk.statistics(np.ones(2, bool), np.ones(2), np.array([1.0, 1e-15]))


def test_plain_costs_are_the_compiled_ones():
    sums = np.array([[0.0, 0.0], [0.0, 2.0], [3.0, 0.5], [1.0, 1.0], [40.0, 7.25]])
    np.testing.assert_allclose(relative_risk.plain_costs(sums), relative_risk.TASK.costs(sums), atol=1e-12)
