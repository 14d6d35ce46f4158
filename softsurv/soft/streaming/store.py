"""Rows of a table by chunks, in memory or in a file.

The chunks of a process stay in memory up to a given number of bytes; further ones lie in one file. The outcomes of all
rows stay in memory in any case: for each row 8 bytes for the time and 8 for its logarithm, 1 for the event, 8 for the
weight.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.hazards.base import LeafFamily
from softsurv.soft.problem import Problem
from softsurv.soft.streaming.distributed import Ranks


@dataclass
class ChunkRows:
    """Rows in memory: design (n, Q) with a leading column of ones, outcome and weight, and their numbers."""

    design: NDArray[np.floating]
    log_time: FloatArray
    event: BoolArray
    weight: FloatArray
    number: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def problem(self, family: LeafFamily, time_scale: Tensor, total: float, like: Tensor) -> Problem:
        """One tree's problem of these rows alone; weights are shares of ``total``."""

        def place(value: NDArray[np.generic]) -> Tensor:
            return torch.from_numpy(value).to(like)

        features = family.time_features(torch.from_numpy(self.log_time)[None], time_scale[None].double().cpu())
        return Problem(
            family=family,
            design=place(self.design)[None],
            event=place(self.event)[None, None],
            features=features.to(like),
            weight=(place(self.weight) / total)[None, None],
            time_scale=time_scale[None].to(like),
        )


class ChunkStore:
    """This process's chunks: designs in memory up to a number of bytes, the others in a file.

    Parameters
    ----------
    memory : int
        Bytes that designs may take in memory.
    folder : path-like, optional
        Where the file goes; a temporary folder by default. It is removed on closing.
    dtype : torch.dtype
        Precision in which designs are kept.
    """

    def __init__(
        self, memory: int, folder: str | os.PathLike[str] | None = None, dtype: torch.dtype = torch.float64
    ) -> None:
        self.memory, self.folder = memory, folder
        self.kind = np.dtype(np.float64 if dtype == torch.float64 else np.float32)
        self.in_memory = 0
        self._held: list[NDArray[np.floating]] = []
        self._places: list[tuple[int, int] | None] = []  # offset and rows in the file, None in memory
        self._file: BinaryIO | None = None
        self._reading = threading.Lock()
        self._index: list[int] = []
        self.outcomes: list[tuple[FloatArray, BoolArray, FloatArray]] = []
        self._log_times: dict[tuple[int, float], FloatArray] = {}
        self.columns = 0

    def __len__(self) -> int:
        return len(self._places)

    def __enter__(self) -> ChunkStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def on_disk(self) -> int:
        """Bytes of designs in the file."""
        return sum(0 if p is None else p[1] * self.columns * self.kind.itemsize for p in self._places)

    def append(
        self,
        x: FloatArray,  # (n, P)
        time: FloatArray,
        event: BoolArray,
        weight: FloatArray | None,
    ) -> None:
        """Add a chunk."""
        self.columns = x.shape[1] + 1
        design = np.empty((len(x), self.columns), dtype=self.kind)
        design[:, 0], design[:, 1:] = 1.0, x
        self.outcomes.append((time, event, np.ones_like(time) if weight is None else weight))
        if self.in_memory + design.nbytes <= self.memory:
            self.in_memory += design.nbytes
            self._index.append(len(self._held))
            self._held.append(design)
            self._places.append(None)
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self.folder, prefix="softsurv-")  # noqa: SIM115 (closed on exit)
        offset = self._file.seek(0, os.SEEK_END)
        self._file.write(design.data)
        self._file.flush()
        self._index.append(-1)
        self._places.append((offset, len(x)))

    def design(self, number: int) -> NDArray[np.floating]:
        """Design of a chunk, (n, Q); several threads may read at once."""
        place = self._places[number]
        if place is None:
            return self._held[self._index[number]]
        offset, rows = place
        design: NDArray[np.floating] = np.empty((rows, self.columns), dtype=self.kind)
        self._read(offset, design.reshape(-1).view(np.uint8).data)
        return design

    def _read(self, offset: int, view: memoryview) -> None:
        """Fill ``view`` from a place in the file."""
        assert self._file is not None
        if not hasattr(os, "preadv"):  # on Windows threads share one place in the file
            with self._reading:
                self._file.seek(offset)
                self._file.readinto(view)  # type: ignore[attr-defined]
            return
        done = 0
        while done < len(view):
            done += os.preadv(self._file.fileno(), [view[done:]], offset + done)

    def let_go(self) -> None:
        """Give back the memory of the designs, once they are read for the last time; the outcomes stay."""
        self._held.clear()

    def rows(self, number: int, floor: float) -> ChunkRows:
        """A chunk with times of zero raised to ``floor``."""
        time, event, weight = self.outcomes[number]
        if (number, floor) not in self._log_times:
            self._log_times[number, floor] = np.log(np.where(time > 0, time, floor))
        return ChunkRows(self.design(number), self._log_times[number, floor], event, weight)


def gather_outcomes(store: ChunkStore, ranks: Ranks) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Times, events and weights of the rows of all processes, (N,) each, sorted: how rows are shared has no effect."""
    mine = [np.concatenate(column) for column in zip(*store.outcomes, strict=True)] if len(store) else None
    parts = [part for part in ranks.gather(mine) if part is not None]
    time, event, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((weight, event, time))
    return time[order], event[order], weight[order]


def chosen(seed: int, first_row: int, n: int, share: float) -> BoolArray:
    """Which of the ``n`` rows from ``first_row`` on belong to a random sample, by the seed and the row's number alone.

    The random numbers are those of splitmix64 (Steele, Lea & Flood 2014).
    """
    with np.errstate(over="ignore"):
        z = np.arange(first_row, first_row + n, dtype=np.uint64) + np.uint64(seed) * np.uint64(0x632BE59BD9B4E019)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return z.astype(np.float64) <= share * 2.0**64


def join_rows(parts: Sequence[ChunkRows]) -> ChunkRows:
    """Rows of several parts in the order of their numbers."""
    order = np.argsort(np.concatenate([p.number for p in parts]), kind="stable")
    names = ("design", "log_time", "event", "weight", "number")
    return ChunkRows(*(np.concatenate([getattr(p, name) for p in parts])[order] for name in names))
