"""Kaplan-Meier, Nelson-Aalen, censoring curve, weights: slow twins, lifelines, scikit-survival."""

import lifelines
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sksurv.nonparametric import (
    CensoringDistributionEstimator,
    kaplan_meier_estimator,
    nelson_aalen_estimator,
)
from sksurv.util import Surv

from softsurv import nonparametric as nonp
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError, InvalidTimesError


def sample(seed, n=60, ties=True, censored=0.4):
    rng = np.random.default_rng(seed)
    time = rng.exponential(10.0, n)
    time = np.ceil(time) if ties else time
    return time, rng.random(n) > censored, rng


def slow_table(time, event, weight, entry):
    """The definition, one time at a time."""
    rows = []
    for t in sorted(set(time)):
        risk = sum(w for x, w, e in zip(time, weight, entry, strict=True) if e < t <= x)
        dead = sum(w for x, c, w in zip(time, event, weight, strict=True) if x == t and c)
        gone = sum(w for x, c, w in zip(time, event, weight, strict=True) if x == t and not c)
        rows.append((t, risk, dead, gone))
    return np.array(rows).T


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("delayed", [False, True])
def test_table_equals_the_definition(seed, delayed):
    time, event, rng = sample(seed)
    weight = rng.random(time.size)
    entry = np.floor(time * rng.random(time.size)) if delayed else np.full(time.size, -np.inf)
    table = nonp.at_risk_table(time, event, weight, entry if delayed else None)
    np.testing.assert_allclose(np.array(table), slow_table(time, event, weight, entry), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ties", [False, True])
def test_curves_equal_scikit_survival(seed, ties):
    time, event, _ = sample(seed, ties=ties)
    grid, survival = kaplan_meier_estimator(event, time)
    np.testing.assert_allclose(nonp.kaplan_meier(time, event)(grid), survival, atol=1e-13)
    grid, hazard = nelson_aalen_estimator(event, time)
    np.testing.assert_allclose(nonp.nelson_aalen(time, event)(grid), hazard, atol=1e-13)
    reference = CensoringDistributionEstimator().fit(Surv.from_arrays(event, time))
    np.testing.assert_allclose(nonp.censoring_survival(time, event)(grid), reference.predict_proba(grid), atol=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_weights_and_entry_equal_lifelines(seed):
    time, event, rng = sample(seed)
    weight = rng.integers(1, 4, time.size)
    entry = np.floor(time * rng.random(time.size) * 0.5)
    reference = lifelines.KaplanMeierFitter().fit(time, event, entry=entry, weights=weight)
    grid = np.unique(time)
    expected = reference.survival_function_at_times(grid).to_numpy()
    np.testing.assert_allclose(nonp.kaplan_meier(time, event, weight, entry)(grid), expected, atol=1e-12)
    reference = lifelines.NelsonAalenFitter(nelson_aalen_smoothing=False).fit(time, event, entry=entry, weights=weight)
    expected = reference.cumulative_hazard_at_times(grid).to_numpy()
    np.testing.assert_allclose(nonp.nelson_aalen(time, event, weight, entry)(grid), expected, atol=1e-12)


def test_integer_weights_are_repeated_rows():
    time, event, rng = sample(3)
    weight = rng.integers(0, 4, time.size)
    repeated, rows = np.repeat(time, weight), np.repeat(event, weight)
    grid = np.linspace(0, 60, 200)
    for curve in (nonp.kaplan_meier, nonp.nelson_aalen, nonp.censoring_survival):
        np.testing.assert_allclose(curve(time, event, weight)(grid), curve(repeated, rows)(grid), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_log_log_interval_equals_lifelines(seed):
    time, event, _ = sample(seed)
    reference = lifelines.KaplanMeierFitter(alpha=0.1).fit(time, event)
    expected = reference.confidence_interval_.loc[np.unique(time)].to_numpy()
    grid = np.unique(time)
    lower, upper = nonp.survival_interval(time, event, level=0.9)
    inside = (nonp.kaplan_meier(time, event)(grid) > 0) & (nonp.kaplan_meier(time, event)(grid) < 1)
    np.testing.assert_allclose(lower(grid)[inside], expected[inside, 0], atol=1e-10)
    np.testing.assert_allclose(upper(grid)[inside], expected[inside, 1], atol=1e-10)


def test_plain_interval_is_greenwood_by_hand():
    lower, upper = nonp.survival_interval([1, 2, 3, 4], [1, 0, 1, 1], kind="plain")
    survival = 0.75
    half = 1.959963984540054 * survival * np.sqrt(1 / (4 * 3))
    assert float(lower(1)) == pytest.approx(survival - half)
    assert float(upper(1)) == 1.0  # cut
    assert np.isnan(lower(4))
    assert np.isnan(upper(4))


def test_quantiles_and_restricted_mean():
    curve = nonp.kaplan_meier([1, 2, 3, 4], [True, True, False, True])
    assert nonp.median(curve) == 2.0
    assert nonp.quantile(curve, 0.25) == 1.0
    assert nonp.median(nonp.kaplan_meier([1, 2], [False, False])) == np.inf
    time, event, _ = sample(0)
    reference = lifelines.KaplanMeierFitter().fit(time, event)
    assert nonp.median(nonp.kaplan_meier(time, event)) == reference.median_survival_time_
    expected = lifelines.utils.restricted_mean_survival_time(reference, t=20.0)
    assert nonp.restricted_mean(nonp.kaplan_meier(time, event), 20.0) == pytest.approx(expected)


def test_a_step_rounded_above_one_half_counts_as_the_median():
    time = np.arange(1, 21)
    assert nonp.median(nonp.kaplan_meier(time, np.ones(20))) == 10.0


def test_step_function_limits():
    curve = nonp.kaplan_meier([1.0, 2.0], [True, True])
    np.testing.assert_array_equal(curve([0.0, 1.0, 1.5, 2.0, 9.0]), [1.0, 0.5, 0.5, 0.0, 0.0])
    np.testing.assert_array_equal(curve.left_limit([1.0, 2.0, 2.1]), [1.0, 0.5, 0.0])
    assert curve([[1.0, 2.0]]).shape == (1, 2)


def test_ipcw_equals_scikit_survival_and_refuses_infinite_weights():
    time, event, _ = sample(7)
    y = Surv.from_arrays(event, time)
    keep = time < time.max()
    expected = CensoringDistributionEstimator().fit(y).predict_ipcw(y[keep])
    censoring = nonp.censoring_survival(time, event)
    np.testing.assert_allclose(nonp.ipcw_weights(time[keep], event[keep], censoring), expected, atol=1e-12)
    gone = nonp.censoring_survival([1.0, 2.0], [True, False])
    with pytest.raises(InvalidTimesError, match="censoring survival function is 0 at 1 event times"):
        nonp.ipcw_weights([1.0, 3.0], [True, True], gone)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 8), st.booleans(), st.floats(0.0, 3.0)), min_size=1, max_size=12),
)
def test_curves_are_monotone_and_bounded(rows):
    time, event, weight = (np.array(column) for column in zip(*rows, strict=True))
    for curve in (nonp.kaplan_meier(time, event, weight), nonp.censoring_survival(time, event, weight)):
        values = np.concatenate([[curve.initial], curve.values])
        assert (np.diff(values) <= 0).all()
        assert values[-1] >= 0
    hazard = nonp.nelson_aalen(time, event, weight).values
    assert (np.diff(hazard) >= 0).all()
    assert np.isfinite(hazard).all()
    lower, upper = nonp.survival_interval(time, event, weight)
    survival = nonp.kaplan_meier(time, event, weight).values
    known = ~np.isnan(lower.values)
    assert (lower.values[known] <= survival[known] + 1e-12).all()
    assert (upper.values[known] >= survival[known] - 1e-12).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, np.nan], [1, 0]), "time must be finite, got nan at row 1"),
        (([1.0, 2.0], [1]), "event must have the shape of time"),
        (([1.0, 2.0], [1, 2]), "event must hold only True/False or 1/0"),
        (([], []), "time must have one value per subject"),
        (([1.0, 2.0], [1, 0], [-1.0, 1.0]), "weight must be >= 0, got -1"),
        (([1.0, 2.0], [1, 1], None, [0.0, 2.0]), "entry must be < time, got entry 2 and time 2 at row 1"),
    ],
)
def test_bad_columns_are_refused(arguments, message):
    with pytest.raises(InvalidSurvivalDataError, match=message):
        nonp.at_risk_table(*arguments)


def test_who_is_censored_at_entry_counts_for_nothing():
    """An event in an interval that begins at entry is such a row where intervals count as censored."""
    time, event, entry = [1.0, 2.0, 3.0, 5.0], [1, 0, 1, 1], [0.0, 2.0, 1.5, 0.0]
    others = [0, 2, 3]
    for estimate in (nonp.kaplan_meier, nonp.censoring_survival):
        with_it = estimate(time, event, None, entry)
        without = estimate(*(np.array(column)[others] for column in (time, event)), None, np.array(entry)[others])
        np.testing.assert_array_equal(with_it([0.5, 1, 2, 2.5, 3, 6]), without([0.5, 1, 2, 2.5, 3, 6]))


def test_bad_settings_are_refused():
    curve = nonp.kaplan_meier([1.0], [True])
    with pytest.raises(InvalidParameterError, match="level must be between 0 and 1"):
        nonp.survival_interval([1.0], [True], level=95)
    with pytest.raises(InvalidParameterError, match="kind must be"):
        nonp.survival_interval([1.0], [True], kind="arcsine")
    with pytest.raises(InvalidParameterError, match="probability must be between 0 and 1"):
        nonp.quantile(curve, 1.0)
    with pytest.raises(InvalidTimesError, match="horizon must be a finite time > 0"):
        nonp.restricted_mean(curve, np.inf)
    with pytest.raises(InvalidTimesError, match="horizon must be a finite time > 0, got 'a year'"):
        nonp.restricted_mean(curve, "a year")


def test_rows_in_the_order_of_their_times_are_counted_as_in_any_other():
    time, event = sample(5)[:2]
    order = np.argsort(time, kind="stable")
    for one, other in zip(nonp.at_risk_table(time, event), nonp.at_risk_table(time[order], event[order]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert nonp.at_risk_table([2.0, 2.0], [True, False]).times.tolist() == [2.0]


@pytest.mark.parametrize("seed", range(5))
def test_rounding_of_weights_leaves_nobody_at_risk(seed):
    """All who are at risk leave at once, before others enter: the curve is 0 from there on."""
    weight = np.random.default_rng(seed).uniform(0.1, 1.0, 20)
    first = np.arange(20) < 4
    time, entry = np.where(first, 1.0, 3.0), np.where(first, 0.0, 2.0)
    assert nonp.kaplan_meier(time, first, weight, entry)(1.0) == 0.0
    assert nonp.censoring_survival(time, ~first, weight, entry)(1.0) == 0.0
    assert nonp.at_risk_table(time, first, weight, entry).at_risk == pytest.approx([weight[:4].sum(), weight[4:].sum()])


@pytest.mark.parametrize("seed", range(5))
def test_nobody_is_uncensored_once_the_last_weights_are_gone(seed):
    """Events and censorings share the last time: their weights add up to those at risk, whatever is rounded."""
    weight = np.random.default_rng(seed).uniform(0.1, 1.0, 12)
    time, event = np.repeat([1.0, 2.0], 6), np.tile([True, False, False], 4)
    assert nonp.censoring_survival(time, event, weight)(2.0) == 0.0
    assert nonp.censoring_survival(time, event, weight)(1.0) == pytest.approx(
        1 - weight[:6][~event[:6]].sum() / weight[~(event & (time < 2))].sum()
    )
