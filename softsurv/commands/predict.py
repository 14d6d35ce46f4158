"""``softsurv predict``: survival, median, risk and leaf of every row of a table."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from softsurv.commands._input import add_missing_values, add_table, at_least, check_column, check_table, read_table
from softsurv.commands._output import echo, output_csv
from softsurv.commands._recorded import check_features, existing_model, missing_values
from softsurv.errors import InvalidParameterError
from softsurv.files import replacing

if TYPE_CHECKING:
    import pandas as pd

    from softsurv.data.chunks import Place

_EPILOG = """\
examples:
  softsurv predict model new.csv --times 365 730 --id patient --out predictions.csv
  softsurv predict model parts/ --chunk-rows 65536 --out predictions.csv
      all parquet (or csv) files of a folder, a chunk at a time
  softsurv predict model new.csv --times 365 730 --cause relapse
      competing risks: risk and incidence of one cause; without --cause the incidence of each
  softsurv predict model fleet.csv --after age --ahead 90 365 --id pump
      the chance of each pump, which has lived for its age, to last so much longer
  softsurv predict model visits.csv --start from --stop to --id patient --times 365 730
      one line for each patient, along the patient's rows; after the last row its features stay

columns of the result:
  leaf           leaf of the tree, from 0 on the left
  risk           higher means an earlier event
  median         time by which half of such rows have had the event; inf where survival stays above one half
  survival_365   probability of being free of the event at time 365, one column for each of --times
  median_ahead   time from the row's --after on by which half of such rows, free so far, have had the event
  survival_ahead_90  probability of being free of the event for 90 more, given that the row was free until its --after
  incidence_relapse_365  probability of an event of that cause by then, before any other
  mean_count_365  mean number of events by then, where events recur
DATA needs the feature columns of the training table; others are ignored. Cells that meant "missing" in the fit do so
here, unless --missing-values names others. A text in the column of --id that a spreadsheet would run as a formula,
such as =1+1, gets a quote in front.
"""

_FORMULA = ("=", "+", "-", "@", "\t", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""A spreadsheet takes text that begins so for a formula; the last four are the wide forms of the first. Some
readers of csv files skip blanks before it."""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Arguments of the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "predict",
        help="predict with a saved model",
        description="Predict survival, median time, risk and leaf of every row with a saved model.",
        epilog=_EPILOG,
    )
    parser.add_argument("model", metavar="MODEL", help="the folder that fit wrote")
    add_table(parser, folders="--chunk-rows")
    parser.add_argument("--times", metavar="TIME", type=float, nargs="+", help="times at which to predict survival")
    parser.add_argument("--after", metavar="COLUMN", help="how long each row has been free of the event; with --ahead")
    parser.add_argument(
        "--ahead", metavar="TIME", type=float, nargs="+", help="times from --after on at which to predict survival"
    )
    parser.add_argument("--id", metavar="COLUMN", help="a column of DATA to carry over into the result; the subjects")
    parser.add_argument("--cause", dest="of_cause", metavar="NAME", help="one of the model's causes, by name or number")
    parser.add_argument(
        "--start", metavar="COLUMN", help="with --stop and --id: start of the time with a row's features"
    )
    parser.add_argument("--stop", metavar="COLUMN", help="its end; predictions are then along the rows of each subject")
    add_missing_values(parser)
    parser.add_argument(
        "--chunk-rows", metavar="N", type=at_least(1), help="rows held at once, for a DATA beyond memory"
    )
    parser.add_argument("--out", metavar="FILE", help="a .csv file (default: write to the screen)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    return parser


def run(args: argparse.Namespace) -> int:
    """Predict and write a csv table."""
    _check_path(args)
    _check_ages(args)
    out = output_csv(args.out, "predictions", args.data) if args.out else None
    existing_model(args.model)
    args.missing_values = missing_values(args)
    if args.chunk_rows is None or not Path(args.data).is_dir():
        check_table(args)
        check_features(args.model, args.data)

    from softsurv.estimators.saved import load_model
    from softsurv.estimators.shared.checks import say_beyond

    model = load_model(args.model, device=args.device)
    args.of_cause = _cause_of(model, args.of_cause)
    say_beyond(args.times or (), float(model.horizon_), by="predict")

    from softsurv.data.chunks import Place, Table

    names = [] if args.id is None else [args.id]
    if args.chunk_rows is None:
        parts = iter([(Place(0), read_table(args.data, names))])
    else:
        parts = Table(args.data, time="", event="", chunk_rows=args.chunk_rows).frames(names)
    if out is None:
        _write(model, parts, args, sys.stdout)
        return 0
    with replacing(out) as part, open(part, "w", encoding="utf-8", newline="") as file:
        count = _write(model, parts, args, file)
    echo(f"{count} predictions in {args.out}")
    return 0


def _write(model: Any, parts: Iterator[tuple[Place, pd.DataFrame]], args: argparse.Namespace, file: TextIO) -> int:
    """The predictions as csv; returns how many there are."""
    from softsurv.data.chunks import within_chunk

    count = 0
    for place, rows in parts:
        with within_chunk(place), _counting(count, len(rows), args.chunk_rows is not None):
            found = _predictions(model, rows, args)
        found.to_csv(file, index=False, header=count == 0, lineterminator="\n")
        count += len(found)
    return count


@contextmanager
def _counting(first: int, n: int, in_chunks: bool) -> Iterator[None]:
    """Within the block notes that count rows of a chunk say which rows these are: later chunks tell no more."""
    if not in_chunks:
        yield
        return
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            yield
    finally:  # a note may tell why there is an error
        for one in caught:
            told = str(one.message)
            if " row(s)" in told:
                told += f"; counted in the rows from {first} to {first + n - 1} alone"
            warnings.warn_explicit(told, one.category, one.filename, one.lineno)


def _predictions(model: Any, rows: pd.DataFrame, args: argparse.Namespace) -> pd.DataFrame:
    """One line for each row."""
    import pandas as pd

    from softsurv.data.kinds import declared
    from softsurv.estimators.shared.checks import say_beyond

    if args.stop is not None:
        return _paths(model, rows, args)
    ids, rows = rows, declared(rows, (), args.missing_values)
    risk = model.predict(rows) if args.of_cause is None else model.predict(rows, cause=args.of_cause)
    columns: dict[str, Any] = {"leaf": model.apply(rows), "risk": risk, "median": model.predict_median(rows)}
    if args.times:
        survival = model.predict_survival_function(rows, times=args.times)
        columns |= _time_columns("survival", args.times, survival)
        if getattr(model, "recurrent_", False):
            columns |= _time_columns("mean_count", args.times, model.predict_mean_count(rows, args.times))
        for name in _causes(model, args):
            incidence = model.predict_cumulative_incidence(rows, args.times, name)
            columns |= _time_columns(f"incidence_{name}", args.times, incidence)
    if args.after is not None:
        check_column(ids, args.after, "after")
        lasting = model.predict_conditional_survival(rows, ids[args.after], ahead=args.ahead)
        latest = float(ids[args.after].max())
        say_beyond([latest + time for time in args.ahead], float(model.horizon_), by="predict")
        columns |= {"median_ahead": model.predict_median(rows, after=ids[args.after])}
        columns |= _time_columns("survival_ahead", args.ahead, lasting)
    if args.id is None:
        return pd.DataFrame(columns)
    check_column(ids, args.id, "id")
    return _behind_ids(args.id, _carried_over(ids[args.id]), columns)


def _carried_over(column: pd.Series) -> Any:
    """The cells of --id; those of objects stay what they are, where pandas would make floats of numbers beside gaps."""
    import numpy as np

    if column.dtype == object:
        return np.array([_harmless(cell) for cell in column], dtype=object)
    return column.map(_harmless).to_numpy()


def _behind_ids(name: str, ids: Any, columns: dict[str, Any]) -> pd.DataFrame:
    """The table of the predictions, the column of --id first."""
    import pandas as pd

    if _harmless(name) in columns:
        raise InvalidParameterError(
            f"--id must not be called as a column of the result is, got {name!r}; rename the column in DATA"
        )
    return pd.DataFrame({_harmless(name): ids} | columns)


def _paths(model: Any, rows: pd.DataFrame, args: argparse.Namespace) -> pd.DataFrame:
    """One line for each subject, along its rows."""
    from softsurv.data.kinds import declared

    for role in ("start", "stop", "id"):
        check_column(rows, getattr(args, role), role)
    where = {role: getattr(args, role) for role in ("start", "stop", "id")}
    known = {*map(str, getattr(model, "feature_names_in_", rows.columns))} - {*where.values()}
    features = declared(rows[[name for name in rows if name in known]], (), args.missing_values)
    rows = features.assign(**{name: rows[name] for name in where.values()})
    survival = model.predict_path(rows, **where, times=args.times)
    columns = _time_columns("survival", args.times, survival)
    for name in _causes(model, args):
        incidence = model.predict_path(rows, **where, times=args.times, cause=name)
        columns |= _time_columns(f"incidence_{name}", args.times, incidence)
    return _behind_ids(args.id, [_harmless(one) for one in rows[args.id].unique()], columns)


def _causes(model: Any, args: argparse.Namespace) -> tuple[str, ...]:
    """The causes whose incidence is asked for."""
    return tuple(model.cause_names_) if args.of_cause is None else (args.of_cause,)


def _time_columns(stem: str, times: list[float], values: Any) -> dict[str, Any]:
    """A column for each time, of values (n, T)."""
    from softsurv.estimators.column_names import time_names

    return {_harmless(f"{stem}_{name}"): values[:, k] for k, name in enumerate(time_names(times))}


def _check_path(args: argparse.Namespace) -> None:
    """Wrong usage where a path is asked for in part."""
    if args.start is None and args.stop is None:
        return
    missing = [name for name in ("start", "stop", "id", "times") if getattr(args, name) is None]
    if missing:
        args.usage_error(f"a path needs --start, --stop, --id and --times; add --{missing[0]}")
    if args.chunk_rows is not None:
        args.usage_error("--chunk-rows may cut a subject's rows apart; leave out --start and --stop, or --chunk-rows")


def _check_ages(args: argparse.Namespace) -> None:
    """Wrong usage where one of the ages and the times from there on is given, or both for a path."""
    if args.after is None and args.ahead is None:
        return
    if args.after is None or args.ahead is None:
        args.usage_error("--after is a column of ages, --ahead the times counted from there; give both")
    if args.start is not None:
        args.usage_error("a path has its own times; leave out --after and --ahead, or --start and --stop")


def _cause_of(model: Any, given: str | None) -> str | None:
    """The name of the cause that was asked for by name or number."""
    if given is None:
        return None
    from softsurv.data.histories import cause_code

    if not model.cause_names_:
        raise InvalidParameterError("--cause asks for one of several kinds of events, this model knows one")
    names = tuple(model.cause_names_)
    return names[cause_code(int(given) if given.isdigit() and given not in names else given, names) - 1]


def _harmless(cell: Any) -> Any:
    """A cell that a spreadsheet will not run as a formula, nor take for the end of a line and a formula after it."""
    if not isinstance(cell, str):
        return cell
    cell = cell.replace("\r\n", "\n").replace("\r", "\n")  # the writer puts no quotes around a lone carriage return
    return f"'{cell}" if cell.lstrip(" ").startswith(_FORMULA) and not _is_number(cell) else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
