"""``softsurv tune``: search a tree's parameters by cross-validation, on one machine or on many."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softsurv.commands._input import (
    add_entry_and_weight,
    add_outcome,
    add_table,
    at_least,
    check_outcome,
    check_table,
    read_data,
)
from softsurv.commands._output import data_line, echo, output_folder, table

if TYPE_CHECKING:
    from softsurv.tune import StudyResult

_EPILOG = """\
examples:
  softsurv tune trial.csv --time months --event died --trials 100
      soft trees of rules of any depth, leaf and penalty; concordance and Brier score at once; results in trial-study
  softsurv tune trial.csv --time months --event died --jobs 4 --measures uno_c --pruner hyperband
      four processes, one measure, bad trials stopped after few folds
  softsurv tune trial.csv --time months --event died --set depth=1,2 leaf=weibull l2=0.01..10
      other values to try: a list, one fixed value, or a range
  softsurv tune trial.csv --time months --event died --set max_terms=none
      dense trees, whose splits weigh all features; so too where --set names what only these have
  softsurv tune trial.csv --time months --event died --storage postgresql+psycopg2://me@server/studies
      the same command on many hosts shares the work
  softsurv tune visits.csv --start from --stop to --cause why --id patient --measures harrell_c
      folds keep patients whole; of features that change, concordance alone is measured
  softsurv tune pumps.csv --time days --cause failed --interest seal
      the measures are those of one cause

The same command goes on where the study stopped. What a killed process left is marked as failed and made up for.
"""

RECORDED = (
    *("time", "event", "entry", "upper", "weight", "group", "cause", "start", "stop", "id", "recurrent"),
    *("drop", "categorical", "missing_values", "time_unit"),
)
"""Options that evaluate and report take from the record of the model."""

SHOWN = 5
"""Trials that the table shows."""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Arguments of the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "tune",
        help="search the best parameters by cross-validation",
        description="Search a tree's parameters by cross-validation and save the best one, fitted on all rows.",
        epilog=_EPILOG,
    )
    add_table(parser)
    columns = add_outcome(parser)
    add_entry_and_weight(columns)
    columns.add_argument("--group", metavar="COLUMN", help="sensitive group, for the measure fairness")
    parser.add_argument("--time-unit", metavar="UNIT", help="unit of the times, such as days; kept for reports")
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="where everything goes (default: DATA-study)")
    parser.add_argument("--model", choices=("soft", "optimal"), default="soft", help="kind of tree (default: soft)")
    parser.add_argument("--trials", metavar="N", type=at_least(1), default=100, help="trials in all (default: 100)")
    parser.add_argument(
        "--folds", metavar="N", type=at_least(2), default=5, help="folds of the cross-validation (default: 5)"
    )
    parser.add_argument(
        "--measures",
        metavar="NAME",
        nargs="+",
        default=["harrell_c", "ibs"],
        help="harrell_c, uno_c, cd_auc, ibs, fairness; the first decides (default: harrell_c ibs)",
    )
    parser.add_argument(
        "--interest", metavar="CAUSE", help="the cause whose measures count (default: means over the causes)"
    )
    parser.add_argument("--set", metavar="NAME=VALUES", nargs="+", default=[], help="what to try: a,b or low..high")
    parser.add_argument("--seed", type=int, default=0, help="of folds, starts and sampler (default: 0)")
    _add_search(parser.add_argument_group("search"))
    return parser


def _add_search(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--storage", metavar="PLACE", help="journal file or database URL (default: OUT/study.journal)")
    group.add_argument("--name", default="softsurv", help="of the study in its storage (default: softsurv)")
    group.add_argument(
        "--jobs", metavar="N", type=at_least(1), default=1, help="processes on this machine (default: 1)"
    )
    group.add_argument(
        "--batch",
        metavar="N",
        type=int,
        default=1,
        help="trials asked for at once; dense trees alike train as one stack",
    )
    group.add_argument("--sampler", default="tpe", help="tpe (default) or random")
    group.add_argument("--pruner", default="none", help="none (default), median or hyperband; needs one measure")
    group.add_argument(
        "--time-limit",
        metavar="SECONDS",
        type=float,
        help="begin no further trial then; the running one and the last fit come to their end",
    )
    group.add_argument("--device", default="auto", help="auto (default), cpu or cuda")
    group.add_argument("--no-progress", action="store_true", help="show no progress line")


def run(args: argparse.Namespace) -> int:
    """Search, print, save."""
    check_outcome(args)
    out = output_folder(args.out or f"{Path(args.data).stem}-study")
    check_table(args)
    if args.storage is not None:
        from softsurv.tune.storage import check_place

        check_place(args.storage)  # a large table would be read first, for nothing

    data = read_data(args, training=True)  # before optuna and torch, which are slow to load

    from softsurv.tune import parse_space, study

    space = dict(parse_space(text) for text in args.set)
    echo(data_line(data))
    result = study(
        data,
        estimator=args.model,
        n_trials=args.trials,
        output=out,
        storage=args.storage,
        name=args.name,
        measures=args.measures,
        space=space,
        n_folds=args.folds,
        seed=args.seed,
        sampler=args.sampler,
        pruner=args.pruner,
        n_jobs=args.jobs,
        batch=args.batch,
        time_limit=args.time_limit,
        device=args.device,
        interest=_cause(args.interest, data.cause_names),
        progress=False if args.no_progress else None,
        record={name: getattr(args, name) for name in RECORDED if getattr(args, name) is not None},
    )
    echo("", *table(_best_rows(result)), "", result.summary(), f"trials: {out / 'trials.csv'}")
    if result.model is not None:
        echo(f"model: {out / 'model'}")
    return 0


def _cause(text: str | None, names: tuple[str, ...]) -> int | str | None:
    """A cause by its name or its code."""
    return int(text) if text is not None and text.isdigit() and text not in names else text


def _best_rows(result: StudyResult) -> list[list[str]]:
    """The best complete trials, each with what it tried; those that were stopped have measures of fewer folds."""
    from softsurv.tune.results import parameter_columns

    trials = result.table().query("state == 'complete'").head(SHOWN).to_dict("records")
    tried = {t.number: parameter_columns(t.params) for t in result.study.get_trials(deepcopy=False)}
    names = dict.fromkeys(name for trial in trials for name in tried[trial["trial"]])
    rows = [["trial", *result.measures, *names]]
    return rows + [[_cell(trial.get(name)) for name in rows[0]] for trial in trials]


def _cell(value: Any) -> str:
    """A value in a table; a parameter that the trial had no use for is a dash."""
    if value is None or value != value:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
