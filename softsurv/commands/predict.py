"""``softsurv predict``: survival, median, risk and leaf of every row of a table."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from softsurv.commands._input import add_table, check_column, read_table
from softsurv.commands._output import echo, output_file

if TYPE_CHECKING:
    import pandas as pd

_EPILOG = """\
examples:
  softsurv predict model new.csv --times 365 730 --id patient --out predictions.csv
  softsurv predict model parts/ --chunk-rows 65536 --out predictions.csv
      all parquet (or csv) files of a folder, a chunk at a time

columns of the result:
  leaf           leaf of the tree, from 0 on the left
  risk           higher means an earlier event
  median         time by which half of such rows have had the event; inf where survival stays above one half
  survival_365   probability of being free of the event at time 365, one column for each of --times
DATA needs the feature columns of the training table; others are ignored.
"""


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
    parser.add_argument("--id", metavar="COLUMN", help="a column of DATA to carry over into the result")
    parser.add_argument("--chunk-rows", metavar="N", type=_count, help="rows held at once, for a DATA beyond memory")
    parser.add_argument("--out", metavar="FILE", help="a .csv file (default: write to the screen)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    return parser


def run(args: argparse.Namespace) -> int:
    """Predict and write a csv table."""
    from softsurv.data.chunks import Table
    from softsurv.estimators.saved import load_model

    out = output_file(args.out) if args.out else sys.stdout
    model = load_model(args.model, device=args.device)
    if args.chunk_rows is None:
        parts = iter([read_table(args.data)])
    else:
        parts = Table(args.data, time="", event="", chunk_rows=args.chunk_rows).frames()
    count = 0
    for rows in parts:
        found = _predictions(model, rows, args)
        found.to_csv(out, index=False, header=count == 0, mode="a" if count else "w")
        count += len(rows)
    if args.out:
        echo(f"{count} predictions in {args.out}")
    return 0


def _predictions(model: Any, rows: pd.DataFrame, args: argparse.Namespace) -> pd.DataFrame:
    """One line for each row."""
    import pandas as pd

    columns: dict[str, Any] = {}
    if args.id is not None:
        check_column(rows, args.id, "id")
        columns[args.id] = rows[args.id].to_numpy()
    columns |= {"leaf": model.apply(rows), "risk": model.predict(rows), "median": model.predict_median(rows)}
    if args.times:
        survival = model.predict_survival_function(rows, times=args.times)
        columns |= {f"survival_{time:g}": survival[:, k] for k, time in enumerate(args.times)}
    return pd.DataFrame(columns)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1, got {text!r}")
    return int(text)
