"""When to stop early: a time limit, or Ctrl-C, noticed at safe points so that the best so far is kept."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

from softsurv.results import Status


class Budget:
    """Time limit and interruption of one fit; a context manager.

    While it is open, the first Ctrl-C in the main thread only sets a flag; a second one interrupts at once. Of nested
    budgets the inner one takes it.

    Parameters
    ----------
    time_limit : float, optional
        Seconds from now; none by default.
    hears_inner : bool
        Count a Ctrl-C that a budget inside this one took.
    """

    def __init__(self, time_limit: float | None = None, hears_inner: bool = False) -> None:
        self.started = time.monotonic()
        self.deadline = None if time_limit is None else self.started + time_limit
        self.interrupted = False
        self.hears_inner = hears_inner
        self._previous: Any = None

    @property
    def seconds(self) -> float:
        """Wall-clock time since the start."""
        return time.monotonic() - self.started

    @property
    def status(self) -> Status | None:
        """Why to stop now, or None."""
        if self.interrupted:
            return Status.INTERRUPTED
        if self.deadline is not None and time.monotonic() > self.deadline:
            return Status.TIME_LIMIT
        return None

    @property
    def exhausted(self) -> bool:
        """True when it is time to stop."""
        return self.status is not None

    def __enter__(self) -> Budget:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            outer = getattr(self._previous, "__self__", None)
            if isinstance(outer, Budget) and outer.hears_inner:
                outer.interrupted |= self.interrupted
            self._previous = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
