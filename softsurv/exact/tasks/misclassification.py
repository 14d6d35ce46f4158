"""Misclassified weight of a classification tree, for any number of classes (papers `gosdt`, `streed`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from softsurv.exact.jit import FAST
from softsurv.exact.tasks.base import Task


@njit(**FAST)
def two_class_costs(sums, n, out):
    """The smaller of the two class weights."""
    for i in range(n):
        out[i] = min(sums[0, i], sums[1, i])


@cache
def task(n_classes: int) -> Task:
    """The task for so many classes; statistics are the weight of each row in the column of its class."""
    if n_classes == 2:
        return Task("misclassification_2", 2, two_class_costs)
    return Task(f"misclassification_{n_classes}", n_classes, _costs_of(n_classes))


def _costs_of(n_classes: int) -> Callable[..., None]:
    """Leaf cost for a fixed number of classes, so that a further column (rows per leaf) is left out."""

    @njit(**(FAST | {"cache": False}))
    def many_class_costs(sums, n, out):
        for i in range(n):
            total = largest = sums[0, i]
            for k in range(1, n_classes):
                total += sums[k, i]
                largest = max(largest, sums[k, i])
            out[i] = total - largest

    return many_class_costs


def statistics(label: NDArray[np.integer], n_classes: int, weight: NDArray[np.float64] | None = None) -> np.ndarray:
    """One column per class with the row's weight in that of its class, (N, n_classes)."""
    columns = np.zeros((len(label), n_classes))
    columns[np.arange(len(label)), label] = 1.0 if weight is None else weight
    return columns
