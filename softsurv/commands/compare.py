"""``softsurv compare``: several models on the same folds of a table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from softsurv.commands._input import (
    add_entry_and_weight,
    add_outcome,
    add_table,
    at_least,
    check_outcome,
    check_table,
    note,
    read_data,
)
from softsurv.commands._output import data_line, echo, output_csv, output_file
from softsurv.errors import InvalidParameterError, did_you_mean
from softsurv.files import replacing

_EPILOG = """\
examples:
  softsurv compare trial.csv --time months --event died
      a soft and an optimal tree, Cox regression and one curve for all, in five folds
  softsurv compare trial.csv --time months --event died --models soft cox forest --repeats 2 --plot compared.png
  softsurv compare trial.csv --time months --event died --models soft lifelines:WeibullAFTFitter
  softsurv compare pumps.csv --time days --cause failed
      measures of each cause; cox is then cause-specific, kaplan_meier Aalen and Johansen's estimate

names: soft, optimal (softsurv's trees with their defaults); cox, forest, boosting, greedy_tree (scikit-survival);
kaplan_meier (one curve for all rows); MODULE:CLASS for any other model of scikit-survival or lifelines.
With --entry or --weight, cox and kaplan_meier are softsurv's own, and other libraries' models are refused. --upper is
for soft trees alone: then soft is the only model by default. cox needs more rows in a fold than features.
harrell_c, uno_c, cd_auc: 0.5 is chance, 1 is perfect; ibs: lower is better.
"""

DEFAULT = ("soft", "optimal", "cox", "kaplan_meier")

NAMES = (*DEFAULT, "forest", "boosting", "greedy_tree", "cause_specific_cox", "aalen_johansen")
"""The names of `softsurv.explore.rivals`, listed here because that module is slow to load."""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Arguments of the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "compare",
        help="measure several models on the same folds",
        description="Measure softsurv's trees and other libraries' models on the same folds of a table.",
        epilog=_EPILOG,
    )
    add_table(parser)
    add_entry_and_weight(add_outcome(parser))
    parser.add_argument("--models", metavar="NAME", nargs="+", help="see the names below")
    parser.add_argument("--folds", metavar="N", type=at_least(2), default=5, help="folds (default: 5)")
    parser.add_argument(
        "--repeats", metavar="N", type=at_least(1), default=1, help="repetitions with other folds (default: 1)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the folds (default: 0)")
    parser.add_argument("--out", metavar="FILE", help="a .csv file for the measures of every fold")
    parser.add_argument("--plot", metavar="FILE", help="a picture, such as compared.png")
    parser.add_argument("--no-progress", action="store_true", help="show no progress line")
    return parser


def run(args: argparse.Namespace) -> int:
    """Compare, print, save."""
    check_outcome(args)
    check_table(args)
    names = _names(args.models, intervals=args.upper is not None)
    out = None if args.out is None else output_csv(args.out, "measures", args.data)
    picture = None if args.plot is None else _picture(args.plot)
    data = read_data(args, training=True)  # before what is slow to load

    from softsurv.explore.comparison import compare
    from softsurv.explore.rivals import rows_of_a_fold

    if args.models is None and "cox" in names and data.X.shape[1] > rows_of_a_fold(data, args.folds):
        names.remove("cox")
        note("Cox regression is left out: it cannot be fitted to more features than the rows that a fold trains on")
    models = {name: _model(name) for name in names}
    echo(data_line(data))
    shown = False if args.no_progress else None
    found = compare(models, data, n_folds=args.folds, n_repeats=args.repeats, seed=args.seed, progress=shown)
    echo("", str(found))
    if out is not None:
        with replacing(out) as part:
            found.folds.to_csv(part, index=False)
        echo(f"folds: {out}")
    if picture is not None:
        with replacing(picture) as part:
            found.plot().figure.savefig(part, dpi=150, format=picture.suffix[1:].lower())
        echo(f"picture: {picture}")
    return 0


def _picture(path: str) -> Path:
    """The file that --plot names. A wrong ending, or a missing package, is told before the first fit."""
    from softsurv.explore.style import picture_kinds

    file, known = output_file(path, "--plot"), picture_kinds()
    if file.suffix[1:].lower() not in known:
        raise InvalidParameterError(f"--plot must end in one of .{', .'.join(known)}, got {path!r}")
    return file


def _names(given: list[str] | None, intervals: bool) -> list[str]:
    """The models to compare; raises before the first is fitted where one is unknown, or cannot read intervals."""
    names = given or (["soft"] if intervals else list(DEFAULT))
    for name in names:
        _check_model(name)
        if intervals and name in NAMES and name != "soft":
            raise InvalidParameterError(f"--upper is for soft trees alone, got --models {name}; leave one of them out")
    return names


def _check_model(name: str) -> None:
    """Raise where a model has neither a known name nor a class."""
    if ":" in name or name in NAMES:
        return
    known = f"{', '.join(NAMES)} or MODULE:CLASS"
    raise InvalidParameterError(f"--models must name any of {known}, got {name!r}{did_you_mean(name, NAMES)}")


def _model(name: str) -> Any:
    """A model of a name, or a new one of a class that MODULE:CLASS names."""
    if ":" not in name:
        return name
    from pkgutil import resolve_name

    try:
        return resolve_name(name)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InvalidParameterError(f"--models must name models, got {name!r}: {error}; check MODULE:CLASS") from None
