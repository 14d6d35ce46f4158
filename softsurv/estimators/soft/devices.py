"""Where a soft tree trains: the device that was asked for, or the one that is fastest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.soft.parallel import Machine, workers_of_torch
from softsurv.soft.recipe import Recipe

TREE_ROWS_A_CORE = 7_000
"""Trees times rows for each core of the processor, above which a device trains faster: to ask a device for an operator
takes as long as the operators of small tables (`scripts/tables/gpu.md`)."""

UNUSABLE = {"meta": "which holds no numbers", "mps": "which has no double precision"}
"""Devices of torch on which nothing can be fitted."""


def choose_device(device: str, tree_rows: float = math.inf, cores: int | None = None) -> torch.device:
    """The torch device; "auto" is CUDA where there is one that pays.

    Parameters
    ----------
    device : str
        What the user asked for.
    tree_rows : float
        Trees that train together times their rows; not limited by default.
    cores : int, optional
        Of the processor; as many as torch uses by default.
    """
    if device == "auto":
        pays = tree_rows > TREE_ROWS_A_CORE * (workers_of_torch() if cores is None else cores)
        return torch.device("cuda" if pays and torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError):
        raise InvalidParameterError(f'device must be "auto", "cpu" or "cuda", got {device!r}') from None
    if chosen.type in UNUSABLE:
        raise InvalidParameterError(f'device must be "auto", "cpu" or "cuda", got {device!r}, {UNUSABLE[chosen.type]}')
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise InvalidParameterError(f'device {device!r} asks for CUDA, but torch sees no CUDA device; use "auto"')
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        last = torch.cuda.device_count() - 1
        raise InvalidParameterError(f'device must be "cuda:{last}" or below here, got {device!r}')
    return chosen


def machine_of(model: Any, recipes: Sequence[Recipe], rows: int, cores: int | None = None) -> Machine:
    """Where trees of some recipes train together, as a model of theirs asks, on that many rows of all folds."""
    tree_rows = rows * sum(len(recipe.used_starts) for recipe in recipes)
    device = choose_device(model.device, tree_rows, cores)
    return Machine(device, torch_dtype(model.dtype), workers=1 if cores is None else cores)


def torch_dtype(name: str) -> torch.dtype:
    """The precision of this name."""
    return {"float64": torch.float64, "float32": torch.float32}[name]


def check_range_of_times(time: Any, dtype: torch.dtype) -> None:
    """Raise where times (N,) are no numbers in the precision of a fit, in which all curves would be 0 or 1.

    Raises
    ------
    InvalidSurvivalDataError
    """
    if dtype == torch.float64:
        return
    least, most, times = torch.finfo(dtype).tiny, torch.finfo(dtype).max, np.asarray(time)
    outside = (times > 0) & ((times < least) | (times > most))
    if outside.any():
        raise InvalidSurvivalDataError(
            f'time must lie within {least:.2g} to {most:.2g} with dtype="float32", got {times[outside][0]:g}; use '
            'dtype="float64" or another unit'
        )


def device_of_worker(device: str, number: int) -> str:
    """The device of a worker by its number: for "auto" and "cuda", workers take several CUDA devices in turn."""
    several = torch.cuda.device_count() if device in ("auto", "cuda") else 0
    return f"cuda:{number % several}" if several > 1 else device
