"""Parametric leaf families (paper `sst`, Table 1), and two more of the field's standards.

With log mu linear in x: exponential and Weibull H = (t/mu)^a, log-logistic S = 1/(1 + (t/mu)^a), log-normal
S = Phi(-(log t - log mu) a), Gompertz H proportional to (exp(g t) - 1)/g with g of either sign.
"""

from __future__ import annotations

import torch
from torch import Tensor

from softsurv.hazards.base import LeafFamily, LinearBaseline, standardise
from softsurv.hazards.links import PROBIT, PROPORTIONAL_HAZARDS, PROPORTIONAL_ODDS, Link

GOMPERTZ_LIMIT = 500.0
"""Largest |g t|: e^500 is a finite double, and no hazard grows that much within the data."""


class Exponential(LeafFamily):
    """Constant hazard: log H = log t + a0 + a.x."""

    name = "exponential"
    link: Link = PROPORTIONAL_HAZARDS
    n_shape = 0

    def time_features(self, log_time: Tensor, clock: Tensor) -> Tensor:
        rise = standardise(log_time, clock) * clock[..., 1:2]
        return torch.stack([rise, clock[..., 1:2].log().expand_as(rise)], -2)

    def baseline(self, shape: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        target = torch.broadcast_shapes(shape.shape[:-2], features.shape[:-2])
        size = (*target, shape.shape[-2], features.shape[-1])
        return features[..., 0:1, :].expand(size), features[..., 1:2, :].expand(size)


class _LogLinear(LinearBaseline):
    """Baseline exp(shape) y, linear in log time."""

    n_shape = 1

    def time_features(self, log_time: Tensor, clock: Tensor) -> Tensor:
        y = standardise(log_time, clock)
        return torch.stack([y, torch.ones_like(y)], -2)


class Weibull(_LogLinear):
    """Proportional hazards, log H linear in log time."""

    name = "weibull"
    link: Link = PROPORTIONAL_HAZARDS


class LogLogistic(_LogLinear):
    """Proportional odds, log odds linear in log time."""

    name = "loglogistic"
    link: Link = PROPORTIONAL_ODDS


class LogNormal(_LogLinear):
    """Normal log times."""

    name = "lognormal"
    link: Link = PROBIT


class Gompertz(LeafFamily):
    """Hazard proportional to exp(g t); g is the shape, in units of 1 / exp(mean uncensored log time)."""

    name = "gompertz"
    link: Link = PROPORTIONAL_HAZARDS
    n_shape = 1

    def time_features(self, log_time: Tensor, clock: Tensor) -> Tensor:
        log_tau = log_time - clock[..., 0:1]
        return torch.stack([log_tau, log_tau.exp(), clock[..., 1:2].log().expand_as(log_tau)], -2)

    def baseline(self, shape: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        log_tau, tau, log_scale = (features[..., k : k + 1, :] for k in range(3))
        x = (shape * tau).clamp(-GOMPERTZ_LIMIT, GOMPERTZ_LIMIT)
        phi, _ = _log_mean_decay(x)
        return log_tau + x + phi, log_scale - phi

    def baseline_pullback(self, shape: Tensor, features: Tensor, grad_value: Tensor, grad_log_slope: Tensor) -> Tensor:
        tau = features[..., 1:2, :]
        x = shape * tau
        inside = x.abs() < GOMPERTZ_LIMIT
        _, slope = _log_mean_decay(x.clamp(-GOMPERTZ_LIMIT, GOMPERTZ_LIMIT))
        grad = (grad_value * (1 + slope) - grad_log_slope * slope) * tau
        return torch.where(inside, grad, torch.zeros_like(grad)).sum(-1, keepdim=True)


def _log_mean_decay(x: Tensor) -> tuple[Tensor, Tensor]:
    """``phi(x) = log((1 - exp(-x)) / x)`` and its derivative, smooth through 0; phi(-x) = x + phi(x)."""
    size = x.abs()
    tiny = size < 1e-4
    safe = torch.where(tiny, torch.ones_like(size), size)
    exact = torch.log(-torch.expm1(-safe) / safe)
    exact_slope = 1 / torch.expm1(safe) - 1 / safe
    value = torch.where(tiny, -size / 2 + size * size / 24, exact)
    slope = torch.where(tiny, -0.5 + size / 12, exact_slope)
    return torch.where(x < 0, size + value, value), torch.where(x < 0, -1 - slope, slope)
