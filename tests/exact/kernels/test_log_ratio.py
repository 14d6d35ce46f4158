"""The logarithm of a ratio against that of long doubles."""

import numpy as np
import pytest
from numba import njit
from oracles.plain_python import plain

from softsurv.exact.jit import FAST
from softsurv.exact.kernels.log_ratio import log_ratio


@njit(**FAST)
def ratios(a, b, out):
    for i in range(a.size):
        out[i] = log_ratio(a[i], b[i])


def test_log_ratio_is_accurate_over_the_range_of_sums():
    rng = np.random.default_rng(0)
    a = np.concatenate([np.exp(rng.uniform(-25, 25, 5000)), np.arange(1.0, 200.0)])
    b = np.concatenate([a[:5000] * np.exp(rng.uniform(-3, 3, 5000)), np.arange(200.0, 1.0, -1.0)])
    out = np.empty(a.size)
    ratios(a, b, out)
    exact = np.log(a.astype(np.longdouble) / b.astype(np.longdouble)).astype(float)
    assert np.max(np.abs(out - exact) / np.maximum(np.abs(exact), 1.0)) < 4e-16


@pytest.mark.parametrize(("a", "b"), [(1e-300, 1e300), (1e300, 1e-300), (3.0, 2.0), (2.0, 3.0), (5e-308, 1.0)])
def test_extreme_ratios_and_the_ends_of_the_series(a, b):
    assert plain(log_ratio)(a, b) == pytest.approx(np.log(a) - np.log(b), rel=1e-15)
    assert plain(log_ratio)(a, b) == pytest.approx(-plain(log_ratio)(b, a), rel=1e-15)


def test_equal_numbers_have_the_logarithm_zero():
    assert [plain(log_ratio)(x, x) for x in (1e-200, 0.3, 7e99)] == [0.0] * 3
