"""Links between the linear predictor z = s(log t) + a.x and the cumulative hazard H.

A link is H as a convex increasing function of z; with the slope of z in log time it gives the hazard,
``log h = log H'(z) + log ds/dlog t - log t``. Closed first and second derivatives keep training fast.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from softsurv.numerics import (
    log_softplus,
    normal_tail,
    safe_exp,
    safe_exp_slope,
)

_PROBIT_LEFT = -5.0
"""Below this Phi(z) < 3e-7, whose square is rounding."""


class Link(Protocol):
    """H(z), its first two derivatives, log H(z), and log H'(z) with its first two derivatives."""

    name: str

    def cumulative_hazard(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """H, H', H'' at z, elementwise."""
        ...

    def log_cumulative_hazard(self, z: Tensor) -> Tensor:
        """Log H at z, which keeps its order where H itself saturates."""
        ...

    def log_density(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log H'(z) and its first two derivatives, elementwise."""
        ...


class ProportionalHazards:
    """H = exp(z): covariates multiply the hazard."""

    name = "proportional_hazards"

    def cumulative_hazard(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        slope = safe_exp_slope(z)
        return safe_exp(z), slope, slope

    def log_cumulative_hazard(self, z: Tensor) -> Tensor:
        return z

    def log_density(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return z, torch.ones_like(z), torch.zeros_like(z)


class ProportionalOdds:
    """S = 1 / (1 + exp(z)): covariates multiply the odds of the event."""

    name = "proportional_odds"

    def cumulative_hazard(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        p = torch.sigmoid(z)
        return -logsigmoid(-z), p, p * (1 - p)  # softplus; torch's own returns z itself above 20

    def log_cumulative_hazard(self, z: Tensor) -> Tensor:
        return log_softplus(z)

    def log_density(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        p = torch.sigmoid(z)
        return logsigmoid(z), 1 - p, -p * (1 - p)


class Probit:
    """S = Phi(-z): normal errors of log time."""

    name = "probit"

    def cumulative_hazard(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        log_tail, _, mills, excess = normal_tail(z)
        return -log_tail, mills, mills * excess

    def log_cumulative_hazard(self, z: Tensor) -> Tensor:
        middle = z.clamp(min=_PROBIT_LEFT)
        # with q = Phi(z): log H = log(-log(1 - q)) = log q + q/2 + O(q^2), and log q holds to any depth
        left = torch.special.log_ndtr(z) + 0.5 * torch.special.ndtr(z)
        return torch.where(z < _PROBIT_LEFT, left, torch.log(-torch.special.log_ndtr(-middle)))

    def log_density(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        _, log_mills, mills, excess = normal_tail(z)
        return log_mills, excess, mills * excess - 1


PROPORTIONAL_HAZARDS = ProportionalHazards()
PROPORTIONAL_ODDS = ProportionalOdds()
PROBIT = Probit()
