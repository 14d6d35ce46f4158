"""What a command need not be told because the model's folder says it: columns of the outcome, and the unit of time."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softsurv.commands._input import column_names, event_parts, existing_file
from softsurv.errors import EvaluationWarning, InvalidParameterError, InvalidSurvivalDataError, ModelFileError, warn

if TYPE_CHECKING:
    from softsurv.data.survival_data import SurvivalData

_ROLES = ("time", "event", "entry", "upper", "weight", "group", "cause", "start", "stop", "id")
_INSTEAD = {"time": "stop", "event": "cause", "stop": "time", "cause": "event"}
_LISTS = ("drop", "categorical", "missing_values")


def overruled(args: argparse.Namespace, recorded: dict[str, Any] | None = None) -> set[str]:
    """Columns of a record that are replaced by options: the event by --cause, stop and start by --time, and so on.

    With the record itself also those whose option names another column.
    """
    given = {role for role in _INSTEAD if getattr(args, role, None) is not None}
    known = {} if recorded is None else {role: recorded[role] for role in _ROLES if recorded.get(role)}
    other = {role for role, name in known.items() if getattr(args, role, None) not in (None, name)}
    return {_INSTEAD[role] for role in given} | ({"start"} if "time" in given else set()) | other


def still_dropped(args: argparse.Namespace, recorded: list[str]) -> list[str]:
    """Columns that a record leaves out, without those that have a role now."""
    given = [getattr(args, role, None) or "" for role in _ROLES]
    return [name for name in recorded if all(event_parts(one, [name])[0] != name for one in given)]


def fill_from_model(args: argparse.Namespace) -> None:
    """Take what is not given from the record of the fit, or from the model itself.

    Raises
    ------
    InvalidParameterError
        If neither knows which columns hold the outcome.
    """
    names = column_names(existing_file(args.data))
    known = _recorded(Path(args.model))
    replaced = overruled(args)
    if args.event is None and "event" not in replaced and known.get("event") and "=" in known["event"]:
        args.event = known["event"]
    for role in _ROLES:
        if role in replaced:
            continue
        name = known.get(role)
        if hasattr(args, role) and getattr(args, role) is None and name and _is_there(name, names, role):
            setattr(args, role, name)
    for option in _LISTS:
        if getattr(args, option, None) is None and known.get(option):
            listed = still_dropped(args, known[option]) if option == "drop" else known[option]
            here = listed if option == "missing_values" else [name for name in listed if _is_there(name, names)]
            setattr(args, option, here or None)
    if hasattr(args, "time_unit") and args.time_unit is None:
        args.time_unit = known.get("time_unit")
    if args.recurrent is None and args.id is not None:
        args.recurrent = known.get("recurrent")
    for role in ("time", "event"):
        if getattr(args, role) is None and getattr(args, _INSTEAD[role]) is None:
            raise InvalidParameterError(
                f"--{role} must name a column of DATA, as the model in {args.model!r} does not know it; add --{role}"
            )


def missing_values(args: argparse.Namespace) -> list[str]:
    """The cells of features that mean "missing": those of the option, else those of the recorded fit."""
    given: list[str] | None = args.missing_values
    return list(_recorded(Path(args.model)).get("missing_values") or ()) if given is None else given


def existing_model(path: str) -> None:
    """Raise where a folder holds no model, before anything heavy is loaded."""
    if not any((Path(path) / name).is_file() for name in ("model.safetensors", "model.json")):
        raise InvalidParameterError(f"{path!r} holds no model; pass a folder that fit wrote")


def check_features(model: str, data: str, args: argparse.Namespace | None = None) -> None:
    """Raise where a table lacks a feature of the model, or an option needs one for something else.

    Both before torch is loaded. ``args`` are those of a command whose options name columns that are no features then.
    """
    from softsurv.persistence import read_model

    names, wanted = column_names(existing_file(data)), read_model(model).feature_names_in
    if wanted is None:
        return
    for role in () if args is None else _ROLES:
        name = getattr(args, role, None)
        if name in wanted:
            raise InvalidParameterError(
                f"--{role} must name a column that is no feature of {model!r}, got {name!r}; fit again with --{role} "
                f"{name}, or name a copy of the column"
            )
    if names is None:
        return
    absent = [name for name in wanted if name not in names]
    if absent:
        shown = ", ".join(map(repr, absent[:8])) + (", ..." if len(absent) > 8 else "")
        raise InvalidSurvivalDataError(
            f"DATA must have every column that {model!r} was fitted to, got none named {shown}; add or rename columns"
        )


def warn_of_seen_rows(folder: str, model: Any, data: SurvivalData) -> str:
    """Say where the rows to measure on are those of the fit; returns the sentence where the fit held some of them out.

    Rows that are all those of the fit a report finds by itself.
    """
    from softsurv.trees.leaf_table import leaf_table_of, same_rows

    trained = model.leaf_table_
    better = "measures on training rows are better than what new rows will show"
    if same_rows(trained, leaf_table_of(data, model.apply(data.X), len(trained.n))):
        warn(f"DATA looks like the rows that the model was trained on; {better}", EvaluationWarning)
    elif data.fingerprint() == _fingerprint(Path(folder)):
        said = f"the whole table of the fit: the model was trained on {trained.n.sum()} of its {data.n} rows; {better}"
        warn(f"DATA is {said}", EvaluationWarning)
        return f"This is {said}."
    return ""


def _fingerprint(folder: Path) -> str | None:
    """Fingerprint of all rows of the recorded fit, held-out ones too; None without a record."""
    from softsurv.run_record import NAME, read_run

    known = read_run(folder)["data"] if (folder / NAME).is_file() else None
    return None if known is None else known.get("fingerprint")


def _is_there(name: str, names: list[str] | None, role: str = "") -> bool:
    """Whether a table has a column; true for time and event, and where the table's first line tells nothing."""
    return role in _INSTEAD or names is None or name in names


def _recorded(folder: Path) -> dict[str, Any]:
    """Options of the recorded fit; without a record the outcome that the model remembers."""
    from softsurv.run_record import NAME, read_run

    if (folder / NAME).is_file():
        return _checked(read_run(folder)["config"], folder)
    from softsurv.persistence import read_model

    return _checked(dict(read_model(folder).state.get("training", {}).get("outcome_columns_", {})), folder)


def _checked(known: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What is recorded of columns; raises where it is no text, or no list of texts."""
    for name in (*_ROLES, "time_unit", *_LISTS):
        value = known.get(name)
        if value is None:
            continue
        listed = name in _LISTS and isinstance(value, list)
        if (name in _LISTS) != listed or not all(isinstance(one, str) for one in (value if listed else [value])):
            raise ModelFileError(f"{name} in the record of {str(folder)!r} cannot be {value!r}; correct it")
    return known
