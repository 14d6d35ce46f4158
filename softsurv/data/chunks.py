"""Tables larger than memory: parquet and csv files read chunk by chunk.

A chunk is the same rows whoever reads it, so several processes can share a table and add up to what one would get.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.columns import check_listed, event_column, float_column, require
from softsurv.data.frames import (
    MISSING,
    checksum,
    not_utf8,
    readable,
    unique_names,
    unnamed_columns,
    without_unnamed,
)
from softsurv.data.histories import NAMED_ROW
from softsurv.data.kinds import declared
from softsurv.data.outcome_checks import check_size_of_weights
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError

CHUNK_ROWS = 65_536
"""Rows in a chunk: some megabytes of features, few enough to stay near a core's caches."""

CSV_START = 1 << 24
"""First bytes of a csv file, which decide the types of the columns."""

CSV_BLOCK, HEADERS = 1 << 20, 16
"""Bytes of a csv file that are parsed at once, and at least so many header lines. pyarrow holds 32 such blocks: it
reads ahead, and cannot be told not to."""

_TYPES = "types are taken from its first 16 MiB, so convert it to parquet where a later row differs"


class Place(NamedTuple):
    """Where a chunk begins: its row in the table; its file and its row there, where the table is several files.

    ``kept`` are the numbers, within the chunk, of its rows where some were left out.
    """

    row: int
    file: Path | None = None
    file_row: int = 0
    kept: IntArray | None = None


@dataclass(frozen=True)
class Chunk:
    """Some rows: raw features, outcome and weight, and where they stand in the table; rows of weight 0 are left out."""

    place: Place
    X: pd.DataFrame
    time: FloatArray
    event: BoolArray
    weight: FloatArray | None = None

    @property
    def first_row(self) -> int:
        """The row of the table at which the chunk begins."""
        return self.place.row

    def checksum(self) -> int:
        """A number that differs where a value of these rows does."""
        outcome = pd.DataFrame({"time": self.time, "event": self.event, "first row": self.first_row})
        return checksum(outcome if self.weight is None else outcome.assign(weight=self.weight)) ^ checksum(self.X)


@dataclass(frozen=True)
class Table:
    """A table in one file, several files or a folder of files, with the roles of its columns.

    Parameters
    ----------
    source : path, or sequence of paths
        ``.parquet`` or ``.csv`` (with a header line), or folders of them; all of one kind.
    time, event : str
        Columns of the outcome; the event as bool or 0/1.
    weight : str, optional
        Column of sample weights.
    drop : sequence of str
        Columns that are no features; each in one file at least.
    chunk_rows : int
        Rows read and kept together, at most.
    categorical, missing_values : sequence
        As for :func:`softsurv.data.readers.survival_data`.
    """

    source: Any
    time: str
    event: str
    weight: str | None = None
    drop: Sequence[str] = ()
    chunk_rows: int = CHUNK_ROWS
    categorical: Sequence[str] = ()
    missing_values: Sequence[Any] = ()

    def __post_init__(self) -> None:
        if isinstance(self.chunk_rows, bool) or not isinstance(self.chunk_rows, Integral) or self.chunk_rows < 1:
            raise InvalidParameterError(f"chunk_rows must be an integer >= 1, got {self.chunk_rows!r}")
        for argument in ("drop", "categorical", "missing_values"):
            check_listed(argument, getattr(self, argument))

    @property
    def files(self) -> list[Path]:
        """The table's files, in order.

        Raises
        ------
        InvalidSurvivalDataError
            If there are none, or of two kinds.
        """
        given = [self.source] if isinstance(self.source, str | Path) else list(self.source)
        found: list[Path] = []
        for path in map(Path, given):
            found += sorted(p for p in path.iterdir() if _kind(p)) if path.is_dir() else [path]
        for file in found:
            if not file.is_file():
                raise InvalidSurvivalDataError(f"source must be existing files, got {str(file)!r}; check the path")
        if not found:
            where = ", ".join(repr(str(path)) for path in given[:5])
            raise InvalidSurvivalDataError(
                f"source must hold .parquet or .csv files, got none in {where or 'an empty list'}; check the path"
            )
        kinds = {_kind(file) for file in found}
        if len(kinds) != 1 or None in kinds:
            raise InvalidSurvivalDataError(
                f"source must be .parquet files or .csv files, got {[p.name for p in found][:5]}; convert to one kind"
            )
        return found

    def stamp(self) -> list[tuple[str, int, int, int]]:
        """What changes when a file is written to: name, file number, size and time of change of each."""
        found = ((file, file.stat()) for file in self.files)
        return [(str(file), facts.st_ino, facts.st_size, facts.st_mtime_ns) for file, facts in found]

    def check_unchanged(self, stamp: list[tuple[str, int, int, int]]) -> None:
        """Raise where a file was changed, added or removed since the stamp was taken.

        Raises
        ------
        InvalidSurvivalDataError
        """
        changed = sorted({one[0] for one in {*stamp} ^ {*self.stamp()}})
        if changed:
            raise InvalidSurvivalDataError(
                f"source must stay as it is while it is read twice, got a change of {changed[0]!r}; fit again"
            )

    def chunks(self, rank: int = 0, size: int = 1, *, says: bool = True) -> Iterator[Chunk]:
        """The table's chunks; of several readers, each takes every ``size``-th.

        ``says``: whether to warn of columns without a name; a second reading need not repeat it.

        Raises
        ------
        InvalidSurvivalDataError
            If a column is missing, or holds what :class:`softsurv.data.survival_data.SurvivalData` refuses.
        """
        self._check_dropped()
        read = _parquet_frames if _kind(self.files[0]) == "parquet" else _csv_frames
        for place, frame in read(self, rank, size, says):
            with within_chunk(place):
                chunk = self._checked(place, frame)
            if len(chunk.time):
                yield chunk

    def frames(self, names: Sequence[str] = ()) -> Iterator[tuple[Place, pd.DataFrame]]:
        """Raw rows, chunk by chunk, with whatever columns there are, and where each chunk begins: for prediction.

        Whole numbers of a csv file are floats but in the columns ``names``, whose numbers are names, such as an id.
        """
        read = _parquet_frames if _kind(self.files[0]) == "parquet" else _csv_frames
        return ((place, declared(frame, (), self.missing_values)) for place, frame in read(self, 0, 1, True, names))

    def _check_dropped(self) -> None:
        """Refuse a name in ``drop`` that no file has."""
        if not self.drop:
            return
        known = dict.fromkeys(name for file in self.files for name in _names(file))
        for name in self.drop:
            if name not in known:
                shown = ", ".join(map(repr, list(known)[:12]))
                raise InvalidSurvivalDataError(f"drop must name columns of the table, got {name!r}; it has {shown}")

    def _checked(self, place: Place, frame: pd.DataFrame) -> Chunk:
        for role, name in (("time", self.time), ("event", self.event), ("weight", self.weight)):
            if name is not None and name not in frame.columns:
                shown = ", ".join(map(repr, list(frame.columns)[:12]))
                raise InvalidSurvivalDataError(f"{role} must name a column of the table, got {name!r}; it has {shown}")
        time = float_column(frame[self.time], "time")
        good = np.isfinite(time) & (time >= 0)
        require(good, time, "time", "finite and >= 0", "drop the row or shift the time origin")
        event, weight = event_column(frame[self.event]), None
        outcome = [name for name in (self.time, self.event, self.weight) if name is not None]
        features = frame.drop(columns=[*outcome, *(name for name in self.drop if name in frame.columns)])
        if self.weight is not None:
            weight = float_column(frame[self.weight], "weight")
            require(np.isfinite(weight) & (weight >= 0), weight, "weight", "finite and >= 0", "fix the weight")
            check_size_of_weights(weight, "weight")
            if not weight.all():
                counts = weight > 0
                place = place._replace(kept=np.flatnonzero(counts))
                features, time, event, weight = features[counts], time[counts], event[counts], weight[counts]
        return Chunk(place, declared(features, self.categorical, self.missing_values), time, event, weight)


@contextmanager
def within_chunk(place: Place) -> Iterator[None]:
    """Within the block errors count the chunk's rows; they are told with rows of the file."""
    try:
        yield
    except InvalidSurvivalDataError as error:
        within = "" if place.file is None else f" of {str(place.file)!r}"  # two folders may hold files of one name
        first = place.row if place.file is None else place.file_row

        def told_of(row: int) -> str:
            return f" at row {(row if place.kept is None else int(place.kept[row])) + first}{within}"

        told = NAMED_ROW.sub(lambda found: told_of(int(found[1])), str(error))
        if told == str(error):
            raise
        raise InvalidSurvivalDataError(told) from None


def _kind(path: Path) -> str | None:
    suffixes = {s.lower() for s in path.suffixes}
    return next((kind for kind in ("parquet", "csv") if f".{kind}" in suffixes), None)


def _names(path: Path) -> list[str]:
    """Names of a file's columns."""
    import pyarrow.parquet as pq

    with readable(path, "source", "check the file"):
        if _kind(path) == "parquet":
            return list(pq.read_schema(path).names)
        unnamed_columns(path, "source")
        return list(pd.read_csv(path, nrows=0).columns)


def _parquet_frames(
    table: Table, rank: int, size: int, _says: bool, _names: Sequence[str] = ()
) -> Iterator[tuple[Place, pd.DataFrame]]:
    """Slices of row groups; a reader opens only the row groups that hold its chunks."""
    import pyarrow.parquet as pq

    first_row = number = 0
    files = table.files
    for path in files:
        file_start, named = first_row, path if len(files) > 1 else None
        with (
            readable(path, "source", "check the file"),
            pq.ParquetFile(path, memory_map=False, pre_buffer=False) as file,
        ):
            unique_names(file.schema_arrow.names, path, "source")
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                cuts = list(range(0, rows, table.chunk_rows))
                mine = [cut for k, cut in enumerate(cuts) if (number + k) % size == rank]
                if mine:
                    content = file.read_row_group(group, use_threads=False)
                    for cut in mine:
                        place = Place(first_row + cut, named, first_row + cut - file_start)
                        yield place, content.slice(cut, table.chunk_rows).to_pandas()
                first_row, number = first_row + rows, number + len(cuts)
    if number == 0:
        raise InvalidSurvivalDataError(f"source must have at least one row, got none in {str(table.source)!r}")


def _csv_frames(
    table: Table, rank: int, size: int, says: bool, names: Sequence[str] = ()
) -> Iterator[tuple[Place, pd.DataFrame]]:
    """Slices of the rows in order; every reader parses the whole file and keeps its own."""
    import pyarrow as pa
    from pyarrow import csv

    first_row = number = 0
    quoted = csv.ParseOptions(newlines_in_values=True)
    missing = {"strings_can_be_null": True, "null_values": MISSING}
    files = table.files
    for path in files:
        file_start, named = first_row, path if len(files) > 1 else None
        with readable(path, "source", _TYPES):
            unnamed = unnamed_columns(path)
            with pa.input_stream(path) as file:
                start = file.read(CSV_START + 1)  # one more: a block ends with a row where the file goes on
            whole = csv.ReadOptions(block_size=CSV_START)
            with csv.open_csv(pa.BufferReader(start), whole, quoted, csv.ConvertOptions(**missing)) as head:
                floats = {f.name for f in head.schema if pa.types.is_integer(f.type) and f.name not in names}
                types = {f.name: pa.float64() if f.name in floats else f.type for f in head.schema}
                if any(pa.types.is_binary(f.type) for f in head.schema):
                    raise InvalidSurvivalDataError(not_utf8(path, "source"))
            convert = csv.ConvertOptions(column_types=types, **missing)
            block = min(max(CSV_BLOCK, HEADERS * start.find(b"\n")), CSV_START)
            read = csv.ReadOptions(block_size=block, use_threads=False)
            with csv.open_csv(path, read, quoted, convert) as stream:
                for part in _recut(stream, table.chunk_rows):
                    if number % size == rank:
                        place = Place(first_row, named, first_row - file_start)
                        frame = part.to_pandas(integer_object_nulls=True)  # of ``names``; no other holds integers
                        yield place, without_unnamed(frame, unnamed, path, says=says and number == 0)
                    first_row, number = first_row + part.num_rows, number + 1
    if number == 0:
        raise InvalidSurvivalDataError(f"source must have at least one row, got none in {str(table.source)!r}")


def _recut(stream: Any, rows: int) -> Iterator[Any]:
    """Tables of exactly ``rows`` rows from batches of any size, the last one shorter."""
    import pyarrow as pa

    held: list[Any] = []
    count = 0
    for batch in stream:
        held.append(batch)
        count += batch.num_rows
        while count >= rows:
            whole = pa.Table.from_batches(held)
            yield whole.slice(0, rows)
            held, count = whole.slice(rows).to_batches(), count - rows
    if count:
        yield pa.Table.from_batches(held)
