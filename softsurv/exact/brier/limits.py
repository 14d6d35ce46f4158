"""Limits of an integrated-Brier-score search, which runs in a thread of its own."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from softsurv.arrays import IntArray
from softsurv.results import Status
from softsurv.stopping import Stopped, StopSignal

RECURSION_LIMIT = 50_000
"""Without a limit on depth or a complexity the search may go as deep as there are rows."""


@dataclass
class Limits:
    """When to stop.

    Attributes
    ----------
    stop : StopSignal
    max_entries : float
        Subproblems that fit into memory.
    flag : (1,) int64
        1 when time has run out: read by the compiled loops too, which may take longer than the user would wait.
    """

    stop: StopSignal = field(default_factory=StopSignal)
    max_entries: float = math.inf
    flag: IntArray = field(default_factory=lambda: np.zeros(1, np.int64))

    def check(self, entries: int = 0) -> None:
        """Raise `Stopped` when time or memory has run out."""
        if self.flag[0]:
            raise Stopped(self.stop.reason)
        if entries >= self.max_entries:
            raise Stopped(Status.MEMORY_LIMIT)

    def run(self, work: Callable[[], object]) -> Status:
        """Run a search until it ends, by itself or by a limit; the first Ctrl-C counts as one."""
        depth = sys.getrecursionlimit()
        sys.setrecursionlimit(max(depth, RECURSION_LIMIT))
        try:
            self.stop.run(work, self.flag)
        except Stopped as stopped:
            return stopped.status
        finally:
            sys.setrecursionlimit(depth)
        return Status.OPTIMAL
