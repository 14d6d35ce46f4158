"""What rows to predict hold that training did not show, in a warning."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from softsurv.data.blocks import NumberBlock
from softsurv.data.encoding import Source, is_level
from softsurv.errors import DataWarning, warn

MOST_NAMED = 4
"""Levels or columns that a warning names at most."""


def warn_of_unseen(labels: NDArray[Any], source: Source, as_if: str) -> None:
    """Warn of levels of one column (N,) that training did not show, and say what they count like."""
    unseen = ~is_level(labels, source.levels or ()) & ~pd.isna(labels)
    if not unseen.any():
        return
    new = sorted(set(labels[unseen]))
    shown = ", ".join(map(repr, new[:MOST_NAMED])) + (", ..." if len(new) > MOST_NAMED else "")
    warn(
        f"column {source.name!r} has {len(new)} level(s) not seen in training, in {int(unseen.sum())} "
        f"row(s): {shown}; they count like {as_if}",
        DataWarning,
    )


def warn_of_first_missing(
    frame: pd.DataFrame, block: NumberBlock, sources: Sequence[Source], incomplete: Collection[str]
) -> None:
    """Warn, once for all columns, of missing values that are filled in columns that had none in training.

    Parameters
    ----------
    frame : DataFrame (N, P)
        With the training columns.
    block : NumberBlock
        Of the frame.
    sources : sequence of Source
        The training columns; those that fill nothing are passed over.
    incomplete : collection of str
        Columns that had missing values in training.
    """
    complete = [one for one in sources if one.fill is not None and one.name not in incomplete]
    gaps = dict(zip(block.place, block.gaps.tolist(), strict=True))
    found = [(one, int(frame[one.name].isna().sum())) for one in complete if gaps.get(one.name, True)]
    told = [f"{one.name!r} in {count} row(s), taken as {_words(one.fill)}" for one, count in found if count]
    if told:
        rest = f"; and {len(told) - MOST_NAMED} more column(s)" if len(told) > MOST_NAMED else ""
        warn(
            f"values are missing in columns that had none missing in training: {'; '.join(told[:MOST_NAMED])}{rest}",
            DataWarning,
        )


def _words(fill: float | str | None) -> str:
    return f"{fill:.6g}" if isinstance(fill, float) else repr(fill)
