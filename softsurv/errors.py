"""Every exception and warning class of softsurv, how a warning finds its line, and who brings a missing package."""

from __future__ import annotations

import difflib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType


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


class NoCompilerError(SoftsurvError, RuntimeError):
    """The compiler of numba is switched off; the message says how to switch it on."""


class NotEnoughMemoryError(SoftsurvError, MemoryError):
    """What was asked for is larger than the memory that is free; the message says by how much, and what to do."""


class ModelFileError(SoftsurvError, ValueError):
    """A saved model is damaged, incomplete, or written by a newer version."""


def need_docstrings() -> None:
    """Check that the models of scikit-survival can be imported: they add to their docstrings as they are.

    Raises
    ------
    SoftsurvError
        If ``python -OO`` leaves docstrings out.
    """
    if sys.flags.optimize > 1:
        raise SoftsurvError(
            "python -OO leaves out the docstrings without which scikit-survival's models cannot be imported; "
            "start Python with -O or without, or unset PYTHONOPTIMIZE"
        )


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """The hint "; did you mean 'cox'?" where a known name is close to the given one, else nothing."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(str(given).lower(), by_lower, n=1)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""


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


NUMBER = re.compile(r"(?<![\w'\"])\d[\d.,]*(?![\w'\"])")
"""A count in a sentence; not the digits of a name."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line outside of softsurv that led here, once for each call that the user wrote there.

    A report asks a tree for many predictions, and a cross-validation of scikit-learn fits on every fold. To the user
    both are one call, so a sentence is given once, whatever its counts.
    """
    call, level = _outermost()
    if call is None or not _said_before(call, message, category):
        warnings.warn(message, category, stacklevel=level)


def asked() -> str:
    """Name of the function that the line outside of softsurv called."""
    call, _ = _outermost()
    return "" if call is None else call.f_code.co_name


def _outermost() -> tuple[FrameType | None, int]:
    """The frame that the line outside of softsurv called, and that line's level for `warnings.warn`."""
    frame, level, call = sys._getframe(2), 2, None
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INNER:
        call, frame, level = frame, frame.f_back, level + 1
    return call, level


def _said_before(call: FrameType, message: str, category: type[Warning]) -> bool:
    """Whether a running call has been told a sentence that nobody ignored.

    The names of a frame's variables may be added to (PEP 667), and end with the call. Python's own memory of what was
    said is of no use: it is empty whenever a fit leaves `warnings.catch_warnings`.
    """
    if _is_ignored(message, category):
        return False
    said: set[tuple[str, type[Warning]]] = call.f_locals.setdefault("said by softsurv", set())
    sentence = (NUMBER.sub("#", message), category)
    before = sentence in said
    said.add(sentence)
    return before


def _is_ignored(message: str, category: type[Warning]) -> bool:
    """Whether the first filter of any module that takes a warning ignores it."""
    for action, text, kind, module, _ in warnings.filters:
        if module is None and issubclass(category, kind) and (text is None or text.match(message)):
            return action == "ignore"
    return False


@contextmanager
def unsaid(begin: str) -> Iterator[None]:
    """Silence softsurv's warnings that begin with a regular expression: the user knows them already."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", begin, SoftsurvWarning)
        yield


@contextmanager
def brought_by(extra: str) -> Iterator[None]:
    """Within the block an import that fails names the extra of softsurv that brings the package."""
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{error}; pip install 'softsurv[{extra}]'", name=error.name) from None
