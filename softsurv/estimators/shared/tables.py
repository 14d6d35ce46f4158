"""Tables of predictions, rows by times: refused where memory cannot hold them, and filled some rows at a time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.errors import NotEnoughMemoryError

CELLS = 2_000_000
"""Most cells that are worked out at once: 16 MB."""

SMALL = 2**28
"""Tables of fewer bytes are made without a look at the memory that is free."""

MACHINE, CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
"""Where Linux tells what memory is free, and what a container may take."""


def new_table(n_rows: int, n_times: int, *more: int) -> FloatArray:
    """An array (n, T, *more) to be filled.

    Raises
    ------
    NotEnoughMemoryError
        If it takes more memory than is free.
    """
    check_room(n_rows, n_times, math.prod(more))
    try:
        return np.empty((n_rows, n_times, *more))
    except MemoryError:
        raise NotEnoughMemoryError(_sentence(n_rows, n_times, math.prod(more), "less")) from None


def check_room(n_rows: int, n_times: int, each: int = 1) -> None:
    """Raise where ``each`` numbers for every row and time take more memory than is free.

    Linux gives more memory than there is, and ends the process that uses it.

    Raises
    ------
    NotEnoughMemoryError
    """
    if (free := _short_of(8 * n_rows * n_times * each)) is not None:
        raise NotEnoughMemoryError(_sentence(n_rows, n_times, each, f"{free / 1e9:.3g} GB"))


def check_room_to_encode(n_rows: int, n_columns: int) -> None:
    """Raise where the encoded features of a prediction, of which two tables are held, take more memory than is free.

    Raises
    ------
    NotEnoughMemoryError
    """
    if (free := _short_of(needed := 2 * 8 * n_rows * n_columns)) is not None:
        raise NotEnoughMemoryError(
            f"{n_rows} rows in {n_columns} encoded columns take {needed / 1e9:.3g} GB of memory, and {free / 1e9:.3g} "
            "GB is free; predict some of the rows at a time"
        )


def by_rows(n_rows: int, n_times: int, of: Callable[[slice], FloatArray]) -> FloatArray:
    """The table (n, T) whose rows ``of`` tells for slices of them, so that few tables of one size are held together.

    Raises
    ------
    NotEnoughMemoryError
        If it takes more memory than is free.
    """
    table = new_table(n_rows, n_times)
    for rows in row_blocks(n_rows, n_times):
        table[rows] = of(rows)
    return table


def row_blocks(n_rows: int, n_times: int) -> list[slice]:
    """Slices of the rows, as many at once as `CELLS` allows."""
    size = max(1, CELLS // max(n_times, 1))
    return [slice(begin, min(begin + size, n_rows)) for begin in range(0, n_rows, size)]


def free_memory() -> float:
    """Bytes that this process may still take; inf where the system does not tell."""
    return min(_free_of_machine(), _free_of_container())


def _short_of(needed: float) -> float | None:
    """Bytes that are free, where more are needed; of small tables nobody asks."""
    return free if needed > SMALL and needed > (free := free_memory()) else None


def _sentence(n_rows: int, n_times: int, each: int, free: str) -> str:
    return (
        f"predictions of {n_rows} rows at {n_times} times take {8e-9 * n_rows * n_times * each:.3g} GB of memory, and "
        f"{free} is free; give fewer times, or predict some of the rows at a time"
    )


def _free_of_machine() -> float:
    try:
        told = dict(re.findall(r"^(MemAvailable|SwapFree): +(\d+) kB", MACHINE.read_text(), re.MULTILINE))
    except OSError:
        return math.inf
    return 1024.0 * sum(map(int, told.values())) if "MemAvailable" in told else math.inf


def _free_of_container() -> float:
    """What is left of the limit of the process's container; files that are cached give way."""
    try:
        limit = re.match(r"\d+", (CONTAINER / "memory.max").read_text())  # "max" where there is none
        taken = re.search(r"^anon (\d+)", (CONTAINER / "memory.stat").read_text(), re.MULTILINE)
    except OSError:
        return math.inf
    return math.inf if limit is None or taken is None else float(limit[0]) - float(taken[1])
