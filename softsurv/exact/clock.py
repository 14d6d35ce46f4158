"""Time limit and interruption of an exact search."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from softsurv.budget import Budget
from softsurv.results import Status

POLL_SECONDS = 0.05
"""How often the time limit, Ctrl-C and the progress bar are looked after; a tenth of the promised 0.5 s."""


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
