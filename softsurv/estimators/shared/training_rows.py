"""What an estimator remembers of its training table: the names of the outcome, and the range of each number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.blocks import NumberBlock
from softsurv.data.frames import as_frame, objects_as_numbers, refuse_twice
from softsurv.data.kinds import as_float, as_the_tree_knows
from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, warn

FAR = 1.0
"""A value is far outside where it lies further from the training range than the range is wide."""

ROLES = ("time", "event", "entry", "upper", "cause", "start", "stop", "id", "recurrent")
"""Arguments of ``fit`` and ``evaluate`` that name the outcome."""

FAR_VALUES = "values far outside the training range"

MIN_ROWS = 20
"""In shorter tables a feature may well equal the outcome by chance."""

Ranges = dict[str, tuple[float, float]]


def remember(tree: Any, data: SurvivalData, X: Any, y: Any, given: dict[str, Any]) -> None:
    """Keep on a tree what it was fitted on: names of the outcome, ranges; say which features repeat the outcome."""
    tree.outcome_columns_ = {} if isinstance(X, SurvivalData) else outcome_columns(y, given)
    block = data.number_block()
    tree.ranges_ = number_ranges(data.X, block)
    warn_of_outcome_among_features(data, block)


def refuse_unknown_histories(tree: Any, data: SurvivalData) -> None:
    """Refuse histories that a kind of tree cannot fit, rather than leave causes or subjects out."""
    has = {
        "causes": (data.cause is not None, "one kind of event"),
        "subjects": (data.subject is not None, "one row a subject"),
        "recurrent": (data.recurrent, "one event a subject"),
    }
    remedy = {
        "causes": "fit SoftSurvivalTree or OptimalSurvivalTree, or pass data.of_cause(...)",
        "subjects": "fit SoftSurvivalTree or OptimalSurvivalTree, or pass one row of each subject",
        "recurrent": "fit SoftSurvivalTree or OptimalSurvivalTree, or leave out what follows a subject's first event",
    }
    if data.cause is not None and data.recurrent:
        raise InvalidSurvivalDataError("recurrent events of several causes are not fitted; take data.of_cause(...)")
    for name, (given, alone) in has.items():
        if given and name not in tree._knows:
            raise InvalidParameterError(f"{type(tree).__name__} takes {alone}, got data with {name}; {remedy[name]}")


def held_out_rows(tree: Any, X: Any, y: Any, options: dict[str, Any]) -> SurvivalData:
    """Rows to score a tree on; takes what names their outcome from the options, else as the tree was fitted."""
    names = {name: options.pop(name) for name in ROLES if name in options}
    weight = options.pop("sample_weight", None)
    if y is None and not names and not isinstance(X, SurvivalData):
        names = dict(vars(tree).get("outcome_columns_", {}))
    if "cause" in names:
        names["cause_names"] = tree.cause_names_
    with as_the_tree_knows():
        return survival_data(X, y, weight=weight, **names)


def outcome_columns(y: Any, given: dict[str, Any]) -> dict[str, str]:
    """Columns of the table that hold the outcome, where ``fit`` was given their names."""
    pair = dict(zip(("event", "time"), y, strict=True)) if isinstance(y, tuple | list) and len(y) == 2 else {}
    named = pair | {role: given[role] for role in ROLES if given.get(role) is not None}
    return {role: name for role, name in named.items() if isinstance(name, str)}


def number_ranges(X: pd.DataFrame, block: NumberBlock) -> Ranges:
    """Smallest and largest known value of each column of numbers; ``block`` holds those of plain numbers."""
    _, low, high = (part.tolist() for part in block.ranges())
    found = dict(zip(block.place, zip(low, high, strict=True), strict=True))
    if len(block.place) < X.shape[1]:
        others = {name: _known_range(X[name]) for name in X.columns.tolist() if name not in block.place}
        found = {name: ends for name in X.columns.tolist() if (ends := found.get(name) or others[name]) is not None}
    return {name: ends for name, ends in found.items() if ends[0] < ends[1] and name not in block.flags}


def _known_range(column: pd.Series) -> tuple[float, float] | None:
    """Smallest and largest known value of a column that numpy does not hold as it is; None where it has no numbers."""
    if not _is_nullable_number(column):
        return None
    known = column.dropna()
    return (float(known.min()), float(known.max())) if len(known) else None


def _is_nullable_number(column: pd.Series) -> bool:
    """Whether pandas holds the numbers of a column in a type of its own."""
    dtype = column.dtype
    of_numbers = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
    return pd.api.types.is_extension_array_dtype(dtype) and of_numbers


def outside(X: pd.DataFrame, ranges: Ranges, far: float = 0.0) -> dict[str, int]:
    """Columns with values outside the training range by more than ``far`` times its width, and in how many rows."""
    present = set(X.columns.tolist())
    names = [name for name in ranges if name in present]
    X = objects_as_numbers(X[names])
    block = NumberBlock.of(X)
    ends = np.array([ranges[name] for name in block.place]).reshape(-1, 2)
    counts = dict(zip(block.place, _number_outside(block.values, ends, far).tolist(), strict=True))
    for name in names:
        if name not in counts:  # text and pandas' own numbers are read one by one
            values = pd.to_numeric(X[name].map(as_float, na_action="ignore"), errors="coerce")
            counts[name] = int(_number_outside(_as_floats(values)[None], np.array([ranges[name]]), far)[0])
    return {name: counts[name] for name in names if counts[name]}


def _number_outside(values: FloatArray, ends: FloatArray, far: float) -> IntArray:
    """How many values of each column (Q, N) lie beyond its ends (Q, 2) by more than ``far`` times the width, (Q,)."""
    margin = far * (ends[:, 1] - ends[:, 0])
    low, high = (ends[:, 0] - margin)[:, None], (ends[:, 1] + margin)[:, None]
    return np.count_nonzero((values < low) | (values > high), axis=1)


def warn_of_far_values(X: Any, ranges: Ranges) -> None:
    """Say, summed up, which values lie far outside the training range; a prediction there is a guess."""
    if not ranges:
        return
    frame = as_frame(X.X if isinstance(X, SurvivalData) else X)
    refuse_twice(frame)
    found = outside(frame, ranges, FAR)
    if found:
        told = ", ".join(f"{name} in {count} (trained on {_range(ranges[name])})" for name, count in found.items())
        warn(f"{FAR_VALUES}, of {len(frame)} rows: {told}; check them", DataWarning)


def warn_of_outcome_among_features(data: SurvivalData, block: NumberBlock) -> None:
    """Say which features repeat the outcome: a tree that sees them predicts what it knows."""
    if data.n < MIN_ROWS:
        return
    others = []
    if len(block.place) < data.X.shape[1]:
        others = [name for name in data.X.columns.tolist() if name not in block.place]
        others = [name for name in others if _is_nullable_number(data.X[name])]
    for what, values in (("time", data.time.numpy()), ("event", data.event.numpy().astype(float))):
        alike = np.flatnonzero((block.values[:, :MIN_ROWS] == values[:MIN_ROWS]).all(axis=1)).tolist()
        equal = {k for k in alike if (block.values[k] == values).all()}
        same = [name for name, place in block.place.items() if place in equal] if equal else []
        same += [name for name in others if (_as_floats(data.X[name]) == values).all()]
        for name in same:
            warn(f"the feature {name!r} equals the {what} of the outcome in every row; leave it out", DataWarning)


def _as_floats(column: pd.Series) -> FloatArray:
    """A column of numbers as float64, nan where missing."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _range(bounds: tuple[float, float]) -> str:
    return f"{bounds[0]:g} to {bounds[1]:g}"
