"""Checks of estimators' arguments; each sentence names the argument, what it must be and what it got."""

from __future__ import annotations

import math
import numbers
from typing import Any

from softsurv.errors import InvalidParameterError
from softsurv.exact.search import MAX_DEPTH


def one_of(name: str, value: Any, allowed: tuple[Any, ...], where: str = "") -> None:
    """The value is one of a few."""
    if not any(value is known or (isinstance(value, str) and value == known) for known in allowed):
        raise InvalidParameterError(f"{name} must be one of {', '.join(map(repr, allowed))}{where}, got {value!r}")


def whole(name: str, value: Any, least: int) -> None:
    """The value is an integer of at least ``least``."""
    if not is_whole(value) or value < least:
        raise InvalidParameterError(f"{name} must be an integer >= {least}, got {value!r}")


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, and no boolean."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def number(name: str, value: Any, least: float, unit: str = "") -> None:
    """The value is a finite number of at least ``least``."""
    good = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not good or not least <= float(value) < math.inf:
        of = f" of {unit}" if unit else ""
        raise InvalidParameterError(f"{name} must be a finite number{of} >= {least:g}, got {value!r}")


def jobs(value: Any) -> None:
    """``n_jobs`` as scikit-learn takes it."""
    if value is not None and (not is_whole(value) or value == 0):
        raise InvalidParameterError(f"n_jobs must be an integer >= 1, or -1 for all cores, got {value!r}")


def search_limits(p: Any) -> None:
    """What every estimator on the exact engine takes: sizes, cost per leaf, time, memory and threads."""
    whole("max_depth", p.max_depth, 0)
    if p.max_depth > MAX_DEPTH:
        raise InvalidParameterError(f"max_depth must be an integer from 0 to {MAX_DEPTH}, got {p.max_depth!r}")
    if p.max_leaves is not None:
        whole("max_leaves", p.max_leaves, 1)
    whole("min_samples_leaf", p.min_samples_leaf, 1)
    number("min_weight_fraction_leaf", p.min_weight_fraction_leaf, 0.0)
    if p.min_weight_fraction_leaf > 0.5:
        raise InvalidParameterError(
            f"min_weight_fraction_leaf must be at most 0.5, half the weight, got {p.min_weight_fraction_leaf!r}"
        )
    if p.min_weight_fraction_leaf > 0 and p.min_samples_leaf > 1:
        raise InvalidParameterError(
            "min_weight_fraction_leaf and min_samples_leaf must not both limit the leaves; leave one of them out"
        )
    number("complexity", p.complexity, 0.0)
    number("memory_limit", p.memory_limit, 1e6, "bytes")
    if p.time_limit is not None:
        number("time_limit", p.time_limit, 0.0, "seconds")
    jobs(p.n_jobs)


def n_threads(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` asks for, as scikit-learn reads it."""
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))
