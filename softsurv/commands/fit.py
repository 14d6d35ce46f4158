"""``softsurv fit``: train a survival tree on a table, print it, save it."""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softsurv.commands._input import (
    add_entry_and_weight,
    add_outcome,
    add_table,
    check_outcome,
    check_table,
    column_names,
    event_parts,
    read_data,
)
from softsurv.commands._output import (
    cause_table,
    data_line,
    echo,
    measure_note,
    measure_table,
    output_folder,
    warn_of_differences,
)
from softsurv.commands._recorded import overruled, still_dropped
from softsurv.commands._streamed import NOT_RECORDED, add_streaming, fit_streamed, is_streamed
from softsurv.errors import EvaluationWarning, InvalidParameterError, InvalidTimesError, NoComparablePairsError, warn

if TYPE_CHECKING:
    from softsurv.data.survival_data import SurvivalData

INTERRUPTED = 130

_EPILOG = """\
examples:
  softsurv fit trial.csv --time months --event died
      a soft tree with rules of at most three features; everything is chosen by cross-validation
  softsurv fit trial.csv --time months --event status=dead --drop id --test-size 0.2 --out model
      "dead" marks an event, "id" is no feature, a fifth of the rows is held out and evaluated
  softsurv fit trial.csv --time months --event died --depth 2 --leaf weibull --l2 1 --shrinkage 3 --routing-l2 1
      a dense tree, whose splits weigh all features; nothing left to choose: one quick fit
  softsurv fit trial.csv --time months --event died --model optimal --depth 3 --time-limit 60
      a provably optimal tree
  softsurv fit trial.csv --time months --cause why --test-size 0.2
      competing risks: the column "why" holds 0 for censored rows, else the number or the name of what happened
  softsurv fit visits.csv --start from --stop to --event died --id patient
      features that change: several rows for a patient, each with its stretch of time
  softsurv fit parts/ --time months --event died --memory 2GB --depth 2 --l2 1 --shrinkage 1 --routing-l2 1
      all parquet (or csv) files of a folder, read by chunks: they need not fit in memory
  torchrun --nproc-per-node=4 -m softsurv.cli fit parts/ --time months --event-column died --memory 2GB ...
      the same tree by four processes; the same command goes on after an interruption, at most one sweep back
  softsurv fit --config model/run.json --out again
      the same run again; options given beside it take precedence

Text columns are taken as categories and missing values are filled in, both learned from the training rows.
Beside the model lies run.json: every option, versions, the data's fingerprint and the measures.
Ctrl-C once keeps the best tree so far, saves it and ends with code 130.
"""

_DEFAULTS = {"model": "soft", "seed": 0}
_NOT_RECORDED = (
    *("command", "config", "debug", "progress", "run", "known", "tree_options", "usage_error", "verbose"),
    *NOT_RECORDED,
)

# options that are called otherwise than the estimator's argument
_ARGUMENT = {
    "soft": {"restarts": "n_restarts"},
    "optimal": {"depth": "max_depth", "jobs": "n_jobs"},
}


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Arguments of the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "fit",
        help="train a survival tree on a table and save it",
        description="Train a survival tree on a table, print it and save it.",
        epilog=_EPILOG,
    )
    add_table(parser, required=False, folders="--memory")
    parser.add_argument("--config", metavar="RUN.JSON", type=Path, help="take what is not given from an earlier run")
    columns = add_outcome(parser)
    add_entry_and_weight(columns)
    columns.add_argument("--group", metavar="COLUMN", help="sensitive group, for --fairness; never a feature")
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="where the model goes (default: DATA-model)")
    parser.add_argument("--test-size", metavar="SHARE", type=float, help="share of rows to hold out and evaluate on")
    parser.add_argument("--model", choices=sorted(_ARGUMENT), help="kind of tree (default: soft)")
    parser.add_argument("--time-unit", metavar="UNIT", help="unit of the times, such as days; kept for reports")
    parser.add_argument("--seed", type=int, help="of held-out rows, folds and starts (default: 0)")
    both = parser.add_argument_group("tree")
    both.add_argument("--depth", type=int, help="levels of splits (by default chosen; optimal: up to 3)")
    both.add_argument("--time-limit", metavar="SECONDS", type=float, help="stop then, with the best tree so far")
    soft = parser.add_argument_group("soft tree")
    _add_soft(soft)
    optimal = parser.add_argument_group("optimal tree (--model optimal)")
    _add_optimal(optimal)
    add_streaming(parser)
    parser.set_defaults(known={action.dest: action for action in parser._actions})
    parser.set_defaults(tree_options=[action.dest for part in (both, soft, optimal) for action in part._group_actions])
    return parser


def _add_soft(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--leaf",
        metavar="FAMILY",
        help="survival model of the leaves: auto (default: chosen), exponential, weibull, loglogistic, lognormal, "
        "gompertz, spline_ph, spline_po (optimal tree: adaptive, nelson_aalen, km, ipcw)",
    )
    group.add_argument(
        "--max-terms",
        metavar="N",
        type=_whole_or_word,
        help="features in a split at most, or none: dense splits (default: 3; dense with options of dense trees)",
    )
    group.add_argument(
        "--choice-rows",
        metavar="N",
        type=_whole_or_word,
        help="rows at most on which settings are compared, or none: all (default: 5000 to 20000)",
    )
    group.add_argument("--prefer", metavar="NAME", help="of equals: tree (default), or simplest: a single leaf")
    group.add_argument("--n-knots", type=int, help="inner knots of spline leaves (default: 2)")
    group.add_argument("--solver", metavar="NAME", help="lbfgs: all at once (default); nodec: node by node")
    group.add_argument("--restarts", metavar="N", type=int, help="starts, of which the best is kept (default: 5)")
    group.add_argument("--init", metavar="NAME", help="auto (default), random, kmeans or logrank")
    group.add_argument("--l2", type=float, help="penalty on the slopes of the leaves (default: chosen)")
    group.add_argument("--shrinkage", type=float, help="penalty on a leaf's own level and shape (chosen)")
    group.add_argument("--slope-shrinkage", type=float, help="penalty on a leaf's own slopes (default: chosen)")
    group.add_argument("--routing-l2", type=float, help="penalty on the weights of dense splits")
    group.add_argument("--l1", type=float, help="penalty that leaves features out (default: 0)")
    group.add_argument("--fairness", type=float, help="penalty on distances between the groups' curves (default: 0)")
    group.add_argument("--preset", metavar="NAME", help="paper: the published settings; needs --depth")
    group.add_argument("--max-iter", metavar="N", type=int, help="iterations at most")
    group.add_argument("--device", help="auto (default), cpu or cuda")
    group.add_argument("--dtype", help="float64 (default) or float32")
    group.add_argument("--progress", action="store_const", const=True, help="show a progress bar")


def _add_optimal(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--objective", metavar="NAME", help="relative_risk (default), or ibs: the Brier score")
    group.add_argument(
        "--tune",
        metavar="NAME",
        help="cv: choose the size by cross-validation (default: where no size is given)",
    )
    group.add_argument("--max-leaves", metavar="N", type=int, help="leaves at most")
    group.add_argument(
        "--min-samples-leaf", metavar="N", type=int, help="rows in a leaf at least (default: for 5 events)"
    )
    group.add_argument("--complexity", metavar="COST", type=float, help="cost of a leaf (default: 0)")
    group.add_argument(
        "--thresholds", metavar="N", type=_whole_or_word, help="thresholds of a numeric feature, or all (default: 10)"
    )
    group.add_argument("--jobs", metavar="N", type=int, help="processor cores (default: 1)")


def run(args: argparse.Namespace) -> int:
    """Fit, print, save."""
    started = time.monotonic()
    record = _complete(args)
    out = output_folder(args.out or f"{Path(args.data).stem}-model")
    if args.memory is None or not Path(args.data).is_dir():
        check_table(args)
    rows: SurvivalData | str | None
    measures: dict[str, Any] = {}
    if is_streamed(args):
        model = make_model(args)
        rows = fit_streamed(args, model, record)
        if rows is None:
            return 0
        _show(model)
    else:
        data = read_data(args, training=True)  # before the estimator, which is slow to load
        model = make_model(args)
        rows, measures = _fit_in_memory(args, model, data, record)
    _save(model, out, args, rows, measures, time.monotonic() - started)
    echo(f"model: {out}")
    return INTERRUPTED if model.report_.status == "interrupted" else 0


def _fit_in_memory(
    args: argparse.Namespace, model: Any, data: SurvivalData, record: dict[str, Any]
) -> tuple[SurvivalData, dict[str, Any]]:
    """Fit and print; returns the rows, and the measures of those held out."""
    warn_of_differences(record, data)
    echo(data_line(data))
    if data.n_events == data.n:
        option = "event" if args.cause is None else "cause"
        echo(f"Every row has its event, none is censored; if that is not so, check --{option}.")
    train, test = (data, None) if args.test_size is None else data.split(test_size=args.test_size, seed=args.seed)
    model.fit(train)
    _show(model)
    if test is None:
        return data, {}
    try:
        measures = model.evaluate(test)
    except (NoComparablePairsError, InvalidTimesError) as error:
        warn(f"the rows held out were not measured: {error}", EvaluationWarning)
        return data, {}
    echo(*measure_table({"held out": measures}), *cause_table(measures), measure_note(measures), "")
    return data, measures


def _show(model: Any) -> None:
    echo("", f"{_kind(model)}: {_outcome(model)}", "", model.export_text(), "")


def _complete(args: argparse.Namespace) -> dict[str, Any]:
    """Fill in what is not given, from the recorded run and then from the defaults; returns the record."""
    record = _record(args.config)
    config = record.get("config", {})
    if args.model not in (None, config.get("model")):  # another kind of tree takes over the columns alone
        config = {name: value for name, value in config.items() if name not in args.tree_options}
    for name in config.keys() - vars(args).keys():
        raise InvalidParameterError(f"{name!r} in {str(args.config)!r} is no option of fit; remove it")
    for name, value in config.items():
        if not _fits(value, args.known.get(name)):
            raise InvalidParameterError(f"{name} in {str(args.config)!r} cannot be {value!r}; correct it")
    for name, value in (_DEFAULTS | _not_overruled(args, config)).items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    if args.data is None:
        listed = [*(args.drop or ()), *(args.categorical or ()), *(args.missing_values or ())]
        taken = [name for name in listed if name.endswith((".csv", ".parquet"))]
        hint = f"; write {taken[0]} before the option that took it" if taken else ""
        args.usage_error(f"the following arguments are required: DATA{hint}")
    check_outcome(args)
    return record


def _not_overruled(args: argparse.Namespace, config: dict[str, Any]) -> dict[str, Any]:
    """The record without columns that options replace. These are left out from now on: an outcome is no feature."""
    replaced = {role: config[role] for role in sorted(overruled(args, config)) if config.get(role)}
    if replaced:
        file = Path(args.data or config.get("data") or "")
        names = column_names(file) if file.is_file() else None
        listed = still_dropped(args, config.get("drop") or []) if args.drop is None else args.drop
        before = still_dropped(args, [event_parts(name, names or ())[0] for name in replaced.values()])
        here = [name for name in before if name not in listed and (names is None or name in names)]
        args.drop = [*listed, *here]
    return {name: value for name, value in config.items() if name not in replaced}


def _record(path: Path | None) -> dict[str, Any]:
    """The record of an earlier run; nothing where none is named."""
    if path is None:
        return {}
    from softsurv.run_record import read_run

    return read_run(path, "fit")


def _fits(value: Any, option: argparse.Action | None) -> bool:
    """Whether a recorded value is one that an option takes."""
    if value == "auto" and option is not None:  # left to the estimator, whatever kind of value it would be
        return True
    if value is None or option is None or option.dest in ("config", "out"):
        return option is not None and (value is None or isinstance(value, str))
    if option.nargs == "+":
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if option.const is True:
        return isinstance(value, bool)
    kinds: Any = {int: int, float: int | float, None: str}.get(option.type, int | str)  # type: ignore[arg-type]
    return isinstance(value, kinds) and not isinstance(value, bool) and (not option.choices or value in option.choices)


def _save(
    model: Any,
    out: Path,
    args: argparse.Namespace,
    rows: SurvivalData | str,
    measures: dict[str, Any],
    seconds: float,
) -> None:
    """The model, which knows the columns of the outcome as if Python had named them, and what repeats the run."""
    from softsurv.estimators.shared.training_rows import outcome_columns
    from softsurv.run_record import write_run

    marked = args.event is not None and "=" in args.event  # the table's column is then no indicator
    model.outcome_columns_ = {} if marked else outcome_columns(None, vars(args))
    model.save(out)
    renamed, parameters = _ARGUMENT[args.model], model.get_params()
    used = {option: parameters.get(renamed.get(option, option)) for option in args.tree_options}  # defaults too
    given = {k: v for k, v in (used | _given(args)).items() if v is not None and k not in _NOT_RECORDED}
    paths = {"data": str(Path(args.data).resolve()), "out": str(out)}
    metrics = {"training_objective": model.report_.objective} | measures
    write_run(out, "fit", given | paths, data=rows, seed=args.seed, metrics=metrics, seconds=seconds)


def _given(args: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name, value in vars(args).items() if value is not None}


def make_model(args: argparse.Namespace) -> Any:
    """The estimator that the options ask for."""
    import softsurv

    model = softsurv.SoftSurvivalTree() if args.model == "soft" else softsurv.OptimalSurvivalTree()
    renamed, known = _ARGUMENT[args.model], model.get_params()
    for option in args.tree_options:
        value, name = getattr(args, option), renamed.get(option, option)
        if value is None:
            continue
        if name not in known:
            args.usage_error(f"--{option.replace('_', '-')} is no option of --model {args.model}")
        model.set_params(**{name: None if value == "none" else value})
    return model.set_params(random_state=args.seed) if "random_state" in known else model


def _whole_or_word(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _kind(model: Any) -> str:
    """The tree in words."""
    if hasattr(model, "candidate_"):
        return f"soft tree of depth {model.depth_} with {model.candidate_.family} leaves"
    return f"optimal tree for {model.objective}"


def _outcome(model: Any) -> str:
    """How the fit ended."""
    report = model.report_
    words = f"{report.status.replace('_', ' ')} after {report.seconds:.1f} s, objective {report.objective:.6g}"
    return words if math.isinf(report.lower_bound) else f"{words}, lower bound {report.lower_bound:.6g}"
