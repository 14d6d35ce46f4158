"""Rounds that are recorded once and replayed: on CUDA as a graph, one launch in the place of some hundreds.

The work must change tensors in place, allocate nothing that outlives it, and read nothing back from the device. The
first replay is compared with the work itself, from the same state. If both agree, the graph is replayed from then on.
If they do not, or if the work cannot be recorded, one warning is given and nothing is recorded any more. The
environment variable SOFTSURV_CUDA_GRAPHS=0 switches graphs off.

`tests/gpu` compares recorded rounds with others on a device, and a stand-in records them elsewhere.
"""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

import torch
from torch import Tensor

from softsurv.errors import warn

Work = Callable[[], None]

Capture = Callable[[Work], Work | None]
"""Records work without doing it, and returns a function that replays it; None where there is no room for a record."""

SWITCH = "SOFTSURV_CUDA_GRAPHS"

AGREEMENT = 0.4
"""A replay may differ by the machine's precision to this power (5e-7 in float64), relative to the largest entry of a
tree and to 1: the order of sums may differ, and rounds multiply what rounding does."""

_CAPTURE: ContextVar[Capture | None] = ContextVar("capture", default=None)

_GIVEN_UP: set[Capture] = set()
"""Captures that failed. There is no second attempt, as a failed one may leave the memory of its device in disorder."""


@contextmanager
def recording(capture: Capture) -> Iterator[None]:
    """While open, ``capture`` records the work, on any device: for tests."""
    token = _CAPTURE.set(capture)
    try:
        yield
    finally:
        _CAPTURE.reset(token)


def capture_on(device: torch.device) -> Capture | None:
    """The capture that records work on a device; None where there is none."""
    capture = _CAPTURE.get()
    if capture is None and device.type == "cuda" and os.environ.get(SWITCH) != "0":
        capture = cuda_graphs(device)
    return None if capture in _GIVEN_UP else capture


@cache
def cuda_graphs(device: torch.device) -> CudaGraphs:
    """The capture of a CUDA device, one for each device."""
    return CudaGraphs(device)


class CudaGraphs:
    """Records work as CUDA graphs. The temporary tensors of a graph have a memory pool that lives as long as the graph.

    Notes
    -----
    `torch.cuda.graph` would wait for the device, collect garbage and empty the cache first, which costs as much as many
    rounds. The dangers that it avoids by that are met here in another way:

    - A garbage collection may destroy other graphs, which is not allowed during a capture: it is off meanwhile.
    - The memory of a capture cannot be taken from the cache: work is recorded where as much is free as the cache holds.
    - cuBLAS keeps a workspace for each stream. torch frees it with a graph of that stream, though another graph may use
      it (pytorch issue 193402); a stream for every graph keeps many workspaces (issue 99196). So each graph that lives
      has a stream of its own, and leaves it to the next one.
    - Streams and graphs belong to the device of the tensors, which need not be the current one (issue 87794).
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._idle: list[torch.cuda.Stream] = []
        self._alone = threading.Lock()

    def __call__(self, work: Work) -> Work | None:
        """The work as a graph, None where there is no room for one."""
        with self._alone, torch.cuda.device(self.device):
            if not self._has_room():
                return None
            stream = self._idle.pop() if self._idle else torch.cuda.Stream()
            graph = torch.cuda.CUDAGraph()
            _capture(graph, stream, work)
            return RecordedGraph(graph, stream, self._idle)

    def _has_room(self) -> bool:
        """Whether the device has as much memory free as torch's cache, which has held the work's temporary tensors.

        The cache also holds the memory of former graphs. It is emptied here, so that the next graph is judged rightly.
        """
        cached = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        if torch.cuda.mem_get_info()[0] >= cached:
            return True
        torch.cuda.empty_cache()
        return False


def _capture(graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, work: Work) -> None:
    """Record the work, without doing it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            graph.capture_begin(capture_error_mode="thread_local")  # other threads may read chunks meanwhile
            try:
                work()
            finally:
                graph.capture_end()
        torch.cuda.current_stream().wait_stream(stream)
    finally:
        if collects:
            gc.enable()


class RecordedGraph:
    """A graph that leaves its stream to others when nobody replays it any more."""

    def __init__(self, graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, idle: list[torch.cuda.Stream]) -> None:
        self.replay = graph.replay
        weakref.finalize(self, _end, graph, stream, idle).atexit = False

    def __call__(self) -> None:
        self.replay()


def _end(graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, idle: list[torch.cuda.Stream]) -> None:
    """Destroy a graph, and only then leave its stream to others."""
    graph.reset()
    idle.append(stream)


class Verdict:
    """Whether a replay agrees with the work, known without waiting for the device.

    Parameters
    ----------
    same : Tensor () bool
    """

    def __init__(self, same: Tensor) -> None:
        self.copy = torch.empty((), dtype=torch.bool, pin_memory=same.is_cuda).copy_(same, non_blocking=True)
        self.event = torch.cuda.Event() if same.is_cuda else None
        if self.event is not None:
            self.event.record(torch.cuda.current_stream(same.device))

    def __call__(self) -> bool | None:
        """The answer, None before it has arrived."""
        if self.event is not None and not self.event.query():
            return None
        return bool(self.copy)


class Repeated:
    """Rounds that are taken again and again.

    The first rounds are taken one by one: that loads libraries and fills caches, and short trainings end within them.
    The next rounds are recorded, then taken twice, by operators and by a replay; the result of the operators is kept.
    Once it is known that both agree, all further rounds are replayed.

    Parameters
    ----------
    rounds : callable
        Takes as many rounds as it is told. It must change tensors in place.
    capture : callable or None
        Records rounds; with None they are taken one by one.
    state : sequence of Tensor (M, ...)
        All tensors that rounds change.
    results : sequence of Tensor (M, ...)
        Tensors by which a replay is judged: part of the state or views of it.
    at_once : int
        Rounds in a record.
    alone : int
        Rounds to take one by one first, at least 1.
    """

    def __init__(
        self,
        rounds: Callable[[int], None],
        capture: Capture | None,
        state: Sequence[Tensor],
        results: Sequence[Tensor],
        at_once: int,
        alone: int,
    ) -> None:
        self.rounds, self.capture, self.state, self.results = rounds, capture, state, results
        self.at_once, self.alone = at_once, alone
        self.record: Work | None = None
        self.verdict: Verdict | None = None

    @property
    def recorded(self) -> bool:
        """Whether the next rounds are taken from a record, or are to be recorded."""
        return self.capture is not None and self.alone <= 0

    def __call__(self) -> int:
        """Take one round or several, and return how many."""
        if self.capture is None or self.alone > 0:
            self.alone -= 1
            self.rounds(1)
            return 1
        if self.record is None:
            self._try(self.capture)
        elif self.verdict is None or self._agrees(self.verdict):
            self.record()
        else:
            self.rounds(self.at_once)
        return self.at_once

    def _try(self, capture: Capture) -> None:
        """Record rounds, and take them both ways from the same state."""
        try:
            self.record = capture(lambda: self.rounds(self.at_once))
        except RuntimeError as error:
            self._give_up(f"could not be recorded ({_first_cause(error)})")
        if self.record is None:
            self.capture = None
            self.rounds(self.at_once)
            return
        before = [one.clone() for one in self.state]
        self.record()
        replayed = [one.clone() for one in self.results]
        torch._foreach_copy_(list(self.state), before)
        self.rounds(self.at_once)
        self.verdict = Verdict(agree(replayed, self.results))

    def _agrees(self, verdict: Verdict) -> bool:
        """Whether the replay is known to agree."""
        answer = verdict()
        if answer is not None:
            self.verdict = None
        if answer is False:
            self.record = None
            self._give_up("differ from those by operators when they are replayed")
        return answer is True

    def _give_up(self, what: str) -> None:
        """Record nothing any more, and warn of it."""
        if self.capture is not None:
            _GIVEN_UP.add(self.capture)
        self.capture = None
        warn(f"rounds of training {what}; from here on they run operator by operator", RuntimeWarning)


def agree(found: Sequence[Tensor], expected: Sequence[Tensor]) -> Tensor:
    """Whether tensors (M, ...) are equal up to :data:`AGREEMENT`, and NaN or infinite in the same places, () bool."""
    parts = []
    for ours, theirs in zip(found, expected, strict=True):
        ours, theirs = ours.flatten(1) if ours.ndim > 1 else ours[:, None], theirs.reshape(len(theirs), -1)
        finite = torch.isfinite(theirs)
        largest = torch.where(finite, theirs.abs(), 0.0).amax(1, keepdim=True).clamp(min=1.0)
        near = (ours - theirs).abs() <= torch.finfo(ours.dtype).eps ** AGREEMENT * largest
        same = (ours == theirs) | (torch.isnan(ours) & torch.isnan(theirs))
        parts.append(torch.where(finite, near, same).all())
    return torch.stack(parts).all()


def _first_cause(error: BaseException) -> str:
    """The first line of the first error, of which the failed end of the capture is a consequence."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error).strip().partition("\n")[0]
