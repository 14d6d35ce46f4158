"""Event histories: which cause an event had, and which rows belong to one subject."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.columns import require, series
from softsurv.errors import DataWarning, InvalidSurvivalDataError, warn

if TYPE_CHECKING:
    import pandas as pd


ROUNDING = 1e-9
"""Rows of a subject meet where the times differ by no more than this share: sums of rounded numbers do."""

MEANS_CENSORED = re.compile(r"\s*(cens\w*|no[ _-]?events?|event[ _-]?free|none|alive)\s*", re.IGNORECASE)
"""Labels that hardly name a cause: R's first level stands for censored rows, whatever its name."""

NUMBERS = ("integer", "floating", "mixed-integer-float")
"""What pandas calls the cells of a column of objects that are numbers or missing."""

BEYOND_CODES = 2.0**53
"""Larger numbers are no codes: not every whole number is a float there."""

NAMED_ROW = re.compile(r" at row (\d+)(?! of subject)\b")
"""A row in the sentence of an error, where its subject is not named already."""

NAMED_COLUMN = re.compile(r"(^|(?:below|above|equal to|; is|; use|while) )(time|entry|subject|weight)\b(?! origin)")
"""A column in the sentence of an error, by the name of its field in `SurvivalData`."""


@contextmanager
def naming_as_given(called: Mapping[str, str]) -> Iterator[None]:
    """Within the block errors call a column as the user's argument: ``called`` maps time to stop, and so on."""
    try:
        yield
    except InvalidSurvivalDataError as error:
        named = NAMED_COLUMN.sub(lambda found: found[1] + called.get(found[2], found[2]), str(error))
        if named == str(error):
            raise
        raise InvalidSurvivalDataError(named) from None


@contextmanager
def naming_subjects(subject: Any) -> Iterator[None]:
    """Within the block an error that names a row names its subject too, where rows have subjects (N,)."""
    try:
        yield
    except InvalidSurvivalDataError as error:
        sentence = str(error)
        found = None if subject is None or " of subject " in sentence else NAMED_ROW.search(sentence)
        if found is None:
            raise
        who = series(subject, "subject").iloc[int(found[1])]
        if who is None or who != who:  # the error is that nobody knows the subject
            raise
        named = f"{sentence[: found.end()]} of subject {str(who)!r}{sentence[found.end() :]}"
        raise InvalidSurvivalDataError(named) from None


def cause_column(values: Any, names: Sequence[str] = ()) -> tuple[IntArray, tuple[str, ...]]:
    """Causes as codes (N,), 0 for censored rows, and the names of the codes 1..K.

    Numbers are codes; they must be whole and start at 1 without holes, unless ``names`` says which there are. Labels
    are named in sorted or categorical order; 0, False and missing values are censored rows.

    Raises
    ------
    InvalidSurvivalDataError
        If a value is no code, or a label means that nothing happened and ``names`` does not name it.
    """
    import pandas as pd

    names, column = _distinct_names(names), series(values, "cause")
    if column.dtype == object and pd.api.types.infer_dtype(column) in NUMBERS:
        column = column.where(column.notna(), np.nan).astype(float)  # pandas.NA is no float
    if pd.api.types.is_numeric_dtype(column.dtype):
        return _codes(column.to_numpy(dtype=float, na_value=0.0), names)
    censored = (column.isna() | column.isin([0, False, "0", ""])).to_numpy()
    labels = column[~censored]
    ordered = isinstance(column.dtype, pd.CategoricalDtype)
    kinds = labels.astype(str).astype("category") if not ordered else labels.cat.remove_unused_categories()
    found = tuple(str(label) for label in kinds.cat.categories)
    if names and not set(found) <= set(names):
        strange = next(label for label in found if label not in names)
        row = int(np.flatnonzero(~censored)[np.argmax(labels.astype(str).to_numpy() == strange)])
        raise InvalidSurvivalDataError(
            f"cause must be one of {list(names)} or 0 for censored, got {strange!r} at row {row}"
        )
    if not names and (idle := next(filter(MEANS_CENSORED.fullmatch, found), None)) is not None:
        raise InvalidSurvivalDataError(
            f"cause must be 0, '' or missing in censored rows, got {idle!r}; replace this label by '', "
            f"or pass cause_names={list(found)} if it is a cause"
        )
    order = names or found
    codes = np.zeros(len(column), dtype=np.int64)
    codes[~censored] = np.array([order.index(name) for name in found], dtype=np.int64)[kinds.cat.codes] + 1
    return codes, order


def _distinct_names(names: Any) -> tuple[str, ...]:
    """Names of causes as text, each of one cause: a prediction is asked for by them."""
    if isinstance(names, str) or not np.iterable(names):
        raise InvalidSurvivalDataError(f"cause_names must be a list of names, one for each code, got {names!r}")
    known = tuple(str(name) for name in names)
    if twice := [name for name in known if known.count(name) > 1]:
        raise InvalidSurvivalDataError(f"cause_names must differ, got {twice[0]!r} twice; name every cause once")
    return known


def _codes(values: FloatArray, names: tuple[str, ...]) -> tuple[IntArray, tuple[str, ...]]:
    whole = (values >= 0) & (values < BEYOND_CODES) & (values == np.floor(values))
    require(whole, values, "cause", "a whole number, 0 for censored", "number the causes 1, 2, ... or pass their names")
    codes = values.astype(np.int64)
    if names:
        require(codes <= len(names), codes, "cause", f"at most {len(names)}, the number of names", "name every cause")
        return codes, tuple(names)
    found = np.unique(codes[codes > 0])
    counted = np.arange(1, len(found) + 1)
    if (holes := found != counted).any():
        raise InvalidSurvivalDataError(
            f"cause must count 1..K without holes, got up to {found[-1]} but never {counted[holes][0]}; "
            "renumber the causes, or pass cause_names with one name for each"
        )
    return codes, tuple(str(code) for code in counted)


def cause_code(cause: int | str, names: tuple[str, ...]) -> int:
    """The code 1..K of a cause given by its code or its name."""
    if not names:
        raise InvalidSurvivalDataError(f"cause must be left out where there is one kind of event, got {cause!r}")
    if isinstance(cause, str) and cause in names:
        return names.index(cause) + 1
    if isinstance(cause, (int, np.integer)) and not isinstance(cause, bool) and 1 <= cause <= len(names):
        return int(cause)
    raise InvalidSurvivalDataError(
        f"cause must be a code from 1 to {len(names)} or one of the names {list(names)}, got {cause!r}"
    )


def check_causes(columns: dict[str, Any]) -> None:
    """An event is a cause above 0; events within an interval have no cause that the likelihood could use."""
    cause, event, upper = columns["cause"], columns["event"], columns["upper"]
    if cause is None:
        return
    require(event == (cause > 0), cause, "cause", "0 exactly where event is False", "leave out event; cause holds it")
    if upper is not None:
        exact = event | np.isinf(upper)
        require(exact, upper, "upper", "inf where causes are given", "causes of interval-censored events are not known")


def check_histories(columns: dict[str, Any], recurrent: bool) -> None:
    """Rows of a subject follow one another, do not overlap, and end with the event unless events recur.

    An event that is only known to lie in an interval ends the history in any case.

    Where a row begins a rounding error away from the end of the one before, it begins there.

    Raises
    ------
    InvalidSurvivalDataError
        With the subject and the row.

    Warns
    -----
    DataWarning
        Where time passes between two rows of a subject: it is not at risk there.
    """
    if not isinstance(recurrent, bool | np.bool_):
        raise InvalidSurvivalDataError(f"recurrent must be True or False, got {recurrent!r}")
    subject = columns["subject"]
    if subject is None:
        return
    stop, event, upper = columns["time"], columns["event"], columns["upper"]
    start = np.zeros(len(stop)) if columns["entry"] is None else columns["entry"]
    order = np.lexsort((stop, start, subject))
    row, later = order[:-1], order[1:]
    follows = subject[row] == subject[later]
    names = columns["subject_names"]
    apart = np.abs(start[later] - stop[row])
    if (near := follows & (apart > 0) & (apart <= ROUNDING * stop[row])).any():
        start = start.copy()
        start[later[near]] = stop[row[near]]
        columns["entry"] = start

    def first(bad: BoolArray) -> tuple[str, int, int] | None:
        at = np.flatnonzero(follows & bad)
        return (names[subject[row[at[0]]]], int(row[at[0]]), int(later[at[0]])) if at.size else None

    if found := first(start[later] < stop[row]):
        who, a, b = found
        raise InvalidSurvivalDataError(
            f"rows of a subject must not overlap, got ({start[a]:g}, {stop[a]:g}] at row {a} and "
            f"({start[b]:g}, {stop[b]:g}] at row {b} of subject {who!r}; "
            "let each row start where the one before it stops, or give no subjects where these rows are no history, "
            "such as those of two eyes"
        )
    if not recurrent and (found := first(event[row])):
        who, a, b = found
        raise InvalidSurvivalDataError(
            f"an event must end the history of its subject, got an event at row {a} of subject {who!r} and more time "
            f"at row {b}; set recurrent=True where events may happen again"
        )
    if upper is not None and (found := first((~event & np.isfinite(upper))[row])):
        who, a, b = found
        raise InvalidSurvivalDataError(
            f"an event in an interval must end the history of its subject, got one up to {upper[a]:g} at row {a} of "
            f"subject {who!r} and more time at row {b}; give upper in the subject's last row alone"
        )
    if found := first(start[later] > stop[row]):
        who, a, b = found
        gaps = int((follows & (start[later] > stop[row])).sum())
        warn(
            f"subject {who!r} is not under observation from {stop[a]:g} (row {a}) to {start[b]:g} (row {b}); "
            f"there are {gaps} such gaps, in which nobody counts as at risk",
            DataWarning,
        )


def stretches(columns: dict[str, NDArray[Any] | None], X: pd.DataFrame) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First and last row of every stretch of a subject without event, gap or change of its columns, both (R,).

    ``columns`` holds subject, time, event, entry, weight and group. Stretches are in the order of their first rows.
    """
    subject, stop, event = columns["subject"], columns["time"], columns["event"]
    assert subject is not None
    assert stop is not None
    assert event is not None
    start = np.zeros(len(stop)) if columns["entry"] is None else columns["entry"]
    order = np.lexsort((stop, start, subject))
    row, later = order[:-1], order[1:]
    goes_on = (subject[row] == subject[later]) & ~event[row] & (stop[row] == start[later])
    for values in (columns["weight"], columns["group"]):
        if values is not None:
            goes_on &= values[row] == values[later]
    for name in X.columns:
        code = X[name].factorize()[0]
        goes_on &= code[row] == code[later]
    begins = np.concatenate([[True], ~goes_on])
    ends = np.concatenate([~goes_on, [True]])
    first, last = order[begins], order[ends]
    sequence = np.argsort(first)
    return first[sequence], last[sequence]


def warn_of_unnamed_subjects(features: pd.DataFrame, start: FloatArray, stop: FloatArray) -> None:
    """Say which feature looks like the subjects of rows (start, stop] that were read without ``id``.

    Most rows that start late continue the row above. The column has one run of rows for each of its values, and a new
    value wherever time goes back. Floats are no subjects.
    """
    follows, back = start[1:] == stop[:-1], start[1:] < stop[:-1]
    if not follows.any() or 2 * follows.sum() < (start > 0).sum():
        return
    for name, column in features.items():
        if column.dtype.kind == "f":
            continue
        value = column.astype("category").cat.codes.to_numpy()
        new = value[1:] != value[:-1]
        if new.any() and not (new & follows).any() and new[back].all() and new.sum() + 1 == len(np.unique(value)):
            warn(
                f"rows of one {str(name)!r} follow one another in time, and it counts as a feature; "
                f"pass it as id where it names the subjects, or drop it",
                DataWarning,
            )
            return
