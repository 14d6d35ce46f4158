"""Time limit and interruption of an exact search."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from softsurv.budget import Budget
from softsurv.results import Status

POLL_SECONDS = 0.05
"""How often the time limit, Ctrl-C and the progress bar are looked after; a tenth of the promised 0.5 s."""

SHORTEST_WAIT = 0.001
"""What the work is given to notice its flag before it is looked after again."""

Answer = TypeVar("Answer")


class Stopped(Exception):  # noqa: N818  control flow, not an error
    """Raised inside a search when a limit is reached."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


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


class Watch:
    """Looks after the clock of compiled work, which runs in a thread of its own so that Ctrl-C is heard.

    Parameters
    ----------
    clock : Clock
    flag : (1 or more,) int64
        The work reads ``flag[0]`` now and then and ends soon when it is 1. It stays 1 where work was stopped.
    """

    def __init__(self, clock: Clock, flag: NDArray[np.int64]) -> None:
        self.clock, self.flag = clock, flag
        self._sure_until = clock.seconds
        self._abandoned = False
        self._lock = threading.Lock()

    def stage(self, grace: float = 0.0) -> bool:
        """Called by the work: begin a stage that has ``grace`` seconds in any case; whether there is time for it."""
        with self._lock:
            self._sure_until = self.clock.seconds + grace
            self.flag[0] = self._is_over()
            return not self.flag[0]

    def run(self, work: Callable[[], Answer], meanwhile: Callable[[], None] | None = None) -> Answer:
        """What ``work`` returns or raises; ``meanwhile`` is called here every `POLL_SECONDS`."""
        answers: list[Answer] = []
        errors: list[BaseException] = []

        def inside() -> None:
            try:
                answers.append(work())
            except BaseException as error:  # raised again by the caller's thread
                errors.append(error)

        thread = threading.Thread(target=inside, daemon=True)
        thread.start()
        try:
            self._look_after(thread, meanwhile)
        except BaseException:
            self._abandoned = True  # a second Ctrl-C does not wait for the work
            self.flag[0] = 1
            thread.join()
            raise
        if errors:
            raise errors[0]
        return answers[0]

    def _look_after(self, thread: threading.Thread, meanwhile: Callable[[], None] | None) -> None:
        while True:
            left = max(self.clock.left, self._sure_until - self.clock.seconds)
            thread.join(max(min(left, POLL_SECONDS), SHORTEST_WAIT))
            if not thread.is_alive():
                return
            with self._lock:
                if self._is_over():
                    self.flag[0] = 1
            if meanwhile is not None:
                meanwhile()

    def _is_over(self) -> bool:
        over = self.clock.status is not Status.OPTIMAL and self.clock.seconds >= self._sure_until
        return over or self._abandoned


def run_watched(work: Callable[[], Answer], clock: Clock, flag: NDArray[np.int64], grace: float = 0.0) -> Answer:
    """Run compiled work of one stage: see `Watch`."""
    watch = Watch(clock, flag)
    watch.stage(grace)
    return watch.run(work)


@contextmanager
def limited(seconds: float) -> Iterator[Clock]:
    """A clock that starts now; while it is open the first Ctrl-C ends the search, a second one ends at once."""
    clock = Clock(seconds)
    with Budget() as clock.budget:
        yield clock
