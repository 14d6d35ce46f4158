"""Royston-Parmar leaves: a natural cubic spline of log time on the hazard or the odds scale.

Royston & Parmar (2002); paper `sst`, section 3.3.2. The spline is increasing by construction
(:mod:`softsurv.hazards.spline_basis`). The paper's power basis may decrease, and then rows have no likelihood.
"""

from __future__ import annotations

import torch
from torch import Tensor

from softsurv.errors import InvalidParameterError
from softsurv.hazards.base import LinearBaseline, standardise
from softsurv.hazards.links import PROPORTIONAL_HAZARDS, PROPORTIONAL_ODDS, Link
from softsurv.hazards.spline_basis import monotone_spline_basis

MIN_KNOT_GAP = 1e-3
"""Least distance of neighbouring knots, in standard deviations of log time, so that tied times do not make a jump."""


MAX_KNOTS = 99
"""Inner knots lie at whole centiles; there are no more of them."""


class _RoystonParmar(LinearBaseline):
    def __init__(self, n_knots: int = 2) -> None:
        if isinstance(n_knots, bool) or not isinstance(n_knots, int) or not 0 <= n_knots <= MAX_KNOTS:
            raise InvalidParameterError(f"n_knots must be an integer from 0 to {MAX_KNOTS}, got {n_knots!r}")
        self.n_knots = n_knots
        self.n_shape = n_knots + 1
        self.n_time_scale = 2 + n_knots + 2

    def settings(self) -> dict[str, int]:
        return {"n_knots": self.n_knots}

    def _extra_time_scale(self, reference: Tensor) -> Tensor:
        """Knots in standardised units: extremes and centiles of the uncensored log times (33rd, 67th for two)."""
        scale = reference.std(correction=0)
        scale = torch.where(scale > 1e-8, scale, torch.ones_like(scale))
        y = (reference - reference.mean()) / scale
        share = torch.linspace(0, 1, self.n_knots + 2, dtype=y.dtype, device=y.device)
        share[1:-1] = (share[1:-1] * 100).round() / 100  # whole centiles, as in Table 1 of Royston & Parmar
        knots = _quantiles(y, share)
        steps = torch.arange(self.n_knots + 2, dtype=y.dtype, device=y.device) * MIN_KNOT_GAP
        return torch.cummax(knots - steps, 0).values + steps

    def time_features(self, log_time: Tensor, time_scale: Tensor) -> Tensor:
        rise, slope = monotone_spline_basis(standardise(log_time, time_scale), time_scale[..., 2:])
        return torch.cat([rise, slope], -2)


def _quantiles(
    values: Tensor,  # (N,)
    share: Tensor,  # (Q,)
) -> Tensor:  # (Q,)
    """Quantiles as those of `torch.quantile`, which takes no more than 16 million values."""
    ordered, place = values.sort().values, share.double() * (len(values) - 1)
    below = place.floor()
    return torch.lerp(ordered[below.long()], ordered[place.ceil().long()], (place - below).to(values))


class SplineHazards(_RoystonParmar):
    """Proportional hazards: log H = spline(log t) + a.x."""

    name = "spline_ph"
    link: Link = PROPORTIONAL_HAZARDS


class SplineOdds(_RoystonParmar):
    """Proportional odds: log odds of the event = spline(log t) + a.x."""

    name = "spline_po"
    link: Link = PROPORTIONAL_ODDS
