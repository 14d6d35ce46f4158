"""Safe elementwise forms against arbitrary-precision arithmetic, and their gradients against their values."""

import math
import os
import subprocess
import sys
import warnings
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv import numerics

FORMS = {
    "safe_exp": (numerics.safe_exp, -1e12, 1e12),
    "log1mexp": (numerics.log1mexp, 1e-12, 1e12),
    "log_softplus": (numerics.log_softplus, -1e12, 1e12),
    "log_mean_decay": (numerics.log_mean_decay, 0.0, 1e12),
    "mills_ratio": (lambda z: numerics.normal_tail(z)[2], -1e12, 1e12),
    "log_mills_ratio": (lambda z: numerics.normal_tail(z)[1], -1e12, 1e12),
    "mills_excess": (lambda z: numerics.normal_tail(z)[3], -1e12, 1e12),
}


def exact(function, values):
    """The function at each value to four hundred digits, as floats."""
    with mpmath.workdps(400):
        return np.array([float(function(mpmath.mpf(float(v)))) for v in values])


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def test_exponential_goes_on_as_its_tangent():
    z = double([-700.0, -1.0, 0.0, 29.9, 30.0, 31.0, 1e6])
    expected = torch.where(z <= 30, z.clamp(max=30).exp(), math.exp(30) * (z - 29))
    torch.testing.assert_close(numerics.safe_exp(z), expected, rtol=1e-14, atol=0)


def test_log1mexp_is_exact_at_both_ends():
    x = [1e-300, 1e-12, 1e-3, 0.69, math.log(2), 0.7, 5.0, 40.0, 700.0]
    expected = exact(lambda v: mpmath.log(-mpmath.expm1(-v)), x)
    np.testing.assert_allclose(numerics.log1mexp(double(x)), expected, rtol=5e-15)


def test_log_softplus_keeps_its_order_where_softplus_underflows():
    z = [-1e12, -800.0, -30.5, -29.5, -1.0, 0.0, 3.0, 21.0, 50.0]
    expected = exact(lambda v: mpmath.log(mpmath.log1p(mpmath.exp(v))) if v > -1e4 else v, z)
    np.testing.assert_allclose(numerics.log_softplus(double(z)), expected, rtol=1e-13)


def test_log_mean_decay_and_its_slope():
    x = [0.0, 1e-12, 1e-3, 0.0299, 0.0301, 1.0, 40.0, 1e4]
    value, slope = numerics.log_mean_decay(double(x)), numerics.log_mean_decay_slope(double(x))
    at = x[1:]
    expected = exact(lambda v: mpmath.log(-mpmath.expm1(-v) / v), at)
    np.testing.assert_allclose(value, [0.0, *expected], rtol=5e-13)
    np.testing.assert_allclose(slope, [-0.5, *exact(lambda v: 1 / mpmath.expm1(v) - 1 / v, at)], rtol=1e-11)


def mills(v):
    return mpmath.npdf(v) / (mpmath.erfc(v / mpmath.sqrt(2)) / 2)


def test_mills_ratio_over_the_whole_line():
    z = [-29.0, -13.5, -5.0, -1.0, 0.0, 1.0, 10.0, 49.0, 51.0, 1e4]
    np.testing.assert_allclose(numerics.normal_tail(double(z))[2], exact(mills, z), rtol=1e-13)
    np.testing.assert_allclose(numerics.normal_tail(double(z))[1], exact(lambda v: mpmath.log(mills(v)), z), rtol=1e-13)
    np.testing.assert_allclose(numerics.normal_tail(double(z))[3], exact(lambda v: mills(v) - v, z), rtol=2e-12)


def test_mills_excess_is_the_reciprocal_far_out():
    z = double([1e6, 1e9, 1e12])
    torch.testing.assert_close(numerics.normal_tail(z)[3], 1 / z, rtol=1e-11, atol=0)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_values_and_gradients_are_finite_everywhere(name, dtype):
    function, low, high = FORMS[name]
    size = torch.cat([torch.zeros(1), torch.logspace(-12, 12, 200), torch.linspace(0, 100, 400)])
    z = torch.cat([-size.flip(0), size]).to(dtype)
    z = z[(z >= low) & (z <= high)].requires_grad_(True)
    value = function(z)
    (gradient,) = torch.autograd.grad(value.sum(), z)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", FORMS)
@given(where=st.floats(0.001, 60.0), sign=st.sampled_from([-1.0, 1.0]))
@settings(max_examples=40, deadline=None)
def test_gradients_match_finite_differences(name, where, sign):
    function, low, _high = FORMS[name]
    at = where if low >= 0 else sign * where
    step = 1e-6 * max(1.0, abs(at)) if at > 0.01 or at < 0 else 1e-6 * at
    z = double([at]).requires_grad_(True)
    (gradient,) = torch.autograd.grad(function(z).sum(), z)
    up, down = function(double([at + step])), function(double([at - step]))
    difference = float((up - down) / (2 * step))
    assert float(gradient) == pytest.approx(difference, rel=1e-4, abs=1e-9 * max(float(up.abs()), 1.0) + 1e-7)


def test_single_precision_agrees_with_double():
    z = torch.linspace(-40, 40, 321)
    for name in ("log_softplus", "mills_ratio", "log_mills_ratio"):
        function = FORMS[name][0]
        torch.testing.assert_close(function(z).double(), function(z.double()), rtol=2e-5, atol=1e-30)


FORKED = """
import os, torch
import softsurv.numerics
torch.set_num_threads(2)
torch.randn(3_000_000).exp().sum()
child = os.fork()
if child == 0:
    torch.randn(3_000_000).exp().sum()
    os._exit(7)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_forked_after_torch_was_at_work_does_not_wait_for_its_threads():
    done = subprocess.run([sys.executable, "-c", FORKED], cwd=Path(__file__).parents[1], timeout=120)
    assert done.returncode == 7


@pytest.mark.parametrize("scale", [1.0, 1e150, 1e155, 1e300, 1e-155, 1e-300])
def test_the_spread_of_values_whose_squares_leave_the_floats(scale):
    values = np.random.default_rng(0).normal(size=(3, 50))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(numerics.spread(values * scale), values.std(1) * scale, rtol=1e-12)
    assert numerics.spread(np.full(4, 7.0)) == 0
