"""Curves and numbers of leaves against lifelines, repeated rows and hand-made cases."""

import lifelines
import numpy as np
import pytest

from softsurv.nonparametric import kaplan_meier, median
from softsurv.trees.leaf_curve import survival_curve, turnbull
from softsurv.trees.leaf_table import leaf_table

N = 200


def rows(seed=0):
    """Leaf, time, event, weight (some 0) and entry of rows that were at risk."""
    rng = np.random.default_rng(seed)
    failure = 1 + rng.exponential(10, N)
    entry = np.where(rng.random(N) < 0.3, 0.0, failure * rng.random(N))
    censored = entry + rng.exponential(15, N)
    time, event = np.ceil(np.minimum(failure, censored) * 4) / 4, failure <= censored
    return rng.integers(0, 2, N), time, event, rng.integers(0, 4, N).astype(float), entry


def test_numbers_are_those_of_lifelines_with_weights_and_late_entry():
    leaf, time, event, weight, entry = rows()
    table = leaf_table(leaf, time, event, 3, weight, entry)
    for k in range(2):
        own = (leaf == k) & (weight > 0)
        reference = lifelines.KaplanMeierFitter().fit(time[own], event[own], entry=entry[own], weights=weight[own])
        assert table.n[k] == own.sum()
        assert table.events[k] == event[own].sum()
        assert table.median[k] == reference.median_survival_time_
        grid = np.unique(time[own])
        np.testing.assert_allclose(table.curves[k](grid), reference.survival_function_at_times(grid), atol=1e-12)
        limits = reference.confidence_interval_survival_function_
        for limit, column in ((table.median_lower[k], 0), (table.median_upper[k], 1)):
            assert limit == limits.index[np.argmax(limits.iloc[:, column].to_numpy() <= 0.5)]
    assert (table.n[2], table.events[2]) == (0, 0)
    assert np.isnan(table.median[2])


def test_a_weight_counts_as_copies_of_a_row():
    leaf, time, event, weight, entry = rows(1)
    copies = np.repeat(np.arange(N), weight.astype(int))
    weighted = leaf_table(leaf, time, event, 2, weight, entry)
    repeated = leaf_table(leaf[copies], time[copies], event[copies], 2, None, entry[copies])
    for name in ("median", "median_lower", "median_upper"):
        np.testing.assert_array_equal(getattr(weighted, name), getattr(repeated, name))
    np.testing.assert_allclose(weighted.curves[0](time), repeated.curves[0](time), atol=1e-12)
    assert weighted.n.sum() == (weight > 0).sum()


def test_rows_of_weight_zero_do_not_count():
    leaf, time, event, weight, entry = rows(2)
    alone = leaf_table(leaf, time, event, 2, (leaf == 0) * weight, entry)
    assert alone.n.tolist() == [((leaf == 0) & (weight > 0)).sum(), 0]
    assert alone.curves[1].times.size == 0


def test_a_limit_that_does_not_exist_is_missing():
    """R: survfit(Surv(1, 1) ~ 1) prints NA for both limits of the median."""
    table = leaf_table(np.zeros(1, int), np.ones(1), np.ones(1, bool), 1)
    assert table.median.tolist() == [1.0]
    assert np.isnan([table.median_lower[0], table.median_upper[0]]).all()


def test_a_time_of_zero_goes_with_an_entry_of_zero():
    time, entry = np.array([0.0, 2.0, 3.0, 4.0]), np.array([0.0, 0.0, 0.0, 1.0])
    curve = kaplan_meier(time, np.ones(4, bool), None, entry)
    np.testing.assert_allclose(curve.values, [2 / 3, 4 / 9, 2 / 9, 0.0])


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


def test_shares_of_visits_are_put_at_the_middle():
    begin = np.repeat([0.0, 1.0, 2.0, 3.0], [10, 20, 30, 40])
    curve = turnbull(begin, np.zeros(100, bool), begin + 1)
    np.testing.assert_allclose(curve([0.4, 0.5, 1.5, 2.5, 3.5, 9]), [1, 0.9, 0.7, 0.4, 0, 0], atol=1e-9)
    assert median(curve) == 2.5
    table = leaf_table(np.zeros(100, int), begin, np.zeros(100, bool), 1, upper=begin + 1)
    assert (table.events[0], table.median[0]) == (100, 2.5)
    assert np.isnan(table.median_lower[0])


def test_without_intervals_it_is_kaplan_meier():
    _, time, event, weight, entry = rows(4)
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
