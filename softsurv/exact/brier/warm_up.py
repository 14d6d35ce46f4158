"""What the search for the integrated Brier score calls, compiled before a clock starts."""

from __future__ import annotations

from softsurv.exact.brier.base_case import coarse_floor, expand, solve_shallow
from softsurv.exact.brier.bounds import group_bounds
from softsurv.exact.brier.table import split_rows
from softsurv.exact.brier.tiles import tile
from softsurv.exact.entries import make_ready
from softsurv.stopping import StopSignal

SEARCH = (solve_shallow, split_rows, group_bounds, expand, tile)
"""Two processes compile the list, one from either end: long ones are there."""


def ready() -> None:
    """Compile the search or read it from disk; says on the logger ``softsurv`` what it compiles."""
    make_ready(SEARCH, "the exact search for 'ibs'")


def ready_coarse(stop: StopSignal | None = None) -> None:
    """The same for the bounds from coarse bins of time, which only many rows need; no time of ``stop``."""
    make_ready([coarse_floor], "bounds for many rows", stop)
