"""The increasing spline basis against the power basis of Royston & Parmar (2002), which is the oracle here."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BSpline

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


def test_coinciding_knots_leave_a_valid_basis():
    y = np.linspace(-1, 2, 40)
    rise, slope = ours(y, np.array([0.0, 0.5, 0.5, 1.0]))
    assert np.isfinite(rise).all()
    np.testing.assert_allclose(slope.sum(1), 1, atol=1e-12)
