"""Exponential and logarithm of the compiled loops, to the last places."""

import math

import numpy as np
from oracles.plain_python import plain

from softsurv.kernel_cache import njit
from softsurv.soft import vector_math


def test_exponential_and_logarithm_to_the_last_places():
    @njit()
    def table(x, e, powers, logs):
        for i in range(x.size):
            powers[i], logs[i] = vector_math.exponential(x[i]), vector_math.log_one_plus(e[i])

    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-707, 700, 20_000), rng.uniform(-1, 1, 20_000), [0.0, -0.0, -800.0, -math.inf]])
    e = np.concatenate(
        [rng.uniform(0, 1, 20_000), 10 ** rng.uniform(-300, 0, 20_000), [0.0, 1.0, 0.4142135623730951, 0.5]]
    )
    powers, logs = np.empty_like(x), np.empty_like(e)
    table(x, e, powers, logs)
    np.testing.assert_allclose(powers, np.exp(x), rtol=5e-16, atol=1e-307)
    np.testing.assert_allclose(logs, np.log1p(e), rtol=5e-16)


def test_the_logarithm_of_any_number():
    rng = np.random.default_rng(1)
    x = np.concatenate([10 ** rng.uniform(-307, 308, 500), rng.uniform(0.4, 1.6, 500), [1.0, 2.0, 0.5**0.5]])
    found = np.array([plain(vector_math.logarithm)(one) for one in x])
    np.testing.assert_allclose(found, np.log(x), rtol=5e-16, atol=2e-16)
    edges = [plain(vector_math.logarithm)(one) for one in (0.0, math.inf, -1.0, math.nan)]
    assert edges[:2] == [-math.inf, math.inf]
    assert np.isnan(edges[2:]).all()


def test_what_no_power_can_hold():
    assert plain(vector_math.exponential)(-1e300) == plain(vector_math.exponential)(-708.0) > 0.0
    assert math.isnan(plain(vector_math.exponential)(math.nan))
