"""Columns of a table brought into the order that training had, by name or by position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softsurv.errors import DataWarning, InvalidSurvivalDataError, warn

if TYPE_CHECKING:
    import pandas as pd


def align_columns(frame: pd.DataFrame, names: list[str], *, named: bool, trained_with_names: bool) -> pd.DataFrame:
    """The columns that training had, in its order: by name where both tables have names, else by position.

    Parameters
    ----------
    frame : DataFrame
        What `as_frame` made.
    names : list of str
        Columns of the training table.
    named : bool
        Whether the names of ``frame`` were given (see `has_names`).
    trained_with_names : bool
        Whether those of the training table were.

    Raises
    ------
    InvalidSurvivalDataError
        A column is missing, or there are more or fewer than in training.
    """
    frame = text_named(frame)
    if frame.columns.tolist() == names:
        return frame
    if named and trained_with_names:
        absent = [name for name in names if name not in frame.columns]
        if absent:
            raise InvalidSurvivalDataError(
                f"X must have every column seen in training, got none named {_first(absent, 8)}; add or rename columns"
            )
        return frame[names]
    if frame.shape[1] != len(names):
        raise InvalidSurvivalDataError(f"X must have {len(names)} features as in training, got {frame.shape[1]}")
    if trained_with_names:
        warn(
            "X has no column names, but training had; its columns are taken by position, as "
            f"{_first(names, 4)}; pass a table with these names",
            DataWarning,
        )
    return frame.set_axis(names, axis="columns")


def text_named(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its column names as text; itself where they are."""
    names = frame.columns.tolist()
    return frame if all(type(name) is str for name in names) else frame.set_axis(list(map(str, names)), axis="columns")


def _first(names: list[str], count: int) -> str:
    """The first of some names, quoted."""
    return ", ".join(map(repr, names[:count])) + (", ..." if len(names) > count else "")
