"""Time limit and interruption of an exact search."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from softsurv.budget import Budget
from softsurv.results import Status

POLL_SECONDS = 0.05
"""How often the time limit, Ctrl-C and the progress bar are looked after; a tenth of the promised 0.5 s."""

Answer = TypeVar("Answer")


@dataclass
class Clock:
    """Time limit and interruption of one call, shared by all its runs."""

    limit: float
    begin: float = field(default_factory=time.perf_counter)
    interrupted: bool = False
    budget: Budget | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the call began."""
        return time.perf_counter() - self.begin

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.limit - self.seconds

    @property
    def status(self) -> Status:
        """Why the search has to end now, or `Status.OPTIMAL` where it need not."""
        self.interrupted |= self.budget is not None and self.budget.interrupted
        if self.interrupted:
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self.left <= 0 else Status.OPTIMAL


def run_watched(work: Callable[[], Answer], clock: Clock, flag: NDArray[np.int64], grace: float = 0.0) -> Answer:
    """Run compiled work in a thread, and set its stop flag when the clock has run out.

    Parameters
    ----------
    work : callable
        Reads ``flag[0]`` now and then, and ends soon when it is 1.
    clock : Clock
    flag : (1 or more,) int64
        Stays 1 where the work was stopped.
    grace : float
        Seconds that the work has in any case.

    Returns
    -------
    What ``work`` returns; what it raises is raised here.
    """
    begin = clock.seconds

    def is_over() -> bool:
        return clock.status is not Status.OPTIMAL and clock.seconds - begin >= grace

    with ThreadPoolExecutor(1) as pool:
        try:
            flag[0] = is_over()
            running = pool.submit(work)
            while not running.done():
                wait([running], max(min(clock.left + grace, POLL_SECONDS), 0.001))
                if is_over() and not running.done():
                    flag[0] = 1
            return running.result()
        except BaseException:
            flag[0] = 1  # a second Ctrl-C does not wait for the work
            raise
