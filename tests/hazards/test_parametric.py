"""Parametric families against the distributions of scipy: survival and hazard at any time and shape."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from softsurv.hazards import get_family
from softsurv.hazards.parametric import LOG_TAU_LIMIT

CENTRE, SCALE = 1.5, 0.8
TIMES = np.array([0.01, 0.7, 4.0, 30.0])


def curves(name, shape, offset, times):
    """Survival and hazard (T,) of a leaf with one shape parameter, or none."""
    family = get_family(name)
    time_scale = torch.tensor([CENTRE, SCALE], dtype=torch.float64)
    log_time = torch.tensor(times).log()
    own = torch.full((1, family.n_shape), shape, dtype=torch.float64)
    value, log_slope = family.baseline(own, family.time_features(log_time, time_scale))
    z = offset + value[0]
    log_hazard = family.link.log_density(z)[0] + log_slope[0] - math.log(SCALE) - log_time
    return torch.exp(-family.link.cumulative_hazard(z)[0]).numpy(), log_hazard.exp().numpy()


def law(name, shape, offset):
    """The distribution of event times that a leaf stands for."""
    slope = math.exp(shape) / SCALE  # of the predictor in log time
    median = math.exp(CENTRE - offset / slope)  # where the predictor is 0
    return {
        "exponential": lambda: stats.expon(scale=math.exp(CENTRE - offset)),
        "weibull": lambda: stats.weibull_min(slope, scale=median),
        "loglogistic": lambda: stats.fisk(slope, scale=median),
        "lognormal": lambda: stats.lognorm(1 / slope, scale=median),
    }[name]()


@pytest.mark.parametrize("name", ["exponential", "weibull", "loglogistic", "lognormal"])
@settings(max_examples=25)
@given(shape=st.floats(-1.0, 1.0), offset=st.floats(-2.0, 2.0))
def test_families_are_the_laws_of_scipy(name, shape, offset):
    survival, hazard = curves(name, shape, offset, TIMES)
    expected = law(name, shape, offset)
    np.testing.assert_allclose(survival, expected.sf(TIMES), rtol=1e-9, atol=1e-300)
    usable = expected.logsf(TIMES) > -500  # beyond, scipy divides 0 by 0
    np.testing.assert_allclose(
        hazard[usable], np.exp(expected.logpdf(TIMES) - expected.logsf(TIMES))[usable], rtol=1e-7
    )


@given(growth=st.floats(-3.0, 3.0), offset=st.floats(-2.0, 2.0))
def test_gompertz_grows_or_falls_with_exp_of_time(growth, offset):
    """H = exp(offset) (exp(g tau) - 1) / g, tau the time in units of exp(mean log time)."""
    survival, hazard = curves("gompertz", growth, offset, TIMES)
    tau = TIMES / math.exp(CENTRE)
    total = math.exp(offset) * (np.expm1(growth * tau) / growth if abs(growth) > 1e-200 else tau)
    np.testing.assert_allclose(survival, np.exp(-total), rtol=1e-7, atol=1e-300)
    np.testing.assert_allclose(hazard, np.exp(offset + growth * tau) / math.exp(CENTRE), rtol=1e-7)


def test_gompertz_without_growth_is_exponential():
    flat, plain = curves("gompertz", 0.0, 0.3, TIMES), curves("exponential", 0.0, 0.3, TIMES)
    for one, other in zip(flat, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_the_time_of_a_gompertz_leaf_stops_where_exp_would_overflow():
    family = get_family("gompertz")
    scale = torch.tensor([CENTRE, SCALE], dtype=torch.float64)
    last = torch.tensor([CENTRE + LOG_TAU_LIMIT, 700.0], dtype=torch.float64)
    at, beyond = family.time_features(last, scale).unbind(-1)
    torch.testing.assert_close(at, beyond)
    assert torch.isfinite(beyond).all()


def test_exponential_leaves_have_no_shape_and_a_row_for_each_leaf():
    family = get_family("exponential")
    features = family.time_features(torch.zeros(2, 5), torch.tensor([[0.0, 1.0], [1.0, 2.0]]))
    value, log_slope = family.baseline(torch.zeros(2, 3, 0), features)
    assert value.shape == log_slope.shape == (2, 3, 5)
    assert log_slope[1, 0, 0].item() == pytest.approx(math.log(2.0))
