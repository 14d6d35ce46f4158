"""The increasing spline basis against the power basis of Royston & Parmar (2002), which is the oracle here."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BSpline

from softsurv.hazards import get_family
from softsurv.hazards.spline_basis import monotone_spline_basis


def power_basis(y, knots):
    """Columns 1, y, v_1 .. v_m of the natural cubic splines, and their slopes (paper `sst`, section 3.3.2)."""
    first, *inner, last = knots
    values, slopes = [np.ones_like(y), y], [np.zeros_like(y), np.ones_like(y)]
    for knot in inner:
        share = (last - knot) / (last - first)

        def hinge(power, knot=knot, share=share):
            at = [np.maximum(y - k, 0) ** power for k in (knot, first, last)]
            return at[0] - share * at[1] - (1 - share) * at[2]

        values.append(hinge(3))
        slopes.append(3 * hinge(2))
    return np.stack(values, 1), np.stack(slopes, 1)


def random_knots(m, seed):
    return np.cumsum(np.random.default_rng(seed).uniform(0.05, 1.5, m + 2)) - 2


def ours(y, knots):
    rise, slope = monotone_spline_basis(torch.tensor(y), torch.tensor(knots))
    return rise.numpy().T, slope.numpy().T


@given(m=st.integers(0, 6), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_basis_spans_the_royston_parmar_space(m, seed):
    knots = random_knots(m, seed)
    y = np.linspace(knots[0] - 2, knots[-1] + 2, 301)
    rise, slope = ours(y, knots)
    raw, raw_slope = power_basis(y, knots)
    assert rise.shape == slope.shape == (301, m + 1)
    weights, *_ = np.linalg.lstsq(raw, rise, rcond=None)
    np.testing.assert_allclose(raw @ weights, rise, atol=1e-9 * (1 + np.abs(rise).max()))
    np.testing.assert_allclose(raw_slope @ weights, slope, atol=1e-7)
    assert np.linalg.matrix_rank(np.column_stack([np.ones(301), rise])) == m + 2  # so the two spaces are one


@given(m=st.integers(0, 6), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_functions_increase_and_end_in_straight_lines(m, seed):
    knots = random_knots(m, seed)
    y = np.linspace(knots[0] - 3, knots[-1] + 3, 401)
    rise, slope = ours(y, knots)
    assert (slope >= 0).all()
    np.testing.assert_allclose(slope.sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(np.gradient(rise, y, axis=0)[1:-1], slope[1:-1], atol=0.05 / np.diff(knots).min())
    for outside in (y < knots[0], y > knots[-1]):
        np.testing.assert_allclose(slope[outside], slope[outside][:1].repeat(outside.sum(), 0), atol=1e-12)
    np.testing.assert_allclose(ours(knots[:1], knots)[0], 0, atol=1e-12)


def test_integrals_are_those_of_scipy():
    knots = np.array([-1.5, -0.3, 0.2, 1.1])
    full = np.concatenate([knots[:1].repeat(2), knots, knots[-1:].repeat(2)])
    y = np.linspace(-1.5, 1.1, 57)
    one = np.eye(5)
    merged = [one[0] + one[1], one[2], one[3] + one[4]]
    rise, slope = ours(y, knots)
    for k, weights in enumerate(merged):
        spline = BSpline(full, weights, 2)
        np.testing.assert_allclose(slope[:, k], spline(y), atol=1e-13)
        np.testing.assert_allclose(rise[:, k], spline.antiderivative()(y) - spline.antiderivative()(-1.5), atol=1e-13)


def test_knots_are_the_published_centiles_of_the_uncensored_log_times():
    rng = np.random.default_rng(0)
    log_time, event = rng.normal(3, 2, 400), rng.random(400) < 0.5
    family = get_family("spline_ph")
    mean, scale, *knots = family.fit_time_scale(torch.tensor(log_time), torch.tensor(event)).tolist()
    uncensored = log_time[event]
    assert (mean, scale) == pytest.approx((uncensored.mean(), uncensored.std()))
    expected = np.quantile(uncensored, [0, 0.33, 0.67, 1])
    np.testing.assert_allclose(np.array(knots) * scale + mean, expected)


@pytest.mark.parametrize("times", ["tied", "one distinct", "two distinct"])
def test_tied_times_keep_knots_apart_and_values_finite(times):
    log_time = {
        "tied": np.repeat([0.0, 0.1, 2.0], [1, 40, 1]),
        "one distinct": np.full(30, 1.3),
        "two distinct": np.repeat([0.2, 1.4], 20),
    }[times]
    family = get_family("spline_po", n_knots=4)
    at = torch.tensor(log_time)
    time_scale = family.fit_time_scale(at, torch.ones(len(log_time), dtype=torch.bool))
    assert (time_scale[2:].diff() >= 0.99e-3).all()
    value, log_slope = family.baseline(torch.randn(2, 5, dtype=torch.float64), family.time_features(at, time_scale))
    assert torch.isfinite(value).all()
    assert torch.isfinite(log_slope).all()


def test_coinciding_knots_leave_a_valid_basis():
    y = np.linspace(-1, 2, 40)
    rise, slope = ours(y, np.array([0.0, 0.5, 0.5, 1.0]))
    assert np.isfinite(rise).all()
    np.testing.assert_allclose(slope.sum(1), 1, atol=1e-12)
