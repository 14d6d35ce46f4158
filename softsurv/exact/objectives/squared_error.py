"""Squared error of a regression tree with constant leaves (paper `streed`, section 5)."""

from __future__ import annotations

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.exact.jit import FAST
from softsurv.exact.task import Task
from softsurv.kernel_cache import njit


@njit(**FAST)
def leaf_costs(sums, n, out):
    """-(sum of w y)^2 / (sum of w): the squared error less the sum of w y^2, which no split changes."""
    for i in range(n):
        weight = sums[0, i] if sums[0, i] > 0.0 else 1.0
        out[i] = -sums[1, i] * sums[1, i] / weight


TASK = Task("squared_error", 2, leaf_costs)


def statistics(y: FloatArray, weight: FloatArray) -> FloatArray:
    """Columns w and w y, (N, 2); take a ``y`` centred at its mean, so that squares stay small."""
    return np.column_stack([weight, weight * y])


def offset(y: FloatArray, weight: FloatArray) -> FloatArray:
    """w y^2 of each row, (N,): what makes the leaf cost the squared error."""
    return weight * y**2


def best_value(sums: FloatArray) -> FloatArray:
    """Mean of each leaf (L,) from its sums (L, 2)."""
    return sums[:, 1] / np.where(sums[:, 0] > 0, sums[:, 0], 1.0)
