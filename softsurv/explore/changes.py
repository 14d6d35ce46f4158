"""What would have to change for a row to reach another leaf, one feature at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from softsurv.data.alignment import align_columns
from softsurv.data.frames import as_frame, has_names
from softsurv.data.survival_data import SurvivalData
from softsurv.explore.payload import sources_of
from softsurv.explore.view import TreeView, tree_view
from softsurv.explore.words import one_row

NUDGE = 1e-6
"""Share of a feature's range by which a value must pass a boundary: rounding must not decide the side."""


def crossings(tree: Any, row: Any, data: Any = None) -> pd.DataFrame:
    """For every feature the smallest change, alone, that leads a row to another leaf.

    Parameters
    ----------
    tree : fitted tree
    row : DataFrame of one row, Series or dict
    data : SurvivalData, (X, y) or a table, optional
        Widens the ranges of the features. An optimal tree keeps no ranges: without ``data`` they reach from the
        row's value just beyond the tree's thresholds.

    Returns
    -------
    DataFrame
        ``feature``, ``current``, ``needed``, ``effort`` (share of the feature's range; 1 for another level) and
        ``leaf`` that the row would reach, nearest first. Features that lead nowhere else are left out.

    Notes
    -----
    A number moves to just beyond a boundary on the row's path, within its range in training or in ``data``; one that
    was always whole in training moves to the nearest whole number that leads elsewhere.
    This is what the tree would say, not what would happen to a subject.

    Examples
    --------
    >>> crossings(tree, test.X.iloc[[0]])                       # doctest: +SKIP
    """
    frame, view = one_row(row), tree_view(tree)
    ranges = frame if data is None else pd.concat([frame, _features(tree, data, frame)], ignore_index=True)
    leaf = int(tree.apply(frame)[0])
    found = []
    for source in sources_of(view, ranges):
        trials = sorted(_trials(view, frame, leaf, source), key=lambda trial: trial[1])
        for value, effort in trials:
            reached = int(tree.apply(_with(frame, source["name"], value))[0])
            if reached != leaf:
                found.append((source["name"], frame[source["name"]].iloc[0], value, effort, reached))
                break
    table = pd.DataFrame(found, columns=["feature", "current", "needed", "effort", "leaf"])
    return table.sort_values("effort", kind="stable", ignore_index=True)


def _features(tree: Any, data: Any, row: pd.DataFrame) -> pd.DataFrame:
    """The features of `SurvivalData`, of a pair (X, y) or of a table; columns without names are taken by position."""
    if isinstance(data, tuple) and len(data) == 2:
        data = data[0]
    table = as_frame(data.X if isinstance(data, SurvivalData) else data)
    if isinstance(data, SurvivalData) or has_names(data):
        return table
    known = getattr(tree, "feature_names_in_", None)
    names = [str(name) for name in (row.columns if known is None else known)]
    return align_columns(table, names, named=False, trained_with_names=known is not None)


def _with(frame: pd.DataFrame, name: str, value: Any) -> pd.DataFrame:
    """The row with one value replaced; a category column becomes text, which reads the same."""
    moved = frame.copy()
    moved[name] = pd.Series([value], index=frame.index)
    return moved


def _trials(view: TreeView, frame: pd.DataFrame, leaf: int, source: dict[str, Any]) -> list[tuple[Any, float]]:
    """Values to try, with their effort."""
    name, now = source["name"], frame[source["name"]].iloc[0]
    if source["levels"] is not None:
        return [(level, 1.0) for level in source["levels"] if level != str(now)]
    if pd.isna(now):
        return []
    span = (source["high"] - source["low"]) or 1.0
    encoded = view.encode(frame)[0]
    values = [
        value
        for node, _ in view.path(leaf)
        if node.split is not None
        for edge in node.split.boundaries(view.columns, encoded, name)
        if np.isfinite(edge)
        for value in _beside(edge, span, whole=source["whole"])
    ]
    return [(v, abs(v - float(now)) / span) for v in values if source["low"] <= v <= source["high"]]


def _beside(edge: float, span: float, *, whole: bool) -> list[float]:
    """Values on both sides of a boundary; of whole numbers those about it, as the boundary itself may be on either."""
    if whole:
        return [float(np.floor(edge) + step) for step in (-1, 0, 1, 2)]
    return [edge - NUDGE * span, edge + NUDGE * span]
