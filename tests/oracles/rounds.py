"""Counts of the rounds of a minimisation, and of the trees in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from unittest.mock import patch

from softsurv.soft import optimisers


class Round(NamedTuple):
    """One round of a stack."""

    trees: int  # that are evaluated
    moving: int  # that have not stopped before it


@contextmanager
def rounds_taken() -> Iterator[list[Round]]:
    """The rounds that are taken while this is open, by operators or by compiled loops of the rows."""
    found, advance = [], optimisers._advance

    def counted(state, *given):
        found.append(Round(len(state.f), int(state.moving.sum())))
        advance(state, *given)

    with patch.object(optimisers, "_advance", counted):
        yield found
