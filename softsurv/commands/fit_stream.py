"""``softsurv fit-stream``: train a soft tree on a table larger than memory, by one process or by several."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from softsurv.commands._output import echo

_EPILOG = """\
examples:
  softsurv fit-stream rows.parquet --time months --event died --depth 2 --memory 2GB --out model
      encoded features take at most 2 GB of memory, the others lie in a temporary file
  softsurv fit-stream parts/ --time months --event died --checkpoint run.ckpt
      all parquet (or csv) files of a folder; the same command goes on after an interruption, at most one sweep back
  torchrun --nproc-per-node 4 -m softsurv.cli fit-stream rows.parquet --time months --event died
      four processes, each with its share of the rows; the tree is the same as with one

Nothing is chosen inside: find depth and penalties on a sample of the rows first, such as with softsurv tune.
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Arguments of the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "fit-stream",
        help="train a soft tree on a table larger than memory",
        description="Train a soft tree on a table larger than memory and save it.",
        epilog=_EPILOG,
    )
    parser.add_argument("data", metavar="DATA", nargs="+", help=".parquet or .csv files, or a folder of them")
    columns = parser.add_argument_group("columns of DATA (all others are features)")
    columns.add_argument("--time", metavar="COLUMN", required=True, help="observed time, >= 0, in any unit")
    columns.add_argument("--event", metavar="COLUMN", required=True, help="observed event, true/false or 1/0")
    columns.add_argument("--weight", metavar="COLUMN", help="sample weight, >= 0")
    columns.add_argument("--drop", metavar="COLUMN", nargs="+", default=[], help="columns to leave out")
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="where the model goes (default: DATA-model)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample and the starts (default: 0)")
    tree = parser.add_argument_group("tree")
    tree.add_argument("--depth", type=int, default=2, help="levels of splits (default: 2)")
    tree.add_argument("--leaf", metavar="FAMILY", default="loglogistic", help="survival model of the leaves")
    tree.add_argument("--restarts", metavar="N", type=int, default=5, help="starts tried on the sample (default: 5)")
    tree.add_argument("--l2", type=float, default=1.0, help="penalty on leaf coefficients (default: 1)")
    tree.add_argument(
        "--shrinkage", type=float, default=1.0, help="penalty on distance to the single leaf (default: 1)"
    )
    tree.add_argument("--routing-l2", type=float, default=1.0, help="penalty on split weights (default: 1)")
    _add_machine(parser.add_argument_group("machine"))
    return parser


def _add_machine(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--memory", metavar="SIZE", default="1GB", help="for encoded features (default: 1GB)")
    group.add_argument("--folder", metavar="FOLDER", help="for the file of features (default: the system's)")
    group.add_argument("--checkpoint", metavar="FILE", help="replaced after each sweep, read on starting again")
    group.add_argument("--sample-rows", metavar="N", type=int, default=20_000, help="rows for starts (default: 20000)")
    group.add_argument("--sweeps", metavar="N", type=int, default=5, help="over all rows, at most (default: 5)")
    group.add_argument("--time-limit", metavar="SECONDS", type=float, help="begin no further sweep then")
    group.add_argument("--device", default="auto", help="auto (default), cpu or cuda")
    group.add_argument("--dtype", default="float64", help="float64 (default) or float32")


def run(args: argparse.Namespace) -> int:
    """Fit, print, save: the last two in the first process only."""
    from softsurv import SoftSurvivalTree
    from softsurv.data.chunks import Table
    from softsurv.estimators.stream import fit_stream
    from softsurv.run_record import write_run
    from softsurv.soft.distributed import is_first

    began = time.monotonic()
    table = Table(args.data, args.time, args.event, args.weight, args.drop)
    model = SoftSurvivalTree(
        depth=args.depth,
        leaf=args.leaf,
        n_restarts=args.restarts,
        l2=args.l2,
        shrinkage=args.shrinkage,
        routing_l2=args.routing_l2,
        time_limit=args.time_limit,
        device=args.device,
        dtype=args.dtype,
        random_state=args.seed,
    )
    fit_stream(
        model,
        table,
        memory=args.memory,
        sample_rows=args.sample_rows,
        checkpoint=args.checkpoint,
        folder=args.folder,
        max_sweeps=args.sweeps,
    )
    if not is_first():
        return 0
    report, out = model.report_, args.out or Path(f"{Path(args.data[0]).stem}-model")
    words = f"{report.status.replace('_', ' ')} after {report.seconds:.1f} s, objective {report.objective:.6g}"
    echo(f"{report.details['rows']} rows, {report.details['passes']} passes: {words}", "", model.export_text(), "")
    model.save(out)
    config = {k: v for k, v in vars(args).items() if k not in ("run", "usage_error", "command", "verbose", "debug")}
    metrics = {"objective": report.objective, "trace": list(report.trace)}
    write_run(out, "fit-stream", config, seed=args.seed, metrics=metrics, seconds=time.monotonic() - began)
    echo(f"model: {out.resolve()}")
    return 0
