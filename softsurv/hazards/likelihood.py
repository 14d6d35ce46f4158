"""Negative log-likelihood of observations under a link, with its slopes, elementwise.

Right censoring: ``H - c log h`` (paper `sst`, eq. 2), less the constants c (log t + log s). Left truncation
subtracts H at entry. An event known to lie in (t, u] gives ``H(t) - log(1 - exp(H(t) - H(u)))``; left
censoring is the case H(t) = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from softsurv.clamps import EXP_LIMIT
from softsurv.hazards.links import Link, Probit, ProportionalHazards, ProportionalOdds
from softsurv.numerics import log1mexp, log_mean_decay

MIN_LOG_RATIO = 1e-12
"""Least log H(u) - log H(t) of an interval: below it rounding, not the model, decides the difference."""


@dataclass(frozen=True)
class Slopes:
    """Derivatives of the loss with respect to z at each kind of time, and to the log slope; (..., N)."""

    at_time: Tensor
    log_slope: Tensor
    at_entry: Tensor | None = None
    at_upper: Tensor | None = None


def right_censored_loss(
    link: Link,
    z: Tensor,  # (..., N)
    log_slope: Tensor,  # (..., N), finite
    event: Tensor,  # (..., N) 0 or 1
) -> tuple[Tensor, Slopes]:
    """``H - c (log H' + log slope)`` and its derivatives, with few slow functions for the common links."""
    if isinstance(link, ProportionalHazards):
        low = z.clamp(max=EXP_LIMIT)
        slope = low.exp()
        hazard = torch.addcmul(slope, slope, z - low)
        return torch.addcmul(hazard, event, z + log_slope, value=-1), Slopes(slope - event, -event)
    if isinstance(link, ProportionalOdds):
        hazard = softplus(z, threshold=40.0)
        loss, minus = torch.addcmul(hazard, event, hazard - (z + log_slope)), -event
        return loss, Slopes(torch.addcmul(minus, 1 + event, torch.sigmoid(z)), minus)
    if isinstance(link, Probit):
        return _normal_loss(z, log_slope, event)
    hazard, slope, _ = link.cumulative_hazard(z)
    density, density_slope, _ = link.log_density(z)
    return hazard - event * (density + log_slope), Slopes(slope - event * density_slope, -event)


def right_censored_curvature(link: Link, z: Tensor, event: Tensor, slopes: Slopes) -> Tensor:
    """Second derivative of `right_censored_loss` over z, from its slopes: at least 0."""
    if isinstance(link, ProportionalHazards):
        return slopes.at_time + event
    if isinstance(link, ProportionalOdds):
        hazard = slopes.at_time + event  # (1 + c) p, whose slope is (1 + c) p (1 - p)
        return torch.addcmul(hazard, hazard, hazard / (1 + event), value=-1)
    if isinstance(link, Probit):
        return event + (slopes.at_time * (slopes.at_time - z)).clamp(0, 1)  # at_time of events is z
    return (link.cumulative_hazard(z)[2] - event * link.log_density(z)[2]).clamp(min=0)


def _normal_loss(z: Tensor, log_slope: Tensor, event: Tensor) -> tuple[Tensor, Slopes]:
    """``-log Phi(-z)`` of censored rows, ``z^2 / 2 + log(2 pi) / 2 - log slope`` of events, and the slopes.

    All come from one value of erfcx. With E = erfcx(|z| / sqrt 2) and e = exp(-z^2 / 2), twice Phi(-z) is E e where
    z >= 0 and 2 - E e where z < 0.
    """
    size = z.abs()
    scaled = torch.special.erfcx(size * math.sqrt(0.5))
    bell = (size * size * -0.5).exp()
    left = z < 0
    twice = torch.where(left, 2 - scaled * bell, scaled)  # 2 Phi(-z), for z >= 0 without the factor e
    mills = torch.where(left, bell, 1.0) / twice * math.sqrt(2 / math.pi)
    happened = event > 0
    root = torch.where(happened, z, z.clamp(min=0))
    rest = torch.where(happened, 0.5 * math.log(2 * math.pi) - log_slope, math.log(2) - twice.log())
    return torch.addcmul(rest, root, root, value=0.5), Slopes(torch.where(happened, z, mills), -event)


def general_loss(
    link: Link,
    z: Tensor,  # (..., N) at the observed time; ignored where that time is 0
    log_slope: Tensor,  # (..., N)
    event: Tensor,  # (..., N) 0 or 1
    *,
    started: Tensor,  # (..., N) bool: time > 0, so that H(time) is not 0 by definition
    z_entry: Tensor | None,  # (..., N)
    truncated: Tensor | None,  # (..., N) bool: entry > 0
    z_upper: Tensor | None,  # (..., N)
    interval: Tensor | None,  # (..., N) bool: the event lies in (time, upper]
) -> tuple[Tensor, Slopes]:
    """Loss with left truncation and interval or left censoring, and its slopes."""
    loss, slopes = right_censored_loss(link, z, log_slope, event)
    at_time, at_upper, at_entry = slopes.at_time, None, None
    zero = torch.zeros((), dtype=z.dtype, device=z.device)
    if z_upper is not None and interval is not None:
        within, by_time, by_upper = _interval_loss(link, z, z_upper, started)
        loss = torch.where(interval, within, loss)
        at_time = torch.where(interval, by_time, at_time)
        at_upper = torch.where(interval, by_upper, zero)
    if z_entry is not None and truncated is not None:
        survived, survived_slope, _ = link.cumulative_hazard(z_entry)
        loss = loss - torch.where(truncated, survived, zero)
        at_entry = torch.where(truncated, -survived_slope, zero)
    return loss, Slopes(at_time, slopes.log_slope, at_entry, at_upper)


def _interval_loss(
    link: Link,
    z: Tensor,  # (..., N)
    z_upper: Tensor,  # (..., N)
    started: Tensor,  # (..., N) bool
) -> tuple[Tensor, Tensor, Tensor]:
    """``H(t) - log(1 - exp(-rise))`` with ``rise = H(u) - H(t)``, and its derivatives by z at t and at u.

    The rise is computed from log H, so that the loss is right far in the left tail too, where H underflows.
    """
    zero = torch.zeros((), dtype=z.dtype, device=z.device)
    low, low_slope, _ = link.cumulative_hazard(z)
    low, low_slope = torch.where(started, low, zero), torch.where(started, low_slope, zero)
    high, _, _ = link.cumulative_hazard(z_upper)
    log_high = link.log_cumulative_hazard(z_upper)
    log_ratio = (log_high - link.log_cumulative_hazard(z)).clamp(min=MIN_LOG_RATIO)
    log_rise = log_high + torch.where(started, log1mexp(log_ratio), zero)
    small = log_rise < 0
    rise = torch.where(small, log_rise.clamp(max=0).exp(), (high - low).clamp(min=1))
    log_death = torch.where(small, log_rise + log_mean_decay(rise), log1mexp(rise))
    decay = torch.exp(-rise - log_mean_decay(rise))  # rise / (exp(rise) - 1)

    def pull(at: Tensor) -> Tensor:  # H'(z) / rise, bounded so that rounding far out cannot overflow
        return decay * (link.log_density(at)[0] - log_rise).clamp(max=2 * EXP_LIMIT).exp()

    by_time = torch.where(started, low_slope + pull(z), zero)
    return low - log_death, by_time, -pull(z_upper)
