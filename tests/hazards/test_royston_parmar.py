"""Spline leaves: their knots, the settings, and how they meet the simpler families."""

import numpy as np
import pytest
import torch

from softsurv.errors import InvalidParameterError
from softsurv.hazards import get_family
from softsurv.hazards.royston_parmar import SplineHazards, SplineOdds, _quantiles


def test_knots_are_the_published_centiles_of_the_uncensored_log_times():
    rng = np.random.default_rng(0)
    log_time, event = rng.normal(3, 2, 400), rng.random(400) < 0.5
    family = get_family("spline_ph")
    mean, scale, *knots = family.fit_time_scale(torch.tensor(log_time), torch.tensor(event)).tolist()
    uncensored = log_time[event]
    assert (mean, scale) == pytest.approx((uncensored.mean(), uncensored.std()))
    expected = np.quantile(uncensored, [0, 0.33, 0.67, 1])
    np.testing.assert_allclose(np.array(knots) * scale + mean, expected)


@pytest.mark.parametrize("n", [1, 2, 3, 1000])
def test_quantiles_are_those_of_torch(n):
    values = torch.randn(n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    share = torch.tensor([0.0, 0.33, 0.5, 0.67, 1.0], dtype=torch.float64)
    torch.testing.assert_close(_quantiles(values, share), torch.quantile(values, share), rtol=0, atol=0)


def test_more_events_have_knots_than_torch_takes_quantiles_of():
    n = 2**24 + 3
    ordered = torch.arange(n, dtype=torch.float32)
    time_scale = get_family("spline_ph").fit_time_scale(ordered, torch.ones(n, dtype=torch.bool))
    assert (time_scale[2:] * time_scale[1] + time_scale[0]).tolist() == pytest.approx(
        [0, 0.33 * n, 0.67 * n, n], rel=1e-3, abs=1e3
    )


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


@pytest.mark.parametrize("n_knots", [-1, 1.5, "2", True])
def test_number_of_knots_is_checked(n_knots):
    with pytest.raises(InvalidParameterError, match="n_knots must be an integer from 0 to 99"):
        get_family("spline_ph", n_knots=n_knots)


@pytest.mark.parametrize(("spline", "plain"), [(SplineHazards, "weibull"), (SplineOdds, "loglogistic")])
def test_without_inner_knots_a_spline_is_the_straight_line(spline, plain):
    """The functions of the basis differ by a constant: so do the baselines, and their slopes are one."""
    log_time = torch.linspace(-2, 3, 9, dtype=torch.float64)
    event = torch.ones(9, dtype=torch.bool)
    shape = torch.tensor([[0.4]], dtype=torch.float64)
    curved, straight = spline(0), get_family(plain)
    assert curved.link is straight.link
    found = curved.baseline(shape, curved.time_features(log_time, curved.fit_time_scale(log_time, event)))
    expected = straight.baseline(shape, straight.time_features(log_time, straight.fit_time_scale(log_time, event)))
    torch.testing.assert_close(found[1], expected[1])
    torch.testing.assert_close(found[0].diff(), expected[0].diff())


@pytest.mark.parametrize("n_knots", [0, 1, 3])
def test_a_spline_has_a_shape_more_than_inner_knots(n_knots):
    family = SplineHazards(n_knots)
    log_time, event = torch.linspace(0, 1, 20).double(), torch.ones(20, dtype=torch.bool)
    time_scale = family.fit_time_scale(log_time, event)
    assert family.settings() == {"n_knots": n_knots}
    assert (family.n_shape, time_scale.numel()) == (n_knots + 1, 4 + n_knots)
    assert family.time_features(log_time, time_scale).shape == (2 * family.n_shape, 20)
