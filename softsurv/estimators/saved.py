"""Estimators to files and back."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from softsurv.errors import InvalidParameterError, ModelFileError, SoftsurvError
from softsurv.estimators.names import HOME
from softsurv.nonparametric import StepFunction
from softsurv.persistence import Saved, incomplete, read_model, write_model

_PAST = {"init": "auto", "reference": None}
"""Arguments that may hold another model or the training rows' curves, and what is saved instead. A fitted model no
longer needs them."""

TRAINING = ("outcome_columns_", "ranges_")
"""What a survival tree remembers of its training table."""


def save_model(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted estimator to a folder, which is made if need be.

    Parameters
    ----------
    model : fitted estimator
    path : path-like
        The folder. A model already there is replaced in one step and stays until the new one is whole.

    Raises
    ------
    InvalidParameterError
        If the model's arguments cannot be written as JSON, such as a leaf family without a registered name.
    """
    from sklearn.utils.validation import check_is_fitted

    _check_path(path)
    check_is_fitted(model, "tree_")
    arrays, state = model._state()
    survival = hasattr(model, "censoring_")
    if survival:
        arrays = arrays | {
            "censoring.times": model.censoring_.times,
            "censoring.values": model.censoring_.values,
            "unique_times": model.unique_times_,
        }
        state = state | {"cause_names": list(model.cause_names_)}
        state = state | {"training": {name: getattr(model, name, {}) for name in TRAINING}}
        if hasattr(model, "calibration_"):
            state = state | {"calibration": model.calibration_.reset_index().to_dict("records")}
    names = getattr(model, "feature_names_in_", None)
    saved = Saved(
        type(model).__name__,
        _parameters(model),
        state,
        arrays,
        model.n_features_in_,
        None if names is None else [str(name) for name in names],
        model.horizon_ if survival else None,
    )
    write_model(path, saved)


def _check_path(path: Any) -> None:
    if not isinstance(path, str | PathLike):
        raise InvalidParameterError(f"path must be the folder of a model, got {path!r}")


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
    fitted estimator

    Raises
    ------
    ModelFileError
        If the folder holds no model, a damaged one, or one of a newer version.
    InvalidParameterError
        If the device is not there, or a leaf family of one's own is not registered.
    """
    _check_path(path)
    saved = read_model(path)
    try:
        return _rebuild(saved, device)
    except SoftsurvError:
        raise
    except Exception as error:  # a forged file may fail in any step; nothing of it is kept
        raise incomplete(path, error) from error


def _rebuild(saved: Saved, device: str) -> Any:
    """The fitted estimator; its class is looked up in a fixed list."""
    kind = saved.estimator
    if kind not in HOME:
        raise ModelFileError(f"the model is of the unknown estimator {kind!r}; update softsurv")
    model = getattr(import_module(HOME[kind]), kind)(**saved.parameters)
    if "device" in model.get_params():
        model.set_params(device=device)
    model.n_features_in_ = saved.n_features_in
    if saved.feature_names_in is not None:
        model.feature_names_in_ = np.array(saved.feature_names_in, dtype=object)
    arrays = dict(saved.arrays)
    if saved.horizon is not None:
        model.horizon_ = saved.horizon
        model.unique_times_ = arrays.pop("unique_times")
        model.censoring_ = StepFunction(arrays.pop("censoring.times"), arrays.pop("censoring.values"), 1.0)
        model.cause_names_ = tuple(saved.state.get("cause_names", ()))
        known = saved.state.get("training", {})  # models of earlier versions do not have it
        model.outcome_columns_ = dict(known.get("outcome_columns_", {}))
        model.ranges_ = {str(name): (float(a), float(b)) for name, (a, b) in known.get("ranges_", {}).items()}
        if "calibration" in saved.state:
            model.calibration_ = pd.DataFrame(saved.state["calibration"]).set_index(["coverage", "leaf"])
    model._restore(arrays, saved.state)
    return model


def _parameters(model: Any) -> dict[str, Any]:
    """Constructor arguments; those in :data:`_PAST` that hold anything but text are replaced."""
    parameters = dict(model.get_params(deep=False))
    for name, default in _PAST.items():
        if not isinstance(parameters.get(name, ""), str):
            parameters[name] = default
    leaf = parameters.get("leaf")
    if leaf is not None and not isinstance(leaf, str):
        settings = {name: value for name, value in leaf.settings().items() if name in parameters}
        parameters |= {"leaf": leaf.name} | settings
    return parameters
