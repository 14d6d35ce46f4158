"""Curves of leaves: Turnbull's estimate against lifelines and its own likelihood, and when it is Kaplan-Meier."""

import lifelines
import numpy as np
import pytest

from softsurv.nonparametric import kaplan_meier, median
from softsurv.trees.leaf_curve import survival_curve, turnbull

N = 200


def late_rows():
    """Time, event, weight (some 0) and entry of rows that were at risk; times in quarters, so that some are tied."""
    rng = np.random.default_rng(4)
    failure = 1 + rng.exponential(10, N)
    entry = np.where(rng.random(N) < 0.3, 0.0, failure * rng.random(N))
    censored = entry + rng.exponential(15, N)
    time = np.ceil(np.minimum(failure, censored) * 4) / 4
    return time, failure <= censored, rng.integers(0, 4, N).astype(float), entry


def visits(seed=0, n=N):
    """Failures known to lie between two visits of its own; a fifth has none."""
    rng = np.random.default_rng(seed)
    failure = 5 * rng.weibull(1.5, n)
    begin = failure * rng.random(n)
    end = np.where(rng.random(n) < 0.2, np.inf, failure + rng.exponential(2, n))
    return begin, end, rng


def likelihood(curve, begin, end, weight):
    mass = curve(begin) - np.where(np.isfinite(end), curve(end), 0.0)
    return weight @ np.log(mass)


@pytest.mark.parametrize("seed", range(3))
def test_intervals_equal_lifelines(seed):
    begin, end, rng = visits(seed, 100)
    weight = rng.integers(1, 4, 100).astype(float)
    curve = turnbull(begin, np.zeros(100, bool), end, weight)
    reference = lifelines.KaplanMeierFitter()
    # lifelines takes intervals as closed
    reference.fit_interval_censoring(np.nextafter(begin, np.inf), end, weights=weight, tol=1e-9)
    theirs = reference.survival_function_
    times = theirs.index.to_numpy()
    settled = np.isfinite(times) & (np.ptp(theirs.to_numpy(), axis=1) < 1e-6)  # outside the innermost intervals
    np.testing.assert_allclose(curve(times[settled]), theirs.to_numpy()[settled, 0], atol=1e-3)


def test_no_shift_of_mass_raises_the_likelihood():
    begin, end, rng = visits(3)
    weight = rng.integers(0, 4, N).astype(float)
    curve, kept = turnbull(begin, np.zeros(N, bool), end, weight), weight > 0
    best = likelihood(curve, begin[kept], end[kept], weight[kept])
    mass = -np.diff(np.append(1.0, curve.values))
    for _ in range(50):
        other = np.where(mass > 0, mass, 0.0) * np.exp(0.2 * rng.standard_normal(mass.size))
        other *= mass.sum() / other.sum()
        moved = type(curve)(curve.times, 1 - np.cumsum(other), 1.0)
        assert likelihood(moved, begin[kept], end[kept], weight[kept]) <= best + 1e-6


@pytest.mark.parametrize("exact", [0.0, 0.5])
def test_the_likelihood_is_at_its_maximum(exact):
    """It is concave: moving mass to one innermost interval raises it at no more than the slope there."""
    begin, end, rng = visits(4, 2000)
    event, weight = rng.random(2000) < exact, rng.integers(1, 4, 2000).astype(float)
    curve = turnbull(begin, event, end, weight)
    end = np.where(event, begin, end)
    mass = np.where(event, curve.left_limit(begin), curve(begin)) - np.where(np.isfinite(end), curve(end), 0.0)
    for at in curve.times:
        inside = np.where(event, begin == at, (begin < at) & (at <= end))
        assert (weight[inside] / mass[inside]).sum() <= weight.sum() * (1 + 1e-6)


def test_shares_of_visits_are_put_at_the_middle():
    begin = np.repeat([0.0, 1.0, 2.0, 3.0], [10, 20, 30, 40])
    curve = turnbull(begin, np.zeros(100, bool), begin + 1)
    np.testing.assert_allclose(curve([0.4, 0.5, 1.5, 2.5, 3.5, 9]), [1, 0.9, 0.7, 0.4, 0, 0], atol=1e-9)
    assert median(curve) == 2.5


def test_without_intervals_it_is_kaplan_meier():
    time, event, weight, entry = late_rows()
    nowhere = np.where(event, time, np.inf)
    curve = turnbull(time, event, nowhere, weight)
    np.testing.assert_allclose(curve(time), kaplan_meier(time, event, weight)(time), atol=1e-5)
    for late in (None, entry):
        same = survival_curve(time, event, weight, late, nowhere)
        np.testing.assert_array_equal(same.values, kaplan_meier(time, event, weight, late).values)


def test_late_entry_into_intervals_comes_near_the_curve_of_exact_times():
    rng = np.random.default_rng(5)
    failure, entry = rng.exponential(10, 3000), rng.uniform(0, 8, 3000)
    kept = failure > entry
    failure, entry = failure[kept], entry[kept]
    begin = np.maximum(np.floor(failure), entry + 1e-9)  # a visit at every whole time
    none = np.zeros(kept.sum(), bool)
    exact = kaplan_meier(failure, ~none, None, entry)
    known = survival_curve(begin, none, None, entry, np.floor(failure) + 1)
    np.testing.assert_allclose(known(np.arange(1.0, 20)), exact(np.arange(1.0, 20)), atol=0.03)


@pytest.mark.parametrize("upper", [None, [np.inf]])
def test_one_row(upper):
    curve = survival_curve([3.0], [True], upper=upper)
    assert curve([2.9, 3.0]).tolist() == [1.0, 0.0]
    assert survival_curve([3.0], [False], upper=upper)([9.0]).tolist() == [1.0]
    np.testing.assert_allclose(survival_curve([3.0], [False], upper=[5.0])([3.9, 4.0]), [1.0, 0.0])


def test_an_exact_time_within_an_interval_takes_the_event_of_the_interval():
    """(0, 2] and the event at 1: all the mass at 1 is the likelihood's greatest value."""
    curve = turnbull([0.0, 1.0], [False, True], [2.0, np.inf])
    np.testing.assert_allclose(curve([0.99, 1.0]), [1.0, 0.0], atol=1e-7)


def test_rows_without_weight_move_no_mass():
    begin, end, _ = visits(6, 40)
    none = np.zeros(40, bool)
    weight = (np.arange(40) % 2).astype(float)
    own, alone = turnbull(begin, none, end, weight), turnbull(begin[1::2], none[1::2], end[1::2])
    np.testing.assert_array_equal(own.times, alone.times)
    np.testing.assert_allclose(own.values, alone.values, atol=1e-12)


@pytest.mark.parametrize("small", [1e-20, 1e-60])
def test_a_row_of_a_tiny_weight_changes_nothing(small):
    """Its share was lost in the difference of sums, and the curve was no number."""
    time, upper = np.array([0.0, 1, 2, 3]), np.array([1.0, 2, 3, np.inf])
    curve = turnbull(time, np.zeros(4, dtype=bool), upper, [1.0, 1.0, small, 1.0])
    np.testing.assert_allclose(curve([0.75, 1.75, 2.75]), [2 / 3, 1 / 3, 1 / 3], atol=1e-7)
