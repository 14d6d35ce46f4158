"""What the chunks of a table say of its columns: a preprocessor as if fitted on all rows at once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from softsurv.data.chunks import Chunk, within_chunk
from softsurv.data.columns import require
from softsurv.data.encoding import is_number, labels, numbers
from softsurv.data.frames import refuse_twice
from softsurv.data.kinds import MIN_IDENTIFIERS, warn_of_identifier
from softsurv.data.preprocess import FORMAT, Preprocessor
from softsurv.data.rules import indicator_name
from softsurv.errors import InvalidSurvivalDataError


@dataclass
class _Column:
    """What one column has shown so far; of a number column, sums chunk by chunk, so that they add up exactly."""

    number: bool | None = None
    some_missing: bool = False
    low: float = math.inf
    high: float = -math.inf
    count: int = 0
    sums: list[float] = field(default_factory=list)
    levels: Counter[str] = field(default_factory=Counter)
    order: tuple[str, ...] = ()

    def see(self, column: pd.Series, name: str) -> None:
        """Take in the column's part of one chunk."""
        present = column.notna()
        self.some_missing |= not present.all()
        if not present.any():
            return
        kind = is_number(column)
        if self.number is not None and kind != self.number:
            raise InvalidSurvivalDataError(
                f"column {name!r} must hold numbers or categories throughout, got both in different chunks; convert it"
            )
        self.number = kind
        if kind:
            values = numbers(column, name)
            require(~np.isinf(values), values, f"column {name!r}", "finite or missing", "replace it")
            self.some_missing |= bool(np.isnan(values).any())
            values = values[~np.isnan(values)]
            self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
            self.count += values.size
            self.sums.append(float(values.sum()))
            return
        if isinstance(column.dtype, pd.CategoricalDtype) and not self.order:
            self.order = tuple(str(level) for level in column.cat.categories)
        known = [level for level in labels(column, name) if level is not None]
        self.some_missing |= len(known) < len(column)
        self.levels.update(known)

    @property
    def is_identifier(self) -> bool:
        """Whether the column names the rows: text, of which every value occurs once."""
        rows = self.levels.total()
        return not self.order and rows >= MIN_IDENTIFIERS and rows == len(self.levels)

    @property
    def dropped(self) -> str:
        """Why the column is left out, where it is."""
        return "all missing" if self.number is None else "identifier" if self.is_identifier else "constant"

    def merge(self, other: _Column, name: str) -> None:
        """Add what another process has seen of the column."""
        if None not in (self.number, other.number) and self.number != other.number:
            raise InvalidSurvivalDataError(f"column {name!r} must hold numbers or categories throughout, got both")
        self.number = other.number if self.number is None else self.number
        self.some_missing |= other.some_missing
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.count, self.sums = self.count + other.count, self.sums + other.sums
        self.levels, self.order = self.levels + other.levels, self.order or other.order


Gather = Callable[[Any], list[Any]]
"""Every process's value, in the order of ranks; for one process a list of one."""


def fit_preprocessor(chunks: Iterator[Chunk], gather: Gather = lambda value: [value]) -> Preprocessor:
    """A :class:`Preprocessor` with default arguments, as if fitted on all rows at once.

    Parameters
    ----------
    chunks : iterator of Chunk
        This process's share of the table.
    gather : callable, optional
        Exchanges values between the processes that share the table.
    """
    seen: dict[str, _Column] = {}
    for chunk in chunks:
        refuse_twice(chunk.X, "source")
        names = [str(name) for name in chunk.X.columns]
        if other := seen.keys() ^ set(names) if seen else None:
            raise InvalidSurvivalDataError(
                f"source must have the same columns throughout, got {min(other)!r} in some rows only: the rows from "
                f"{chunk.first_row} on differ from those before; write the column to every file"
            )
        with within_chunk(chunk.place):
            for name in chunk.X.columns:
                seen.setdefault(str(name), _Column()).see(chunk.X[name], str(name))
    total: dict[str, _Column] = {}
    for part in gather(seen):
        for name, column in part.items():
            total.setdefault(name, _Column()).merge(column, name)
    sources: list[dict[str, Any]] = []
    columns: list[dict[str, Any]] = []
    dropped: dict[str, str] = {}
    for name, column in total.items():
        source, encoded = _encoding(name, column)
        if encoded:
            sources.append(source)
            columns += encoded
        else:
            dropped[name] = column.dropped
    state = {
        "format": FORMAT,
        "parameters": Preprocessor().get_params(),
        "named": True,
        "input_names": list(total),
        "sources": sources,
        "columns": columns,
        "dropped": dropped,
        "incomplete": [source["name"] for source in sources if total[source["name"]].some_missing],
    }
    return Preprocessor.from_dict(state)


def _encoding(name: str, column: _Column) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A column's source and encoded columns, as `Preprocessor.to_dict` writes them."""
    if column.number is None:
        return {}, []
    if column.number:
        mean = math.fsum(column.sums) / column.count
        encoded = {"name": name, "source": name, "kind": "number", "level": None, "offset": column.low}
        source = {"name": name, "levels": None, "fill": mean}
        span = column.high - column.low
        return source, [encoded | {"scale": span}] if span > 0 else []
    if column.is_identifier:
        warn_of_identifier(name, len(column.levels))
        return {}, []
    known = [level for level in column.order if level in column.levels]
    levels = known + sorted(set(column.levels) - set(known))
    ordered = sorted(levels)  # the order of a categorical type moves no fit
    fill = max(ordered, key=lambda level: column.levels[level])  # the first of equally frequent ones
    kept = ordered[1:] if len(ordered) <= 2 else ordered
    plain = {"source": name, "kind": "level", "offset": 0.0, "scale": 1.0}
    encoded_levels = [plain | {"name": indicator_name(name, level), "level": level} for level in kept]
    return {"name": name, "levels": levels, "fill": fill}, encoded_levels
