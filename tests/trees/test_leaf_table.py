"""Curves and numbers of leaves against lifelines, repeated rows and hand-made cases."""

import lifelines
import numpy as np

from softsurv.nonparametric import kaplan_meier
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


def test_leaves_with_events_in_intervals_count_them_and_take_the_middle():
    begin = np.repeat([0.0, 1.0, 2.0, 3.0], [10, 20, 30, 40])
    table = leaf_table(np.zeros(100, int), begin, np.zeros(100, bool), 1, upper=begin + 1)
    assert (table.events[0], table.median[0]) == (100, 2.5)
    assert np.isnan(table.median_lower[0])
