"""``softsurv datasets``: what real data is at hand, and one of them as a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from softsurv.commands._output import data_line, echo, echo_json, output_file, table
from softsurv.errors import InvalidParameterError
from softsurv.files import replacing

_EPILOG = """\
examples:
  softsurv datasets                                list them
  softsurv datasets flchain                        what is known of one
  softsurv datasets gbsg2 --out gbsg2.csv          save one, with columns time and event
  softsurv datasets survset:cancer --out lung.csv  any table of the SurvSet package (extra data)

churn, credit, employee and maintenance are files: they are looked up in the folder that the environment variable
SOFTSURV_DATA names, then in the user's cache, then downloaded. mgus2, pbc_transplant, pbcseq, heart_transplant and cgd
are looked up in its folder event-history alone. Those with competing events are saved with a column cause, those with
several rows for a subject with the columns id, start and stop.
"""
_SHOWN = ("event", "time_unit", "n", "p", "events", "censoring_percent", "zero_times", "variants")


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Arguments of the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "datasets",
        help="list the data sets, or save one as a file",
        description="List the data sets that softsurv can load, tell of one, or save one as a file.",
        epilog=_EPILOG,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="tell of this one only")
    parser.add_argument("--variant", help="rows and columns of the published analyses, where they differ: paper, raw")
    parser.add_argument("--out", metavar="FILE", type=Path, help="save it as .csv or .parquet")
    parser.add_argument("--json", action="store_true", help="write JSON instead of a table")
    return parser


def run(args: argparse.Namespace) -> int:
    """List data sets, describe one, or save one."""
    from softsurv.data.datasets import list_datasets

    if args.name is None:
        if args.out or args.variant:
            args.usage_error("--out and --variant need the NAME of a data set")
        known = list_datasets()
        if args.json:
            records = known.reset_index().astype(object)
            echo_json(records.where(records.notna(), None).to_dict("records"))  # NaN is no JSON
        else:
            rows = [
                ["name", *_SHOWN],
                *([str(row.Index), *(str(getattr(row, c)) for c in _SHOWN)] for row in known.itertuples()),
            ]
            echo(*table(rows))
        return 0
    _one(args)
    return 0


def _one(args: argparse.Namespace) -> None:
    from softsurv.data.datasets import list_datasets, load_dataset

    out = output_file(args.out) if args.out else None
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise InvalidParameterError(f"--out must end in .csv or .parquet, got {str(args.out)!r}")
    data = load_dataset(args.name, variant=args.variant)
    known = list_datasets()
    facts = known.loc[args.name].to_dict() if args.name in known.index else {}
    if args.json:
        echo_json({key: getattr(value, "item", lambda v=value: v)() for key, value in facts.items()} | data.summary())
    else:
        echo(
            data_line(data),
            *(
                f"  {key}: {facts[key]}"
                for key in ("source", "event", "time_unit", "dropped", "note")
                if facts.get(key)
            ),
        )
        echo(f"  features: {', '.join(data.feature_names)}")
    if out:
        _save(data, out)
        echo(f"saved {args.out}")


def _save(data: Any, path: Path) -> None:
    frame = data.X.assign(**_outcome(data))
    if data.group is not None:
        frame["group"] = [data.group_names[code] for code in data.group.tolist()]
    with replacing(path) as part:
        if path.suffix == ".csv":
            frame.to_csv(part, index=False)
        else:
            frame.to_parquet(part, index=False)


def _outcome(data: Any) -> dict[str, Any]:
    """Columns time (or id, start, stop) and event (or cause, by name)."""
    import numpy as np

    columns: dict[str, Any] = {}
    if data.subject is not None:
        start = 0.0 if data.entry is None else data.entry.numpy()
        columns |= {"id": [data.subject_names[code] for code in data.subject.tolist()], "start": start}
    columns["time" if data.subject is None else "stop"] = data.time.numpy()
    if data.cause is None:
        return columns | {"event": data.event.numpy().astype(int)}
    return columns | {"cause": np.array(["0", *data.cause_names], dtype=object)[data.cause.numpy()]}
