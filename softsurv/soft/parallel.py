"""Parts of a stack on the cores of a CPU: one thread for each part, instead of many threads for each tensor.

Small tensors gain nothing from threads inside an operation, and lose much where other processes want the cores too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

import torch

from softsurv.cores import n_cores
from softsurv.in_thread import InThread
from softsurv.stopping import POLL_SECONDS, StopSignal

Part = TypeVar("Part")
Result = TypeVar("Result")

FINISHING, MOST_FINISHING = 2.0, 0.25
"""Time kept for finishing a tree: this multiple of the time that reading took, at most this share of the time limit."""


@dataclass(frozen=True)
class Machine:
    """The device, the time limit and the threads of a training."""

    device: torch.device
    dtype: torch.dtype = torch.float64
    budget: StopSignal | None = None
    workers: int = 1

    @property
    def at_once(self) -> int:
        """Stacks that train at once: one for each thread on a CPU, one on a GPU, as it may fill the memory there."""
        return self.workers if self.device.type == "cpu" else 1

    @property
    def like(self) -> torch.Tensor:
        """An empty tensor of the device and type."""
        return torch.empty(0, dtype=self.dtype, device=self.device)

    @property
    def time_limit(self) -> float | None:
        """Seconds in all, None without a limit."""
        if self.budget is None or self.budget.deadline is None:
            return None
        return self.budget.deadline - self.budget.started

    def ending_sooner(self, share: float = 0.0) -> Machine:
        """The same machine with less time, so that a share of the time limit is left for the work that follows.

        Time to finish a tree is left in any case: twice the time that was taken so far, to read the rows. Both reading
        and finishing (standard errors, tables of the leaves) take time in proportion to rows times features.
        """
        if self.budget is None or self.time_limit is None:
            return self
        finishing = min(FINISHING * self.budget.seconds, MOST_FINISHING * self.time_limit)
        return replace(self, budget=self.budget.ending_sooner(max(finishing, share * self.time_limit)))

    def start_seconds(self, times: int = 1) -> float | None:
        """Seconds for each of that many log-rank starts, which together get a quarter of the time limit."""
        return None if self.time_limit is None else 0.25 * self.time_limit / times


def unless_stopped(work: Callable[[], Result], budget: StopSignal | None) -> Result | None:
    """What the work returns; None where the budget is exhausted first.

    For compiled code of other libraries, which hears no Ctrl-C. Also where no budget takes the Ctrl-C, it interrupts at
    once here. The work goes on in its thread, so it must end soon by itself.
    """
    aside = InThread(work)
    while aside.thread.is_alive() and (budget is None or not budget.exhausted):
        aside.thread.join(POLL_SECONDS)
    return None if aside.thread.is_alive() else aside.answer()


@cache
def keep_memory() -> None:
    """Make the C library keep memory that training frees; once per process.

    glibc gives freed blocks above a threshold back to the system, and every round of training takes them anew, page by
    page. The threshold follows the largest block freed so far, up to 32 MB: freeing one such block raises it for good.
    """
    torch.empty(30_000_000, dtype=torch.uint8)


def workers_of_torch() -> int:
    """Threads of torch, but no more than there are cores for this process: torch knows no quota of a container."""
    return min(torch.get_num_threads(), n_cores())


@contextmanager
def one_core_each() -> Iterator[int]:
    """While open, torch uses one core for each operation; yields the number of `workers_of_torch`, for `map_parts`."""
    threads, workers = torch.get_num_threads(), workers_of_torch()
    torch.set_num_threads(1)
    try:
        yield workers
    finally:
        torch.set_num_threads(threads)


def map_parts(function: Callable[[Part], Result], parts: Iterable[Part], workers: int) -> list[Result]:
    """``[function(part) for part in parts]`` on that many threads."""
    jobs = list(parts)
    if workers == 1 or len(jobs) < 2:
        return [function(part) for part in jobs]
    with ThreadPoolExecutor(min(workers, len(jobs)), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(function, jobs))
