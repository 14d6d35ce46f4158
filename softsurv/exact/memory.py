"""What a search holds in memory, so that `memory_limit` counts all of it: rows, codes, tables and cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

from softsurv.data.blocks import column_types
from softsurv.errors import InvalidParameterError, LimitWarning, warn
from softsurv.exact.problem import MAX_DEPTH, Scratch, SearchArrays

USUAL_LEVELS = 0.5
"""Share of the scratch of all levels that a tree of usual depth needs."""

TABLE_SHARE = 0.125
"""Share of the memory limit that a table which only saves time may be: `bytes_of_pairs`, `bytes_of_shares`."""

COPIES = 1.2
"""Memory that rows take, in multiples of their arrays: parts of them are copied for a moment."""

MANY_TIMES = 8.0
"""A search beyond the limit is refused only if what it makes of the rows takes this many times what the rows take."""

PLAIN = {int, float, bool, str, type(None)}
"""Types of values that take hardly any memory: most of what structures hold beside arrays."""


@dataclass(frozen=True)
class Room:
    """Bytes that a fit may take, and those that it holds before the search begins: table and codes."""

    limit: float
    held: float = 0.0

    def beside(self, *things: Any) -> Room:
        """The room where the fit also holds these arrays and frames."""
        return self.less(bytes_of(*things))

    def less(self, more: float) -> Room:
        """The room where the fit holds so many bytes more."""
        return Room(self.limit, self.held + more)

    @property
    def left(self) -> float:
        """Bytes for the search."""
        return max(self.limit - COPIES * self.held, 0.0)

    def check(self, own: float) -> None:
        """Warn where the rows alone take more than the limit, with ``own`` bytes that the search has made of them.

        No error: the table has been in memory before, and with the smallest cache the tree is the same, only later.

        Warns
        -----
        LimitWarning
        """
        needed = COPIES * (self.held + own)
        if needed > self.limit:
            warn(
                f"memory_limit={self.limit:.3g} bytes is less than the {needed:.3g} that the rows take as a table, as "
                "codes and in the search, which goes on with the smallest cache; raise memory_limit, or leave out rows "
                "or columns",
                LimitWarning,
            )

    def refuse(self, own: float, what: str) -> None:
        """Raise where what a search would make of the rows, ``own`` bytes, breaks the limit and the rows are small.

        Raises
        ------
        InvalidParameterError
        """
        needed = COPIES * (self.held + own)
        if needed > self.limit and own > MANY_TIMES * self.held:
            raise InvalidParameterError(
                f"memory_limit must be at least the {needed:.3g} bytes that {what} take, got {self.limit:.3g}; lower "
                "thresholds, leave out rows or columns, or raise memory_limit"
            )


def bytes_of(*things: Any) -> int:
    """Bytes of the arrays and frames inside tuples, mappings and dataclasses; memory that arrays share counts once."""
    owners: dict[int, int] = {}
    waiting = list(things)
    while waiting:
        thing = waiting.pop()
        if type(thing) in PLAIN:
            continue
        if isinstance(thing, np.ndarray):
            base = thing.base
            if id(base) in owners:  # most columns are views of one block
                continue
            while isinstance(base, np.ndarray):
                thing, base = base, base.base
            owners[id(thing)] = thing.nbytes
        elif isinstance(thing, tuple | list):
            waiting += thing
        elif is_dataclass(thing):
            waiting += [getattr(thing, name) for name in thing.__dataclass_fields__]  # `fields` takes much longer
        elif isinstance(thing, Mapping):
            # most columns are views of one block, of which one is enough
            bases = [(getattr(value, "base", None), value) for value in thing.values()]
            waiting += {id(value if base is None else base): value for base, value in bases}.values()
        elif isinstance(thing, pd.DataFrame):
            owners[id(thing)] = bytes_of_frame(thing, column_types(thing))
    return sum(owners.values())


def bytes_of_frame(X: pd.DataFrame, types: Sequence[Any]) -> int:
    """Bytes of a frame with columns of these types; `memory_usage` takes a tenth of a millisecond a column."""
    return len(X) * sum([getattr(one, "itemsize", 8) for one in types])


def bytes_of_pairs(problem: SearchArrays) -> float:
    """Bytes of a thread's sums over pairs of bins, for the children of a node of depth three eight at a time."""
    return 8.0 * len(problem.feature_of) ** 2 * problem.stats.shape[1]


def bytes_of_shares(problem: SearchArrays) -> float:
    """Bytes of what pairs of splits share, in a thread's base case and on the levels that trees usually have."""
    return 8.0 * len(problem.row_kinds.split_code) ** 2 * (1.0 + USUAL_LEVELS * MAX_DEPTH)


def bytes_of_scratch(scratch: Sequence[Scratch]) -> float:
    """Bytes of the threads' scratch that a search writes to; only very deep trees write to the lowest levels."""
    if not scratch:
        return 0.0
    nodes, local, lanes = scratch[0].nbytes
    return len(scratch) * (USUAL_LEVELS * nodes + local + lanes)
