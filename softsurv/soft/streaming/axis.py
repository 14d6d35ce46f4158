"""What all chunks of a table share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import BoolArray, FloatArray
from softsurv.hazards.base import LeafFamily


@dataclass(frozen=True)
class Axis:
    """What all chunks share: family, time scale, time that stands for 0, sum of the weights, number of rows."""

    family: LeafFamily
    time_scale: Tensor
    floor: float
    total: float
    n: int


def make_axis(family: LeafFamily, time: FloatArray, event: BoolArray, weight: FloatArray) -> Axis:
    """The time scale and the totals of all rows."""
    positive = time[time > 0]
    floor = float(positive.min()) / 2 if positive.size else 1.0
    log_time = torch.from_numpy(np.log(np.where(time > 0, time, floor)))
    time_scale = family.fit_time_scale(log_time, torch.from_numpy(event))
    return Axis(family, time_scale, floor, float(weight.sum()), len(time))
