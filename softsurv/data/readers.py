"""Frames, arrays, files and structured outcomes in, one validated `SurvivalData` out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softsurv.data.columns import check_listed, is_binary, is_plain, series
from softsurv.data.frames import as_frame, checked_features
from softsurv.data.histories import cause_column, naming_as_given, naming_subjects, warn_of_unnamed_subjects
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidSurvivalDataError

if TYPE_CHECKING:
    import pandas as pd

_OUTCOME_HELP = (
    "pass a structured array with a bool and a number field, a pair (event, time), or time= and event= "
    "as arrays or column names"
)


def survival_data(
    X: Any,
    y: Any = None,
    *,
    time: Any = None,
    event: Any = None,
    entry: Any = None,
    weight: Any = None,
    group: Any = None,
    upper: Any = None,
    cause: Any = None,
    cause_names: Sequence[str] = (),
    start: Any = None,
    stop: Any = None,
    id: Any = None,
    recurrent: bool = False,
    categorical: Sequence[str] = (),
    missing_values: Sequence[Any] = (),
    name: str | None = None,
) -> SurvivalData:
    """Read features and outcome from any common form.

    Parameters
    ----------
    X : table (N, P), path or SurvivalData
        pandas, polars, pyarrow, numpy, torch, a list of rows, a dict of columns, or a path to a csv or parquet
        file. `SurvivalData` is passed through. Unnamed columns are called x0, x1, ...
    y : structured array, frame or pair, optional
        A structured array or a two-column frame, of which the bool column is the event, in any order and
        under any names; or a pair (event, time) of arrays or of column names of ``X``.
    time, event : column name or array, optional
        The outcome, instead of ``y``. Columns named here are removed from the features.
    entry, weight, group, upper : column name or array, optional
        Late entry, sample weight, sensitive group and interval end: see `SurvivalData`. Columns named
        here are removed from the features.
    cause : column name or array, optional
        Competing risks: 0, "" or missing for censored rows, else the code or label of what happened. Takes the place
        of ``event``.
    cause_names : sequence of str
        Names of the codes 1..K.
    start, stop, id : column name or array, optional
        Event histories, several rows for each ``id``: under observation in (start, stop] with the row's features.
        Other names of ``entry``, ``time`` and of the subject in `SurvivalData`.
    recurrent : bool
        Whether events of a subject may happen again.
    categorical : sequence of str
        Features that are categories though they look like numbers.
    missing_values : sequence
        Values of features that mean "missing", such as "unknown" or -9.
    name : str, optional
        Name for reports; a file's stem by default.

    Returns
    -------
    SurvivalData

    Raises
    ------
    InvalidSurvivalDataError
        One sentence with the argument, the row and the remedy; also where ``event`` and ``time`` look
        swapped, and where ``X`` and an outcome hold the same index in different order.

    Examples
    --------
    >>> table = {"age": [61, 47, 70], "T": [5.0, 3.0, 8.0], "E": [True, False, True]}
    >>> survival_data(table, time="T", event="E")
    SurvivalData(n=3, p=1, events=2)
    """
    given = {"time": time, "event": event, "entry": entry, "weight": weight, "group": group, "upper": upper}
    given |= {"cause": cause, "subject": id}
    called = {"subject": "id"} | _take_in(given, "entry", start, "start") | _take_in(given, "time", stop, "stop")
    check_listed("categorical", categorical)
    check_listed("missing_values", missing_values)
    if isinstance(X, SurvivalData):
        meanings = {"categorical": categorical, "missing_values": missing_values}
        extra = [key for key, value in {"y": y, **given}.items() if value is not None]
        extra += [key for key, value in meanings.items() if len(value)]
        _refuse_beside(X, extra, cause_names, recurrent)
        return X
    if name is None and isinstance(X, (str, Path)):
        name = Path(X).stem
    frame = as_frame(X, native=False)
    if y is not None:
        if given["time"] is not None or event is not None or cause is not None:
            raise InvalidSurvivalDataError("y must be left out where time=, event= or cause= are given; drop one")
        given["event"], given["time"] = _event_and_time(y)
    for key in ("time",) if given["event"] is None and cause is not None else ("time", "event"):
        if given[key] is None:
            raise InvalidSurvivalDataError(f"{key} must be given; {_OUTCOME_HELP}")
    used = [value for value in given.values() if isinstance(value, str)]
    frame = as_frame(frame) if used else frame
    of_rows = _has_row_names(X)
    columns = {
        key: _resolve(frame, value, called.get(key, key), of_rows) for key, value in given.items() if value is not None
    }
    features = frame.drop(columns=used) if used else frame
    if len(categorical) or len(missing_values):
        from softsurv.data.kinds import declared, warn_of_kept_outcomes

        warn_of_kept_outcomes(columns, missing_values, called)
        features = declared(checked_features(features), categorical, missing_values)
    if "event" in columns:
        if len(cause_names):
            raise InvalidSurvivalDataError("cause_names name the codes of a cause; pass cause= in the place of event=")
        with naming_as_given(called):
            _refuse_swap(columns["event"], columns["time"])
    else:
        with naming_subjects(columns.get("subject")):
            columns["cause"], cause_names = cause_column(columns["cause"], cause_names)
        columns["event"] = columns["cause"] > 0
    with naming_as_given(called):
        data = SurvivalData(features, name=name, cause_names=tuple(cause_names), recurrent=recurrent, **columns)
    if data.entry is not None and data.subject is None:
        warn_of_unnamed_subjects(features, data.entry.numpy(), data.time.numpy())
    return data


def _take_in(given: dict[str, Any], argument: str, value: Any, other_name: str) -> dict[str, str]:
    """Put a value under its first name; both names at once are refused. Returns how the user called the argument."""
    if value is None:
        return {}
    if given[argument] is not None:
        raise InvalidSurvivalDataError(f"{argument} and {other_name} name the same column; leave out one")
    given[argument] = value
    return {argument: other_name}


def _refuse_beside(data: SurvivalData, extra: list[str], cause_names: Sequence[str], recurrent: bool) -> None:
    """Refuse arguments beside data that were read already; ``extra`` names those that are given."""
    extra = extra + (["cause_names"] if len(cause_names) and tuple(cause_names) != data.cause_names else [])
    extra += ["recurrent"] if recurrent and not data.recurrent else []
    if extra:
        raise InvalidSurvivalDataError(
            f"{extra[0]} must be left out where X is SurvivalData, which was read already; drop it"
        )


def _event_and_time(y: Any) -> tuple[Any, Any]:
    """The two halves of an outcome: arrays or column names."""
    if getattr(getattr(y, "dtype", None), "names", None):
        return _bool_and_number({field: y[field] for field in y.dtype.names})
    if hasattr(y, "columns"):
        frame = as_frame(y)
        return _bool_and_number({field: frame[field] for field in frame.columns})
    if isinstance(y, (tuple, list)) and len(y) == 2:
        return y[0], y[1]
    raise InvalidSurvivalDataError(f"y must hold event and time, got {type(y).__name__}; {_OUTCOME_HELP}")


def _bool_and_number(fields: dict[Any, Any]) -> tuple[Any, Any]:
    """Event and time among two named columns: the one that is bool is the event."""
    if len(fields) != 2:
        raise InvalidSurvivalDataError(
            f"y must have two fields, event and time, got {list(fields)}; pass time= and event= apart"
        )
    flags = [name for name, values in fields.items() if _is_bool(values)]
    if len(flags) != 1:
        raise InvalidSurvivalDataError(
            f"y must have exactly one bool field, the event, got {len(flags)} among {list(fields)}; "
            "convert the event with astype(bool), or pass time= and event= apart"
        )
    (clock,) = (name for name in fields if name != flags[0])
    return fields[flags[0]], fields[clock]


def _is_bool(values: Any) -> bool:
    """Whether a column holds true and false."""
    column = values if is_plain(values, "biuf") else series(values, "y")
    return column.dtype in ("bool", "boolean")


def _has_row_names(X: Any) -> bool:
    """Whether the rows of a table have an index, or are numbered by a file; those of an array are known by place."""
    import pandas as pd

    columns = X.values() if isinstance(X, dict) else (X,)
    return any(isinstance(column, (pd.DataFrame, pd.Series, str, Path)) for column in columns)


def _resolve(frame: pd.DataFrame, value: Any, argument: str, of_rows: bool) -> Any:
    """An array as it is, a column name looked up in the table; indexes must not disagree in order.

    ``of_rows``: the index of the table is that of its rows, not made for an array.
    """
    if isinstance(value, str):
        if value not in frame.columns:
            shown = ", ".join(repr(str(c)) for c in frame.columns[:12]) + (", ..." if frame.shape[1] > 12 else "")
            raise InvalidSurvivalDataError(
                f"{argument} must name a column of X, got {value!r}; X has the columns {shown}"
            )
        column = frame[value]
        if getattr(column, "ndim", 1) == 2:
            raise InvalidSurvivalDataError(f"{argument} must name one column, got {value!r} twice; rename one")
        return column
    if of_rows:
        refuse_other_rows(frame, value, argument)
    return value


def refuse_other_rows(frame: pd.DataFrame, value: Any, argument: str) -> None:
    """Rows are matched by position: refuse a Series or frame whose index names the table's rows at other places."""
    import pandas as pd

    if not isinstance(value, (pd.Series, pd.DataFrame)) or value.index.equals(frame.index):
        return
    unique = value.index.is_unique and frame.index.is_unique
    if unique and len(value) == len(frame) and frame.index.isin(value.index).all():
        raise InvalidSurvivalDataError(
            f"{argument} must be in the row order of X, got the same index in another order; "
            f"use {argument}.loc[X.index], or reset both indexes if the rows match by position"
        )
    if unique and len(value) == len(frame) and value.index.isin(frame.index).any():
        raise InvalidSurvivalDataError(
            f"{argument} must belong to the rows of X, got an index that shares some rows with that of X and not all; "
            "select the same rows in both, or reset both indexes if the rows match by position"
        )


def _refuse_swap(event: Any, time: Any) -> None:
    """Name the likely mistake where time is an indicator and event is not."""
    if str(getattr(event, "dtype", "")) == "bool":
        return
    flags, times = series(event, "event"), series(time, "time")
    if flags.dtype == bool:
        return
    if not is_binary(flags) and is_binary(times) and len(times) > 1:
        raise InvalidSurvivalDataError(
            f"event must be bool or 0/1, got {flags.iloc[0]!s} at row 0, while time holds only 0 and 1; "
            "they look swapped: the order is (event, time)"
        )
