"""Concordance and AUC of many samples of one fold: a sample is a vector of counts of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.metrics.concordance import shifts
from softsurv.metrics.shared_curves import SharedCurves
from softsurv.metrics.shifted_curves import ShiftedCurves, count_shifted, mass_compared, those_above

CHUNK_ELEMENTS = 2**21
"""Pairs of rows and events compared at once."""

SAMPLES_AT_ONCE = 32
"""Samples counted in one pass: few enough for a table of all rows, and enough to pay for the search of places."""


def sampled_concordances(
    time: FloatArray,  # (N,) until when each row is compared
    event: BoolArray,  # (N,)
    risk: Callable[[FloatArray], FloatArray],
    counts: NDArray[np.float32],  # (R, N) how often each sample has each row, times its weight
    weights: Callable[[FloatArray], list[FloatArray]],
    entry: FloatArray | None = None,  # (N,) after which each row is compared
) -> FloatArray:
    """Concordances (W, R) of every sample; pairs and ``risk`` as in `softsurv.metrics.harrell_c`.

    ``weights`` takes the times (E,) of the events, in order, and returns W vectors (E,) of the weights of their pairs.
    Of `SharedCurves` and `ShiftedCurves` the cost is O(R N log N), of other curves that of R N E.
    """
    rows = np.flatnonzero(event)
    rows = rows[np.argsort(time[rows], kind="stable")]
    above = [those_above(time, time[rows])]
    above += [] if entry is None else [those_above(entry, time[rows], itself=True)]
    common = isinstance(risk, ShiftedCurves | SharedCurves)
    count = _count_common(time, rows, risk, counts, above) if common else _compare(time, entry, rows, risk, counts)
    each = np.stack(weights(time[rows]))  # (W, E)
    sums = np.zeros((2, len(each), len(counts)))  # of concordant and of comparable pairs
    for samples, events, won, compared in count:
        own = counts[samples, rows[events]].T.astype(float)  # (e, r)
        sums[0][:, samples] += each[:, events] @ (own * won)
        sums[1][:, samples] += each[:, events] @ (own * compared)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[0] / sums[1])


Counted = Iterator[tuple[slice, slice, FloatArray, FloatArray]]
"""Samples, events, and two masses (e, r) of the rows compared with each event: of lower risk, ties halved; of all."""


def _count_common(
    time: FloatArray, rows: IntArray, risk: object, counts: NDArray[np.float32], above: list[tuple[IntArray, IntArray]]
) -> Counted:
    offset, member, n_curves, chunks = shifts(time, rows, risk, None)
    parts = list(chunks)  # (G, E) in all
    for start in range(0, len(counts), SAMPLES_AT_ONCE):
        samples = slice(start, start + SAMPLES_AT_ONCE)
        mass = np.ascontiguousarray(counts[samples].T, dtype=float)
        lower, equal = count_shifted(offset, member, n_curves, iter(parts), rows, above, mass)
        yield samples, slice(None), lower + 0.5 * equal, mass_compared(above, mass)


def _compare(
    time: FloatArray,
    entry: FloatArray | None,
    rows: IntArray,
    risk: Callable[[FloatArray], FloatArray],
    counts: NDArray[np.float32],
) -> Counted:
    width = max(1, CHUNK_ELEMENTS // time.size)
    for start in range(0, rows.size, width):
        events = slice(start, start + width)
        at = time[rows[events]]
        grid, column = np.unique(at, return_inverse=True)
        block = np.asarray(risk(grid))[:, column]  # (N, e)
        own = block[rows[events], np.arange(at.size)]
        left = time > at[0]  # nobody else is compared with any of these events
        there = time[left, None] > at
        if entry is not None:
            there &= entry[left, None] < at
        won = there * np.where(block[left] < own, np.float32(1), np.float32(0.5) * (block[left] == own))
        here = counts[:, left]
        yield slice(None), events, (here @ won).T.astype(float), (here @ there.astype(np.float32)).T.astype(float)


def sampled_auc(
    cases: FloatArray,  # (N,) weight of each case, else 0
    controls: BoolArray,  # (N,)
    risk: FloatArray,  # (N,)
    counts: NDArray[np.float32],  # (N, R)
) -> tuple[FloatArray, FloatArray]:
    """Pairs of a case and a control of every sample, (R,): where the case has the higher risk, ties halved; all."""
    from softsurv.metrics.pair_kernels import win_by_rank  # numba comes with it

    order = np.argsort(risk, kind="stable")
    ranked = risk[order]
    rises = np.append(True, ranked[1:] != ranked[:-1])
    won, pairs = win_by_rank(order, rises, cases, controls, counts)
    return won, pairs
