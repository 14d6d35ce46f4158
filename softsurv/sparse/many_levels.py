"""Categories of hundreds of levels: no rule asks for them, and their effects are shrunk.

A rule that lists a hundred levels cannot be read, and to order so many levels by the corrections of their rows fits
noise. In the leaves each level has a slope of its own, estimated from few rows. The usual ridge leaves such slopes
nearly free. Here the ridge grows with the number of levels, as if the levels were drawn from a population of effects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch

from softsurv.arrays import FloatArray
from softsurv.data.encoding import OutputColumn
from softsurv.data.survival_data import SurvivalData
from softsurv.sparse.causes import Models

MANY = 100
"""A category with more levels than this has many levels."""

FREE = 5.0
"""The ridge of such a category's slopes is the usual one times its levels over this number."""


def of_many_levels(columns: Sequence[OutputColumn]) -> set[str]:
    """Names of the categories of more than :data:`MANY` levels."""
    levels = Counter(column.source for column in columns if column.kind == "level")
    return {source for source, count in levels.items() if count > MANY}


def level_scale(columns: Sequence[OutputColumn]) -> FloatArray:
    """Factor of each encoded column, (P,): a column made smaller has a larger coefficient, hence a stronger ridge."""
    levels = Counter(column.source for column in columns)
    many = of_many_levels(columns)
    return np.array([(FREE / levels[c.source]) ** 0.5 if c.source in many else 1.0 for c in columns])


def shrunk(data: SurvivalData, scale: FloatArray) -> SurvivalData:
    """The data with the columns of many levels made smaller; the data themselves where there are none."""
    return data if (scale == 1).all() else data.with_features(data.X * scale)


def in_data_units(models: Models, scale: FloatArray) -> Models:
    """The models (M, 1 + L, Q + K) turned into models for the columns without these factors."""
    if (scale == 1).all():
        return models
    slopes = torch.as_tensor(scale)
    return tuple(torch.cat([m[..., :1], m[..., 1 : 1 + len(scale)] * slopes.to(m), m[..., 1 + len(scale) :]], -1)
                 for m in models)  # fmt: skip


def covariance_in_data_units(covariance: FloatArray | None, scale: FloatArray) -> FloatArray | None:
    """The covariance (L, Q + K, Q + K) of the models of `in_data_units`."""
    if covariance is None:
        return None
    size = np.ones(covariance.shape[-1])
    size[1 : 1 + len(scale)] = scale
    return covariance * size * size[:, None]
