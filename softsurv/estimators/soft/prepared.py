"""Encoded rows as the predictions of a soft tree take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


class PreparedRows:
    """Encoded features, and which leaves speak for a row."""

    def __init__(self, x: Tensor, path: str = "hbp") -> None:
        self.x = x
        self.path = path

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, rows: Any) -> PreparedRows:
        return PreparedRows(self.x[rows], self.path)
