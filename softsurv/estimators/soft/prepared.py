"""Encoded rows in the form that the predictions of a soft tree take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


class PreparedRows:
    """Encoded features, and whether a row is predicted by its HBP leaf or by the mixture of all leaves."""

    def __init__(self, x: Tensor, path: str = "hbp") -> None:
        self.x = x
        self.path = path

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, rows: Any) -> PreparedRows:
        return PreparedRows(self.x[rows], self.path)
