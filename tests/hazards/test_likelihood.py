"""Losses of observed, censored, truncated and interval rows against logarithms of probabilities and differences."""

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv.hazards.likelihood import general_loss, right_censored_loss
from softsurv.hazards.links import PROBIT, PROPORTIONAL_HAZARDS, PROPORTIONAL_ODDS

LINKS = [PROPORTIONAL_HAZARDS, PROPORTIONAL_ODDS, PROBIT]
links = pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)


def exact_survival(link, z):
    z = mpmath.mpf(z)
    if link is PROPORTIONAL_HAZARDS:
        return mpmath.exp(-mpmath.exp(z))
    return 1 / (1 + mpmath.exp(z)) if link is PROPORTIONAL_ODDS else mpmath.erfc(z / mpmath.sqrt(2)) / 2


def row(link, kind, z, *, log_slope=0.3, z_entry=None, z_upper=None, started=True, dtype=torch.float64):
    """Loss and slopes of one row of a kind: event, censored or interval."""

    def tensor(value):
        return None if value is None else torch.tensor([float(value)], dtype=dtype)

    def flag(value):
        return torch.tensor([value])

    return general_loss(
        link,
        tensor(z),
        tensor(log_slope),
        tensor(kind == "event"),
        started=flag(started),
        z_entry=tensor(z_entry),
        truncated=flag(z_entry is not None),
        z_upper=tensor(z if z_upper is None else z_upper),
        interval=flag(kind == "interval"),
    )


@links
def test_event_and_censored_rows_are_log_density_and_log_survival(link):
    for z in (-3.0, 0.2, 4.0):
        event, _ = row(link, "event", z)
        censored, _ = row(link, "censored", z)
        with mpmath.workdps(40):
            density = -mpmath.diff(lambda v: exact_survival(link, v), z) * mpmath.exp(0.3)
            expected = [float(-mpmath.log(density)), float(-mpmath.log(exact_survival(link, z)))]
        np.testing.assert_allclose([event.item(), censored.item()], expected, rtol=1e-12)


@links
def test_general_loss_without_extras_is_the_right_censored_loss(link):
    z, slope, event = torch.randn(3, 50, dtype=torch.float64)
    event = (event > 0).double()
    plain, plain_slopes = right_censored_loss(link, z, slope, event)
    general, slopes = general_loss(
        link, z, slope, event, started=event > -1, z_entry=None, truncated=None, z_upper=None, interval=None
    )
    torch.testing.assert_close(general, plain)
    torch.testing.assert_close(slopes.at_time, plain_slopes.at_time)


@links
@pytest.mark.parametrize(
    ("z", "width"), [(-60.0, 1.0), (-45.0, 1e-3), (-12.0, 5.0), (-1.0, 0.5), (1.0, 1e-5), (3.0, 2.0)]
)
def test_interval_rows_are_the_log_probability_of_the_interval(link, z, width):
    with mpmath.workdps(2500):
        rise = exact_survival(link, z) - exact_survival(link, z + width)
        expected = float(-mpmath.log(rise))
    loss, _ = row(link, "interval", z, z_upper=z + width)
    np.testing.assert_allclose(loss.item(), expected, rtol=1e-9)


@links
@pytest.mark.parametrize("z_upper", [-60.0, -25.0, -1.0, 3.0])
def test_left_censored_rows_are_the_log_probability_of_the_past(link, z_upper):
    with mpmath.workdps(2500):
        expected = float(-mpmath.log(1 - exact_survival(link, z_upper)))
    loss, slopes = row(link, "interval", 0.0, z_upper=z_upper, started=False)
    np.testing.assert_allclose(loss.item(), expected, rtol=1e-10, atol=1e-14)
    assert slopes.at_time.item() == 0


@links
def test_left_truncation_takes_off_the_hazard_at_entry(link):
    for kind in ("event", "censored", "interval"):
        late, slopes = row(link, kind, 0.5, z_upper=1.0, z_entry=-0.7)
        whole, _ = row(link, kind, 0.5, z_upper=1.0)
        hazard, slope, _ = link.cumulative_hazard(torch.tensor([-0.7], dtype=torch.float64))
        torch.testing.assert_close(late, whole - hazard)
        torch.testing.assert_close(slopes.at_entry, -slope)


@links
@pytest.mark.parametrize("kind", ["event", "censored", "interval", "past"])
@given(z=st.floats(-12, 8), width=st.floats(0.01, 4), before=st.floats(0.01, 4), log_slope=st.floats(-3, 3))
@settings(max_examples=20, deadline=None)
def test_slopes_match_finite_differences(link, kind, z, width, before, log_slope):
    started = kind != "past"
    kind = "interval" if kind == "past" else kind

    def loss(at, upper, entry, slope):
        extras = {"z_entry": entry, "z_upper": upper} if started else {"z_upper": upper}
        return row(link, kind, at, log_slope=slope, started=started, **extras)

    point = np.array([z, z + width, z - before, log_slope])
    value, slopes = loss(*point)
    found = [slopes.at_time, slopes.at_upper, slopes.at_entry, slopes.log_slope]
    for k, slope in enumerate(found):
        step = np.zeros(4)
        step[k] = 1e-6
        difference = (loss(*(point + step))[0] - loss(*(point - step))[0]).item() / 2e-6
        slope = 0.0 if slope is None else slope.item()
        assert slope == pytest.approx(difference, rel=1e-4, abs=1e-8 * abs(value.item()) + 1e-6)


@links
@pytest.mark.parametrize("kind", ["event", "censored", "interval", "past"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@given(
    z=st.floats(-1e12, 1e12),
    width=st.floats(0, 1e12),
    before=st.floats(0, 1e12),
    log_slope=st.floats(-100, 100),
)
@settings(max_examples=30, deadline=None)
def test_loss_and_slopes_are_finite_for_any_predictor(link, kind, dtype, z, width, before, log_slope):
    started = kind != "past"
    kind = "interval" if kind == "past" else kind
    loss, slopes = row(
        link, kind, z, log_slope=log_slope, z_upper=z + width, z_entry=z - before, started=started, dtype=dtype
    )
    assert torch.isfinite(loss).all()
    for slope in (slopes.at_time, slopes.at_upper, slopes.at_entry, slopes.log_slope):
        assert torch.isfinite(slope).all()
