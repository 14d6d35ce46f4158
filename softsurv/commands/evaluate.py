"""``softsurv evaluate``: the quality of a saved model on rows it has not seen."""

from __future__ import annotations

import argparse
from typing import Any

from softsurv.commands._input import add_entry_and_weight, add_outcome, add_table, check_outcome, check_table, read_data
from softsurv.commands._output import cause_table, echo, echo_json, measure_note, measure_table
from softsurv.commands._recorded import check_features, existing_model, fill_from_model, warn_of_seen_rows

_EPILOG = """\
example:
  softsurv evaluate model test.csv
  softsurv evaluate model test.csv --time time --cause cause
      one line more for each cause
  softsurv evaluate model visits.csv --start from --stop to --event event --id patient

harrell_c and uno_c: share of pairs in which the earlier event had the lower predicted survival.
cd_auc: the same for events before each time against rows still free of it, averaged over times.
ibs: mean squared distance between predicted survival and what happened, over the stated range of times.
The outcome's columns are those of the fit unless --time and --event name others.
Censoring weights come from the training rows. With --entry, harrell_c and uno_c compare rows under observation
together, and the others weigh by the chance of having entered; a note says what is not corrected for intervals. With
causes, the first line is of all events;
concordance, auc and ibs of a cause are of its cumulative incidence among the others. Of subjects whose features change
from row to row, concordance alone is measured: at each event over the rows at risk.
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Arguments of the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "evaluate",
        help="measure a saved model on held-out rows",
        description="Measure a saved model on rows it has not seen: concordance, AUC and integrated Brier score.",
        epilog=_EPILOG,
    )
    parser.add_argument("model", metavar="MODEL", help="the folder that fit wrote")
    add_table(parser)
    columns = add_outcome(parser)
    add_entry_and_weight(columns)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    parser.add_argument("--json", action="store_true", help="write JSON instead of a table")
    return parser


def run(args: argparse.Namespace) -> int:
    """Evaluate a saved model."""
    existing_model(args.model)
    fill_from_model(args)
    check_outcome(args)
    check_table(args)
    check_features(args.model, args.data, args)

    from softsurv.estimators.saved import load_model

    model = load_model(args.model, device=args.device)
    data = read_data(args, causes=model.cause_names_)
    result = model.evaluate(data)
    warn_of_seen_rows(args.model, model, data)
    if args.json:
        echo_json(result)
    else:
        echo(*measure_table({args.model: result}), *cause_table(result), measure_note(result))
    return 0
