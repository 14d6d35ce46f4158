"""The two readings of a table that is streamed: what the first one counts, and that the second one finds the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from softsurv.data.blocks import NumberBlock, column_types
from softsurv.data.chunks import Chunk
from softsurv.data.in_time import look_at_clock
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.shared.training_rows import nullable_numbers, repeats_of_outcome

Repeats = list[tuple[str, str]]
"""Features that equal the "time" or the "event" of the outcome in every row, with which of them."""


class CountedChunks:
    """Chunks of a first reading, with what they show of all rows and what a second reading must find again.

    Attributes
    ----------
    rows : int
        Rows read so far.
    repeats : list of (feature, "time" or "event"), or None before the first chunk
    checksums : dict of int to int
        Of each chunk, by its first row.
    """

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self.chunks, self.rows = chunks, 0
        self.repeats: Repeats | None = None
        self.checksums: dict[int, int] = {}

    def __iter__(self) -> Iterator[Chunk]:
        for number, chunk in enumerate(self.chunks):
            look_at_clock(number, f"row {self.rows} of the first of two readings", "or take a sample of the rows")
            self.rows += len(chunk.time)
            yield chunk
            self.checksums[chunk.first_row] = chunk.checksum()  # after its reader has refused what is no table
            self.repeats = _still_repeated(self.repeats, chunk)

    def again(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The same chunks read once more.

        Raises
        ------
        InvalidSurvivalDataError
            If their content differs: a file may change and keep its size and time.
        """
        left = dict(self.checksums)
        for number, chunk in enumerate(chunks):
            look_at_clock(number, f"row {chunk.first_row} of the second reading", "or take a sample of the rows")
            if left.pop(chunk.first_row, None) != chunk.checksum():
                raise _changed(f"other values in the rows from {chunk.first_row}")
            yield chunk
        if left:
            raise _changed(f"no rows from {min(left)}")


def in_all(parts: Sequence[Repeats | None]) -> Repeats:
    """What repeats the outcome in the rows of every process; None is of a process without rows."""
    known = [part for part in parts if part is not None]
    return [one for one in known[0] if all(one in part for part in known)] if known else []


def _still_repeated(sofar: Repeats | None, chunk: Chunk) -> Repeats:
    """What repeats the outcome in a chunk too; only columns that did so far are looked at."""
    X = (
        chunk.X
        if sofar is None
        else chunk.X[[name for name in chunk.X if (name, "time") in sofar or (name, "event") in sofar]]
    )
    if X.shape[1] == 0:
        return []
    types = column_types(X)
    found = repeats_of_outcome(NumberBlock.of(X, types), nullable_numbers(X, types), chunk.time, chunk.event)
    return found if sofar is None else [one for one in sofar if one in found]


def _changed(what: str) -> InvalidSurvivalDataError:
    return InvalidSurvivalDataError(f"source must stay as it is while it is read twice, got {what}; fit again")
