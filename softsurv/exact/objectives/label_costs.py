"""Leaves that choose one of L labels: each row states what every label would cost it.

Statistics: one column per label, the cost of giving the row that label (>= 0). A leaf takes the cheapest label. So
misclassification under any weights, cost-sensitive trees (paper `streed`, section 5) and prescriptive policies
(treatments are labels, costs are lost rewards) are one task, compiled once for any number of labels.

Superadditive, as a minimum over labels of a sum over rows (`bounds.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.exact.jit import FAST
from softsurv.exact.task import Task
from softsurv.kernel_cache import njit


@njit(**FAST)
def leaf_costs(sums, n, out):
    """The least column sum."""
    for i in range(n):
        out[i] = min(sums[0, i], sums[1, i])
    for k in range(2, sums.shape[0]):
        for i in range(n):
            out[i] = min(out[i], sums[k, i])


TOLERANCE = 1e-12
"""Share of a leaf's costs by which sums of the same numbers in another order may differ."""

TASK = Task("label_costs", None, leaf_costs, linear=True)


def best_label(sums: FloatArray) -> IntArray:
    """Label of each leaf (L,) from its sums (L, K); the first of those that are equally cheap but for rounding."""
    rounding = TOLERANCE * np.abs(sums).max(axis=1, keepdims=True)
    return np.argmax(sums <= sums.min(axis=1, keepdims=True) + rounding, axis=1)


def misclassification(label: NDArray[np.integer], n_labels: int, weight: FloatArray | None = None) -> FloatArray:
    """Statistics (N, K) of classification: a row's weight in every column but that of its own class."""
    return from_matrix(label, 1.0 - np.eye(max(n_labels, 2)), weight)


def from_matrix(label: NDArray[np.integer], matrix: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Statistics (N, L) of cost-sensitive classification.

    Parameters
    ----------
    label : (N,) int
    matrix : (K, L)
        Cost of predicting label l for a row of class k.
    weight : (N,), optional
    """
    costs = matrix[label]
    return costs if weight is None else costs * weight[:, None]
