"""``softsurv report``: one page on a saved model, to hand over."""

from __future__ import annotations

import argparse
from typing import Any

from softsurv.commands._input import (
    add_entry_and_weight,
    add_outcome,
    add_table,
    at_least,
    check_outcome,
    check_table,
    read_data,
)
from softsurv.commands._output import echo, output_file
from softsurv.commands._recorded import check_features, existing_model, fill_from_model, warn_of_seen_rows
from softsurv.errors import InvalidParameterError

_EPILOG = """\
example:
  softsurv report model test.csv --out report.html

The outcome's columns and the unit of time are those of the fit, unless options name others.
The page stands alone: no network, no scripts. It holds the data, quality with bootstrap intervals, calibration, the
tree, a section for each leaf, fairness where --group is given, and a model card. Use rows the model has not seen.
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Arguments of the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "report",
        help="write a page on a saved model: quality, calibration, tree, leaves, model card",
        description="Write one self-contained HTML page on a saved model and the rows of a table.",
        epilog=_EPILOG,
    )
    parser.add_argument("model", metavar="MODEL", help="the folder that fit wrote")
    add_table(parser)
    group = add_outcome(parser)
    add_entry_and_weight(group)
    group.add_argument("--group", metavar="COLUMN", help="sensitive group, such as sex; never a feature")
    parser.add_argument("--sensitive", metavar="VALUE", help="the value of --group to compare with the others")
    parser.add_argument("--out", metavar="FILE", default="report.html", help="page to write (default: report.html)")
    parser.add_argument("--title", help="heading of the page")
    parser.add_argument("--time-unit", metavar="UNIT", help="unit of the times, such as days, for the labels")
    parser.add_argument(
        "--bootstrap", type=at_least(20), default=200, metavar="N", help="samples for intervals, from 20 (default: 200)"
    )
    parser.add_argument(
        "--stability",
        type=at_least(0),
        default=0,
        metavar="N",
        help="bootstrap samples of DATA on which the splits of a soft tree are found again; give the training rows",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default: 0)")
    return parser


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    if args.sensitive is not None and args.group is None:
        raise InvalidParameterError("--sensitive needs --group, the column it is a value of; add it")
    if args.stability == 1:
        raise InvalidParameterError("--stability must be 0 or at least 2 samples, got 1; more say more, such as 20")
    out = output_file(args.out, data=args.data)
    existing_model(args.model)
    fill_from_model(args)
    check_outcome(args)
    check_table(args)
    check_features(args.model, args.data, args)

    from softsurv.estimators.saved import load_model

    model = load_model(args.model)
    data = read_data(args, causes=model.cause_names_)
    note = warn_of_seen_rows(args.model, model, data)

    from softsurv.explore.report import write_report

    written = write_report(
        model,
        data,
        out,
        title=args.title,
        time_unit=args.time_unit,
        group=args.sensitive,
        n_boot=args.bootstrap,
        seed=args.seed,
        stability=args.stability,
        note=note,
    )
    echo(f"wrote {written}, {written.stat().st_size / 1e6:.1f} MB")
    return 0
