"""Several processes that train one model, each on its share of the rows: torchrun starts them.

Sums over rows are carried with their rounding errors, so that the total does not depend on how the rows are shared: any
number of processes gives the result of one.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from softsurv.errors import SoftsurvError
from softsurv.soft.streaming.launched import is_launched

logger = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE = timedelta(minutes=30)
"""How long a process waits for the others before it gives up: longer than any pass over the rows."""


class RunningSum:
    """Sum of tensors with its rounding error: twice the digits of the tensors (Knuth's two-sum)."""

    def __init__(self, like: Tensor) -> None:
        self.high = torch.zeros_like(like)
        self.low = torch.zeros_like(like)

    def add(self, value: Tensor) -> None:
        """Add a tensor."""
        total = self.high + value
        back = total - self.high
        self.low = self.low + ((self.high - (total - back)) + (value - back))
        self.high = total

    @property
    def value(self) -> Tensor:
        """The sum, rounded once."""
        return self.high + self.low


class Ranks:
    """The processes of a job; the plain instance is a job of one.

    Attributes
    ----------
    rank, size : int
        This process's number and how many there are.
    device : torch.device
        Where tensors that are exchanged must lie.
    """

    def __init__(self, rank: int = 0, size: int = 1, device: torch.device | None = None) -> None:
        self.rank, self.size = rank, size
        self.device = torch.device("cpu") if device is None else device

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and messages."""
        return self.rank == 0

    def gather(self, value: T) -> list[T]:
        """Every process's value, in the order of ranks."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        self._together(lambda: dist.all_gather_object(found, value))
        return found

    def total(self, part: RunningSum) -> Tensor:
        """The sum over all processes, the same to the last digit in each."""
        if self.size == 1:
            return part.value
        mine = torch.stack([part.high, part.low]).to(self.device)
        parts = [torch.empty_like(mine) for _ in range(self.size)]
        self._together(lambda: dist.all_gather(parts, mine))
        whole = RunningSum(part.high)
        for high, low in (p.to(part.high.device) for p in parts):
            whole.add(high)
            whole.add(low)
        return whole.value

    def share(self, value: T) -> T:
        """The first process's value, in every process."""
        if self.size == 1:
            return value
        held = [value]
        self._together(lambda: dist.broadcast_object_list(held, src=0))
        return held[0]

    def _together(self, exchange: Callable[[], Any]) -> None:
        try:
            exchange()
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[0]
            logger.debug("exchange failed: %s", reason)
            raise SoftsurvError(_LOST.format(rank=self.rank, size=self.size)) from error


_LOST = (
    "process {rank} of {size} lost the others: one of them ended or does not answer; see its own message, then run the "
    "same command again, which goes on from the last checkpoint where one was named"
)


def _place(use_cuda: bool) -> torch.device:
    """The device of this process."""
    return torch.device("cuda", int(os.environ["LOCAL_RANK"])) if use_cuda else torch.device("cpu")


@contextmanager
def join(device: str = "auto") -> Iterator[Ranks]:
    """The job that torchrun started, or a job of one.

    Parameters
    ----------
    device : str
        "cpu" computes on the CPU (gloo). Any other takes one GPU for each process (nccl), or the CPU if there is none.

    Raises
    ------
    SoftsurvError
        In every remaining process when another one ends, so that the whole job ends.
    """
    if not is_launched():
        yield Ranks()
        return
    if dist.is_initialized():  # within another join
        yield Ranks(dist.get_rank(), dist.get_world_size(), _place(dist.get_backend() == "nccl"))
        return
    use_cuda = device != "cpu" and torch.cuda.is_available()
    place = _place(use_cuda)
    if use_cuda:
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if use_cuda else "gloo", timeout=PATIENCE)
    ranks = Ranks(dist.get_rank(), dist.get_world_size(), place)

    def end(number: int, frame: FrameType | None) -> None:
        raise SoftsurvError(_LOST.format(rank=ranks.rank, size=ranks.size))

    before = signal.signal(signal.SIGTERM, end)  # what torchrun sends when another process has ended
    try:
        yield ranks
        signal.signal(signal.SIGTERM, before)
    except BaseException:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # this process ends by itself, and says why first
        raise
    finally:
        dist.destroy_process_group()
