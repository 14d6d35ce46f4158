"""What every leaf family derives from its baseline: the time scale, the predictor, gradients and curvature."""

import pytest
import torch

from softsurv.clamps import LOG_SHAPE_LIMIT
from softsurv.hazards import get_family
from softsurv.hazards.base import LeafFamily, standardise


def features_of(family, n=30, seed=0):
    random = torch.Generator().manual_seed(seed)
    log_time = torch.randn(n, generator=random, dtype=torch.float64)
    return family.time_features(log_time, family.fit_time_scale(log_time, torch.ones(n, dtype=torch.bool)))


def normal(*size, seed=1):
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_time_scale_is_mean_and_spread_of_the_uncensored_times():
    log_time, event = torch.tensor([0.0, 2.0, 10.0]).double(), torch.tensor([True, True, False])
    family = get_family("weibull")
    assert family.fit_time_scale(log_time, event).tolist() == [1.0, 1.0]
    assert family.fit_time_scale(log_time, ~torch.ones(3, dtype=torch.bool))[0] == 4.0  # all, as none is uncensored
    assert family.fit_time_scale(log_time, ~event).tolist() == [10.0, 1.0]  # one time has no spread


def test_standardised_times_of_a_stack():
    scale = torch.tensor([[1.0, 2.0, 99.0], [0.0, 4.0, 99.0]])
    assert standardise(torch.tensor([[1.0, 5.0], [1.0, 8.0]]), scale).tolist() == [[0.0, 2.0], [0.25, 2.0]]


def test_the_predictor_is_the_offset_and_the_baseline(family, sample):
    features = family.time_features(sample.log_time, sample.time_scale(family))
    shape, offset = normal(3, family.n_shape), normal(3, 120, seed=2)
    z, log_slope = family.predictor(offset, shape, features)
    value, expected = family.baseline(shape, features)
    torch.testing.assert_close(z, offset + value)
    torch.testing.assert_close(log_slope.expand_as(expected), expected)


def test_the_gradient_of_a_weighted_loss_is_the_pullback(family, sample):
    features = family.time_features(sample.log_time, sample.time_scale(family))
    shape, by_value = normal(3, family.n_shape), normal(3, 120, seed=2)
    weight, log_slope = normal(3, 120, seed=3).abs(), normal(1, 120, seed=4)
    found = family.shape_gradient(shape, features, by_value, weight, log_slope)
    torch.testing.assert_close(
        found, LeafFamily.baseline_pullback(family, shape, features, by_value, weight * log_slope)
    )


@pytest.mark.parametrize("name", ["weibull", "spline_ph"])
def test_beyond_their_limits_shapes_stay_and_have_no_gradient(name):
    family = get_family(name)
    features, ones = features_of(family), torch.ones(1, 30, dtype=torch.float64)
    for sign in (1.0, -1.0):
        at, beyond = (torch.full((1, family.n_shape), sign * (LOG_SHAPE_LIMIT + d)).double() for d in (0.0, 5.0))
        torch.testing.assert_close(family.baseline(beyond, features), family.baseline(at, features))
        assert (family.baseline_pullback(beyond, features, ones, ones) == 0).all()


@pytest.mark.parametrize("name", ["weibull", "spline_ph"])
def test_the_curvature_of_the_log_slope_is_the_hessian_by_autograd(name):
    family = get_family(name)
    features, shape, weight = features_of(family), normal(2, 3, family.n_shape), normal(2, 3, 30, seed=2).abs()
    found = family.log_slope_curvature(shape.exp(), features[None], weight)

    def loss(u):  # minus the weighted log slope of one leaf
        return -(w * (u @ features[family.n_shape :]).log()).sum()

    for m in range(2):
        for leaf in range(3):
            u, w = shape[m, leaf].exp(), weight[m, leaf]
            expected = torch.autograd.functional.hessian(loss, u) * u * u[:, None]
            torch.testing.assert_close(found[m, leaf], expected)


class Shifted(LeafFamily):
    """Its one used shape moves the baseline and not the slope; with ``uses=False`` nothing does."""

    name, n_shape = "shifted", 2

    def __init__(self, uses):
        self.uses = uses

    def time_features(self, log_time, time_scale):
        return log_time[None]

    def baseline(self, shape, features):
        rise = features.expand(shape.shape[-2], -1)
        return rise + shape[:, :1] if self.uses else rise, torch.zeros_like(rise)


@pytest.mark.parametrize("uses", [True, False])
def test_shapes_that_move_no_slope_have_the_gradient_of_the_baseline(uses):
    shape, slopes = normal(2, 2), normal(2, 5, seed=3)
    found = Shifted(uses).baseline_pullback(shape, normal(1, 5), slopes, slopes)
    expected = torch.stack([slopes.sum(-1) * uses, torch.zeros(2).double()], -1)
    torch.testing.assert_close(found, expected)


def test_a_new_family_begins_at_shape_zero_and_has_no_settings():
    assert Shifted(True).initial_shape(torch.zeros(2)).tolist() == [0.0, 0.0]
    assert Shifted(True).settings() == {}
