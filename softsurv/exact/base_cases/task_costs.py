"""The cost of leaves, as a task has it: what is compiled for each task.

Template module: `softsurv.exact.compile` executes it once per task with the globals ``leaf_costs`` and ``parametric``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softsurv.exact.entries import ADDRESS, LONG, entry
from softsurv.exact.kernels.views import floats_at, matrix_at
from softsurv.exact.problem import SearchArrays

if TYPE_CHECKING:
    from softsurv.exact.injected import leaf_costs, parametric


@entry(SearchArrays, ADDRESS, LONG, LONG, ADDRESS)
def price(problem, sums, stride, n, out):
    """The cost of leaves. The task's, the cost per leaf, and ``inf`` below the limit on the size of a leaf.

    ``sums`` (W, stride), ``out`` (stride,).
    """
    width = problem.stats.shape[1]
    batch, cost = matrix_at(sums, (width, stride)), floats_at(out, (stride,))
    if parametric:
        leaf_costs(batch[: problem.n_statistics], n, cost, problem.parameters)
    else:
        leaf_costs(batch[: problem.n_statistics], n, cost)
    complexity, min_leaf = problem.complexity, problem.min_leaf
    if problem.use_size:
        size = batch[width - 1]
        for i in range(n):
            cost[i] = cost[i] + complexity if size[i] >= min_leaf else np.inf
    elif complexity > 0.0:
        for i in range(n):
            cost[i] += complexity
