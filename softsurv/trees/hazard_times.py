"""When cumulative hazards reach a level: quantiles of smooth survival curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray
from softsurv.roots import rising_root
from softsurv.trees.incidence import LARGEST_LOG_HAZARD

RESOLUTION = 2e-13
"""Of log time: how far behind its crossing a quantile may lie. Neighbours among floats of this size differ by 1e-13."""

HALF = 0.5
"""Probability of an event up to which the hazard of a mixture is taken from it; above, from the survival."""


def time_of_root(above: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray) -> FloatArray:
    """Smallest times, (N,), at which rising functions of log time are >= 0; inf where they are below 0 at ``high``.

    A time that no float holds is inf or 0.
    """
    found, reached = rising_root(above, low, high, RESOLUTION)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(reached, np.exp(found), np.inf)


def above_level(log_hazard: FloatArray, level: FloatArray) -> FloatArray:
    """Difference of two logs of cumulative hazards, (N,), either of which may be infinite."""
    limits = -LARGEST_LOG_HAZARD, LARGEST_LOG_HAZARD
    return np.asarray(np.clip(log_hazard, *limits) - np.clip(level, *limits))


def log_hazard_of_mixture(hazards: Iterable[Tensor], shares: Iterable[Tensor]) -> Tensor:
    """Log of -log(sum of share exp(-hazard)), from a hazard (...) and a share (...) of each leaf; shares sum to one.

    Exact where hardly any have died as well as where hardly any are left.
    """
    died, log_alive = torch.zeros(()), torch.tensor(-torch.inf)
    for hazard, share in zip(hazards, shares, strict=True):
        died = died - share * torch.expm1(-hazard)
        log_alive = torch.logaddexp(log_alive.to(hazard), share.log() - hazard)
    return torch.where(died < HALF, -torch.log1p(-died.clamp(max=HALF)), -log_alive).log()
