"""When to stop early: a time limit, Ctrl-C, or the flag of compiled work. The best solution so far is kept."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from softsurv.in_thread import InThread
from softsurv.results import Status

POLL_SECONDS = 0.05
"""Seconds between two looks at the time limit, Ctrl-C and the progress bar: a tenth of the promised 0.5 s."""

GRACE_SECONDS = 0.25
"""Seconds after the time limit for a first tree of an exact search, to read its best one, or to fit a single leaf."""

SHORTEST_WAIT = 0.001
"""Seconds that compiled work has to notice its flag before this looks again."""

Answer = TypeVar("Answer")


class Stopped(Exception):  # noqa: N818  control flow, not an error
    """Raised inside a search when a limit is reached."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


class StopSignal:
    """Time limit and interruption of one fit; a context manager.

    While it is open, the first Ctrl-C in the main thread only sets a flag. A second one interrupts at once. Of nested
    signals the inner one takes the Ctrl-C. Within `many_fits` none does.

    Compiled work notices neither the clock nor Ctrl-C. It runs in a thread of its own (`run`) and reads its flag now
    and then.

    Parameters
    ----------
    time_limit : float, optional
        Seconds from now; none by default.
    hears_inner : bool
        An inner signal may catch the Ctrl-C. With this it is counted here as well.
    outer : StopSignal, optional
        Stop also where that one was interrupted.
    """

    def __init__(
        self, time_limit: float | None = None, hears_inner: bool = False, outer: StopSignal | None = None
    ) -> None:
        self.started = time.monotonic()
        self.deadline = None if time_limit is None or time_limit == math.inf else self.started + time_limit
        self.hears_inner, self.outer = hears_inner, outer
        self._interrupted = self._ended = False
        self._patience, self._heard = 0.0, math.inf
        self._open = 0
        self._previous: Any = None
        self._flags: list[NDArray[np.int64]] = []
        self._thread: threading.Thread | None = None
        self._sure_until = self.started
        self._abandoned = False
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        """Wall-clock time since the start."""
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        """Seconds until the time limit."""
        return math.inf if self.deadline is None else self.deadline - time.monotonic()

    def end_unless(self, seconds: float) -> bool:
        """Whether so many seconds are left; if not, the time limit counts as reached: no further round fits in."""
        self._ended = self._ended or self.left < seconds
        return not self.exhausted

    @property
    def grace(self) -> float:
        """Seconds for a first tree: `GRACE_SECONDS` less those by which the clock is over, a quarter at least."""
        return max(GRACE_SECONDS + min(self.left, 0.0), GRACE_SECONDS / 4)

    def ending_sooner(self, seconds: float) -> StopSignal:
        """The same signal with a deadline that is so much earlier, for work that is followed by other work."""
        part = StopSignal(outer=self)
        part.started, part.deadline = self.started, None if self.deadline is None else self.deadline - seconds
        return part

    def with_grace(self) -> StopSignal:
        """The same signal `GRACE_SECONDS` later, for a fit without which there is no model; four times after Ctrl-C."""
        part = self.ending_sooner(min(self.left, 0.0) - GRACE_SECONDS)
        part._patience = 4 * GRACE_SECONDS  # who wants no model presses it again
        return part

    def leaving(self, times: float, most: float) -> StopSignal:
        """The same signal, ending sooner by so many times of what was taken so far, at most by a share of the limit.

        For work that is followed by other work. That takes time in proportion to what came before: both read all rows.
        """
        if self.deadline is None:
            return self
        return self.ending_sooner(min(times * self.seconds, most * (self.deadline - self.started)))

    @property
    def interrupted(self) -> bool:
        """Whether there was a Ctrl-C."""
        if self._interrupted or self.outer is None or not self.outer.interrupted:
            return self._interrupted
        self._heard = min(self._heard, time.monotonic())
        return time.monotonic() >= self._heard + self._patience

    @interrupted.setter
    def interrupted(self, value: bool) -> None:
        self._interrupted = value

    @property
    def status(self) -> Status | None:
        """Why to stop now, or None."""
        if self.interrupted:
            return Status.INTERRUPTED
        if self._ended or (self.deadline is not None and time.monotonic() > self.deadline):
            return Status.TIME_LIMIT
        return None

    @property
    def reason(self) -> Status:
        """Why the work was stopped; a second Ctrl-C counts as the first."""
        return self.status or Status.INTERRUPTED

    @property
    def exhausted(self) -> bool:
        """True when it is time to stop."""
        return self.status is not None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock for as long as it is open: what is done inside counts towards no limit."""
        deadline, begin = self.deadline, time.monotonic()
        self.deadline = None
        try:
            yield
        finally:
            passed = time.monotonic() - begin
            self.started += passed
            self.deadline = None if deadline is None else deadline + passed

    @contextmanager
    def keeping(self, seconds: float) -> Iterator[None]:
        """Within the block the deadline is so much earlier, for work of that length which follows.

        Where it was reached, the time limit counts as reached from then on.
        """
        deadline = self.deadline
        self.deadline = None if deadline is None else deadline - seconds
        try:
            yield
        finally:
            self._ended = self._ended or self.status is Status.TIME_LIMIT
            self.deadline = deadline

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Within the block tables are read under the time limit (`softsurv.data.in_time`)."""
        token = _READING.set(self)
        try:
            yield
        finally:
            _READING.reset(token)

    # -- Ctrl-C --------------------------------------------------------------------------------------------------
    def __enter__(self) -> StopSignal:
        self._open += 1
        if self._open == 1 and not _MANY.get() and threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open -= 1
        if self._open == 0 and self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            outer = getattr(self._previous, "__self__", None)
            if isinstance(outer, StopSignal) and outer.hears_inner and self._interrupted:
                outer.interrupted = True
            self._previous = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True

    # -- compiled work -------------------------------------------------------------------------------------------
    def run(
        self,
        work: Callable[[], Answer],
        flag: NDArray[np.int64],
        meanwhile: Callable[[], None] | None = None,
        *,
        short: bool = False,
    ) -> Answer:
        """What compiled work returns or raises. Inside other work that was given to `run` no further thread is started.

        Parameters
        ----------
        work : callable
        flag : (1 or more,) int64
            The work reads ``flag[0]`` now and then and ends soon when it is 1. It stays 1 where work was stopped.
        meanwhile : callable, optional
            Called here every `POLL_SECONDS`.
        short : bool
            The work ends before anybody would look at the clock: no thread is started for it.
        """
        self._flags.append(flag)
        try:
            if len(self._flags) > 1:
                return work()
            with self:
                self.stage()
                return work() if short else self._in_thread(work, meanwhile)
        finally:
            self._flags.pop()

    def stage(self, grace: float = 0.0) -> bool:
        """Called by the work: begin a stage that has ``grace`` seconds in any case. Returns whether there is time."""
        with self._lock:
            self._sure_until = time.monotonic() + grace
            over = self._is_over()
            for flag in self._flags:
                flag[0] = over
            return not over

    def _in_thread(self, work: Callable[[], Answer], meanwhile: Callable[[], None] | None) -> Answer:
        aside = InThread(work)
        self._thread = thread = aside.thread
        try:
            self._look_after(thread, meanwhile)
        except BaseException:
            self._abandoned = True  # a second Ctrl-C does not wait for the work
            self._set_flags()
            thread.join()
            raise
        finally:
            self._thread = None
        return aside.answer()

    def _look_after(self, thread: threading.Thread, meanwhile: Callable[[], None] | None) -> None:
        while True:
            left = max(self.left, self._sure_until - time.monotonic())
            thread.join(max(min(left, POLL_SECONDS), SHORTEST_WAIT))
            if not thread.is_alive():
                return
            with self._lock:
                if self._is_over():
                    self._set_flags()
            if meanwhile is not None:
                meanwhile()

    def _set_flags(self) -> None:
        for flag in list(self._flags):
            flag[0] = 1

    def _is_over(self) -> bool:
        return (self.exhausted and time.monotonic() >= self._sure_until) or self._abandoned


CALLED_BY_LLVM = "_raw_object_cache"
"""So begin the names of the functions that LLVM calls. Python prints what is raised there, and drops it."""


class _AtOnce:
    """A handler of Ctrl-C that raises, and remembers it."""

    heard = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.heard = True
        if frame is None or not frame.f_code.co_name.startswith(CALLED_BY_LLVM):
            raise KeyboardInterrupt


@contextmanager
def heard_at_once() -> Iterator[None]:
    """Within the block the first Ctrl-C interrupts at once, even under a `StopSignal`: a compilation keeps no part."""
    handler = signal.getsignal(signal.SIGINT)
    usual = handler is signal.default_int_handler or isinstance(getattr(handler, "__self__", None), StopSignal)
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _AtOnce())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def interrupt_if_heard() -> None:
    """Raise the KeyboardInterrupt of a Ctrl-C that was lost within `heard_at_once`.

    Most of a compilation passes in LLVM, which then calls Python to hand over the machine code. Nothing can be raised
    there, nor in other functions that C calls.
    """
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, _AtOnce) and handler.heard and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


_MANY: ContextVar[bool] = ContextVar("many", default=False)


@contextmanager
def many_fits() -> Iterator[None]:
    """Within the block a Ctrl-C is raised at once, and no signal takes it: what was fitted until then is one of many.

    A study would measure the tree of a fit that was cut short as if it were whole, and go on with the next.
    """
    token = _MANY.set(True)
    try:
        yield
    finally:
        _MANY.reset(token)


_READING: ContextVar[StopSignal | None] = ContextVar("reading", default=None)


def reading_signal() -> StopSignal | None:
    """The signal of the fit that reads a table now (`StopSignal.reading`); None where there is none."""
    return _READING.get()
