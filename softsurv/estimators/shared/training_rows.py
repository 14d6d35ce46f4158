"""What an estimator remembers of its training table: the names of the outcome, and the range of each number."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.blocks import NumberBlock, distinct
from softsurv.data.frames import as_frame, objects_as_numbers, refuse_twice
from softsurv.data.histories import naming_as_given
from softsurv.data.kinds import as_float, as_the_tree_knows
from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, warn
from softsurv.estimators.shared.on_demand import OnDemand

FAR = 1.0
"""A value is far outside where it lies further from the training range than the range is wide."""

ROLES = ("time", "event", "entry", "upper", "cause", "start", "stop", "id", "recurrent")
"""Arguments of ``fit`` and ``evaluate`` that name the outcome."""

FAR_VALUES = "values far outside the training range"

MIN_ROWS = 20
"""In shorter tables a feature may well equal the outcome by chance."""

Ranges = dict[str, tuple[float, float]]
Numbers = dict[str, FloatArray]


def remember(tree: Any, data: SurvivalData, X: Any, y: Any, given: dict[str, Any]) -> None:
    """Keep on a tree what it was fitted on: names of the outcome, ranges; say which features repeat the outcome."""
    tree.outcome_columns_ = {} if isinstance(X, SurvivalData) else outcome_columns(y, given)
    block, nullable = data.number_block(), nullable_numbers(data.X, data.column_types())
    tree.ranges_ = OnDemand(partial(number_ranges, *_ends(data.X, block, nullable)))
    warn_of_repeats(repeats_of_outcome(block, nullable, data.time.numpy(), data.event.numpy()), data.n)
    warn_of_known_afterwards(data.X, block, data.failed)


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
    """Rows to score a tree on; takes what names their outcome from the options, else as the tree was fitted.

    Rows of weight 0 are left out, as in ``fit``.
    """
    names = {name: options.pop(name) for name in ROLES if name in options}
    if y is None and not names and not isinstance(X, SurvivalData):
        names = told_columns(tree, X)
    if "sample_weight" in options:
        names["weight"] = options.pop("sample_weight")
    if "cause" in names:
        names["cause_names"] = tree.cause_names_
    with as_the_tree_knows(), naming_as_given({"weight": "sample_weight"}):
        return survival_data(X, y, **names).that_count()


def told_columns(tree: Any, X: Any) -> dict[str, Any]:
    """What ``fit`` was told of the outcome, as `survival_data` takes it; without a weight that the table X has not."""
    told = dict(vars(tree).get("outcome_columns_", {}))
    if "weight" in told and told["weight"] not in as_frame(X).columns:
        del told["weight"]
    return told


def outcome_columns(y: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Columns that hold outcome and weight, where ``fit`` was given their names, and whether events are recurrent."""
    pair = dict(zip(("event", "time"), y, strict=True)) if isinstance(y, tuple | list) and len(y) == 2 else {}
    named = pair | {role: given[role] for role in (*ROLES, "weight") if given.get(role) is not None}
    recurrent = {"recurrent": True} if named.pop("recurrent", False) else {}
    return {role: name for role, name in named.items() if isinstance(name, str)} | recurrent


def number_ranges(names: Sequence[str], low: FloatArray, high: FloatArray, flags: Set[str]) -> Ranges:
    """Smallest and largest known value, both (Q,), by name; without columns of one value, or of booleans."""
    ends = zip(names, low.tolist(), high.tolist(), strict=True)
    return {name: (least, most) for name, least, most in ends if least < most and name not in flags}


def _ends(X: pd.DataFrame, block: NumberBlock, nullable: Numbers) -> tuple[list[str], FloatArray, FloatArray, Set[str]]:
    """What `number_ranges` takes, of a table whose plain numbers are in a block."""
    _, low, high = block.ranges()
    if not nullable:
        return list(block.place), low, high, block.flags
    known = {name: values[~np.isnan(values)] for name, values in nullable.items()}
    least = dict(zip(block.place, low, strict=True)) | {name: some.min(initial=np.inf) for name, some in known.items()}
    most = dict(zip(block.place, high, strict=True)) | {name: some.max(initial=-np.inf) for name, some in known.items()}
    names = [name for name in X.columns.tolist() if name in least]
    return names, np.array([least[name] for name in names]), np.array([most[name] for name in names]), block.flags


def nullable_numbers(X: pd.DataFrame, types: Sequence[Any]) -> Numbers:
    """Columns (N,) of numbers, NaN where missing, that pandas holds in a type of its own; ``types`` are those of X."""
    are_such = {id(dtype): _are_nullable_numbers(dtype) for dtype in distinct(types)}
    if not any(are_such.values()):
        return {}
    names = X.columns.tolist()
    return {name: _as_floats(X[name]) for name, dtype in zip(names, types, strict=True) if are_such[id(dtype)]}


def _are_nullable_numbers(dtype: Any) -> bool:
    if isinstance(dtype, np.dtype | pd.CategoricalDtype):
        return False
    return bool(pd.api.types.is_numeric_dtype(dtype)) and not pd.api.types.is_bool_dtype(dtype)


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


def repeats_of_outcome(
    block: NumberBlock, nullable: Numbers, time: FloatArray, event: BoolArray
) -> list[tuple[str, str]]:
    """Features that equal the "time" or the "event" of the outcome in every row, with which of them."""
    found = []
    for what, values in (("time", time), ("event", event.astype(float))):
        alike = np.flatnonzero((block.values[:, :MIN_ROWS] == values[:MIN_ROWS]).all(axis=1)).tolist()
        equal = {k for k in alike if (block.values[k] == values).all()}
        same = [name for name, place in block.place.items() if place in equal] if equal else []
        same += [name for name, numbers in nullable.items() if (numbers == values).all()]
        found += [(name, what) for name in same]
    return found


def warn_of_repeats(repeats: Sequence[tuple[str, str]], n: int) -> None:
    """Say which features repeat the outcome of n rows: a tree that sees them predicts what it knows."""
    for name, what in repeats if n >= MIN_ROWS else ():
        warn(f"the feature {name!r} equals the {what} of the outcome in every row; leave it out", DataWarning)


def warn_of_known_afterwards(X: pd.DataFrame, block: NumberBlock, event: BoolArray) -> None:
    """Say which features are known in the rows with an event alone, such as what broke: they tell the outcome."""
    if len(X) < MIN_ROWS or event.all() or (len(block.place) == X.shape[1] and not block.gaps.any()):
        return
    gaps = dict(zip(block.place, block.gaps.tolist(), strict=True))
    for name in (name for name in X.columns.tolist() if gaps.get(name, True)):
        first = _is_known(name, X, block, slice(MIN_ROWS)) == event[:MIN_ROWS]
        if first.all() and (_is_known(name, X, block, slice(None)) == event).all():
            told = f"the feature {name!r} is there in the rows with an event and missing in all others"
            warn(f"{told}, as what is learnt afterwards would be; leave it out", DataWarning)


def _is_known(name: str, X: pd.DataFrame, block: NumberBlock, rows: slice) -> BoolArray:
    """Which of some rows have a value of a feature, from its codes where the block holds them."""
    read = block.labels.get(name)
    return X[name].iloc[rows].notna().to_numpy() if read is None else read.code[rows] >= 0


def _as_floats(column: pd.Series) -> FloatArray:
    """A column of numbers as float64, nan where missing."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _range(bounds: tuple[float, float]) -> str:
    return f"{bounds[0]:g} to {bounds[1]:g}"
