"""A search over a handful of rows, so that the integrated-Brier-score kernels are compiled before a clock starts."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from softsurv.exact.brier.base_case import coarse_floor, expand, solve_shallow
from softsurv.exact.brier.bounds import group_bounds
from softsurv.exact.brier.leaf_costs import KM_ROWS
from softsurv.exact.brier.prepare import has_equal_rows, prepare_rows
from softsurv.exact.brier.search import BrierSearch
from softsurv.exact.brier.table import Rules, split_rows
from softsurv.exact.helper import Helper
from softsurv.exact.jit import is_on_disk, say_compiling, without_garbage_collection
from softsurv.exact.objectives.brier import IbsScore
from softsurv.exact.resolved import resolved_once

SHALLOW = f"{__name__}:shallow"
"""What a second process compiles: half of all."""


@cache
def ready() -> None:
    """Compile the search or read it from disk; says once, on the logger ``softsurv``, what it compiles."""
    say_compiling([expand, solve_shallow, split_rows, group_bounds], "the exact search for 'ibs'")
    fresh = solve_shallow.stats.cache_path is not None and not (is_on_disk(solve_shallow) or is_on_disk(expand))
    with Helper([SHALLOW] if fresh else []) as helper, without_garbage_collection(), resolved_once():
        search = _small_search()
        root = search.root  # compiles `expand`
        if not helper.leaves(SHALLOW):
            helper.wait_for(SHALLOW)
        search.solve(root, search.everyone, 3, math.inf)


def shallow() -> None:
    """Compile the base case alone."""
    search = _small_search()
    solve_shallow(search.rows, search.everyone, search.rules, 2, math.inf, search.no_floor)


@cache
def ready_coarse() -> None:
    """The same for the bounds from coarse bins of time, which only many rows need."""
    say_compiling([coarse_floor], "bounds for many rows")
    with without_garbage_collection():
        search = _small_search()
        coarse_floor(search.rows, search.everyone[:0], search.rules)


def _small_search() -> BrierSearch:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (32, 4)).astype(np.uint8)
    rows = prepare_rows(x, IbsScore.from_columns(rng.integers(1, 9, 32).astype(float), np.arange(32) % 4 > 0))
    return BrierSearch(rows, Rules(KM_ROWS, has_equal_rows(rows), 1.0, 0.0, 2.0, True, np.zeros(1, np.int64)))
