"""Arguments that name a table and its columns, and the reading of them."""

from __future__ import annotations

import argparse
import csv
import difflib
import gzip
import zlib
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softsurv.errors import DataWarning, InvalidSurvivalDataError, did_you_mean, warn

if TYPE_CHECKING:
    import pandas as pd

    from softsurv.data.survival_data import SurvivalData

_ROLES = ("time", "event", "entry", "upper", "weight", "group", "cause", "start", "stop", "id")

_NUMBERS = ("time", "entry", "upper", "weight", "start", "stop")

_MAX_CODES = 10
"""A column of more values than this is a measurement, not a code of outcomes."""

_MAX_NAMES = 12
"""Column names that an error lists at most."""

_MIN_ROWS = 20
"""In shorter tables a column that counts the rows may well be a measurement."""


def add_table(parser: argparse.ArgumentParser, required: bool = True, folders: str | None = None) -> None:
    """The table itself; ``folders`` is the option that lets it be a folder of files."""
    count = None if required else "?"
    words = "a .csv file with a header line, or a .parquet file"
    words += f"; with {folders} also a folder of such files" if folders else ""
    parser.add_argument("data", metavar="DATA", nargs=count, help=words)


def at_least(low: int) -> Callable[[str], int]:
    """The type of an option that takes a whole number from ``low`` on."""

    def read(text: str) -> int:
        if not text.isdigit() or int(text) < low:
            raise argparse.ArgumentTypeError(f"must be a whole number >= {low}, got {text!r}")
        return int(text)

    return read


def add_outcome(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """The columns that hold the outcome; returns the group, for more of them. `check_outcome` says which are wanted."""
    group = parser.add_argument_group("columns of DATA (all others are features)")
    group.add_argument("--time", metavar="COLUMN", help="observed time, >= 0, in any unit")
    group.add_argument(
        "--event",
        "--event-column",  # torchrun takes --event for an abbreviation of its own --event-log-handler
        metavar="COLUMN[=VALUE]",
        help="whether the event was observed: true/false or 1/0; otherwise say which VALUE marks it, as in status=dead "
        "(under torchrun write --event-column)",
    )
    group.add_argument("--drop", metavar="COLUMN", nargs="+", help="columns to leave out, such as an id")
    group.add_argument(
        "--categorical", metavar="COLUMN", nargs="+", help="features that are categories though they look like numbers"
    )
    add_missing_values(group)
    _add_histories(group)
    return group


def _add_histories(group: argparse._ArgumentGroup) -> None:
    """The columns of competing causes, and of subjects with several rows."""
    group.add_argument(
        "--cause", metavar="COLUMN", help="instead of --event: what happened, by number or name; 0 or empty: censored"
    )
    group.add_argument("--start", metavar="COLUMN", help="start of a row's stretch of time, with --stop and --id")
    group.add_argument("--stop", metavar="COLUMN", help="instead of --time: its end, at which the event may be")
    group.add_argument("--id", metavar="COLUMN", help="subject; several rows of one follow one another in time")
    group.add_argument(
        "--recurrent", action="store_const", const=True, help="events of a subject may happen again and again"
    )


def check_outcome(args: argparse.Namespace) -> None:
    """Wrong usage where no option names the time, or what happened."""
    for either, other in (("time", "stop"), ("event", "cause")):
        given = [name for name in (either, other) if getattr(args, name) is not None]
        if not given:
            args.usage_error(f"the following arguments are required: --{either} (or --{other})")
        if len(given) == 2:
            args.usage_error(f"--{either} and --{other} say the same; leave one out")
    if args.start is not None and args.stop is None:
        args.usage_error("--start needs --stop, the column of the ends")
    if args.recurrent and args.id is None:
        args.usage_error("--recurrent needs --id, the column of the subjects")


def add_missing_values(group: argparse._ActionsContainer) -> None:
    """The cells that mean "missing"."""
    group.add_argument(
        "--missing-values", metavar="VALUE", nargs="+", help='cells of features that mean "missing", such as unknown'
    )


def add_entry_and_weight(group: argparse._ArgumentGroup) -> None:
    """The columns of late entry, interval censoring and weights."""
    group.add_argument("--entry", metavar="COLUMN", help="time at which a row came under observation (late entry)")
    group.add_argument("--upper", metavar="COLUMN", help="end of the interval that holds the event, inf where none")
    group.add_argument("--weight", metavar="COLUMN", help="sample weight, >= 0")


def check_table(args: argparse.Namespace) -> None:
    """Raise where DATA or a column that an option names is not there, before anything heavy is loaded."""
    file = existing_file(args.data)
    names = column_names(file)
    for name in getattr(args, "drop", None) or ():
        check_name(names, name, "drop")
    for role in _ROLES:
        name = getattr(args, role, None)
        if name is None:
            continue
        check_name(names, event_parts(name, names or ())[0] if role == "event" else name, role)


def column_names(file: Path) -> list[str] | None:
    """The names in a table's first line, or None where only its reader can tell."""
    kind = file.suffix.lower()
    if kind == ".csv" or file.name.lower().endswith(".csv.gz"):
        opened = gzip.open if kind == ".gz" else open
        with opened(file, "rt", encoding="utf-8-sig", errors="replace", newline="") as lines:
            try:
                names = next(csv.reader(lines), [])
            except (csv.Error, EOFError, zlib.error, gzip.BadGzipFile):
                return None
        if any(mark in name for name in names for mark in "\0\ufffd"):  # another encoding, which the reader names
            return None
        _refuse_other_separators(file, names)
        return names if len(names) > 1 else None
    if kind == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return list(pq.read_schema(file).names)
        except (pa.ArrowException, OSError):
            return None
    return None


def _refuse_other_separators(file: Path, names: list[str]) -> None:
    """Raise where a first line is cut by semicolons or tabs, as spreadsheets of many countries save it."""
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        if sum(name.count(mark) for name in names) >= max(len(names), 2):
            raise InvalidSurvivalDataError(
                f"DATA must be comma separated, got {word} in {str(file)!r}; save it with commas and decimal points"
            )


def existing_file(path: str) -> Path:
    """The file of a table.

    Raises
    ------
    InvalidSurvivalDataError
        If there is none.
    """
    file = Path(path)
    if file.is_dir():
        raise InvalidSurvivalDataError(
            f"DATA must be a file, got the folder {path!r}; `fit --memory` and `predict --chunk-rows` read folders"
        )
    if not file.is_file():
        near = difflib.get_close_matches(file.name, _names_beside(file), n=1)
        hint = f"did you mean {str(file.with_name(near[0]))!r}?" if near else "check the path"
        raise InvalidSurvivalDataError(f"DATA must be an existing file, got {path!r}; {hint}")
    return file


def read_table(path: str, names: Sequence[str] = ()) -> pd.DataFrame:
    """The table of a csv or parquet file; ``names`` as in `softsurv.data.frames.read_table`."""
    from softsurv.data import frames

    return frames.read_table(existing_file(path), names)


def _names_beside(file: Path) -> list[str]:
    return [p.name for p in file.parent.iterdir()] if file.parent.is_dir() else []


def read_data(args: argparse.Namespace, training: bool = False, causes: tuple[str, ...] = ()) -> SurvivalData:
    """The table that the arguments name, as validated survival data; says which features tell nothing to training.

    ``causes`` are the names that a model knows, where it is to be used on the table.
    """
    from softsurv.data.kinds import as_the_tree_knows
    from softsurv.data.readers import survival_data

    frame = read_table(args.data)
    dropped = args.drop or []
    for name in dropped:
        check_column(frame, name, "drop")
    columns: dict[str, Any] = {role: name for role in _ROLES if (name := getattr(args, role, None)) is not None}
    if "event" in columns:
        columns["event"], frame = _event(frame, columns["event"])
    for role, name in columns.items():
        check_column(frame, name, role)
        if role in _NUMBERS:
            _check_numbers(frame[name], name, role)
    _refuse_shared(columns, dropped)
    counters = _counters(frame.drop(columns=[*dropped, *set(columns.values())])) if training else []
    if counters:
        args.drop = dropped = [*dropped, *counters]  # recorded with the run
    how: dict[str, Any] = {name: getattr(args, name, None) or () for name in ("categorical", "missing_values")}
    how |= {"cause_names": causes if "cause" in columns else (), "recurrent": bool(args.recurrent)}
    with nullcontext() if training else as_the_tree_knows():
        data = survival_data(frame.drop(columns=dropped), **columns, **how, name=Path(args.data).name)
    if training:
        _warn_of_columns(data.require_events().X, counters)
    return data


def _counters(features: pd.DataFrame) -> list[str]:
    """Columns that count the rows."""
    import numpy as np

    numbers = features.select_dtypes("number") if len(features) >= _MIN_ROWS else features.iloc[:, :0]
    with np.errstate(invalid="ignore"):  # infinite values are refused by a sentence of their own
        steps = {str(name): np.diff(column.to_numpy(float, na_value=np.nan)) for name, column in numbers.items()}
    return [name for name, step in steps.items() if (step == 1).all()]


def _warn_of_columns(X: pd.DataFrame, counters: Sequence[str]) -> None:
    """Say which columns are left out: those that count the rows, and those of one value."""
    for name in counters:
        note(f"column {name!r} is left out: it counts the rows; to keep it, put the rows in another order")
    for name in X.columns:
        if X[name].nunique() == 1:
            note(f"column {name!r} is left out: it holds {_text(X[name].dropna().iloc[0])} in every row")


def note(text: str) -> None:
    warn(text, DataWarning)


def check_column(frame: pd.DataFrame, name: str, option: str) -> None:
    """Raise where an option names no column of the table."""
    check_name([str(column) for column in frame.columns], name, option)


def check_name(known: list[str] | None, name: str, option: str) -> None:
    """Raise where an option names none of the known columns; nothing where these are not known."""
    if known is None or name in known:
        return
    hint = did_you_mean(name, known)
    rest = len(known) - _MAX_NAMES
    shown = ", ".join(known[:_MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "")
    has = f"{hint} It has" if hint else "; it has"
    raise InvalidSurvivalDataError(f"--{option} must name a column of DATA, got {name!r}{has} {shown}")


def _event(frame: pd.DataFrame, given: str) -> tuple[str, pd.DataFrame]:
    """The event's column, and the table with that column as true/false where a value marks the event."""
    name, value = event_parts(given, [str(column) for column in frame.columns])
    if value is None:
        check_column(frame, given, "event")
        _check_binary(frame[given].dropna(), given)
        return given, frame
    check_column(frame, name, "event")
    known = frame[name].notna()
    marked = frame[name].map(lambda cell: _same(cell, value))
    if not (marked & known).any():
        raise InvalidSurvivalDataError(f"--event {given} marks no row; column {name!r} holds {_values(frame[name])}")
    return name, frame.assign(**{name: marked.astype("boolean").where(known)})


def event_parts(given: str, names: Collection[str]) -> tuple[str, str | None]:
    """Column and marking value of COLUMN=VALUE; both may hold "=", so the longest column of the table is taken."""
    ends = [len(given), *(k for k in range(len(given) - 1, -1, -1) if given[k] == "=")]
    end = next((k for k in ends if given[:k] in names), ends[-1])
    return given[:end], given[end + 1 :] if end < len(given) else None


def _check_binary(column: pd.Series, name: str) -> None:
    """Raise where a column is no indicator, with what to write instead."""
    from softsurv.data.columns import is_binary, likely_event

    if is_binary(column):
        return
    wrong = f"--event must name a column of 1/0 or true/false, got {name!r} with the values {_values(column)}"
    if column.nunique() > _MAX_CODES:
        raise InvalidSurvivalDataError(f"{wrong}; name the column that says whether the event was observed")
    code = likely_event(column)
    example = "VALUE" if code is None else _text(code)
    raise InvalidSurvivalDataError(f"{wrong}; say which one marks an observed event, such as --event {name}={example}")


def _check_numbers(column: pd.Series, name: str, option: str) -> None:
    """Raise where a column holds only words. The reader names the row of a single cell that is no number."""
    import pandas as pd

    if len(column) and pd.to_numeric(column, errors="coerce").isna().all() and column.notna().any():
        raise InvalidSurvivalDataError(
            f"--{option} must name a column of numbers, got {name!r} with the values {_values(column)}; "
            "name another one, or make it numbers first"
        )


def _values(column: pd.Series) -> str:
    """The first few values of a column, for messages."""
    found = column.dropna().unique()
    return ", ".join(map(_text, found[:6])) + (", ..." if len(found) > 6 else "") or "nothing"


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _same(cell: Any, text: str) -> bool:
    """Whether a cell is the value that the text names; 1, 1.0 and "1" are one."""
    try:
        return float(cell) == float(text)
    except (TypeError, ValueError):  # a missing cell of a parquet file is None
        return str(cell).strip() == text


def _refuse_shared(columns: dict[str, str], dropped: list[str]) -> None:
    """One column cannot play two roles."""
    role_of: dict[str, str] = dict.fromkeys(dropped, "drop")
    for role, name in columns.items():
        if name in role_of:
            raise InvalidSurvivalDataError(f"--{role_of[name]} and --{role} both name the column {name!r}; drop one")
        role_of[name] = role
