"""The clock of one fit: a time limit, and Ctrl-C noted so that the best tree so far is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from softsurv.budget import Budget
from softsurv.exact.clock import Clock


@contextmanager
def limited(seconds: float) -> Iterator[Clock]:
    """A clock that starts now; while it is open the first Ctrl-C ends the search, a second one ends at once."""
    clock = Clock(seconds)
    with Budget() as budget:
        clock.budget = budget
        yield clock
