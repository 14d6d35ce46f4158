"""Group fairness: pair by pair, by hand, properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv.errors import InvalidParameterError
from softsurv.metrics import curve_gap, fairness_penalty, leaf_gini


def random_curves(seed, n=14, n_times=9):
    rng = np.random.default_rng(seed)
    grid = np.sort(rng.random(n_times)) * 10.0
    return np.exp(-rng.random((n, 1)) * grid[None, :]), grid, rng.random(n) < 0.4


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_penalty_equals_the_double_sum(seed):
    curves, grid, group = random_curves(seed)
    group[:2] = True, False
    expected = sum(
        np.trapezoid((curves[i] - curves[j]) ** 2, grid) for i in np.flatnonzero(group) for j in np.flatnonzero(~group)
    )
    assert fairness_penalty(curves, grid, group) == pytest.approx(expected, rel=1e-10)
    assert fairness_penalty(curves, grid, ~group) == pytest.approx(expected, rel=1e-10)
    mean = expected / (group.sum() * (~group).sum())
    assert fairness_penalty(curves, grid, group, per_pair=True) == pytest.approx(mean, rel=1e-10)


def test_a_weight_counts_as_so_many_rows():
    curves, grid, group = random_curves(3)
    group[:2], leaf = (True, False), np.arange(14) % 4
    weight = np.random.default_rng(0).integers(0, 4, 14)
    weight[:2] = 2
    repeated = np.repeat(np.arange(14), weight)
    for measure in (curve_gap, fairness_penalty):
        expected = measure(curves[repeated], grid, group[repeated])
        assert measure(curves, grid, group, weight=weight) == pytest.approx(expected, rel=1e-12)
        assert measure(curves, grid, group) != pytest.approx(expected, rel=1e-3)
    found, expected = leaf_gini(leaf, group, weight), leaf_gini(leaf[repeated], group[repeated])
    np.testing.assert_allclose(found.by_leaf, expected.by_leaf)
    assert found.weighted == pytest.approx(expected.weighted)


def test_equal_curves_have_no_distance_at_all():
    curves = np.broadcast_to(np.array([1.0, 0.7, 0.1]), (6, 3))
    group = np.array([1, 1, 0, 0, 0, 0])
    assert fairness_penalty(curves, [0.0, 1.0, 2.0], group) == pytest.approx(0.0, abs=1e-30)
    assert curve_gap(curves, [0.0, 1.0, 2.0], group).largest == pytest.approx(0.0, abs=1e-15)


def test_gap_of_mean_curves_by_hand():
    curves = np.array([[1.0, 0.8, 0.6], [1.0, 0.6, 0.4], [1.0, 0.5, 0.7]])
    gap = curve_gap(curves, [0.0, 1.0, 3.0], [True, True, False])  # differences 0, 0.2, -0.2
    assert gap.largest == pytest.approx(0.2)
    assert gap.mean == pytest.approx((0.1 + 0.4) / 3)
    assert gap.signed == pytest.approx((0.1 + 0.0) / 3)


def test_gini_is_one_when_even_and_zero_when_pure():
    leaf = [0, 0, 0, 0, 5, 5]
    found = leaf_gini(leaf, ["f", "m", "f", "m", "f", "f"])
    np.testing.assert_allclose(found.by_leaf, [1.0, 0.0])
    assert found.mean == pytest.approx(0.5)
    assert found.weighted == pytest.approx(4 / 6)
    assert leaf_gini([1] * 6, [0, 1, 2, 0, 1, 2]).mean == pytest.approx(1.0)


def test_bad_arguments_are_refused():
    curves, grid, group = random_curves(0)
    with pytest.raises(InvalidParameterError, match="mark some subjects and leave others"):
        fairness_penalty(curves, grid, np.zeros(14))
    with pytest.raises(InvalidParameterError, match="True/False or 1/0"):
        fairness_penalty(curves, grid, ["f"] * 14)
    with pytest.raises(InvalidParameterError, match="at least two values"):
        curve_gap(curves[:, :1], grid[:1], group)
    with pytest.raises(InvalidParameterError, match="at least two different labels"):
        leaf_gini([0, 1], ["f", "f"])
    with pytest.raises(InvalidParameterError, match="one value per subject"):
        leaf_gini([0, 1], ["f"])
