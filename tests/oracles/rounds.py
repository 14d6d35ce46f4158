"""Counts of the rounds of a minimisation, and of the trees in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import NamedTuple
from unittest.mock import patch

from softsurv.soft import optimisers


class Round(NamedTuple):
    """One round of a stack."""

    trees: int  # that are evaluated
    moving: int  # that have not stopped before it


@contextmanager
def rounds_taken(optimiser: ModuleType = optimisers) -> Iterator[list[Round]]:
    """The rounds of an optimiser taken while this is open, but for those of a record; complete once it is closed.

    No device is asked before.
    """
    found, seen, advance = [], [], optimiser._advance

    def counted(state, *given):
        seen.append((len(state.f), state.moving.sum()))
        advance(state, *given)

    with patch.object(optimiser, "_advance", counted):
        yield found
    found += [Round(trees, int(moving)) for trees, moving in seen]
