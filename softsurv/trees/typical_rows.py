"""Typical rows: that of each leaf, that of all training rows, and both in the data's units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.encoding import OutputColumn, Source
from softsurv.data.rules import level_words, rounded_text
from softsurv.trees.leaf_effects import hidden_level

MANY_ROWS = 20_000
"""Of a leaf of more rows so many are looked at, evenly spread: their medians are as typical, and cost no time."""

STEPS = 1_000
"""The median of a number is rounded to a step of its range: the range holds so many steps, or up to ten times as many.
So a model does not keep the exact value of a training row, unless rounded values are all that the feature has."""

DIGITS = 12
"""Digits of a value in the data's units: fewer than rounding blurs on the way back from [0, 1]."""


def typical_row(
    columns: Sequence[OutputColumn], sources: Sequence[Source], centre: FloatArray | None
) -> FloatArray:  # (P,) encoded
    """Training means and most frequent levels; the middle of the range where training kept no mean."""
    fills = {source.name: source.fill for source in sources}
    found = np.zeros(len(columns))
    for k, column in enumerate(columns):
        fill = fills.get(column.source)
        if column.kind != "number":
            found[k] = float(fill is not None and column.level == fill)
        elif fill is not None:
            found[k] = (float(fill) - column.offset) / column.scale
        else:
            found[k] = 0.5 if centre is None else centre[k]
    return found


def typical_rows(
    x: FloatArray,  # (N, P) encoded
    leaf: IntArray,  # (N,)
    weight: FloatArray | None,  # (N,) > 0
    columns: Sequence[OutputColumn],
    sources: Sequence[Source],
    otherwise: FloatArray,  # (P,)
    n_leaves: int,
) -> FloatArray:  # (L, P)
    """Medians and most frequent levels of the rows of each leaf; ``otherwise`` where a leaf has no row.

    A median is one of the values, so that counts stay whole and a leaf whose rules ask for one feature each holds its
    typical row; numbers are then rounded (`STEPS`). Of two levels that are as frequent the first in the alphabet is
    taken.
    """
    found = np.tile(otherwise, (n_leaves, 1))
    categories, steps = _categories(columns, sources), _steps(x, columns)
    for k in range(n_leaves):
        rows = np.flatnonzero(leaf == k)
        some = rows[:: -(-len(rows) // MANY_ROWS) or 1]
        if not len(some):
            continue
        own, counts = x[some], None if weight is None else weight[some]
        found[k] = _medians(own, counts)
        for places, is_hidden in categories:
            share = own[:, places].mean(0) if counts is None else counts @ own[:, places] / counts.sum()
            most = int(share.argmax())
            found[k, places] = 0.0
            found[k, places[most]] = float(not is_hidden or share[most] > 1.0 - share.sum())
        for place, step in steps.items():
            units = columns[place].to_units(float(found[k, place]))
            found[k, place] = (round(units / step) * step - columns[place].offset) / columns[place].scale
    return found


def _steps(x: FloatArray, columns: Sequence[OutputColumn]) -> dict[int, float]:
    """Steps to round to, in the data's units, by the places of numbers (N, P) that vary."""
    some = x[:: len(x) // MANY_ROWS + 1]
    span = (some.max(axis=0) - some.min(axis=0)) * [column.scale for column in columns]
    numbers = [k for k, column in enumerate(columns) if column.kind == "number" and span[k] > 0]
    return {k: 10.0 ** np.floor(np.log10(span[k] / STEPS)) for k in numbers}


def _medians(values: FloatArray, weight: FloatArray | None) -> FloatArray:  # (n, P), (n,) -> (P,)
    """The smallest value of each column up to which half of the weight lies."""
    if weight is None:
        middle = (len(values) - 1) // 2
        return np.asarray(np.partition(values, middle, axis=0)[middle])
    order = values.argsort(axis=0, kind="stable")
    below = weight[order].cumsum(axis=0)
    at = (2 * below >= below[-1]).argmax(axis=0)
    return np.asarray(np.take_along_axis(values, np.take_along_axis(order, at[None], 0), 0)[0])


def _categories(columns: Sequence[OutputColumn], sources: Sequence[Source]) -> list[tuple[list[int], bool]]:
    """For each category the places of its columns, and whether its first level has none."""
    places: dict[str, list[int]] = {}
    for k, column in enumerate(columns):
        if column.kind == "level":
            places.setdefault(column.source, []).append(k)
    levels = {source.name: source.levels for source in sources}
    return [(own, hidden_level(columns, name, levels.get(name)) is not None) for name, own in places.items()]


def in_units(
    typical: FloatArray,  # (R, P) encoded
    columns: Sequence[OutputColumn],
    sources: Sequence[Source],
) -> pd.DataFrame:
    """Typical rows in the data's units, a column for each feature that the tree knows."""
    levels, found = {source.name: source.levels for source in sources}, dict[str, list[object]]()
    for column, values in zip(columns, typical.T, strict=True):
        if column.kind == "number":
            found[column.source] = [float(f"{column.to_units(float(value)):.{DIGITS}g}") for value in values]
        elif column.kind == "level":
            own = found.setdefault(
                column.source, [hidden_level(columns, column.source, levels.get(column.source))] * len(values)
            )
            found[column.source] = [column.level if value else one for value, one in zip(values, own, strict=True)]
    return pd.DataFrame(found, index=pd.RangeIndex(len(typical)))


def as_words(rows: pd.DataFrame) -> pd.DataFrame:
    """Typical rows (R, F) as text to read, features below each other, (F, R)."""
    words = rows.T.map(lambda value: rounded_text(value) if isinstance(value, float) else level_words(str(value)))
    return words.rename_axis(index="feature")
