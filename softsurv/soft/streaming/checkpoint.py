"""Checkpoints of long training: tensors and plain values in one file that is replaced in one step."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from softsurv.errors import InvalidParameterError, ModelFileError
from softsurv.files import replace_file, seal, unseal

FORMAT = 2
"""Version of the layout. Other versions are refused, as a checkpoint lives no longer than its job."""

MAX_BYTES = 1 << 36
"""A longer file is no checkpoint."""


@dataclass(frozen=True)
class State:
    """Tensors and values from which training goes on."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


def write_checkpoint(
    path: str | PathLike[str], job: Mapping[str, Any], tensors: Mapping[str, Tensor], values: Mapping[str, Any]
) -> None:
    """Replace the checkpoint in one step; if the process is killed meanwhile, the former one stays.

    Parameters
    ----------
    path : path-like
        The file.
    job : mapping
        JSON values that identify the training: :func:`read_checkpoint` refuses the checkpoint of another job.
    tensors, values : mapping
        The state.
    """
    file = Path(path)
    arrays = {name: value.detach().cpu().numpy() for name, value in tensors.items()}
    note = json.dumps({"format": FORMAT, "job": dict(job), "values": dict(values)})
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, seal(arrays, note))


def read_checkpoint(path: str | PathLike[str], job: Mapping[str, Any]) -> State | None:
    """The state to go on from, or None where there is no checkpoint yet.

    Raises
    ------
    ModelFileError
        If the file is damaged or not a checkpoint.
    InvalidParameterError
        If it is of another job.
    """
    file = Path(path)
    if not os.path.lexists(file):
        return None
    try:
        arrays, text = unseal(file, MAX_BYTES)
        note = json.loads(text)
        if note["format"] != FORMAT:
            raise ValueError(f"it is of format {note['format']!r}")
        known, values = dict(note["job"]), dict(note["values"])
        tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
        wrong = [name for name, tensor in tensors.items() if not bool(torch.isfinite(tensor).all())]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is not finite")
    except (OSError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(
            f"checkpoint {str(file)!r} is no checkpoint or a damaged one ({error}); name another file"
        ) from None
    before, now = _settings(known), _settings(json.loads(json.dumps(dict(job))))
    for key in [*before, *now]:
        if now.get(key) != before.get(key):
            raise InvalidParameterError(
                f"checkpoint {str(file)!r} is of a job with {key} {before.get(key)!r}, got {now.get(key)!r}; "
                "choose another file, or remove this one to begin anew"
            )
    return State(tensors, values)


def _settings(job: Mapping[str, Any]) -> dict[str, Any]:
    """What identifies a job, the parameters of the model one by one: an error names the one that differs."""
    parameters = job.get("parameters")
    return {**job, "parameters": None, **parameters} if isinstance(parameters, dict) else dict(job)
