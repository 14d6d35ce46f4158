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

REST = f"{__name__}:rest"
"""What a second process compiles: a third of the work."""


@cache
def ready() -> None:
    """Compile the search or read it from disk; says once, on the logger ``softsurv``, what it compiles."""
    say_compiling([expand, solve_shallow, split_rows, group_bounds], "the exact search for 'ibs'")
    fresh = expand.stats.cache_path is not None and not (is_on_disk(solve_shallow) or is_on_disk(expand))
    with Helper([REST] if fresh else []) as helper, without_garbage_collection(), resolved_once():
        search = _small_search(equivalent=False)
        solve_shallow(search.rows, search.everyone, search.rules, 2, math.inf, search.no_floor)
        if not helper.leaves(REST):
            helper.wait_for(REST)
        search = _small_search()
        search.solve(search.root, search.everyone, 3, math.inf)


def rest() -> None:
    """Compile all but the base case."""
    search = _small_search()
    search.root  # noqa: B018  compiles `expand`
    split_rows(search.rows.x, search.everyone, 0)


@cache
def ready_coarse() -> None:
    """The same for the bounds from coarse bins of time, which only many rows need."""
    say_compiling([coarse_floor], "bounds for many rows")
    with without_garbage_collection():
        search = _small_search()
        coarse_floor(search.rows, search.everyone[:0], search.rules)


def _small_search(equivalent: bool = True) -> BrierSearch:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (32, 4)).astype(np.uint8)
    score = IbsScore.from_columns(rng.integers(1, 9, 32).astype(float), np.arange(32) % 4 > 0)
    rows = prepare_rows(x, score, equivalent=equivalent)
    return BrierSearch(rows, Rules(KM_ROWS, has_equal_rows(rows), 1.0, 0.0, 2.0, True, np.zeros(1, np.int64)))
