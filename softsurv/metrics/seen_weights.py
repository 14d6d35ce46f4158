"""Weights of rows among competing risks that stand for those not seen: censored before, or not yet entered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import FloatArray, IntArray
from softsurv.metrics.entering import entry_distribution, some_late
from softsurv.metrics.ranges import refuse_unknown_censoring
from softsurv.nonparametric import StepFunction, checked_columns


class SeenWeights(NamedTuple):
    """What stands for the rows that are not seen: sample weight over the chance of being seen."""

    mass: FloatArray  # (N,) sample weights
    entry: FloatArray | None  # (N,) -inf: from the start
    own: FloatArray  # (N,) one over the chance of an event's row at its time, 0 where there is no event on the grid
    later: FloatArray  # (T,) one over the chance of a row that is free of events

    @classmethod
    def of(
        cls,
        time: FloatArray,
        codes: IntArray,
        grid: FloatArray,
        censoring: StepFunction,
        weight: ArrayLike | None,
        entry: ArrayLike | None,
    ) -> SeenWeights:
        """The weights of rows (N,) on a grid (T,)."""
        refuse_unknown_censoring(censoring, grid)
        _, _, mass, entry_ = checked_columns(time, codes > 0, weight, entry)
        entering = entry_distribution(time, entry, weight)
        counted = (codes > 0) & (time <= grid[-1])
        own = np.zeros(time.size)
        own[counted] = 1.0 / (censoring.left_limit(time[counted]) * entering.left_limit(time[counted]))
        return cls(mass, entry_, own, np.asarray(1.0 / (censoring(grid) * entering(grid))))

    def table(self, time: FloatArray, grid: FloatArray) -> FloatArray:
        """Weight of each row at each time, (N, T)."""
        later = self.later if self.entry is None else np.where(self.entry[:, None] <= grid, self.later, 0.0)
        return self.mass[:, None] * np.where(time[:, None] <= grid, self.own[:, None], later)

    def total(self, table: FloatArray) -> FloatArray:
        """What stands for N in a mean at each time, (T,)."""
        return table.sum(0) if some_late(self.entry) else np.full(table.shape[1], self.mass.sum())
