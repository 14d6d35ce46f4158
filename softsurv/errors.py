"""Every exception and warning class of softsurv, and how a warning finds the line that it is about."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class SoftsurvError(Exception):
    """Base of every error that softsurv raises on purpose."""


class InvalidSurvivalDataError(SoftsurvError, ValueError):
    """The table of subjects is not usable: the message names the column, the row and the remedy."""


class InvalidTimesError(SoftsurvError, ValueError):
    """An evaluation grid or horizon is not usable."""


class InvalidParameterError(SoftsurvError, ValueError):
    """A setting has the wrong type or lies outside its range."""


class NoComparablePairsError(SoftsurvError, ValueError):
    """A ranking measure is undefined: no pair of subjects can be ordered."""


class NumericalError(SoftsurvError, RuntimeError):
    """A computation left the finite numbers; the message says where."""


class ConcurrentFitError(SoftsurvError, RuntimeError):
    """One object is fitted in two threads at once; the message says what to fit instead."""


class ModelFileError(SoftsurvError, ValueError):
    """A saved model is damaged, incomplete, or written by a newer version."""


class SoftsurvWarning(UserWarning):
    """Base of every warning that softsurv gives on purpose."""


class DataWarning(SoftsurvWarning):
    """Something in the data was changed or is unusual; the message says what and how often."""


class LimitWarning(SoftsurvWarning):
    """A limit cannot be kept; the message names what is needed."""


class EvaluationWarning(SoftsurvWarning):
    """A measure was computed on less than was asked; the message says on what."""


INNER = frozenset({"softsurv", "sklearn", "joblib", "contextlib", "functools"})
"""Packages whose lines no user wrote."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line outside of softsurv that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INNER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def said_once(told: str = "\0") -> Iterator[None]:
    """While open, warnings are collected; then each different one is given once, at the user's line.

    Those that begin with ``told`` are left out: what is returned says as much.
    """
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield
    for message, category in dict.fromkeys((str(one.message), one.category) for one in seen):
        if not message.startswith(told):
            warn(message, category)
