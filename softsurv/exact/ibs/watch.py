"""Limits of an integrated-Brier-score search, and who looks after them: the search runs in a thread of its own."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from softsurv.budget import Budget
from softsurv.exact.clock import Clock, run_watched
from softsurv.results import Status

RECURSION_LIMIT = 50_000
"""Without a limit on depth or a complexity the search may go as deep as there are rows."""


class Stop(Exception):  # noqa: N818  control flow, not an error
    """Raised inside the search when a limit is reached."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


@dataclass
class Limits:
    """When to stop.

    Attributes
    ----------
    clock : Clock
    max_entries : float
        Subproblems that fit into memory.
    stop : (1,) int64
        1 when the clock has run out: read by the compiled loops too, which may take longer than the user would wait.
    """

    clock: Clock = field(default_factory=lambda: Clock(math.inf))
    max_entries: float = math.inf
    stop: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))

    def check(self, entries: int = 0) -> None:
        """Raise `Stop` when time or memory has run out."""
        if self.stop[0]:
            raise Stop(self.clock.status)
        if entries >= self.max_entries:
            raise Stop(Status.MEMORY_LIMIT)

    def run(self, work: Callable[[], object]) -> Status:
        """Run a search until it ends, by itself or by a limit; the first Ctrl-C counts as one."""
        depth = sys.getrecursionlimit()
        sys.setrecursionlimit(max(depth, RECURSION_LIMIT))
        try:
            with Budget() as self.clock.budget:
                run_watched(work, self.clock, self.stop)
        except Stop as stop:
            return stop.status
        finally:
            sys.setrecursionlimit(depth)
        return Status.OPTIMAL
