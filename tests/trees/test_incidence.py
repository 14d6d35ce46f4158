"""Cumulative incidences of several hazards against closed forms and the Aalen-Johansen sum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gamma, gammaincc

from softsurv.trees.incidence import (
    LARGEST_HAZARD,
    accumulated,
    area_from,
    by_time_left,
    incidences,
    log_lattice,
    log_time_simpson,
    simpson_from_both_ends,
    step,
)


def constant(rates):
    """Hazards that are constant in time, (n, K) a row."""
    return lambda times: np.asarray(rates)[:, None, :] * times[None, :, None]


def test_constant_hazards_have_their_closed_form_on_any_grid():
    rates, times = np.array([[0.2, 0.1], [1.0, 0.0]]), np.array([0.0, 0.4, 3.0, 9.5])
    for grid in (np.array([5.0]), np.array([0.1, 3.0, 4.0, 20.0]), log_lattice(5.0, 9.5)):
        free, risen = incidences(constant(rates), grid, times)
        total = rates.sum(1)[:, None]
        np.testing.assert_allclose(free, np.exp(-total * times), rtol=1e-12)
        expected = (rates / total)[:, None, :] * -np.expm1(-total * times)[..., None]
        np.testing.assert_allclose(risen, expected, rtol=1e-10)


def test_a_changing_share_of_causes_is_that_of_a_fine_sum():
    """Weibull hazards of two shapes: F_1 is the integral of S dH_1."""
    hazards = lambda t: np.stack([0.3 * t**2, 0.5 * np.sqrt(t)], -1)[None]  # noqa: E731
    fine = np.linspace(0.0, 2.0, 400_001)
    own, other = hazards(fine)[0].T
    expected = np.sum(0.5 * (np.exp(-(own + other))[1:] + np.exp(-(own + other))[:-1]) * np.diff(own))
    _, risen = incidences(hazards, log_lattice(2.0, 2.0), np.array([2.0]))
    assert risen[0, 0, 0] == pytest.approx(expected, abs=1e-5)


def test_jumps_are_the_sum_of_aalen_and_johansen():
    """Four rows at risk: cause 1 at time 1, cause 2 at time 2, one censored, cause 1 at time 4."""
    left = {1: (0, 4), 2: (1, 3), 4: (0, 1)}  # time: cause, at risk
    rises = np.zeros((1, 3, 2))
    for k, (cause, at_risk) in enumerate(left.values()):
        with np.errstate(divide="ignore"):
            rises[0, k, cause] = np.minimum(-np.log1p(-1 / at_risk), LARGEST_HAZARD)
    free, risen = accumulated(rises)
    np.testing.assert_allclose(free[0], [3 / 4, 1 / 2, 0.0], atol=1e-15)
    np.testing.assert_allclose(risen[0], [[1 / 4, 0], [1 / 4, 1 / 4], [3 / 4, 1 / 4]], atol=1e-15)


@given(
    st.lists(st.lists(st.floats(0.0, 1e3), min_size=3, max_size=3), min_size=1, max_size=8),
    st.booleans(),
)
def test_survival_and_incidences_sum_to_one(rises, at_once):
    table = np.array([rises])
    table[0, -1, 0] += LARGEST_HAZARD * at_once
    free, risen = accumulated(table)
    np.testing.assert_allclose(free + risen.sum(-1), 1.0, atol=1e-12)
    assert (np.diff(risen, axis=1) >= 0).all()


def test_a_step_without_any_hazard_raises_nothing():
    np.testing.assert_array_equal(step(np.array([0.7]), np.zeros((1, 2))), np.zeros((1, 2)))


def test_infinite_hazards_end_in_one():
    endless = lambda t: np.where(t[None, :, None] < 1.0, 0.0, [np.inf, 0.0])  # noqa: E731
    free, risen = incidences(endless, np.array([0.5, 1.0, 2.0]), np.array([0.9, 1.0, 5.0]))
    np.testing.assert_array_equal(free, [[1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(risen[..., 0], [[0.0, 1.0, 1.0]])


@pytest.mark.parametrize("last", [1e-9, 3.0, 7.0, 7e4])
def test_the_lattice_reaches_the_last_time_and_does_not_move_with_it(last):
    grid, longer = log_lattice(7.0, last), log_lattice(7.0, 10 * max(last, 7.0))
    np.testing.assert_array_equal(grid, longer[: grid.size])
    assert grid[0] == pytest.approx(7e-6)
    assert grid[-1] >= last * (1 - 1e-12)
    np.testing.assert_allclose(grid[1:] / grid[:-1], 10 ** (1 / 200))


def test_events_far_from_time_0_have_equal_steps_of_their_own():
    """At fixed ratios calendar years lie within one step, over which the share of a cause would be constant."""

    def hazards(times):
        since = np.maximum(times - 2000.5, 0.0)
        return np.stack([0.1 * since, 0.02 * since**2], -1)[None]

    times = np.array([2003.3, 2010.0, 2014.9])
    fine = np.linspace(2000.5, 2015.0, 200_001)
    _, expected = incidences(hazards, fine, times)
    for last in (2010.0, 2015.0):
        grid = log_lattice(2015.0, last, first=2000.5)
        assert (np.diff(grid) > 0).all()
        asked = times[times <= last]
        _, found = incidences(hazards, grid, asked)
        np.testing.assert_allclose(found, expected[:, : len(asked)], rtol=0, atol=1e-5)
    np.testing.assert_array_equal(log_lattice(7.0, 7.0, first=0.7), log_lattice(7.0, 7.0))  # a decade has its steps


@pytest.mark.parametrize(("steep", "middle"), [(40, 0.97), (150, 0.98), (150, 1.01), (600, 0.99), (600, 1.0)])
def test_a_row_whose_curve_rises_beside_the_times_of_events_has_its_steps_too(steep, middle):
    """Two log-logistic hazards, which rise over years beside those of 2000 to 2015 in which events were seen."""

    def hazards(times):
        with np.errstate(divide="ignore"):
            z = np.log(times / (2015.0 * middle))
        return np.stack([np.logaddexp(0.0, steep * z), np.logaddexp(0.0, 0.4 * steep * z - 1.0)], -1)[None]

    grid, times = log_lattice(2015.0, 2200.0, first=2000.0), np.linspace(1900.0, 2200.0, 13)
    _, expected = incidences(hazards, np.linspace(1000.0, 2200.0, 600_001), times)
    np.testing.assert_allclose(incidences(hazards, grid, times)[1], expected, rtol=0, atol=1e-5)
    assert (np.diff(grid) > 0).all()


@pytest.mark.parametrize("horizon", [1e-6, 7.0, 2e9])
def test_a_single_time_of_events_has_a_lattice_too(horizon):
    grid = log_lattice(horizon, horizon, first=horizon)
    assert (np.diff(grid) > 0).all()
    assert grid[-1] == pytest.approx(horizon)


def test_the_lattice_of_huge_times_holds_numbers_alone():
    assert np.isfinite(log_lattice(1e300, 1.7e308)).all()


@pytest.mark.parametrize("simpson", [log_time_simpson, simpson_from_both_ends])
@pytest.mark.parametrize("end", [1e-8, 2.0, 4e5])
def test_simpson_in_log_time_integrates_curves_of_any_scale(end, simpson):
    grid, width = simpson(end)
    assert grid[-1] == pytest.approx(end)
    for rate in (0.01 / end, 3.0 / end, 1e4 / end):
        assert width @ np.exp(-rate * grid) == pytest.approx(-np.expm1(-rate * end) / rate, rel=1e-7)


@pytest.mark.parametrize("begin", [2000.0, 2014.0])
def test_simpson_from_both_ends_integrates_a_curve_that_falls_late(begin):
    """All of it lies within one step of log time."""
    grid, width = simpson_from_both_ends(2015.0)
    assert (np.diff(grid) > 0.0).all()
    since, span = np.maximum(grid - begin, 0.0), 2015.0 - begin
    expected = begin + span * 0.4 * gamma(0.4) * (1.0 - gammaincc(0.4, 1.0))
    assert width @ np.exp(-((since / span) ** 2.5)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("shape", [0.6, 1.0, 2.5, 8.0])
def test_the_area_from_a_time_of_ones_own_is_that_of_a_weibull_curve(shape):
    """Also where so few are left that a difference of areas is rounding, and all go within one step of the grid."""
    begin, end, scale = np.array([0.0, 1e-20, 1e-6, 0.3, 2.0, 7.0, 9.0, 12.0, 50.0]), 12.0, 5.0
    grid, _ = log_time_simpson(end)
    with np.errstate(divide="ignore"):
        now = shape * np.log(begin / scale)
    found = area_from(begin, now, np.tile(shape * np.log(grid / scale), (len(begin), 1)), grid)
    beyond = scale / shape * gamma(1 / shape) * gammaincc(1 / shape, (np.minimum([*begin, end], end) / scale) ** shape)
    expected = (beyond[:-1] - beyond[-1]) * np.exp((begin / scale) ** shape, where=begin < end, out=np.zeros(9))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-11)
    assert (found[-2:] == 0).all()


def test_nothing_is_left_where_the_hazard_is_infinite():
    grid, _ = log_time_simpson(12.0)
    log_hazard = np.where(grid < 5.0, -np.inf, np.inf)[None]
    found = area_from(np.array([2.0, 6.0]), np.array([-np.inf, np.inf]), np.tile(log_hazard, (2, 1)), grid)
    assert found.tolist() == [pytest.approx(3.0, rel=0.03), 0.0]


@pytest.mark.parametrize("end", [2015.0, 1e-3])
def test_every_row_has_a_thousand_times_of_what_is_left_to_it(end):
    begin = end * np.array([0.0, 0.3, 0.5, 0.7, 0.75, 0.99, 0.9931, 1 - 1e-5, 1.0, 1.5, 2.0])
    begin[-1] = 1.7e308  # a share of the end that no float holds
    parts = list(by_time_left(begin, end))
    rows = np.concatenate([alike for alike, _ in parts])
    assert sorted(rows) == list(range(len(begin)))
    for alike, grid in parts:
        assert grid[-1] == pytest.approx(end, rel=1e-15)
        np.testing.assert_allclose(np.diff(np.log(grid)), np.log(end / grid[0]) / 2000, rtol=1e-4)
        if grid[0] >= end / 2:
            left = begin[alike][begin[alike] < end]
            assert all(grid[0] <= now and (grid > now).sum() >= 1000 for now in left)
        for row in alike:  # the other rows change nothing
            ((_, own),) = by_time_left(begin[row : row + 1], end)
            assert np.array_equal(own, grid)
