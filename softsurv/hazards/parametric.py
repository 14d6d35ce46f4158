"""Parametric leaf families (paper `sst`, Table 1), and two more of the field's standards.

With log mu linear in x: exponential and Weibull H = (t/mu)^a, log-logistic S = 1/(1 + (t/mu)^a), log-normal
S = Phi(-(log t - log mu) a), Gompertz H proportional to (exp(g t) - 1)/g with g of either sign.
"""

from __future__ import annotations

import torch
from torch import Tensor

from softsurv.clamps import LOG_SHAPE_LIMIT
from softsurv.hazards.base import LeafFamily, LinearBaseline, standardise
from softsurv.hazards.links import PROBIT, PROPORTIONAL_HAZARDS, PROPORTIONAL_ODDS, Link
from softsurv.numerics import log_mean_decay, log_mean_decay_slope

LOG_TAU_LIMIT = 40.0
"""A Gompertz leaf takes no time above e^40 = 2e17 geometric mean event times, so that its gradients stay finite."""


class Exponential(LeafFamily):
    """Constant hazard: log H = log t - m + a0 + a.x, where m is the mean of the uncensored log times."""

    name = "exponential"
    link: Link = PROPORTIONAL_HAZARDS
    n_shape = 0

    def time_features(self, log_time: Tensor, time_scale: Tensor) -> Tensor:
        rise = standardise(log_time, time_scale) * time_scale[..., 1:2]
        return torch.stack([rise, time_scale[..., 1:2].log().expand_as(rise)], -2)

    def baseline(self, shape: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        target = torch.broadcast_shapes(shape.shape[:-2], features.shape[:-2])
        size = (*target, shape.shape[-2], features.shape[-1])
        return features[..., 0:1, :].expand(size), features[..., 1:2, :].expand(size)


class _LogLinear(LinearBaseline):
    """Baseline exp(shape) y, linear in log time."""

    n_shape = 1

    def time_features(self, log_time: Tensor, time_scale: Tensor) -> Tensor:
        y = standardise(log_time, time_scale)
        return torch.stack([y, torch.ones_like(y)], -2)

    def baseline(self, shape: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        log_slope = shape.clamp(-LOG_SHAPE_LIMIT, LOG_SHAPE_LIMIT)
        value = log_slope.exp() * features[..., :1, :]
        return value, log_slope.expand_as(value)

    def predictor(self, offset: Tensor, shape: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        log_slope = shape.clamp(-LOG_SHAPE_LIMIT, LOG_SHAPE_LIMIT)
        return torch.addcmul(offset, log_slope.exp(), features[..., :1, :]), log_slope


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

    def time_features(self, log_time: Tensor, time_scale: Tensor) -> Tensor:
        log_tau = (log_time - time_scale[..., 0:1]).clamp(max=LOG_TAU_LIMIT)
        return torch.stack([log_tau, log_tau.exp(), time_scale[..., 1:2].log().expand_as(log_tau)], -2)

    def baseline(self, shape: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        log_tau, tau, log_scale = (features[..., k : k + 1, :] for k in range(3))
        x = shape * tau
        up = torch.where(x < 0, 0.0, x)  # not abs and clamp, whose slopes at 0 would break autograd there
        decay = log_mean_decay(torch.where(x < 0, -x, x))
        return log_tau + up + decay, log_scale + x - up - decay

    def baseline_pullback(self, shape: Tensor, features: Tensor, grad_value: Tensor, grad_log_slope: Tensor) -> Tensor:
        tau = features[..., 1:2, :]
        x = shape * tau
        slope = log_mean_decay_slope(x.abs())
        by_value = torch.where(x < 0, -slope, 1 + slope)
        return ((grad_value * by_value + grad_log_slope * (1 - by_value)) * tau).sum(-1, keepdim=True)
