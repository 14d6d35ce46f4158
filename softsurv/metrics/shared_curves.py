"""Curves that many subjects share, as the rows of a leaf do: what is compared of them is counted curve by curve."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidParameterError


@dataclass(frozen=True)
class CurvesInCommon:
    """Curves of N subjects, of whom many have the same one.

    Parameters
    ----------
    member : ndarray of int (N,)
        Curve of each subject, from 0 to G - 1.
    curves : callable
        Takes times (T,), returns the G curves: log H (G, T) in `SharedCurves`, the incidence of each cause (G, T, K) in
        `SharedIncidences`.
    n_curves : int
        G; some may be nobody's.
    """

    member: IntArray
    curves: Callable[[FloatArray], FloatArray]
    n_curves: int


class SharedCurves(CurvesInCommon):
    """The log cumulative hazards of N subjects, of whom many have the same one."""

    def __call__(self, times: FloatArray) -> FloatArray:
        """Log H of each subject, (N, T)."""
        return np.asarray(self.curves(np.asarray(times, dtype=float))[self.member])

    def check(self, n_rows: int) -> None:
        """Raise InvalidParameterError where these are not the curves of so many subjects."""
        if self.member.shape != (n_rows,):
            raise InvalidParameterError(
                f"member must name one curve for each of the {n_rows} subjects, got {self.member.shape}"
            )


class SharedIncidences(CurvesInCommon):
    """The cumulative incidences of competing causes of N subjects, of whom many have the same ones."""

    def of_cause(self, code: int) -> SharedCurves:
        """The curves of the cause 1..K, to be compared as log cumulative hazards are."""
        return SharedCurves(self.member, lambda times: self.curves(times)[..., code - 1], self.n_curves)

    def __call__(self, times: FloatArray, code: int) -> FloatArray:
        """Incidence of a cause for each subject, (N, T)."""
        return self.of_cause(code)(times)


def count_shared(
    shared: SharedCurves,
    chunks: Iterator[tuple[int, FloatArray, IntArray]],
    later: Callable[[IntArray, slice], IntArray | FloatArray],
    rows: IntArray,
    dtype: Any,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Later subjects, or their mass, with lower and with equal risk at every event's time, each (E,).

    For G curves the cost is that of G E comparisons, whatever the number of subjects.

    Parameters
    ----------
    shared : SharedCurves
    chunks : iterator
        Risk (G, C) of the curves at a few times, with the first event that it serves and each event's column in it.
    later : callable
        How many of some subjects, or how much of their mass, are compared with each event of a slice.
    rows : ndarray of int (E,)
        Subject of each event, in order of time.
    dtype : type
        int, or float where subjects have masses.
    """
    lower, equal = np.zeros(rows.size, dtype=dtype), np.zeros(rows.size, dtype=dtype)
    member, order = shared.member, np.argsort(shared.member, kind="stable")
    subjects = np.split(order, np.searchsorted(member[order], np.arange(1, shared.n_curves)))
    for start, block, column in chunks:
        here = slice(start, start + column.size)
        own = block[member[rows[here]], column]
        for of_curve, curve in zip(subjects, block, strict=True):
            value, count = curve[column], later(of_curve, here)
            lower[here] += np.where(value < own, count, 0)
            equal[here] += np.where(value == own, count, 0)
    return lower, equal


def sum_above(
    values: NDArray[Any], limits: NDArray[Any], mass: FloatArray | None, itself: bool = False
) -> IntArray | FloatArray:
    """How many of the values (N,), or how much mass, lie above each limit (E,); with ``itself``, also those at it."""
    side: Literal["left", "right"] = "left" if itself else "right"
    order = np.argsort(values, kind="stable")
    first = np.searchsorted(values[order], limits, side=side)
    if mass is None:
        return np.asarray(values.size - first)
    return np.concatenate([np.cumsum(mass[order][::-1])[::-1], [0.0]])[first]
