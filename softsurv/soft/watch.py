"""Which trees are moving, as far as the host knows without waiting for the device: the answer may be a round old."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

import torch
from torch import Tensor

LOOK_EVERY = 4
"""Rounds that are recorded as one graph, and rounds between calls of ``on_round``."""

_ALWAYS_LATE: ContextVar[bool] = ContextVar("always late", default=False)


@contextmanager
def never_waiting() -> Iterator[None]:
    """While open, no device is waited for inside training, as a CUDA device never is: for tests on a CPU."""
    token = _ALWAYS_LATE.set(True)
    try:
        yield
    finally:
        _ALWAYS_LATE.reset(token)


def runs_ahead(value: Tensor) -> bool:
    """Whether reading the value would wait for its device."""
    return value.is_cuda or _ALWAYS_LATE.get()


@dataclass(frozen=True)
class _Copy:
    """A mask (m,) on its way to the host."""

    mask: Tensor
    event: torch.cuda.Event | None
    kept: Tensor | None = None  # places of the trees that have stayed in the stack since

    @property
    def of_stack(self) -> Tensor:
        """The mask of the stack as it is now."""
        return self.mask if self.kept is None else self.mask[self.kept]


class Watch:
    """Tells the host which trees are moving, without waiting for a device. The host is one look ahead of it at most.

    On a device each look starts a copy of the mask and reads the newest copy that has arrived. A tree that has stopped
    may therefore stay in the stack for a round more, which costs time and changes nothing else.
    """

    def __init__(self, late: bool) -> None:
        self.late = late
        self.copies: list[_Copy] = []

    def __call__(self, mask: Tensor) -> Tensor | None:
        """The mask (m,) of the host itself; of a device, the newest that has arrived once this one is on its way."""
        if not self.late:
            return mask
        self.send(mask)
        return self.known()

    def send(self, mask: Tensor) -> None:
        """Start the copy of a mask that :meth:`known` is to tell of."""
        copy = torch.empty(mask.shape, dtype=mask.dtype, pin_memory=mask.is_cuda).copy_(mask, non_blocking=True)
        event = torch.cuda.Event() if mask.is_cuda else None
        if event is not None:
            event.record(torch.cuda.current_stream(mask.device))
        self.copies.append(_Copy(copy, event))

    def known(self) -> Tensor | None:
        """The newest mask (m,) that has arrived, or None. While two are on their way, the host waits for the first."""
        return self._newest(lambda: len(self.copies) > 1)

    def last(self) -> Tensor | None:
        """The newest mask (m,), for which the host waits where it has not arrived; None where none is under way."""
        return self._newest(lambda: True)

    def _newest(self, waits: Callable[[], bool]) -> Tensor | None:
        """The newest copy that is complete; the host waits for one that is not, while it ``waits``."""
        newest = None
        while self.copies:
            event = self.copies[0].event
            if event is not None and not event.query():
                if not waits():
                    break
                event.synchronize()
            newest = self.copies.pop(0).of_stack
        return newest

    def narrow(self, kept: Tensor) -> None:
        """Only some trees (k,; numbers on the host) stay in the stack: copies under way now tell of these alone."""
        self.copies = [replace(one, kept=kept if one.kept is None else one.kept[kept]) for one in self.copies]
