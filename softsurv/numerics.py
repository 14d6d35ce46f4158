"""Safe elementwise forms: finite values and gradients for every finite argument."""

from __future__ import annotations

import math

import torch
from torch import Tensor

EXP_LIMIT = 30.0
"""Above this the exponential goes on as its tangent: e^30 = 1e13 cumulative hazard is past any data."""

LOG_SHAPE_LIMIT = 20.0
"""Log shapes are clamped to +-20: a slope of 5e8 in standardised log time is a step function already."""

_LOG_SQRT_TAU = 0.5 * math.log(2 * math.pi)


def safe_exp(z: Tensor) -> Tensor:
    """``exp(z)``, continued by its tangent above :data:`EXP_LIMIT`."""
    low = z.clamp(max=EXP_LIMIT)
    return low.exp() * (1 + (z - low))


def safe_exp_slope(z: Tensor) -> Tensor:
    """Derivative of :func:`safe_exp`."""
    return z.clamp(max=EXP_LIMIT).exp()


def log1mexp(x: Tensor) -> Tensor:
    """``log(1 - exp(-x))`` for x > 0, exact at both ends (Maechler 2012)."""
    small = x < math.log(2)
    near = torch.where(small, x, torch.ones_like(x))
    far = torch.where(small, torch.ones_like(x), x)
    return torch.where(small, torch.log(-torch.expm1(-near)), torch.log1p(-torch.exp(-far)))


def log_softplus(z: Tensor) -> Tensor:
    """``log(log(1 + exp(z)))``, which is z itself far to the left."""
    middle = z.clamp(min=-EXP_LIMIT)
    return torch.where(z < -EXP_LIMIT, z, torch.log(torch.nn.functional.softplus(middle)))


def mills_ratio(z: Tensor) -> Tensor:
    """Normal hazard ``phi(z) / Phi(-z)``, from the scaled complementary error function."""
    return math.sqrt(2 / math.pi) / torch.special.erfcx(z.clamp(min=-EXP_LIMIT) / math.sqrt(2))


def log_mills_ratio(z: Tensor) -> Tensor:
    """Logarithm of :func:`mills_ratio`; left of -30 it is the normal log density itself."""
    middle = z.clamp(min=-EXP_LIMIT)
    left = -0.5 * z * z - _LOG_SQRT_TAU
    return torch.where(z < -EXP_LIMIT, left, torch.log(mills_ratio(middle)))
