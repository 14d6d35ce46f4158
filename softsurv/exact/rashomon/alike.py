"""Splits of one raw column that divide the rows of a node alike, though they are splits of several features.

Where missing values are routed, a raw column becomes several features: ``age <= 63`` sends them right in one and left
in another. Over rows without missing values both are the same division, and a tree with either is the same tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray

WORD = 64
"""Bits that are compared at once."""


@dataclass(frozen=True)
class RawColumn:
    """The splits of a raw column of several features: G splits, U distinct rows of C kinds.

    Attributes
    ----------
    splits : (G,) int
        Places among all splits, ascending.
    kind : (U,) int
        Kind of each row: rows of one kind are on the same side of every split.
    goes_left : (C, G) bool
    """

    splits: IntArray
    kind: IntArray
    goes_left: BoolArray

    def repeated(self, splits: IntArray, rows: NDArray[np.integer], among: FloatArray) -> BoolArray:
        """Which of some splits (S,) divide rows as an earlier one does, (..., S).

        ``among`` (n, ...) says with 1 which of the ``rows`` (n,) are divided, and with 0 which are not.
        """
        mine = np.isin(splits, self.splits)
        there = among.T @ (self.kind[rows][:, None] == np.arange(len(self.goes_left))) > 0  # (..., C)
        goes_left = self.goes_left[:, np.searchsorted(self.splits, splits[mine])]  # (C, S)
        first = goes_left[there.argmax(axis=-1)]  # (..., S) sides are named by where the first kind goes
        sides = _words(goes_left.T)
        key = np.where(first[..., None], ~sides, sides) & _words(there)[..., None, :]  # (..., S, words)
        order = np.lexsort(np.moveaxis(key, -1, 0), axis=-1)  # stable: of equal ones the earliest comes first
        ordered = np.take_along_axis(key, order[..., None], axis=-2)
        again = np.zeros(order.shape, dtype=bool)
        np.put_along_axis(again, order[..., 1:], (ordered[..., 1:, :] == ordered[..., :-1, :]).all(axis=-1), axis=-1)
        found = np.zeros((*there.shape[:-1], len(splits)), dtype=bool)
        found[..., mine] = again
        return found


def raw_columns(
    columns: Sequence[Any],  # (P,) raw column of each feature
    feature: IntArray,  # (G,) feature of each split
    goes_left: BoolArray,  # (U, G)
) -> tuple[RawColumn, ...]:
    """The raw columns of several features; where a raw column is one feature, its splits are told apart by that."""
    found = []
    for name in dict.fromkeys(columns):
        features = [place for place, column in enumerate(columns) if column == name]
        if len(features) > 1:
            splits = np.flatnonzero(np.isin(feature, features))
            kinds, kind = np.unique(goes_left[:, splits], axis=0, return_inverse=True)
            found.append(RawColumn(splits, kind.reshape(-1), kinds))
    return tuple(found)


def _words(bits: BoolArray) -> NDArray[np.uint64]:
    """Bits (..., C) in words (..., W)."""
    room = [(0, 0)] * (bits.ndim - 1) + [(0, -bits.shape[-1] % WORD)]
    return np.ascontiguousarray(np.packbits(np.pad(bits, room), axis=-1)).view(np.uint64)
