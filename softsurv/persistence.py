"""Saved models: a folder with ``tensors.safetensors`` and ``model.json``, never pickle.

Loading runs no code from the files; the JSON names an estimator and a leaf family that this version knows.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softsurv import __version__
from softsurv.errors import InvalidParameterError, ModelFileError, SoftsurvError
from softsurv.estimators.names import HOME
from softsurv.nonparametric import StepFunction

if TYPE_CHECKING:
    from softsurv.estimators.base import SurvivalTreeBase
    from softsurv.estimators.separable.tree import SeparableTree

FORMAT = 1
"""Version of the layout; a reader refuses a larger one."""

TENSORS, META = "tensors.safetensors", "model.json"

_PAST = {"init": "auto", "reference": None}
"""Arguments that may hold another model or the training rows' curves: they are past once the model is fitted."""


def save_model(model: SurvivalTreeBase | SeparableTree, path: str | PathLike[str]) -> None:
    """Write a fitted estimator to a folder, which is made if need be.

    Parameters
    ----------
    model : fitted estimator
    path : path-like
        The folder; a model already there is replaced, each file in one step.

    Raises
    ------
    InvalidParameterError
        If the model's arguments cannot be written as JSON, such as a leaf family without a registered name.
    """
    from safetensors.numpy import save
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model, "n_features_in_")
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise InvalidParameterError(f"path must be a folder, got the file {str(folder)!r}; choose another name")
    arrays, state = model._state()
    survival = hasattr(model, "censoring_")
    if survival:
        arrays = arrays | {
            "censoring.times": model.censoring_.times,
            "censoring.values": model.censoring_.values,
            "unique_times": model.unique_times_,
        }
    data = save({name: np.ascontiguousarray(value) for name, value in arrays.items()})
    names = getattr(model, "feature_names_in_", None)
    meta = {
        "format": FORMAT,
        "softsurv": __version__,
        "estimator": type(model).__name__,
        "parameters": _plain_parameters(model),
        "n_features_in": model.n_features_in_,
        "feature_names_in": None if names is None else [str(n) for n in names],
        "horizon": model.horizon_ if survival else None,
        "state": state,
        "tensors_sha256": hashlib.sha256(data).hexdigest(),
    }
    plain = _plain(meta)
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / TENSORS, data)
    _write(folder / META, json.dumps(plain | {"checksum": _checksum(plain)}, indent=1, allow_nan=False).encode())


def load_model(path: str | PathLike[str], device: str = "auto") -> Any:
    """Read a model that ``save`` wrote.

    Parameters
    ----------
    path : path-like
        The folder.
    device : str
        Where a soft tree's tensors go: "auto", "cpu" or "cuda".

    Returns
    -------
    SoftSurvivalTree or OptimalSurvivalTree

    Raises
    ------
    ModelFileError
        If the folder holds no model, a damaged one, or one of a newer version.
    InvalidParameterError
        If the device is not there, or a leaf family of one's own is not registered.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    folder = Path(path)
    meta = _read_meta(folder)
    data = _read_tensors(folder, meta.get("tensors_sha256"))
    try:
        model = _rebuild(meta, load(data), device)
    except SoftsurvError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, SafetensorError) as error:
        raise ModelFileError(
            f"the model in {str(folder)!r} is incomplete ({type(error).__name__}: {error}); save it again"
        ) from error
    return model


def _rebuild(meta: dict[str, Any], arrays: dict[str, np.ndarray], device: str) -> Any:
    """The fitted estimator; its class is looked up in a fixed list."""
    kind = meta["estimator"]
    if kind not in HOME:
        raise ModelFileError(f"{META} names the unknown estimator {kind!r}; update softsurv")
    model = getattr(import_module(HOME[kind]), kind)(**_from_plain(meta["parameters"]))
    if "device" in model.get_params():
        model.set_params(device=device)
    model.n_features_in_ = meta["n_features_in"]
    if meta["feature_names_in"] is not None:
        model.feature_names_in_ = np.array(meta["feature_names_in"], dtype=object)
    if meta["horizon"] is not None:
        model.horizon_ = float(_from_plain(meta["horizon"]))
        model.unique_times_ = arrays.pop("unique_times")
        model.censoring_ = StepFunction(arrays.pop("censoring.times"), arrays.pop("censoring.values"), 1.0)
    model._restore(arrays, _from_plain(meta["state"]))
    return model


def _read_meta(folder: Path) -> dict[str, Any]:
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise ModelFileError(f"{str(folder)!r} holds no model: there is no {META} in it; check the path") from None
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or nested without end
        raise ModelFileError(f"{META} in {str(folder)!r} is damaged ({error}); save the model again") from None
    if not isinstance(meta, dict) or type(meta.get("format")) is not int or meta["format"] < 1:
        raise ModelFileError(f"{META} in {str(folder)!r} is not a softsurv model; check the path")
    if meta["format"] > FORMAT:
        raise ModelFileError(
            f"the model in {str(folder)!r} was written by softsurv {meta.get('softsurv')} in format {meta['format']}, "
            f"this version reads up to {FORMAT}; update softsurv"
        )
    if meta.pop("checksum", None) != _checksum(meta):
        raise ModelFileError(f"{META} in {str(folder)!r} was changed after it was saved; save the model again")
    return meta


def _read_tensors(folder: Path, expected: Any) -> bytes:
    try:
        data = (folder / TENSORS).read_bytes()
    except FileNotFoundError:
        raise ModelFileError(f"{str(folder)!r} lacks {TENSORS}; copy the whole model folder") from None
    if hashlib.sha256(data).hexdigest() != expected:
        raise ModelFileError(f"{TENSORS} in {str(folder)!r} is damaged or of another model; save the model again")
    return data


def _checksum(meta: dict[str, Any]) -> str:
    """sha256 of the JSON values: a guard against damage, not against forgery."""
    return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()


def _plain_parameters(model: Any) -> dict[str, Any]:
    """Constructor arguments as JSON values, those in :data:`_PAST` left out unless they are plain words."""
    parameters = dict(model.get_params(deep=False))
    for name, default in _PAST.items():
        if not isinstance(parameters.get(name, ""), str):
            parameters[name] = default
    leaf = parameters.get("leaf")
    if leaf is not None and not isinstance(leaf, str):
        parameters["leaf"] = leaf.name
    for name, value in parameters.items():
        try:
            json.dumps(_plain(value))
        except TypeError:
            raise InvalidParameterError(f"{name}={value!r} cannot be saved; use a plain value") from None
    return parameters


def _plain(value: Any) -> Any:
    """JSON values: numpy scalars unpacked, infinities and nan as tagged text, mappings of numbers as tagged pairs."""
    if isinstance(value, Mapping):
        if any(not isinstance(k, str) for k in value):
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


def _write(path: Path, data: bytes) -> None:
    """Replace a file in one step, so that a reader never meets half of it."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
