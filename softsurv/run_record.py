"""What a run was: its configuration, versions, seed, data and measures as one JSON file beside the model."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

from softsurv import __version__
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, ModelFileError
from softsurv.files import read_file, replace_file

FORMAT = 1
"""Version of the layout; a reader refuses a larger one."""

NAME = "run.json"

MAX_BYTES = 100_000_000
"""A longer file is no record."""

_TYPES: dict[str, Any] = {
    "format": int,
    "command": str,
    "data": dict | None,
    "seed": int | None,
    "versions": dict | None,
}
"""What a record must hold; keys that may be None may be absent."""

PACKAGES = ("torch", "numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "scikit-survival", "numba", "optuna")
"""Packages whose versions may change a result."""


def write_run(
    path: str | PathLike[str],
    command: str,
    config: Mapping[str, Any],
    *,
    data: SurvivalData | str | None = None,
    seed: int | None = None,
    metrics: Mapping[str, Any] | None = None,
    seconds: float | None = None,
) -> Path:
    """Write the record of a run, in one step.

    Parameters
    ----------
    path : path-like
        A ``.json`` file, or a folder such as the model's, which then holds ``run.json``.
    command : str
        What was run: "fit", "tune".
    config : mapping
        Every argument that the command needs to be repeated, as JSON values.
    data : SurvivalData or str, optional
        The rows, of which fingerprint and counts are kept, or their fingerprint alone.
    seed : int, optional
    metrics : mapping, optional
        Measures of the result.
    seconds : float, optional
        Wall-clock time.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidParameterError
        If the configuration holds what JSON does not.
    """
    file = Path(path)
    file = file if file.suffix == ".json" else file / NAME
    record = {
        "format": FORMAT,
        "softsurv": __version__,
        "command": command,
        "config": dict(config),
        "seed": seed,
        "data": {"fingerprint": data} if isinstance(data, str) else None if data is None else _describe(data),
        "metrics": None if metrics is None else dict(metrics),
        "seconds": seconds,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
    }
    try:
        text = json.dumps(record, indent=1, default=_plain)
    except TypeError as error:
        raise InvalidParameterError(f"config must hold plain values to be written as JSON, got {error}") from None
    file.parent.mkdir(parents=True, exist_ok=True)
    return replace_file(file, text)


def read_run(path: str | PathLike[str], command: str | None = None) -> dict[str, Any]:
    """Read the record of a run.

    Parameters
    ----------
    path : path-like
        The file, or the folder that holds ``run.json``.
    command : str, optional
        What the record must be of.

    Returns
    -------
    dict
        With the keys that :func:`write_run` writes; ``config`` repeats the run.

    Raises
    ------
    ModelFileError
        If there is no such record, a damaged one, one of a newer version or of another command.
    """
    file = Path(path)
    file = file / NAME if file.is_dir() else file
    try:
        record = json.loads(read_file(file, MAX_BYTES).decode())
    except (FileNotFoundError, NotADirectoryError):
        raise ModelFileError(f"config must be an existing run record, got {str(file)!r}; check the path") from None
    except OSError as error:
        raise ModelFileError(f"{str(file)!r} cannot be read ({error.strerror}); check the path") from None
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{str(file)!r} is no run record: {error}; pass a file that a run wrote") from None
    if not isinstance(record, dict) or not isinstance(record.get("config"), dict):
        raise ModelFileError(f"{str(file)!r} is no run record: it has no config; pass a file that a run wrote")
    if type(record.get("format")) is int and record["format"] > FORMAT:
        raise ModelFileError(f"{str(file)!r} was written by softsurv {record.get('softsurv')}; update softsurv")
    for name, kinds in _TYPES.items():
        value = record.get(name)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise ModelFileError(f"{str(file)!r} is no run record: {name} is {value!r}; pass a file that a run wrote")
    if command is not None and record.get("command") != command:
        raise ModelFileError(f"{str(file)!r} is the record of {record.get('command')!r}, not of {command!r}")
    return record


def differences(record: Mapping[str, Any], data: SurvivalData | str) -> list[str]:
    """In what a repeated run cannot equal the recorded one: other rows (or another fingerprint of them), other
    versions. Empty where nothing."""
    found = []
    known = record.get("data") or {}
    if known.get("fingerprint") not in (None, data if isinstance(data, str) else data.fingerprint()):
        counts = "" if isinstance(data, str) else f" ({known.get('n', 'unknown')} rows then, {data.n} now)"
        found.append(f"the data differ from the recorded ones{counts}")
    now = _versions()
    for name, then in (record.get("versions") or {}).items():
        if now.get(name) != then:
            found.append(f"{name} was {then}, is {now.get(name)}")
    return found


def _describe(data: SurvivalData) -> dict[str, Any]:
    return data.summary() | {"fingerprint": data.fingerprint(), "features": data.feature_names}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "softsurv": __version__}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | {"machine": platform.machine(), "system": platform.system()}


def _plain(value: Any) -> Any:
    """Numbers of numpy, and paths, as JSON values."""
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} ({type(value).__name__})")
