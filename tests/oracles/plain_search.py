"""Small problems of the exact engine whose kernels run as plain Python."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from oracles.plain_python import plain

from softsurv.exact.base_cases.lanes import solve_lanes
from softsurv.exact.compile import BASES, price_of
from softsurv.exact.depth_run import new_shared
from softsurv.exact.kernels.cache import new_cache
from softsurv.exact.kernels.recursion import solve, solve_three
from softsurv.exact.objectives import label_costs
from softsurv.exact.search import Search


class Small(NamedTuple):
    """A search with what its kernels read and write."""

    search: Search
    problem: Any  # calls hold Python functions in the place of addresses
    rows: Any
    local: Any
    nodes: Any
    lanes: Any
    codes: Any
    nominal: Any
    statistics: Any

    def splits(self):
        """(left rows, global code) of every split that the base case found to divide the rows, by its place."""
        for code in self.local.split_code[: self.local.size[2]].tolist():
            yield self.goes_left(code), code

    def goes_left(self, code):
        """Which distinct rows (U,) go left at a global code."""
        feature = self.problem.feature_of[code]
        column = self.problem.gcode[:, feature]
        return column == code if self.problem.nominal[feature] else column <= code

    def cost(self, rows):
        """Cost of some distinct rows as a leaf, that of leaves included; inf where they are too few."""
        total = self.problem.stats[rows].sum(axis=0)
        if self.problem.use_size and total[-1] < self.problem.min_leaf:
            return np.inf
        return float(self.search.task.costs(total[None, : self.problem.n_statistics])[0]) + self.problem.complexity


body = cache(plain)
"""As `plain`, made once for each kernel."""


def run_state(found, leaves=1, upper=np.inf):
    """An empty cache, and what threads share: the splits of the root in order, nothing known of their sides."""
    found.problem.calls.solve_two(found.problem, found.rows, len(found.rows), 1, found.local)
    order = np.sort(found.local.split_code[: found.local.size[2]])
    sides = np.zeros((2, len(found.problem.feature_of)))
    return new_cache(1e5), new_shared(found.search.control, order, leaves, upper, sides)


def small(n=14, levels=3, features=3, seed=0, task=None, statistics=None, nominal=None, **how) -> Small:
    """A search over random codes; costs of two labels where no statistics are given. Nothing is compiled."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, levels, (n, features)).astype(np.int32)
    nominal = np.arange(features) % 2 == 1 if nominal is None else np.asarray(nominal)
    if statistics is None:
        statistics = label_costs.misclassification(rng.integers(0, 2, n), 2, rng.integers(1, 4, n).astype(float))
    task = task or label_costs.TASK
    search = Search(task, codes, np.full(features, levels), nominal, statistics, memory_limit=1e6, **how)
    search.take_scratch(1)
    scratch = search.scratch[0]
    calls = search.problem.calls._replace(
        price=body(price_of(task)),
        solve_two=body(BASES[search.base].solve_two),
        solve_lanes=body(solve_lanes),
        solve_three=body(solve_three),
        solve=body(solve),
    )
    problem = search.problem._replace(calls=calls)
    return Small(
        search, problem, search.rows, scratch.local.value, scratch.nodes.value, scratch.lanes.value, codes, nominal,
        statistics,
    )  # fmt: skip
