"""The search space of a study: parameters of an estimator, each fixed, one of some values, or from a range."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import optuna
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sklearn.base import BaseEstimator

from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.estimators.soft.tree import encoded_rows
from softsurv.soft.selection import scaled_ridge
from softsurv.sparse.row_space import ridge_scale


@dataclass(frozen=True)
class Choice:
    """One of some values: None, bool, int, float or text.

    Raises
    ------
    InvalidParameterError
        If there is no value.
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        if not self.values:
            raise InvalidParameterError("a Choice must have at least one value, got none; list what to try")

    def suggest(self, trial: optuna.Trial, name: str) -> Any:
        """The value for this trial."""
        return trial.suggest_categorical(name, self.values)


@dataclass(frozen=True)
class Range:
    """A number from ``low`` to ``high``, both included: an integer if both are, on a log scale if asked.

    Raises
    ------
    InvalidParameterError
        If the ends are not finite numbers in order, or ``low`` is not above 0 on a log scale.
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        ends = (self.low, self.high)
        real = all(isinstance(end, numbers.Real) and not isinstance(end, bool) for end in ends)
        if not (real and math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise InvalidParameterError(f"a Range must have finite low <= high, got {self.low!r} to {self.high!r}")
        if self.log and self.low <= 0:
            raise InvalidParameterError(f"a Range with log=True must have low > 0, got {self.low!r}")
        kind = int if all(isinstance(end, numbers.Integral) for end in ends) else float  # of numpy's numbers too
        object.__setattr__(self, "low", kind(self.low))
        object.__setattr__(self, "high", kind(self.high))

    def suggest(self, trial: optuna.Trial, name: str) -> Any:
        """The value for this trial."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return trial.suggest_int(name, self.low, self.high, log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)


Space = Mapping[str, Any]
"""Parameter names to a `Choice`, a `Range`, a list of values, or one fixed value."""

RULES: dict[str, Any] = {
    "leaf": Choice(("loglogistic", "weibull", "lognormal", "spline_ph", "spline_po")),
    "n_knots": Range(1, 4),
    "depth": Range(0, 3),
    "max_terms": Range(1, 3),
    "l2": Range(1e-2, 1e2, log=True),
    "shrinkage": Range(1e-1, 1e2, log=True),
    "slope_shrinkage": Range(1e-1, 1e3, log=True),
}
"""Soft trees of rules, the default."""

DENSE: dict[str, Any] = {
    "leaf": Choice(("exponential", "weibull", "loglogistic", "lognormal", "spline_ph", "spline_po")),
    "n_knots": Range(1, 4),
    "depth": Range(0, 3),
    "l2": Range(1e-2, 1e2, log=True),
    "shrinkage": Range(1e-1, 1e2, log=True),
    "routing_l2": Range(1e-2, 1e1, log=True),
    "solver": Choice(("lbfgs", "nodec")),
    "init": Choice(("auto", "random", "kmeans")),
    "n_restarts": Range(1, 5),
}
"""Soft trees whose splits weigh all features."""

DENSE_ALONE = frozenset({"solver", "init", "routing_l2", "fairness", "l1", "max_iter", "preset", "n_restarts"})
"""Arguments that only dense trees have."""

OPTIMAL: dict[str, Any] = {
    "objective": Choice(("relative_risk", "ibs")),
    "max_depth": Range(1, 4),
    "max_leaves": Range(2, 16),
    "min_samples_leaf": Range(1, 50, log=True),
    "complexity": Range(1e-5, 1e-1, log=True),
    "thresholds": Choice((5, 10, 20)),
    "time_limit": 20.0,
}

FAIRNESS = Range(1e-2, 1e2, log=True)
"""Strength of the soft tree's fairness penalty, searched where fairness is measured."""


def default_space(
    estimator: str, measures: tuple[str, ...] = (), given: Space | None = None, data: SurvivalData | None = None
) -> dict[str, Any]:
    """The default search space of "soft" or "optimal"; ``space=`` of a study adds to it or replaces parts by name.

    Parameters
    ----------
    estimator : {"soft", "optimal"}
    measures : tuple of str
        If they hold "fairness", its penalty is searched too.
    given : mapping, optional
        ``space=`` of the study. Soft trees are of rules if its ``max_terms`` holds a number. Otherwise they are dense
        if it names an argument that only dense trees have or ``max_terms=None``, or if fairness is measured.
    data : SurvivalData, optional
        Where it has more encoded columns than rows, the penalties of slopes are searched among as much larger ones as
        those that a tree tries by itself.
    """
    if given is not None and not isinstance(given, Mapping):
        raise InvalidParameterError(f"space must be a mapping of arguments to values, got {given!r}")
    if estimator == "optimal":
        return dict(OPTIMAL)
    given = given or {}
    if _counts_terms(given) or not (
        DENSE_ALONE & given.keys() or given.get("max_terms", 1) is None or "fairness" in measures
    ):
        return _scaled(RULES, given, data)
    return (
        _scaled(DENSE, given, data) | {"max_terms": None} | ({"fairness": FAIRNESS} if "fairness" in measures else {})
    )


def _scaled(space: dict[str, Any], given: Space, data: SurvivalData | None) -> dict[str, Any]:
    """The space with the penalties of slopes for as many columns as the rows have (`ridge_scale`)."""
    if data is None or _most_columns(data.X) <= data.n:
        return dict(space)
    scale = ridge_scale(encoded_rows(data, given.get("preprocess", True) is not False, data.X.columns.tolist())[1])
    ends = {name: (space[name].low, space[name].high) for name in ("l2", "routing_l2") if name in space}
    return space | {
        name: Range(scaled_ridge(low, scale), scaled_ridge(high, scale), log=True) for name, (low, high) in ends.items()
    }


def _most_columns(X: pd.DataFrame) -> int:
    """Encoded columns at most: numbers with whether they are missing, categories with a column for each level."""
    of_each = (2 if is_numeric_dtype(kind) else X.iloc[:, k].nunique() + 1 for k, kind in enumerate(X.dtypes))
    return sum(of_each)


def _counts_terms(given: Space) -> bool:
    """Whether ``max_terms`` may be a number, which trees of rules alone take."""
    spec = given.get("max_terms")
    values = spec if isinstance(spec, list) else spec.values if isinstance(spec, Choice) else (spec,)
    return isinstance(spec, Range) or any(isinstance(value, numbers.Integral) for value in values)


def suggest(trial: optuna.Trial, space: Space) -> dict[str, Any]:
    """The estimator's arguments for this trial; searched ones that have no effect beside the others are left out."""
    chosen: dict[str, Any] = {}
    for name in sorted(space, key=lambda n: n in _MATTERS):  # first those on which others depend
        spec = space[name]
        if not is_open(spec):
            chosen[name] = spec  # as in the refit, which takes every fixed value
        elif _MATTERS.get(name, _always)(chosen | _fixed(space)):
            chosen[name] = as_spec(spec).suggest(trial, name)
    return chosen


def is_open(spec: Any) -> bool:
    """Whether a parameter is searched rather than fixed."""
    return isinstance(spec, Choice | Range | list)


def as_spec(spec: Any) -> Choice | Range:
    """A list as a `Choice`."""
    return Choice(tuple(spec)) if isinstance(spec, list) else spec


def lasting(space: Space) -> dict[str, Any]:
    """What must stay equal in a space while a study lasts, as plain values: all but the ends of ranges.

    Trials do not hold fixed values, so that the best one could not be refitted with others. optuna takes no other
    choices, and no other kind of range.
    """
    return {name: json.loads(json.dumps(_lasting(spec), default=_plain)) for name, spec in space.items()}


def _lasting(spec: Any) -> Any:
    if not is_open(spec):
        return spec
    found = as_spec(spec)
    if isinstance(found, Choice):
        return {"one of": found.values}
    return {"from a range of": type(found.low).__name__, "log": found.log}


def _plain(value: Any) -> Any:
    """A number of numpy as Python's; of an array, table, tree or estimator its kind and a hash of its content."""
    if isinstance(value, np.generic):
        return value.item()
    kind, content = type(value).__name__, value
    if isinstance(value, BaseEstimator):  # of a fitted one too: what it would fit, without the seconds that it took
        content = [value.get_params(deep=False), getattr(value, "tree_", None)]
        content = json.dumps(content, default=_plain)
    elif hasattr(value, "to_dict"):
        content = value.to_dict()
    elif not isinstance(value, np.ndarray):
        return kind
    return f"{kind} {joblib.hash(content)}"


def parse_space(text: str) -> tuple[str, Any]:
    """One parameter from the command line.

    Raises
    ------
    InvalidParameterError
        If the text has none of the forms ``name=value``, ``name=a,b,c`` and ``name=low..high``.

    Examples
    --------
    >>> parse_space("depth=0,1,2")
    ('depth', Choice(values=(0, 1, 2)))
    >>> parse_space("l2=0.01..100")
    ('l2', Range(low=0.01, high=100.0, log=True))
    >>> parse_space("max_depth=1..4"), parse_space("leaf=weibull")
    (('max_depth', Range(low=1, high=4, log=False)), ('leaf', 'weibull'))
    """
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise InvalidParameterError(
            f"a parameter must be given as name=value, name=a,b,c or name=low..high, got {text!r}"
        )
    if ".." in value:
        low, high = (_value(part) for part in value.split("..", 1))
        if isinstance(low, str) or isinstance(high, str) or low is None or high is None:
            raise InvalidParameterError(f"{name} must range from one number to another, got {value!r}")
        if isinstance(low, int) and isinstance(high, int):
            return name, Range(low, high)
        return name, Range(float(low), float(high), log=low > 0)
    if "," in value:
        return name, Choice(tuple(_value(part) for part in value.split(",")))
    return name, _value(value)


def _value(text: str) -> Any:
    """None, a bool, a number, or the text itself."""
    named = {"none": None, "true": True, "false": False}
    if text.lower() in named:
        return named[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _fixed(space: Space) -> dict[str, Any]:
    return {name: spec for name, spec in space.items() if not is_open(spec)}


def _always(chosen: dict[str, Any]) -> bool:
    return True


def _splits(chosen: dict[str, Any]) -> bool:
    return chosen.get("depth") != 0


_OF_SPLITS = ("shrinkage", "slope_shrinkage", "max_terms", "routing_l2", "solver", "init", "n_restarts")

_MATTERS: dict[str, Callable[[dict[str, Any]], bool]] = {
    **dict.fromkeys(_OF_SPLITS, _splits),
    "n_knots": lambda chosen: str(chosen.get("leaf")).startswith("spline"),
    "max_leaves": lambda chosen: chosen.get("max_depth") != 1,
}
"""Parameters that have an effect only beside some values of others, and when they do."""
