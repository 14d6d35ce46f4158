"""Safe elementwise forms: finite values and gradients for every finite argument."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softsurv.clamps import EXP_LIMIT

if hasattr(os, "register_at_fork"):  # threads of the parent are not in a forked child, which would wait for them
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))

SQUARES_UP_TO = 1e150
"""Values up to here have finite squares and sums of squares."""

_SERIES_LIMIT = 0.03
"""Below this the power series of log_mean_decay is exact to rounding, and the closed form cancels."""

_MILLS_LIMIT = 50.0
"""Above this five terms of the asymptotic series are exact to rounding."""

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
    return torch.where(z < -EXP_LIMIT, z, torch.log(-torch.nn.functional.logsigmoid(-middle)))


def log_mean_decay(x: Tensor) -> Tensor:
    """``log((1 - exp(-x)) / x)`` for x >= 0, which is 0 at 0."""
    near, far = _split_at_series(x)
    series = near * (-0.5 + near * (1 / 24 - near * near / 2880))
    return torch.where(x < _SERIES_LIMIT, series, torch.log(-torch.expm1(-far) / far))


def log_mean_decay_slope(x: Tensor) -> Tensor:
    """Derivative of :func:`log_mean_decay`, ``1 / (exp(x) - 1) - 1 / x``, which is -1/2 at 0."""
    near, far = _split_at_series(x)
    series = -0.5 + near * (1 / 12 - near * near / 720)
    return torch.where(x < _SERIES_LIMIT, series, 1 / torch.expm1(far) - 1 / far)


def normal_tail(z: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``log Phi(-z)``, log Mills ratio, Mills ratio and its excess over z, with one slow function: erfcx at z >= 0."""
    left, right = z.clamp(max=0.0), z.clamp(min=0.0)
    scaled = torch.special.erfcx(right / math.sqrt(2))  # Phi(-z) = scaled / 2 exp(-z^2 / 2)
    below = 0.5 * torch.special.erfc(-left / math.sqrt(2))  # Phi(z), to any depth
    log_density = -0.5 * left * left - _LOG_SQRT_TAU
    log_tail = torch.where(z < 0, torch.log1p(-below), torch.log(0.5 * scaled) - 0.5 * right * right)
    mills = torch.where(z < 0, torch.exp(log_density) / (1 - below), math.sqrt(2 / math.pi) / scaled)
    log_mills = torch.where(z < 0, log_density - torch.log1p(-below), 0.5 * math.log(2 / math.pi) - torch.log(scaled))
    inverse = 1 / z.clamp(min=_MILLS_LIMIT)
    square = inverse * inverse  # beyond the limit the difference cancels: asymptotic series
    series = inverse * (1 - square * (2 - square * (10 - square * (74 - square * 706))))
    return log_tail, log_mills, mills, torch.where(z > _MILLS_LIMIT, series, mills - z)


def _split_at_series(x: Tensor) -> tuple[Tensor, Tensor]:
    """The argument for the power series and the one for the closed form, each kept in its own range."""
    return x.clamp(max=_SERIES_LIMIT), x.clamp(min=_SERIES_LIMIT)


def spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviation along the last axis, also where squares of the values overflow, or are 0 to rounding."""
    largest = np.abs(values).max(-1, initial=0.0, keepdims=True)
    extreme = (largest > SQUARES_UP_TO) | ((largest > 0) & (largest < 1 / SQUARES_UP_TO))
    if not extreme.any():
        return np.asarray(values.std(-1))
    scale = np.where(extreme, largest, 1.0)
    return np.asarray((values / scale).std(-1) * scale[..., 0])


def with_intercept(x: Tensor) -> Tensor:  # (..., N, P) -> (..., N, P + 1)
    """Features with a leading column of ones."""
    return torch.cat([torch.ones_like(x[..., :1]) if x.shape[-1] else x.new_ones(*x.shape[:-1], 1), x], -1)


@dataclass(frozen=True)
class Design:
    """Features with a leading column of ones, (..., N, P + 1), made once for rows that are asked for several times."""

    table: Tensor
    _copies: dict[tuple[torch.device, torch.dtype], Design] = field(default_factory=dict, repr=False, compare=False)

    def to(self, *where: Any) -> Design:
        """The same elsewhere, or as another type; a copy is made once."""
        like = self.table.new_empty(0).to(*where)
        kind = like.device, like.dtype
        if kind == (self.table.device, self.table.dtype):
            return self
        if kind not in self._copies:
            self._copies[kind] = Design(self.table.to(like))
        return self._copies[kind]
