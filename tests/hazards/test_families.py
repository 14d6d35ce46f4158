"""The contract of a leaf family, for every family of the registry and one of a user's own."""

import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softsurv.errors import InvalidParameterError
from softsurv.hazards import LeafFamily, family_names, get_family, register_family
from softsurv.hazards.likelihood import right_censored_loss

LARGEST_PARAMETER = 1e6
LARGEST_PREDICTOR = 1e12
few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
seeds = st.integers(0, 10_000)


def random_shape(family, seed, leaves=3, size=1.0):
    rng = np.random.default_rng(seed)
    return torch.tensor(size * rng.standard_normal((leaves, family.n_shape)))


def curves(family, time_scale, shape, offset, log_time):
    """Log H, its slope in log time and the survival function, each (L, N), and H' by its definition."""
    value, log_slope = family.baseline(shape, family.time_features(log_time, time_scale))
    z = offset[:, None] + value
    density, _, _ = family.link.log_density(z)
    hazard, _, _ = family.link.cumulative_hazard(z)
    return family.link.log_cumulative_hazard(z), density + log_slope - time_scale[1].log(), torch.exp(-hazard), hazard


def test_leading_axes_are_a_stack_of_the_same(family, sample):
    time_scale = sample.time_scale(family)
    shapes = torch.stack([random_shape(family, k) for k in range(4)])
    features = family.time_features(sample.log_time.expand(4, -1), time_scale.expand(4, -1))
    value, log_slope = family.baseline(shapes, features)
    assert value.shape == log_slope.shape == (4, 3, 120)
    for k in range(4):
        alone = family.baseline(shapes[k], family.time_features(sample.log_time, time_scale))
        torch.testing.assert_close(value[k], alone[0].expand(3, -1))
        torch.testing.assert_close(log_slope[k], alone[1].expand(3, -1))


@few
@given(seed=seeds)
def test_survival_starts_at_one_and_never_rises(family, sample, seed):
    time_scale, shape = sample.time_scale(family), random_shape(family, seed)
    offset = 3 * torch.tensor(np.random.default_rng(seed).standard_normal(3))
    log_time = torch.cat([torch.tensor([-1e9]), torch.linspace(-700, 40, 200), torch.linspace(-3, 6, 200)])
    _, _, survival, _ = curves(family, time_scale, shape, offset, log_time.double().sort().values)
    assert (survival[:, 0] == 1).all()
    assert (survival.diff() <= 1e-13).all()
    assert (survival >= 0).all()


@few
@given(seed=seeds)
def test_hazard_is_the_derivative_of_the_cumulative_hazard(family, sample, seed):
    time_scale, shape = sample.time_scale(family), random_shape(family, seed)
    offset = torch.tensor(np.random.default_rng(seed).standard_normal(3))
    log_time, step = torch.linspace(-1.5, 3.5, 41, dtype=torch.float64), 1e-5
    log_hazard, log_rate, _, _ = curves(family, time_scale, shape, offset, log_time)
    up, down = (curves(family, time_scale, shape, offset, log_time + d) for d in (step, -step))
    known = (log_hazard < 20) & (log_hazard > -20)  # beyond, the exponential is its tangent, or H is rounding
    rate = (up[3] - down[3]) / (2 * step)  # dH / dlog t = t h
    torch.testing.assert_close(log_rate.exp().expand_as(rate)[known], rate[known], rtol=1e-5, atol=1e-9)
    relative = (up[0] - down[0]) / (2 * step)
    slope = (log_rate - log_hazard).exp()
    torch.testing.assert_close(slope[known], relative[known], rtol=1e-5, atol=1e-6)
    assert known.any()


@few
@given(seed=seeds)
def test_pullback_is_autograd_and_the_difference_quotient(family, sample, seed):
    time_scale, shape = sample.time_scale(family), random_shape(family, seed)
    features = family.time_features(sample.log_time, time_scale)
    g_value, g_slope = torch.tensor(np.random.default_rng(seed + 1).standard_normal((2, 3, 120)))

    def scalar(at):
        value, log_slope = family.baseline(at, features)
        return (g_value * value + g_slope * log_slope).sum((-2, -1))

    found = family.baseline_pullback(shape, features, g_value, g_slope)
    assert found.shape == shape.shape
    torch.testing.assert_close(found, LeafFamily.baseline_pullback(family, shape, features, g_value, g_slope))
    steps = 1e-6 * torch.eye(shape.numel(), dtype=torch.float64).view(shape.numel(), *shape.shape)
    difference = (scalar(shape + steps) - scalar(shape - steps)) / 2e-6
    torch.testing.assert_close(found.flatten(), difference, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("where", ["at the start", "far up", "far down"])
def test_pullback_holds_at_the_initial_shape_and_far_from_it(family, sample, where):
    time_scale = sample.time_scale(family)
    features = family.time_features(sample.log_time, time_scale)
    shape = family.initial_shape(time_scale)[None] + {"at the start": 0.0, "far up": 50.0, "far down": -50.0}[where]
    g_value, g_slope = torch.tensor(np.random.default_rng(0).standard_normal((2, 1, 120)))
    found = family.baseline_pullback(shape, features, g_value, g_slope)
    torch.testing.assert_close(found, LeafFamily.baseline_pullback(family, shape, features, g_value, g_slope))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@few
@given(
    shape=st.lists(st.floats(-LARGEST_PARAMETER, LARGEST_PARAMETER), min_size=6, max_size=6),
    offset=st.floats(-LARGEST_PREDICTOR, LARGEST_PREDICTOR),
    time=st.floats(1e-300, 1e300),
    event=st.booleans(),
    one_time=st.booleans(),
)
def test_loss_and_gradients_are_finite_for_any_finite_parameters(
    family, sample, dtype, shape, offset, time, event, one_time
):
    log_time = torch.full((20,), 2.0, dtype=torch.float64) if one_time else sample.log_time
    time_scale = family.fit_time_scale(log_time, torch.ones(len(log_time), dtype=torch.bool))
    at = torch.tensor([math.log(time), 0.0, 2.0], dtype=torch.float64)
    features = family.time_features(at, time_scale).to(dtype)
    leaf = torch.tensor(shape[: family.n_shape], dtype=dtype)[None]
    value, log_slope = family.baseline(leaf, features)
    z = value + torch.tensor(offset, dtype=dtype)
    loss, slopes = right_censored_loss(family.link, z, log_slope, torch.tensor(float(event), dtype=dtype))
    gradient = family.baseline_pullback(leaf, features, slopes.at_time, slopes.log_slope.expand_as(z).contiguous())
    for tensor in (features, z, log_slope, loss, slopes.at_time, gradient):
        assert torch.isfinite(tensor).all()


def test_single_precision_agrees_with_double(family, sample):
    time_scale, shape = sample.time_scale(family), random_shape(family, 5)
    features = family.time_features(sample.log_time, time_scale)
    double, single = family.baseline(shape, features), family.baseline(shape.float(), features.float())
    for wide, narrow in zip(double, single, strict=True):
        torch.testing.assert_close(narrow.double(), wide, rtol=1e-4, atol=1e-4)


def test_clock_follows_the_unit_of_time(family, sample):
    time_scale = sample.time_scale(family)
    days = family.fit_time_scale(sample.log_time + math.log(365.25), sample.event)
    assert time_scale.shape == (family.n_time_scale,)
    torch.testing.assert_close(days[1:], time_scale[1:])
    torch.testing.assert_close(days[0] - time_scale[0], torch.tensor(math.log(365.25), dtype=torch.float64))


@pytest.mark.parametrize("events", ["none", "one", "tied"])
def test_clock_is_usable_without_spread(family, sample, events):
    event = torch.zeros(120, dtype=torch.bool)
    log_time = sample.log_time.clone()
    if events != "none":
        event[: 1 if events == "one" else 30] = True
        log_time[:30] = 1.7
    time_scale = family.fit_time_scale(log_time, event)
    assert torch.isfinite(time_scale).all()
    assert time_scale[1] > 0
    value, log_slope = family.baseline(random_shape(family, 1), family.time_features(log_time, time_scale))
    assert torch.isfinite(value).all()
    assert torch.isfinite(log_slope).all()


def test_settings_rebuild_the_family(family, sample):
    twin = get_family(family.name, **family.settings())
    assert type(twin) is type(family)
    assert (twin.n_shape, twin.n_time_scale) == (family.n_shape, family.n_time_scale)
    torch.testing.assert_close(twin.fit_time_scale(sample.log_time, sample.event), sample.time_scale(family))
    assert get_family(family) is family


def test_registry_names_what_it_knows(family):
    assert family.name in family_names()
    with pytest.raises(InvalidParameterError, match=r"leaf must be one of .*weibull.*got 'weibul'"):
        get_family("weibul")


def test_a_family_needs_a_name():
    class Nameless(LeafFamily):
        pass

    with pytest.raises(InvalidParameterError, match="needs a class attribute name"):
        register_family(Nameless)


def test_settings_that_a_family_does_not_take_are_named():
    with pytest.raises(InvalidParameterError, match="weibull takes no setting n_knots"):
        get_family("weibull", n_knots=3)
