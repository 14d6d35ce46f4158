"""Checks of estimators' arguments; each sentence names the argument, what it must be and what it got."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import FloatArray
from softsurv.errors import DataWarning, InvalidParameterError, InvalidTimesError, asked, did_you_mean, warn


def one_of(name: str, value: Any, allowed: tuple[Any, ...], where: str = "") -> None:
    """The value is one of a few."""
    if not any(value is known or (isinstance(value, str) and value == known) for known in allowed):
        known = [one for one in allowed if isinstance(one, str)] if isinstance(value, str) else []
        raise InvalidParameterError(
            f"{name} must be one of {', '.join(map(repr, allowed))}{where}, got {value!r}{did_you_mean(value, known)}"
        )


def whole(name: str, value: Any, least: int) -> None:
    """The value is an integer of at least ``least``."""
    if not is_whole(value) or value < least:
        raise InvalidParameterError(f"{name} must be an integer >= {least}, got {value!r}")


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, and no boolean."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def number(name: str, value: Any, least: float, unit: str = "") -> None:
    """The value is a finite number of at least ``least``."""
    try:
        good = isinstance(value, numbers.Real) and not isinstance(value, bool) and least <= float(value) < math.inf
    except OverflowError:  # a whole number beyond all doubles
        good = False
    if not good:
        of = f" of {unit}" if unit else ""
        raise InvalidParameterError(f"{name} must be a finite number{of} >= {least:g}, got {value!r}")


def share(name: str, value: Any) -> None:
    """The value is a number in [0, 1]."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 <= float(value) <= 1:
        raise InvalidParameterError(f"{name} must be a number in [0, 1], got {value!r}")


def share_with_event(probability: Any) -> float:
    """The share of rows that have had the event at a quantile, a number in (0, 1)."""
    if not isinstance(probability, numbers.Real) or not 0 < probability < 1:  # type: ignore[operator]
        raise InvalidParameterError(f"probability must be between 0 and 1, got {probability!r}")
    return float(probability)


def confidence(level: Any) -> float:
    """The level of an interval, a number in (0, 1)."""
    if not isinstance(level, numbers.Real) or not 0 < level < 1:  # type: ignore[operator]
        raise InvalidParameterError(f"level must be between 0 and 1, got {level!r}; 0.95 is usual")
    return float(level)


def one_kind_of_event(cause_names: Sequence[str]) -> None:
    """The fitted tree knows no competing causes, whose survival curve would have no limits."""
    if cause_names:
        raise InvalidParameterError(
            "confidence limits are there for one kind of event, and this tree was fitted to several; "
            "fit a tree to data.of_cause(...)"
        )


def flag(name: str, value: Any) -> None:
    """The value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidParameterError(f"{name} must be True or False, got {value!r}")


def jobs(value: Any) -> None:
    """``n_jobs`` as scikit-learn takes it."""
    if value is not None and (not is_whole(value) or value == 0):
        raise InvalidParameterError(f"n_jobs must be an integer >= 1, or -1 for all cores, got {value!r}")


def instead_of(unknown: Set[str]) -> str:
    """What to do about arguments that a prediction does not take."""
    if unknown <= {"start", "stop", "id"}:
        return "predict_path(X, start, stop, id) follows subjects whose features change"
    return "leave it out"


def rows_for_a_leaf(least: int, n_rows: int) -> None:
    """``min_samples_leaf`` is no more than the rows there are."""
    if least > n_rows:
        raise InvalidParameterError(f"min_samples_leaf must be at most the number of rows, {n_rows}, got {least}")


def grid_of(times: ArrayLike, name: str = "times") -> FloatArray:
    """Times of a prediction as an array (T,): numbers, finite and not negative."""
    try:
        grid = np.atleast_1d(np.asarray(times, dtype=float))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidTimesError(f"{name} must be numbers; {error}") from None
    if grid.ndim != 1 or grid.size == 0:
        raise InvalidTimesError(f"{name} must be a non-empty one-dimensional grid, got shape {grid.shape}")
    bad = ~np.isfinite(grid) | (grid < 0)
    if bad.any():
        where = int(np.argmax(bad))
        raise InvalidTimesError(f"{name} must be finite and >= 0, got {grid[where]:g} at position {where}")
    return grid


def say_beyond(times: Iterable[float], last: float, by: str | None = None) -> None:
    """Warn of a prediction at times when no training row was under observation any more.

    Pictures, measures and reports that need one say it in their own words.
    """
    beyond = [f"{time:g}" for time in times if time > last]
    if beyond and (by or asked()).startswith("predict"):
        named = ", ".join(beyond[:3]) + (f" and {len(beyond) - 3} later times" if len(beyond) > 3 else "")
        warn(f"no training row was observed after {last:g}; what is predicted for {named} is extrapolated", DataWarning)
