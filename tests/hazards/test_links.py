"""Links against scipy and arbitrary precision, and their slopes against differences."""

import mpmath
import numpy as np
import pytest
import torch
from scipy import stats

from softsurv.hazards.links import PROBIT, PROPORTIONAL_HAZARDS, PROPORTIONAL_ODDS

LINKS = [PROPORTIONAL_HAZARDS, PROPORTIONAL_ODDS, PROBIT]
GRID = torch.linspace(-25, 25, 401, dtype=torch.float64)


def by_name(link):
    return link.name


def test_hazards_are_those_of_extreme_value_logistic_and_normal_errors():
    for link, law in zip(LINKS, (stats.gumbel_l, stats.logistic, stats.norm), strict=True):
        z = GRID.numpy()
        hazard, slope, _ = link.cumulative_hazard(GRID)
        np.testing.assert_allclose(hazard, -law.logsf(z), rtol=1e-10, atol=1e-300, err_msg=link.name)
        np.testing.assert_allclose(slope, np.exp(law.logpdf(z) - law.logsf(z)), rtol=1e-10, err_msg=link.name)
        np.testing.assert_allclose(link.log_density(GRID)[0], law.logpdf(z) - law.logsf(z), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_probit_log_hazard_in_the_left_tail(dtype):
    z = [-1e4, -40.0, -29.0, -14.0, -5.1, -4.9, -1.0, 3.0]

    def log_hazard(v):
        return mpmath.log(-mpmath.log1p(-mpmath.erfc(-v / mpmath.sqrt(2)) / 2))

    with mpmath.workdps(600):
        expected = [float(log_hazard(mpmath.mpf(v))) if v > -50 else -5e7 - 10.129279 for v in z]
    found = PROBIT.log_cumulative_hazard(torch.tensor(z, dtype=dtype))
    np.testing.assert_allclose(found, expected, rtol=1e-11 if dtype == torch.float64 else 1e-5)


@pytest.mark.parametrize("link", LINKS, ids=by_name)
def test_slopes_are_derivatives(link):
    step = 1e-5
    for function in (link.cumulative_hazard, link.log_density):
        _, first, second = function(GRID)
        up, down = function(GRID + step), function(GRID - step)
        for k, slope in ((0, first), (1, second)):
            difference = (up[k] - down[k]) / (2 * step)
            size = up[k].abs() + down[k].abs() + 1
            assert ((slope - difference).abs() <= 1e-8 * (size + slope.abs() + difference.abs()) / 1e-2).all()


@pytest.mark.parametrize("link", LINKS, ids=by_name)
def test_log_hazard_is_the_logarithm_of_the_hazard(link):
    hazard = link.cumulative_hazard(GRID)[0]
    some = hazard > 1e-280
    torch.testing.assert_close(link.log_cumulative_hazard(GRID)[some], hazard[some].log(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("link", LINKS, ids=by_name)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_everything_is_finite_and_increasing_up_to_a_million_million(link, dtype):
    size = torch.cat([torch.logspace(-6, 12, 300), torch.linspace(0, 60, 300)]).sort().values
    z = torch.cat([-size.flip(0), size]).to(dtype)
    for value in (*link.cumulative_hazard(z), link.log_cumulative_hazard(z), *link.log_density(z)):
        assert torch.isfinite(value).all()
    assert (link.cumulative_hazard(z)[0].diff() >= 0).all()
    smallest = 1e-6 if dtype == torch.float32 else 1e-13
    log_hazard = link.log_cumulative_hazard(z)
    assert (log_hazard.diff() >= -smallest * log_hazard[1:].abs()).all()


def test_probit_slope_does_not_cancel_far_to_the_right():
    z = torch.tensor([1e3, 1e6, 1e9], dtype=torch.float64)
    _, slope, curvature = PROBIT.log_density(z)
    torch.testing.assert_close(slope, 1 / z - 2 / z**3, rtol=1e-10, atol=0)
    torch.testing.assert_close(curvature, torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-5)
    torch.testing.assert_close(PROBIT.cumulative_hazard(z)[2], torch.ones(3, dtype=torch.float64), rtol=1e-5, atol=0)
