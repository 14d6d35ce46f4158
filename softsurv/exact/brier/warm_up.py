"""A search over a handful of rows, so that the integrated-Brier-score kernels are compiled before a clock starts."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from softsurv.exact.brier.base_case import coarse_floor, solve_shallow
from softsurv.exact.brier.leaf_costs import KM_ROWS
from softsurv.exact.brier.prepare import has_equal_rows, prepare_rows
from softsurv.exact.brier.search import BrierSearch
from softsurv.exact.brier.table import Rules
from softsurv.exact.jit import say_compiling
from softsurv.exact.objectives.brier import IbsScore


@cache
def ready() -> None:
    """Compile the search or read it from disk; says once, on the logger ``softsurv``, that it compiles."""
    say_compiling(solve_shallow, "the exact search for 'ibs'")
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (32, 4)).astype(np.uint8)
    rows = prepare_rows(x, IbsScore.from_columns(rng.integers(1, 9, 32).astype(float), np.arange(32) % 4 > 0))
    search = BrierSearch(rows, Rules(KM_ROWS, has_equal_rows(rows), 1.0, 0.0, 2.0, True, np.zeros(1, np.int64)))
    search.solve(search.root, search.everyone, 3, math.inf)
    coarse_floor(rows, search.everyone[:0], search.rules)
