"""``softsurv fit --memory``: a soft tree on a table larger than memory, by one process or by several."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from softsurv.commands._output import echo, warn_of_differences
from softsurv.errors import InvalidParameterError
from softsurv.soft.streaming.launched import is_first, is_launched

NOT_RECORDED = ("checkpoint", "folder")
"""Options for files that a run needs only while it lasts; its record leaves them out."""

_ONLY_HERE = ("sample_rows", "sweeps", *NOT_RECORDED)
_ONLY_IN_MEMORY = ("entry", "upper", "group", "test_size", "cause", "start", "stop", "id", "recurrent")


def add_streaming(parser: argparse.ArgumentParser) -> None:
    """Options of training on a table that is read chunk by chunk."""
    group = parser.add_argument_group(
        "table larger than memory (soft tree; DATA may be a folder of files; torchrun starts several processes)"
    )
    group.add_argument("--memory", metavar="SIZE", help="read DATA by chunks, and keep that much of it, such as 2GB")
    group.add_argument("--sample-rows", metavar="N", type=int, help="random rows that starts are tried on (20000)")
    group.add_argument("--sweeps", metavar="N", type=int, help="over all rows, at most (default: 20)")
    group.add_argument("--checkpoint", metavar="FILE", help="replaced after each sweep; the same command goes on")
    group.add_argument("--folder", metavar="FOLDER", help="for a file of what --memory does not hold")


def is_streamed(args: argparse.Namespace) -> bool:
    """Whether rows are streamed; wrong usage where the options do not go together.

    Raises
    ------
    InvalidParameterError
        If torchrun started several processes that would each train the whole model, or for an optimal tree.
    """
    if args.memory is None:
        if is_launched():
            raise InvalidParameterError(
                "--memory must be given under torchrun, where every process reads its share of the rows; add, say, "
                "--memory 1GB"
            )
        mixed = [name for name in _ONLY_HERE if getattr(args, name) is not None]
    else:
        mixed = [name for name in _ONLY_IN_MEMORY if getattr(args, name) is not None]
    if args.memory is not None and args.model != "soft":
        raise InvalidParameterError(f"--memory streams rows to soft trees, got --model {args.model}; leave one out")
    if mixed:
        together = "without" if args.memory is None else "with"
        args.usage_error(f"--{mixed[0].replace('_', '-')} is no option {together} --memory")
    return args.memory is not None


def fit_streamed(args: argparse.Namespace, model: Any, record: Mapping[str, Any]) -> str | None:
    """Fit; returns the fingerprint of the rows, or None in all processes but the first, which speaks for them."""
    from softsurv.data.chunks import Table
    from softsurv.estimators.stream import fit_stream

    how: dict[str, Any] = {name: getattr(args, name) or () for name in ("categorical", "missing_values")}
    table = Table(args.data, args.time, args.event, args.weight, args.drop or (), **how)
    given = {"sample_rows": args.sample_rows, "max_sweeps": args.sweeps}
    options = {name: value for name, value in given.items() if value is not None}
    fit_stream(model, table, memory=args.memory, checkpoint=args.checkpoint, folder=args.folder, **options)
    if not is_first():
        return None
    details = model.report_.details
    warn_of_differences(record, details["fingerprint"])
    echo(f"{Path(args.data).name}: {details['rows']} rows, {details['passes']} passes over them")
    return str(details["fingerprint"])
