"""Saved models: a folder with one file of tensors and JSON, never pickle.

Reading runs no code from the file. What a model is made of is a :class:`Saved`; the estimators make it and take it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from softsurv import __version__
from softsurv.errors import InvalidParameterError, ModelFileError, NumericalError
from softsurv.files import read_file, replace_file, seal, unseal

FORMAT = 2
"""Version of the layout; a reader refuses a larger one."""

MODEL = "model.safetensors"

OLD_TENSORS, OLD_META = "tensors.safetensors", "model.json"
"""Format 1 was a pair of files. It is still read, and removed by the next save."""

MAX_BYTES = 1 << 32
"""A longer file is no model."""

_MAY_BE_INFINITE = ("median", "leaves.predicted", ".times.", ".values.")
"""Parts of the names of arrays that may hold infinities: medians that are not reached, and curves."""

_TAGS = ({"float"}, {"pairs"})
"""Keys of what stands in JSON for other values. A mapping that has such a key alone, as that of a table's only column
of this name has, is written as pairs."""


@dataclass(frozen=True)
class Saved:
    """All that is kept of a fitted estimator.

    Attributes
    ----------
    estimator : str
        Name of the class.
    parameters, state : dict
        Constructor arguments and fitted values, as plain values.
    arrays : dict of ndarray
        Fitted arrays.
    n_features_in : int
    feature_names_in : list of str, optional
    horizon : float, optional
        Largest training time, of survival trees.
    """

    estimator: str
    parameters: dict[str, Any]
    state: dict[str, Any]
    arrays: dict[str, np.ndarray]
    n_features_in: int
    feature_names_in: list[str] | None
    horizon: float | None


def write_model(path: str | PathLike[str], saved: Saved) -> None:
    """Write a model to a folder, which is made if need be, in one step.

    A model that is there already stays until the new one is whole. A reader gets the one or the other.

    Parameters
    ----------
    path : path-like
        The folder.
    saved : Saved

    Raises
    ------
    InvalidParameterError
        If the path is a file, or an argument cannot be written as JSON.
    NumericalError
        If a number of the fitted tree is not finite.
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise InvalidParameterError(f"path must be a folder, got the file {str(folder)!r}; choose another name")
    wrong = _not_finite(saved.arrays)
    if wrong is not None:
        raise NumericalError(f"the fitted array {wrong!r} holds values that are not finite; fit the model again")
    note = {
        "format": FORMAT,
        "softsurv": __version__,
        "estimator": saved.estimator,
        "parameters": _checked_parameters(saved.parameters),
        "n_features_in": saved.n_features_in,
        "feature_names_in": saved.feature_names_in,
        "horizon": saved.horizon,
        "state": saved.state,
    }
    content = seal(saved.arrays, json.dumps(_plain(note), allow_nan=False))
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / MODEL, content)
    with suppress(OSError, ModelFileError):
        _read_pair(folder)  # another program's model.json stays
        for name in (OLD_META, OLD_TENSORS):
            (folder / name).unlink(missing_ok=True)


def read_model(path: str | PathLike[str]) -> Saved:
    """Read what :func:`write_model` wrote.

    Raises
    ------
    ModelFileError
        If the folder holds no model, a damaged one, or one of a newer version.
    """
    folder = Path(path)
    meta, arrays = _read(folder)
    wrong = _not_finite(arrays)
    if wrong is not None:
        raise ModelFileError(
            f"the model in {str(folder)!r} holds values in {wrong!r} that are not finite; save the model again"
        )
    names, horizon = meta.get("feature_names_in"), meta.get("horizon")
    try:
        if not isinstance(meta["estimator"], str):
            raise TypeError(f"the estimator is {meta['estimator']!r}")
        return Saved(
            meta["estimator"],
            dict(_from_plain(meta["parameters"])),
            dict(_from_plain(meta["state"])),
            arrays,
            int(meta["n_features_in"]),
            None if names is None else [str(name) for name in names],
            None if horizon is None else float(_from_plain(horizon)),
        )
    except (LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise incomplete(folder, error) from error


def incomplete(path: str | PathLike[str], error: Exception) -> ModelFileError:
    """The error to raise where a saved model lacks something."""
    reason = f"{type(error).__name__}: {error}".splitlines()[0]
    return ModelFileError(f"the model in {os.fspath(path)!r} is incomplete ({reason}); save it again")


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The JSON values and the arrays in a folder, of either format."""
    if not os.path.lexists(folder / MODEL) and os.path.lexists(folder / OLD_META):
        try:
            return _read_pair(folder)
        except ModelFileError:
            if not os.path.lexists(folder / MODEL):  # else a writer has just replaced the pair
                raise
    try:
        arrays, note = unseal(folder / MODEL, MAX_BYTES)
        meta = json.loads(note)
    except NotADirectoryError:
        raise ModelFileError(f"{str(folder)!r} must be the folder that holds {MODEL}, got a file; pass it") from None
    except FileNotFoundError:
        raise ModelFileError(f"{str(folder)!r} holds no model: there is no {MODEL} in it; check the path") from None
    except OSError as error:
        raise ModelFileError(f"{MODEL} in {str(folder)!r} cannot be read ({error.strerror}); check the path") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ModelFileError(f"{MODEL} in {str(folder)!r} is damaged ({error}); save the model again") from None
    _check_format(meta, folder, MODEL)
    return meta, arrays


def _check_format(meta: Any, folder: Path, name: str) -> None:
    if not isinstance(meta, dict) or type(meta.get("format")) is not int or meta["format"] < 1:
        raise ModelFileError(f"{name} in {str(folder)!r} is not a softsurv model; check the path")
    if meta["format"] > FORMAT:
        raise ModelFileError(
            f"the model in {str(folder)!r} was written by softsurv {meta.get('softsurv')} in format {meta['format']}, "
            f"this version reads up to {FORMAT}; update softsurv"
        )


def _read_pair(folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The JSON values and the arrays of a model in format 1."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        meta = json.loads(read_file(folder / OLD_META, MAX_BYTES).decode())
    except OSError as error:
        reason = f"{OLD_META} in {str(folder)!r} cannot be read ({error.strerror}); check the path"
        raise ModelFileError(reason) from None
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or nested without end
        raise ModelFileError(f"{OLD_META} in {str(folder)!r} is damaged ({error}); save the model again") from None
    _check_format(meta, folder, OLD_META)
    if meta.pop("checksum", None) != hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest():
        raise ModelFileError(f"{OLD_META} in {str(folder)!r} was changed after it was saved; save the model again")
    try:
        data = read_file(folder / OLD_TENSORS, MAX_BYTES)
    except FileNotFoundError:
        raise ModelFileError(f"{str(folder)!r} lacks {OLD_TENSORS}; copy the whole model folder") from None
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{OLD_TENSORS} in {str(folder)!r} cannot be read ({error}); check the path") from None
    if hashlib.sha256(data).hexdigest() != meta.get("tensors_sha256"):
        raise ModelFileError(f"{OLD_TENSORS} in {str(folder)!r} is damaged or of another model; save the model again")
    try:
        return meta, load(data)
    except (SafetensorError, LookupError, TypeError) as error:
        raise incomplete(folder, error) from error


def _not_finite(arrays: Mapping[str, np.ndarray]) -> str | None:
    """Name of the first array with a number that a fitted tree cannot have."""
    for name, array in arrays.items():
        free = any(part in name for part in _MAY_BE_INFINITE)
        if array.dtype.kind == "f" and not (free or np.isfinite(array).all()):
            return name
    return None


def _checked_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor arguments as JSON values."""
    for name, value in parameters.items():
        try:
            json.dumps(_plain(value))
        except TypeError:
            raise InvalidParameterError(f"{name}={value!r} cannot be saved; use a plain value") from None
    return dict(parameters)


def _plain(value: Any) -> Any:
    """JSON values: numpy scalars unpacked, infinities and nan as tagged text, mappings of numbers as tagged pairs."""
    if isinstance(value, Mapping):
        if any(not isinstance(k, str) for k in value) or set(value) in _TAGS:
            return {"pairs": [[_plain(k), _plain(v)] for k, v in value.items()]}
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def _from_plain(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"float"} and isinstance(value["float"], str):
            return float(value["float"])
        if set(value) == {"pairs"} and isinstance(value["pairs"], list):
            return {_from_plain(k): _from_plain(v) for k, v in value["pairs"]}
        return {k: _from_plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_from_plain(v) for v in value]
    return value
