"""Checkpoints of long training: tensors and plain values in one file that is replaced in one step."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from torch import Tensor

from softsurv.errors import InvalidParameterError, ModelFileError

FORMAT = 1
"""Version of the layout."""


@dataclass(frozen=True)
class State:
    """What training needs to go on."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


def write_checkpoint(
    path: str | PathLike[str], job: Mapping[str, Any], tensors: Mapping[str, Tensor], values: Mapping[str, Any]
) -> None:
    """Replace the checkpoint; a process that is killed meanwhile leaves the former one.

    Parameters
    ----------
    path : path-like
        The file.
    job : mapping
        What the training is of, JSON values: :func:`read_checkpoint` refuses the checkpoint of another job.
    tensors, values : mapping
        The state.
    """
    from safetensors.torch import save

    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    note = json.dumps({"format": FORMAT, "job": dict(job), "values": dict(values)})
    content = save({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, {"softsurv": note})
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    with open(part, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    part.replace(file)


def read_checkpoint(path: str | PathLike[str], job: Mapping[str, Any]) -> State | None:
    """The state to go on from, or None where there is no checkpoint yet.

    Raises
    ------
    ModelFileError
        If the file is damaged or no checkpoint.
    InvalidParameterError
        If it is of another job.
    """
    from safetensors import SafetensorError, safe_open

    file = Path(path)
    if not file.exists():
        return None
    try:
        with safe_open(file, framework="pt") as content:
            note = json.loads(content.metadata()["softsurv"])
            tensors = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ModelFileError(f"{str(file)!r} is no checkpoint or a damaged one ({error}); remove it") from None
    wanted = json.loads(json.dumps(dict(job)))
    for key in wanted.keys() | note["job"].keys():
        if wanted.get(key) != note["job"].get(key):
            raise InvalidParameterError(
                f"checkpoint {str(file)!r} is of a job with {key} {note['job'].get(key)!r}, got {wanted.get(key)!r}; "
                "choose another file, or remove this one to begin anew"
            )
    return State(tensors, note["values"])
