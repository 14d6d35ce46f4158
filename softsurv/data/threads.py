"""Work on the columns or rows of a large table, in threads: numpy lets other threads go on while it works."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock
from typing import Any, TypeVar

from softsurv.cores import n_cores

Part = TypeVar("Part")
Result = TypeVar("Result")

MANY_CELLS = 1 << 22
"""Cells of a table from which on threads save more time than they take: 32 megabytes."""

MOST_THREADS = 8
"""More of them wait for the memory."""

LONG_COLUMN = 1 << 14
"""Rows of a column from which on it is worked on alone: many short ones are worked on together."""

PART_ROWS = 1 << 17
"""Rows of one column that are worked on together: a megabyte, which stays in the cache from one step to the next."""


def threads_for(cells: int) -> int:
    """Threads for a table of so many cells: one for each core if it is large."""
    return 1 if cells < MANY_CELLS else min(n_cores(), MOST_THREADS)


def in_threads(function: Callable[[Part], Result], parts: Iterable[Part], threads: int) -> list[Result]:
    """``[function(part) for part in parts]`` on that many threads, which know what the caller told numpy of errors."""
    jobs: Sequence[Part] = list(parts)
    if threads == 1 or len(jobs) < 2:
        return [function(part) for part in jobs]
    results: list[Any] = [None] * len(jobs)
    waiting, lock = iter(enumerate(jobs)), Lock()

    def work() -> None:
        """Take one part after another."""
        while True:
            with lock:
                place, part = next(waiting, (-1, jobs[0]))
            if place < 0:
                return
            results[place] = function(part)

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(copy_context().run, work) for _ in range(min(threads, len(jobs)))]:
            done.result()
    return results


def row_parts(n: int, size: int = PART_ROWS) -> list[slice]:
    """The rows of a table, so many at a time."""
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def cell_parts(columns: int, n: int) -> list[tuple[int, slice]]:
    """The columns of a large table in parts of their rows."""
    return [(column, rows) for column in range(columns) for rows in row_parts(n)]
