"""Costs of many trees: sorted whole numbers, and how many trees have each.

Costs are whole multiples of a small unit, so that sums are exact, equal costs are equal, and a count has no rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import IntArray

Counts = NDArray[Any]

LARGEST_COUNT = 2.0**62
"""Above this, counts are Python's whole numbers."""

IMPOSSIBLE = 1 << 58
"""Cost of a leaf that is not allowed; four of them add up within 64 bits."""


@dataclass(frozen=True)
class Costs:
    """Trees by cost.

    Attributes
    ----------
    cost : (C,) int
        Ascending, each once.
    count : (C,) int, or Python's whole numbers where 64 bits do not hold their sum
        Trees of each cost.
    """

    cost: IntArray
    count: Counts

    @classmethod
    def of(cls, cost: IntArray, count: Counts | None = None) -> Costs:
        """Costs in any order, equal ones put together; one tree each where there is no count."""
        if count is None:
            return cls(*np.unique(cost, return_counts=True))
        if _is_large(count):
            count = count.astype(object)
        distinct, place = np.unique(cost, return_inverse=True)
        if len(distinct) == len(cost):
            return cls(distinct, count[np.argsort(cost)])
        total = np.zeros(len(distinct), count.dtype)
        np.add.at(total, place, count)
        return cls(distinct, total)

    @classmethod
    def none(cls) -> Costs:
        """No tree."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.cost)

    @property
    def least(self) -> int:
        """Least cost; `IMPOSSIBLE` where there is no tree."""
        return int(self.cost[0]) if len(self.cost) else IMPOSSIBLE

    @property
    def n_bytes(self) -> int:
        """Memory that the arrays take."""
        return int(self.cost.nbytes + self.count.nbytes)

    def cumulated(self) -> Counts:
        """Trees among the first 0, 1, ..., C costs."""
        count = self.count.astype(object) if _is_large(self.count) else self.count
        return np.concatenate([np.zeros(1, count.dtype), count.cumsum()])


def _is_large(count: Counts) -> bool:
    return bool(np.abs(count.astype(float)).sum() > LARGEST_COUNT)


def count_pairs(left: Costs, right: Costs, most: int) -> int:
    """Pairs of trees, one of each side, that cost at most ``most`` together."""
    if not len(left) or not len(right):
        return 0
    fitting = right.cumulated()[np.searchsorted(right.cost, most - left.cost, "right")]
    if float(left.count.sum()) * float(fitting[0]) > LARGEST_COUNT:
        return int((left.count.astype(object) * fitting.astype(object)).sum())
    return int((left.count * fitting).sum())


def n_pairs(left: Costs, right: Costs, most: int) -> int:
    """Pairs of costs, one of each side, that add up to at most ``most``."""
    return int(np.searchsorted(right.cost, most - left.cost, "right").sum())


def pairs(left: IntArray, right: IntArray, most: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of all pairs of sorted costs that add up to at most ``most``."""
    fitting = np.searchsorted(right, most - left, "right")
    i = np.repeat(np.arange(len(left)), fitting)
    j = np.arange(len(i)) - np.repeat(fitting.cumsum() - fitting, fitting)
    return i, j


def add_pairs(left: Costs, right: Costs, most: int) -> Costs:
    """Costs of all pairs of trees up to ``most``; in the order of the pairs, not put together."""
    i, j = pairs(left.cost, right.cost, most)
    count, other = left.count[i], right.count[j]
    if len(i) and float(left.count.max()) * float(right.count.max()) > LARGEST_COUNT:
        count = count.astype(object)
    return Costs(left.cost[i] + right.cost[j], count * other)


def put_together(parts: list[Costs]) -> Costs:
    """All trees of several lists as one."""
    if not parts:
        return Costs.none()
    count: Counts = np.concatenate([part.count for part in parts])
    return Costs.of(np.concatenate([part.cost for part in parts]), count)
