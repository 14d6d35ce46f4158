"""What a search is about, as one value: so that the same problem can be searched again, whole or without features."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.exact.bounds import Bounds
from softsurv.exact.search import Search
from softsurv.exact.split_costs import SplitCosts
from softsurv.exact.task import Task


@dataclass(frozen=True)
class SearchProblem:
    """Rows, objective and limits of a leaf; the arguments of `Search`.

    Attributes
    ----------
    task : Task
    codes : (N, P) int
    n_codes : (P,) int
    nominal : (P,) bool
    statistics : (N, K)
    offset : (N,) or None
    min_leaf : float
        Least rows per leaf, or the least ``size``.
    size : (N,) or None
    complexity : float
        Cost per leaf.
    """

    task: Task
    codes: NDArray[np.integer]
    n_codes: NDArray[np.integer]
    nominal: BoolArray
    statistics: FloatArray
    offset: FloatArray | None = None
    min_leaf: float = 1
    size: FloatArray | None = None
    complexity: float = 0.0

    def search(
        self, memory_limit: float = 1e9, bounds: Bounds | None = None, split_costs: SplitCosts | None = None
    ) -> Search:
        """The search for the best tree."""
        return Search(
            self.task, self.codes, self.n_codes, self.nominal, self.statistics, self.offset, min_leaf=self.min_leaf,
            size=self.size, complexity=self.complexity, split_costs=split_costs, bounds=bounds,
            memory_limit=memory_limit,
        )  # fmt: skip

    def without(self, features: list[int]) -> SearchProblem:
        """The same rows where no tree asks for some features, which become constant; places of the others stay."""
        codes, n_codes = self.codes.copy(), np.array(self.n_codes)
        codes[:, features], n_codes[features] = 0, 1
        return replace(self, codes=codes, n_codes=n_codes)
