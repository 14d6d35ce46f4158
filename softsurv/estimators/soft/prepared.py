"""Encoded rows in the form that the predictions of a soft tree take."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from softsurv.arrays import IntArray
from softsurv.data.canonical import distinct_rows

if TYPE_CHECKING:
    from torch import Tensor


class PreparedRows:
    """Encoded features, and whether a row is predicted by its HBP leaf or by the mixture of all leaves."""

    def __init__(self, x: Tensor, path: str = "hbp") -> None:
        self.x = x
        self.path = path

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def once(self) -> tuple[PreparedRows, IntArray]:
        """One of each kind of equal rows, and the place (N,) of every row among these."""
        first, place = distinct_rows(self.x.cpu().numpy())
        return self[first], place

    def __getitem__(self, rows: Any) -> PreparedRows:
        return PreparedRows(self.x[rows], self.path)
