"""Objectives that are weighted sums of the statistics of a leaf: errors of either kind, shares of groups, rewards."""

from __future__ import annotations

from softsurv.exact.jit import INNER
from softsurv.exact.objectives import label_costs
from softsurv.exact.vector_task import LeafRule, objectives
from softsurv.kernel_cache import njit


@njit(**(INNER | {"cache": False}))
def weighted_sums(sums, weights, out):
    """weights[l, d] . sums for every label l and objective d."""
    for label in range(weights.shape[0]):
        for d in range(weights.shape[1]):
            total = 0.0
            for k in range(weights.shape[2]):
                total += weights[label, d, k] * sums[k]
            out[label, d] = total


LINEAR = LeafRule(label_costs.TASK, weighted_sums)
"""Objectives that are weighted sums of the statistics."""

ERRORS = objectives(LINEAR, [[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]])
"""False negatives and false positives, from the weight of the negatives and of the positives of a leaf."""
