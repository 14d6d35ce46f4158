"""Greenwood's limits: against lifelines, at their ends, and that they fall around the curve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from numpy.testing import assert_allclose

from softsurv.greenwood import falling_limits, greenwood, log_log_limits

positive = st.floats(1e-3, 3.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("limits", [log_log_limits, falling_limits])
def test_limits_are_those_of_lifelines(weighted, limits):
    rng = np.random.default_rng(0)
    time, event = rng.integers(1, 30, 80).astype(float), rng.random(80) < 0.6
    event[time == time.max()] = False  # somebody survives: lifelines has limits of 0 where nobody does
    weight = rng.integers(1, 4, 80).astype(float) if weighted else np.ones(80)
    known = KaplanMeierFitter().fit(time, event, weights=weight).confidence_interval_
    times = np.unique(time[event])
    died = np.array([weight[event & (time == t)].sum() for t in times])
    at_risk = np.array([weight[time >= t].sum() for t in times])
    lower, upper = limits(np.cumprod(1 - died / at_risk), greenwood(died, at_risk), 0.95)
    assert_allclose(np.stack([lower, upper], 1), known.loc[times].to_numpy(), rtol=0, atol=1e-8)


def test_variance_is_a_sum_by_hand_and_stays_where_nobody_survives():
    assert_allclose(greenwood(np.array([1.0, 0.0, 2.0]), np.array([4.0, 3.0, 2.0])), 1 / 12)


def test_limits_are_the_curve_at_its_ends_and_the_upper_falling_one_stays():
    survival, variance = np.array([1.0, 0.5, 0.0]), np.array([0.0, 0.2, 0.2])
    lower, upper = log_log_limits(survival, variance, 0.9)
    assert (lower[0], upper[0], lower[2], upper[2]) == (1.0, 1.0, 0.0, 0.0)
    lower, upper = falling_limits(survival, variance, 0.9)
    assert lower[2] == 0.0
    assert upper[2] == upper[1] > 0.5


def test_a_lower_limit_that_would_rise_holds_for_the_times_before():
    """After the first of many events, the log-log limit of 99 % is below that of the second one."""
    events, at_risk = np.ones(2), np.array([100.0, 99.0])
    survival, variance = np.cumprod(1 - events / at_risk), greenwood(events, at_risk)
    plain, falling = (limits(survival, variance, 0.99)[0] for limits in (log_log_limits, falling_limits))
    assert plain[0] < plain[1]
    assert_allclose(falling, plain[1])


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), positive), min_size=1, max_size=12),
    st.sampled_from([1e-9, 0.05, 0.5, 0.95, 1 - 1e-12]),
)
def test_limits_fall_and_hold_the_curve(steps, level):
    """Any numbers of events and of those who leave or come late, of any weight."""
    events, others, weight = (np.array(column, dtype=float) for column in zip(*steps, strict=True))
    died, at_risk = events * weight, (events + others) * weight
    hazard = np.divide(died, at_risk, out=np.zeros_like(died), where=at_risk > 0)
    survival = np.cumprod(1 - hazard)
    lower, upper = falling_limits(survival, greenwood(died, at_risk), level)
    assert (lower >= 0).all()
    assert (upper <= 1).all()
    assert (lower <= survival + 1e-15).all()
    assert (survival <= upper + 1e-15).all()
    assert (np.diff(lower) <= 0).all()
    assert (np.diff(upper) <= 0).all()
