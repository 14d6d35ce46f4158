"""Tables are read within the time limit of the fit that reads them, or one sentence says how far it came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from softsurv.errors import InvalidParameterError
from softsurv.stopping import reading_signal

READING_GRACE = 0.25
"""Seconds for which tables are still read when the time limit has passed: half of the promised 0.5 s."""

READ_ANYHOW = 16
"""Columns of text, or chunks, that take no time worth a limit."""

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
        If the time limit of the fit has passed. There is no tree then that the rows speak for.
    """
    for k, part in enumerate(parts):
        look_at_clock(k, f"{k} of {len(parts)} {what}", "leave columns out, or pass them as numbers")
        yield part


def look_at_clock(n_read: int, place: str, remedy: str) -> None:
    """Raise where a table is read within a time limit that has passed; the first few parts are read in any case."""
    signal = reading_signal()
    if signal is not None and n_read >= READ_ANYHOW and signal.left < -READING_GRACE:
        limit = signal.seconds + signal.left
        raise InvalidParameterError(
            f"time_limit must be longer than reading the table takes, got {limit:.6g} s, which passed at {place}; "
            f"raise it, {remedy}"
        )
