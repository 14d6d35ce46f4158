"""Chunks on the device that computes with them: those that fit stay there, the others are read ahead."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields, replace
from types import TracebackType

from torch import Tensor

from softsurv.soft.capacity import free_memory
from softsurv.soft.problem import Problem
from softsurv.soft.streaming.axis import Axis
from softsurv.soft.streaming.store import ChunkStore

KEPT_SHARE = 0.5
"""Share of a device's free memory that chunks may occupy for good; the rest is for computing."""


class PlacedChunks:
    """The problem of each chunk on a device.

    On a CPU a chunk is used where it lies. On another device the first chunks stay there from the first pass on, as far
    as its memory goes. While one chunk is computed with, the next of those that do not stay is read into pinned memory.

    Parameters
    ----------
    store : ChunkStore
        This process's chunks.
    axis : Axis
    like : Tensor
        Gives the device and the precision of the computation.
    room : int, optional
        Bytes that may stay on a device that is no CPU; by default a share of what it has free.

    Attributes
    ----------
    kept : dict
        Problems on the device by the numbers of their chunks.
    """

    def __init__(self, store: ChunkStore, axis: Axis, like: Tensor, room: int | None = None) -> None:
        self.store, self.axis, self.like = store, axis, like
        self.kept: dict[int, Problem] = {}
        self._elsewhere = like.device.type != "cpu"
        self._room = room
        self._reader: ThreadPoolExecutor | None = None
        self._ahead: tuple[int, Future[Problem]] | None = None

    def __len__(self) -> int:
        return len(self.store)

    def __enter__(self) -> PlacedChunks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Wait for a read under way, and free the chunks on the device."""
        if self._reader is not None:
            self._reader.shutdown(cancel_futures=True)
        self.kept.clear()

    def problem(self, number: int) -> Problem:
        """The problem of one chunk. Chunks should be asked for in order; on a device other than a CPU by one thread."""
        if not self._elsewhere:
            return self._on_host(number)
        if number in self.kept:
            return self.kept[number]
        placed = moved(self._read(number), self.like)
        size = bytes_of(placed)
        if self._room is None:
            self._room = int(KEPT_SHARE * free_memory(self.like.device))
        if size <= self._room:
            self._room -= size
            self.kept[number] = placed
        self._read_ahead(number)
        return placed

    def _on_host(self, number: int) -> Problem:
        rows = self.store.rows(number, self.axis.floor)
        like = self.like.new_zeros((), device="cpu")
        return rows.problem(self.axis.family, self.axis.time_scale.cpu(), self.axis.total, like)

    def _read(self, number: int) -> Problem:
        """A chunk in memory; it was read ahead if it is the one that was expected."""
        ahead, self._ahead = self._ahead, None
        return ahead[1].result() if ahead is not None and ahead[0] == number else self._pinned(number)

    def _read_ahead(self, number: int) -> None:
        """Begin to read the next chunk that is not on the device; after the last one the first, of a new pass."""
        coming = (*range(number + 1, len(self.store)), *range(number))
        foreseen = next((k for k in coming if k not in self.kept), None)
        if foreseen is not None:
            self._reader = self._reader or ThreadPoolExecutor(1, thread_name_prefix="softsurv-chunks")
            self._ahead = foreseen, self._reader.submit(self._pinned, foreseen)

    def _pinned(self, number: int) -> Problem:
        problem = self._on_host(number)
        return mapped(problem, Tensor.pin_memory) if self.like.is_cuda else problem


def mapped(problem: Problem, change: Callable[[Tensor], Tensor]) -> Problem:
    """The problem with a function applied to its tensors."""
    tensors = {f.name: getattr(problem, f.name) for f in fields(problem)}
    return replace(problem, **{k: change(v) for k, v in tensors.items() if isinstance(v, Tensor)})  # type: ignore[arg-type]


def moved(problem: Problem, like: Tensor) -> Problem:
    """The problem on the device of another tensor, without waiting where its memory is pinned."""
    return mapped(problem, lambda value: value.to(like.device, non_blocking=True))


def bytes_of(problem: Problem) -> int:
    """Memory of a problem's tensors."""
    tensors = (getattr(problem, f.name) for f in fields(problem))
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, Tensor))
