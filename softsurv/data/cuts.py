"""Where numbers are cut: quantiles or every place between two values, rounded to what is printed."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.data.blocks import yes_no

DIGITS = range(6, 17)
"""Six digits are printed; more where six do not keep two values apart."""

EXACT_POWER = 22
"""Powers of ten up to this one are floats without rounding."""

SURE_DIGITS, NEAR_TIE = 10, 1e-4
"""A number scaled to at most so many digits is off by less than ``NEAR_TIE``."""

SHORT_HALF = 1e5
"""Half a whole number below this has at most six digits."""

Cuts = tuple[float, ...]
"""Cuts of one column, ascending."""

YES_NO: Cuts = (0.5,)
"""Cuts of a column of zeros and ones."""


def block_cuts(
    values: FloatArray, wanted: int | Literal["all"], least: int, is_answer: BoolArray | None = None
) -> list[Cuts]:
    """Cuts of each column of a block (Q, N): that many quantiles, or one between any two neighbouring values.

    Cuts with fewer than ``least`` rows on a side are left out. ``is_answer`` (Q,) says which columns hold zeros and
    ones alone, where that is known.
    """
    is_answer = yes_no(values) if is_answer is None else is_answer
    if is_answer.all():
        return _yes_no_cuts(values, least)
    answers = iter(_yes_no_cuts(values[is_answer], least))
    others = iter(sorted_cuts(values[~is_answer], wanted, least))
    return [next(answers if answer else others) for answer in is_answer.tolist()]


def explicit_cuts(values: FloatArray, wanted: Any, least: int) -> Cuts:
    """Those of the user's cuts that leave enough rows of a column (n,) on either side."""
    cuts = np.unique(np.asarray(wanted, dtype=float))
    left = np.searchsorted(np.sort(values), cuts, side="right")
    return tuple(cuts[(left >= least) & (values.size - left >= least)].tolist())


def _yes_no_cuts(values: FloatArray, least: int) -> list[Cuts]:
    """Cuts of columns (Q, N) of zeros and ones: midway, where either side has enough rows."""
    ones, most = values.sum(axis=1), values.shape[1] - max(least, 1)
    keep = (ones >= max(least, 1)) & (ones <= most)
    return [YES_NO if kept else () for kept in keep.tolist()]


def sorted_cuts(values: FloatArray, wanted: int | Literal["all"], least: int) -> list[Cuts]:
    """Cuts of any columns (Q, N), found in their sorted values."""
    ordered = np.sort(values, axis=1)
    rises = ordered[:, 1:] > ordered[:, :-1]  # (Q, N - 1) places between two different values
    if wanted != "all":
        many = np.flatnonzero(np.count_nonzero(rises, axis=1) > wanted)
        if many.size:
            rises[many] = _quantile_places(rises[many], wanted)
    rises[:, : max(least - 1, 0)] = False
    rises[:, max(values.shape[1] - max(least, 0), 0) :] = False
    q, n_places = rises.shape
    places = np.flatnonzero(rises)
    low = places + places // max(n_places, 1)  # in ``ordered``, whose columns have one value more
    cut = between(ordered.ravel()[low], ordered.ravel()[low + 1]).tolist()
    ends = np.searchsorted(places, np.arange(1, q + 1) * n_places).tolist()
    return [tuple(cut[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]


def _quantile_places(rises: BoolArray, wanted: int) -> BoolArray:
    """Which places (Q, N - 1) follow the quantiles of the rows."""
    n = rises.shape[1] + 1
    rank = np.ceil(np.arange(1, wanted + 1) / (wanted + 1) * n - 1e-9).astype(int) - 1  # (W,) row that ends each share
    kept = np.zeros(rises.size, dtype=bool)
    kept[next_rises(rises, np.minimum(rank, n - 2))[0]] = True
    return kept.reshape(rises.shape)


def next_rises(rises: BoolArray, places: NDArray[np.integer]) -> tuple[NDArray[np.intp], BoolArray]:
    """The next of the rises (Q, N - 1) of each column from these places (W,) on, as places of the flat array, (Q, W).

    And whether there is one; where not, the place is that of the last rise of the column. Every column has a rise.
    """
    q, n_places = rises.shape
    first = np.arange(0, q * n_places, n_places)[:, None]
    all_places = np.flatnonzero(rises)
    found = np.searchsorted(all_places, first + places)
    there = found < np.searchsorted(all_places, first + n_places)
    return all_places[found - ~there], there


def between(low: FloatArray, high: FloatArray) -> FloatArray:
    """Midway between two values, with six digits or as many as keep it between; the lower one where none does."""
    middle = low + 0.5 * (high - low)
    cut = np.where(middle < high, middle, low)
    left = np.flatnonzero((np.rint(2.0 * cut) != 2.0 * cut) | (np.abs(cut) >= SHORT_HALF))
    if not left.size:
        return cut
    for digits in DIGITS:
        short = to_digits(cut[left], digits)
        fits = (low[left] <= short) & (short < high[left])
        cut[left[fits]], left = short[fits], left[~fits]
        if not left.size:
            break
    return cut


def to_digits(values: FloatArray, digits: int) -> FloatArray:
    """Each number as printed with so many digits.

    A number of few digits is a whole one times a power of ten. Both are exact as floats, and so their product or
    quotient is the float that the printed text is read as. Near a tie the number is printed and read instead.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        size = np.floor(np.log10(np.abs(values)))
        places = digits - 1 - size  # after the point
        power = 10.0 ** np.clip(np.abs(places), 0, EXACT_POWER)
        scaled = np.where(places < 0, values / power, values * power)
        whole = np.rint(scaled)
        short = np.where(places < 0, whole * power, whole / power)
        sure = (np.abs(places) <= EXACT_POWER) & (digits <= SURE_DIGITS)
        sure &= (np.abs(whole) >= 10.0 ** (digits - 1)) & (np.abs(whole) <= 10.0**digits)
        sure &= np.abs(scaled - whole) < 0.5 - NEAR_TIE
    for k in np.flatnonzero(~sure).tolist():
        short[k] = float(f"{values[k]:.{digits}g}")
    return short
