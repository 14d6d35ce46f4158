"""Work that is recorded once and replayed: on CUDA as a graph, one launch in the place of some hundreds.

The work must change tensors in place, allocate nothing that outlives it, and ask the device for nothing. Recording is
asked for by the environment variable SOFTSURV_CUDA_GRAPHS=1: no CUDA device has run it yet, and an error inside a graph
can end a process. `tests/gpu` compares recorded rounds with others on a device; elsewhere a stand-in records them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

from softsurv.errors import warn

Work = Callable[[], None]

Capture = Callable[[Work], Work]
"""Records work without doing it, and returns what does it."""

SWITCH = "SOFTSURV_CUDA_GRAPHS"

_CAPTURE: ContextVar[Capture | None] = ContextVar("capture", default=None)


@contextmanager
def recording(capture: Capture) -> Iterator[None]:
    """While open, work is recorded by this, on any device: for tests."""
    token = _CAPTURE.set(capture)
    try:
        yield
    finally:
        _CAPTURE.reset(token)


def capture_on(device: torch.device) -> Capture | None:
    """What records work on a device, None where nothing does."""
    if device.type == "cuda" and os.environ.get(SWITCH) == "1":
        return cuda_graph
    return _CAPTURE.get()


def cuda_graph(work: Work) -> Work:
    """The work as a CUDA graph. Its temporary tensors have a memory pool that lives as long as the graph.

    `torch.cuda.graph` would wait for the device and collect garbage first, which costs as much as many rounds.
    """
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        graph.capture_begin(capture_error_mode="thread_local")  # other threads may read chunks meanwhile
        try:
            work()
        finally:
            graph.capture_end()
    torch.cuda.current_stream().wait_stream(stream)
    return graph.replay


class Repeated:
    """Work that is done again and again.

    The first time it is done as it is: that loads libraries and fills caches, and short work never comes further. The
    second time it is recorded, where that is asked for, and from then on replayed.

    Parameters
    ----------
    work : callable
        What it changes must be tensors that stay where they are.
    capture : callable, optional
        Records it; without, the work is done as it is every time.
    """

    def __init__(self, work: Work, capture: Capture | None) -> None:
        self.work, self.capture = work, capture
        self.replay: Work | None = None
        self._begun = False

    def __call__(self) -> None:
        if self._begun and self.capture is not None:
            self.replay, self.capture = self._recorded(self.capture), None
        self._begun = True
        (self.replay or self.work)()

    def _recorded(self, capture: Capture) -> Work | None:
        """What replays the work; None, with a warning, where it cannot be recorded."""
        try:
            return capture(self.work)
        except RuntimeError as error:
            reason = str(error).strip().partition("\n")[0]
            warn(f"rounds of training could not be recorded ({reason}); they run operator by operator", RuntimeWarning)
            return None
