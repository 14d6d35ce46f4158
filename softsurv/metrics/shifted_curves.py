"""Curves that differ by a number of the subject's own: their order among those of one leaf never changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.errors import InvalidParameterError
from softsurv.metrics.ranges import refuse_nan
from softsurv.metrics.shared_curves import CurvesInCommon


@dataclass(frozen=True)
class ShiftedCurves(CurvesInCommon):
    """N subjects, each ranked by a curve that many have in common plus an offset of its own.

    Parameters
    ----------
    member, curves, n_curves
        As in `CurvesInCommon`: the G curves (G, T), to which the offsets are added.
    offset : ndarray (N,)
    log_cumulative_hazard : callable
        Takes times (T,), returns log H (N, T). It rises with the sum, which alone ranks the subjects.
    """

    offset: FloatArray
    log_cumulative_hazard: Callable[[FloatArray], FloatArray]

    def __call__(self, times: FloatArray) -> FloatArray:
        """Log H of each subject, (N, T)."""
        return self.log_cumulative_hazard(np.asarray(times, dtype=float))

    def take(self, rows: IntArray | BoolArray) -> ShiftedCurves:
        """Those of some of the subjects."""
        return ShiftedCurves(
            self.member[rows], self.curves, self.n_curves, self.offset[rows], lambda times: self(times)[rows]
        )

    def check(self, n_rows: int) -> None:
        """Raise InvalidParameterError where these are not the curves of so many subjects, or an offset is NaN."""
        for name, column in (("member", self.member), ("offset", self.offset)):
            if column.shape != (n_rows,):
                raise InvalidParameterError(f"{name} must have one entry for each subject, ({n_rows},)")
        refuse_nan("offset", self.offset)


def count_shifted(
    offset: FloatArray,
    member: IntArray,
    n_curves: int,
    chunks: Iterator[tuple[int, FloatArray, IntArray]],
    rows: IntArray,
    above: list[tuple[NDArray[Any], NDArray[Any]]],
    mass: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Later subjects, or their mass, with lower and with equal risk at every event's time, each (E,) or (E, R).

    The cost is O((N + G E) log N) for G curves, and for each of R masses.

    Parameters
    ----------
    offset, member, n_curves
        As in `ShiftedCurves`.
    chunks : iterator
        The G curves (G, C) at a few times, with the first event that it serves and each event's column in it.
    rows : ndarray of int (E,)
        Subject of each event, in order of time.
    above : list of (order (N,), number (E,))
        Subjects so that those compared with an event are the first in ``order``, and how many these are, which grows
        from the last event to the first. The counts of a second pair are taken off.
    mass : ndarray (N,) or (N, R)
        Of each subject: ones, whole numbers where subjects are counted; or several, each counted by itself.
    """
    from softsurv.metrics.pair_kernels import scan_backwards  # numba comes with it

    kept = np.lexsort((offset, member))
    place = np.empty_like(kept)
    place[kept] = np.arange(kept.size)
    start = np.searchsorted(member[kept], np.arange(n_curves + 1))
    blocks, columns, width = [np.empty((n_curves, 0))], [np.empty(0, dtype=np.int64)], 0
    for _, block, column in chunks:
        blocks.append(block)
        columns.append(column + width)
        width += block.shape[1]
    base, column = np.concatenate(blocks, axis=1), np.concatenate(columns)
    own = offset[rows] + base[member[rows], column]
    at = np.ascontiguousarray(member), place, start, offset[kept], base, column, own, mass.reshape(len(mass), -1)
    (lower, equal), *missed = (scan_backwards(order, number, *at) for order, number in above)
    for less, same in missed:
        lower, equal = lower - less, equal - same
    shape = (rows.size, *mass.shape[1:])
    return lower.reshape(shape), equal.reshape(shape)


def those_above(values: NDArray[Any], limits: NDArray[Any], itself: bool = False) -> tuple[IntArray, IntArray]:
    """Subjects by falling value, (N,), and how many lie above each limit, (E,); with ``itself``, also those at it."""
    order = np.argsort(values, kind="stable")
    return order[::-1].copy(), values.size - np.searchsorted(values[order], limits, side="left" if itself else "right")


def mass_compared(above: list[tuple[IntArray, IntArray]], mass: NDArray[Any]) -> NDArray[Any]:
    """Mass (N,) or (N, R) of the subjects compared with each event, (E,) or (E, R), as `count_shifted` compares."""
    first, *missed = (
        np.concatenate([np.zeros_like(mass[:1]), np.cumsum(mass[order], axis=0)])[number] for order, number in above
    )
    return np.asarray(first - sum(missed))
