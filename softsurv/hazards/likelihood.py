"""Negative log-likelihood of observations under a link, with its slopes, elementwise.

Right censoring: ``H - c log h`` (paper `sst`, eq. 2), less the constants c (log t + log s). Left truncation
subtracts H at entry. An event known to lie in (t, u] gives ``H(t) - log(1 - exp(H(t) - H(u)))``; left
censoring is the case H(t) = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from softsurv.hazards.base import MIN_INTERVAL_HAZARD
from softsurv.hazards.links import Link, ProportionalHazards, ProportionalOdds
from softsurv.numerics import EXP_LIMIT, log1mexp


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
    """``H - c (log H' + log slope)`` and its slopes; one exponential per element for the common links."""
    if isinstance(link, ProportionalHazards):
        low = z.clamp(max=EXP_LIMIT)
        slope = low.exp()
        loss = slope * (1 + (z - low)) - event * (z + log_slope)
        return loss, Slopes(slope - event, -event)
    if isinstance(link, ProportionalOdds):
        odds = torch.exp(-z.abs())
        p = torch.where(z >= 0, 1 / (1 + odds), odds / (1 + odds))
        hazard = torch.log1p(odds) + z.clamp(min=0)
        loss = (1 + event) * hazard - event * (z + log_slope)
        return loss, Slopes((1 + event) * p - event, -event)
    hazard, slope, _ = link.cumulative_hazard(z)
    density, density_slope, _ = link.log_density(z)
    return hazard - event * (density + log_slope), Slopes(slope - event * density_slope, -event)


def general_loss(
    link: Link,
    z: Tensor,  # (..., N) at the observed time; ignored where it is 0
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
        low, low_slope, _ = link.cumulative_hazard(z)
        low, low_slope = torch.where(started, low, zero), torch.where(started, low_slope, zero)
        high, high_slope, _ = link.cumulative_hazard(z_upper)
        rise = (high - low).clamp(min=MIN_INTERVAL_HAZARD)
        inverse = 1 / torch.expm1(rise.clamp(max=500.0))
        loss = torch.where(interval, low - log1mexp(rise), loss)
        at_time = torch.where(interval, (1 + inverse) * low_slope, at_time)
        at_upper = torch.where(interval, -inverse * high_slope, zero)
    if z_entry is not None and truncated is not None:
        survived, survived_slope, _ = link.cumulative_hazard(z_entry)
        loss = loss - torch.where(truncated, survived, zero)
        at_entry = torch.where(truncated, -survived_slope, zero)
    return loss, Slopes(at_time, slopes.log_slope, at_entry, at_upper)
