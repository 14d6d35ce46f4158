"""Impurity of the classes in a leaf: Gini index, entropy, and the root of the Gini index.

Statistics: the weight of each class, (N, K). With n_k the weight of class k in a leaf and n = sum of n_k,

- Gini: n (1 - sum of (n_k / n)^2), the Brier score of the shares: the least sum over rows of |e_y - q|^2 for any q;
- entropy: sum of n_k log(n / n_k), the log loss of the shares: the least sum over rows of -log q_y for any q;
- root Gini: n sqrt(1 - sum of (n_k / n)^2), the root of n^2 - sum of n_k^2.

The first two are superadditive as minima over a label q of a sum over rows (`bounds.py`). So is the third: that form
has one positive eigenvalue, so its root is concave where the sums are >= 0, and so
f(A u B) = 2 f((A + B) / 2) >= f(A) + f(B).
"""

from __future__ import annotations

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.exact.jit import FAST
from softsurv.exact.kernels.log_ratio import log_ratio
from softsurv.exact.objectives.label_costs import best_label
from softsurv.exact.task import Task
from softsurv.kernel_cache import njit


@njit(**FAST)
def _weight_and_squares(sums, i):
    """Weight of leaf i, and the sum of squares of the weights of its classes."""
    weight, squares = 0.0, 0.0
    for k in range(sums.shape[0]):
        weight += sums[k, i]
        squares += sums[k, i] * sums[k, i]
    return weight, squares


@njit(**FAST)
def gini_costs(sums, n, out):
    """Weight less the sum of squares over the weight."""
    for i in range(n):
        weight, squares = _weight_and_squares(sums, i)
        out[i] = weight - squares / (weight if weight > 0.0 else 1.0)


@njit(**FAST)
def entropy_costs(sums, n, out):
    """Sum of n_k log(n / n_k), with 0 log 0 = 0."""
    for i in range(n):
        weight = 0.0
        for k in range(sums.shape[0]):
            weight += sums[k, i]
        out[i] = 0.0
        for k in range(sums.shape[0]):
            if sums[k, i] > 0.0:
                out[i] += sums[k, i] * log_ratio(weight, sums[k, i])


@njit(**FAST)
def root_costs(sums, n, out):
    """Root of the square of the weight less the sum of squares."""
    for i in range(n):
        weight, squares = _weight_and_squares(sums, i)
        out[i] = np.sqrt(max(weight * weight - squares, 0.0))


TASKS = {
    "gini": Task("gini", None, gini_costs),
    "entropy": Task("entropy", None, entropy_costs),
    "root_gini": Task("root_gini", None, root_costs),
}
"""The impurities by name."""


def statistics(label: IntArray, n_classes: int, weight: FloatArray) -> FloatArray:
    """Weight of each row in the column of its class, (N, K)."""
    return np.where(np.arange(max(n_classes, 2)) == label[:, None], weight[:, None], 0.0)


def most_frequent(sums: FloatArray) -> IntArray:
    """Class of each leaf (L,) from its sums (L, K); the first of those that are equally frequent but for rounding."""
    return best_label(-sums)
