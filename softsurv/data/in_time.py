"""Tables are read within the time limit of a fit. Where it ends earlier, an error says how much was read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from softsurv.errors import InvalidParameterError
from softsurv.stopping import StopSignal, reading_signal

READING_GRACE = 0.25
"""Seconds for which tables are still read when the time limit has passed: half of the promised 0.5 s."""

READ_ANYHOW = 16
"""Columns of text, or chunks, that take no time worth a limit."""

NUMBERS_ANYHOW = 4_000_000
"""Numbers that are read in any case: 50,000 rows of 50 columns take a quarter of a second."""

COLUMN_CELLS = 64
"""Fixed time of a column, as so many numbers."""

ONE_LEAF = 1.0
"""What fitting one leaf takes at least, as a share of the time that reading took: it looks at all rows too."""

Part = TypeVar("Part")


def read_in_time(parts: Sequence[Part], what: str) -> Iterator[Part]:
    """The parts of a table one by one, for a fit that may not have the time to read all of them.

    Parameters
    ----------
    parts : sequence
    what : str
        What they are, for the sentence.

    Raises
    ------
    InvalidParameterError
        If the time limit of the fit has passed. No tree could be fitted to all rows then.
    """
    for k, part in enumerate(parts):
        look_at_clock(k, f"{k} of {len(parts)} {what}", "leave columns out, or pass them as numbers")
        yield part


def look_at_numbers(n_rows: int, n_columns: int) -> None:
    """Raise where the time limit has passed while a large table of numbers is read, block by block."""
    signal = reading_signal()
    if signal is not None and _is_large(n_rows, n_columns) and signal.left < -READING_GRACE:
        _refuse_numbers(signal.seconds + signal.left, n_rows, n_columns, "passed meanwhile")


def look_before_fitting(n_rows: int, n_columns: int, signal: StopSignal | None) -> None:
    """Raise where reading a large table of numbers has left no time to fit even one leaf."""
    if signal is None or not _is_large(n_rows, n_columns):
        return
    if signal.left < ONE_LEAF * signal.seconds - READING_GRACE:
        _refuse_numbers(signal.seconds + signal.left, n_rows, n_columns, "left no time to fit a leaf")


def _is_large(n_rows: int, n_columns: int) -> bool:
    return (n_rows + COLUMN_CELLS) * n_columns > NUMBERS_ANYHOW


def _refuse_numbers(limit: float, n_rows: int, n_columns: int, what: str) -> None:
    raise InvalidParameterError(
        f"time_limit must be longer than reading {n_rows} rows of {n_columns} columns takes, got {limit:.6g} s, which "
        f"{what}; raise it, or leave columns out"
    )


def look_at_clock(n_read: int, place: str, remedy: str) -> None:
    """Raise where a table is read within a time limit that has passed; the first few parts are read in any case."""
    signal = reading_signal()
    if signal is not None and n_read >= READ_ANYHOW and signal.left < -READING_GRACE:
        limit = signal.seconds + signal.left
        raise InvalidParameterError(
            f"time_limit must be longer than reading the table takes, got {limit:.6g} s, which passed at {place}; "
            f"raise it, {remedy}"
        )
