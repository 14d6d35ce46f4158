"""One column in, one checked numpy array out: times, event indicators, weights, groups.

Rows are counted from 0 in every message.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.errors import InvalidSurvivalDataError

if TYPE_CHECKING:
    import pandas as pd

EVENT_WORDS = {"yes", "y", "true", "event", "observed", "dead", "died", "death", "deceased", "failed", "failure"}
EVENT_WORDS |= {"churned", "relapse", "relapsed"}
"""What is usually written where an event was observed."""

SINCE, IN_UNITS = "subtract the date of each row's time 0, and ", "divide by a unit, such as pd.Timedelta(days=1)"
"""How dates, and lengths of time, become numbers."""


def series(values: Any, argument: str) -> pd.Series:
    """Any one-dimensional column (list, numpy, torch, pandas, polars, pyarrow) as a pandas Series."""
    import pandas as pd

    if isinstance(values, pd.Series):
        return values
    if is_arrow(values):
        return values.to_pandas()
    if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):
        return pd.Series(values)  # an array would forget the order of the categories
    if isinstance(values, str) or not np.iterable(values):
        raise InvalidSurvivalDataError(f"{argument} must be one value per row, got {values!r}")
    try:
        array = plain_array(values)
    except ValueError:
        raise InvalidSurvivalDataError(f"{argument} must be one value per row, got rows of unequal length") from None
    if array.ndim != 1:
        raise InvalidSurvivalDataError(
            f"{argument} must be one-dimensional, got shape {array.shape}; pass one column, such as a[:, 0]"
        )
    if array.dtype.names is not None:
        raise InvalidSurvivalDataError(f"{argument} must be one column, got the fields {', '.join(array.dtype.names)}")
    try:
        return pd.Series(array)
    except OverflowError:
        raise too_large(argument) from None


def too_large(argument: str) -> InvalidSurvivalDataError:
    """The error for a whole number beyond all doubles."""
    return InvalidSurvivalDataError(
        f"{argument} must hold numbers up to 1.8e308, got a larger whole number; rescale it"
    )


def plain_array(values: Any) -> NDArray[Any]:
    """An array of numpy in the machine's byte order; masked values become missing, bfloat16 becomes float64.

    Raises
    ------
    ValueError
        If rows are of unequal length.
    """
    if type(values).__module__.split(".")[0] == "torch":
        values = values.detach().cpu()
        values = (values.double() if values.is_floating_point() else values).numpy()
    if isinstance(values, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(values)
        values = np.asarray(values.data)
        if masked.any():
            number = values.dtype.kind in "iuf"
            values = values.astype(np.float64 if number else object)
            values[masked] = np.nan if number else None
    array = np.asarray(values)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def is_plain(values: Any, kinds: str) -> bool:
    """Whether a column is an array of numpy that can be taken as it is."""
    return type(values) is np.ndarray and values.ndim == 1 and values.dtype.kind in kinds and values.dtype.isnative


def is_arrow(values: object) -> bool:
    """Whether a value is a table or column of polars or pyarrow, without importing them."""
    return type(values).__module__.split(".")[0] in ("polars", "pyarrow")


def float_column(values: Any, argument: str) -> FloatArray:
    """A numeric column as float64, missing values as NaN; text, bool and dates are refused."""
    if is_plain(values, "iuf"):
        return np.array(values, dtype=np.float64)
    import pandas as pd

    column = series(values, argument)
    dtype = column.dtype
    if pd.api.types.is_datetime64_any_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        since = "" if dtype.kind == "m" else SINCE
        raise InvalidSurvivalDataError(f"{argument} must be numbers, got {dtype}; {since}{IN_UNITS}")
    if pd.api.types.is_bool_dtype(dtype):
        raise InvalidSurvivalDataError(
            f"{argument} must be numbers, got true/false values; is {argument} swapped with event?"
        )
    if pd.api.types.is_complex_dtype(dtype):
        raise InvalidSurvivalDataError(f"{argument} must be real numbers, got {dtype}; take the real part")
    if pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(
        dtype
    ):  # text is of its own type in pandas 3
        column = column.astype(object)
        _refuse_non_numbers(column, argument)
        try:
            column = column.astype(float)
        except OverflowError:
            raise too_large(argument) from None
    try:
        return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        raise InvalidSurvivalDataError(f"{argument} must be numbers, got dtype {column.dtype}") from None


def _refuse_non_numbers(column: pd.Series, argument: str) -> None:
    """Name the cell of an object column that is no number; text that reads as one is named where there is no other."""
    kinds = (int, float, np.number, Decimal, Fraction)
    wrong = [
        (row, value)
        for row, value in enumerate(column)
        if value is not None and (not isinstance(value, kinds) or isinstance(value, bool))
    ]
    if wrong:
        row, value = next((one for one in wrong if not _reads_as_number(one[1])), wrong[0])
        remedy = "convert the column to numbers first"
        if isinstance(value, date) and value == value:  # a missing date is one, too
            remedy = f"take pd.to_datetime of the column, {SINCE}{IN_UNITS}"
        raise InvalidSurvivalDataError(f"{argument} must be numbers, got {value!r} at row {row}; {remedy}")


def _reads_as_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def event_column(values: Any) -> BoolArray:
    """An event indicator (bool or exactly 0/1) as a bool array, True = event observed."""
    if is_plain(values, "b"):
        return np.array(values)
    column = series(values, "event")
    if column.dtype == bool:
        return np.array(column.to_numpy())
    missing = column.isna().to_numpy()
    require(~missing, values=column, argument="event", rule="known", remedy="drop the row or fill it in")
    found = column.unique()
    if not is_binary(column):
        shown = ", ".join(repr(_plain(v)) for v in found[:4]) + (", ..." if len(found) > 4 else "")
        wrong = f"event must be bool or 0/1 (1 = event observed), got {shown}"
        if any(isinstance(v, float | np.floating) and np.isfinite(v) and v % 1 for v in found):
            raise InvalidSurvivalDataError(f"{wrong}; these look like times: a pair is (event, time), in this order")
        likely = likely_event(column)
        code = _plain(found[0] if likely is None else likely)
        raise InvalidSurvivalDataError(
            f"{wrong}; pass a comparison, such as event == {code!r} if {code!r} marks an observed event, "
            "or cause= where the codes are competing causes"
        )
    return np.array(column.to_numpy(dtype=bool))


def likely_event(column: pd.Series) -> Any:
    """The value that seems to mark an event, for the example in a message: users copy such examples. None: none."""
    import pandas as pd

    found = column.dropna().unique()
    named = [value for value in found if str(value).strip().lower() in EVENT_WORDS]
    if named:
        return named[0]
    numbers = pd.to_numeric(pd.Series(found), errors="coerce")
    return found[int(numbers.argmax())] if numbers.notna().all() else None


def is_binary(column: pd.Series) -> bool:
    """Whether a column holds only bools or numbers equal to 0 or 1, none missing."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufb":
        cells = column.to_numpy()
        return bool(((cells == 0) | (cells == 1)).all())
    values = column.unique()
    numbers = all(isinstance(v, (bool, int, float, np.bool_, np.number)) for v in values)
    return numbers and all(v in (0, 1) for v in values)


def _plain(value: Any) -> Any:
    """A numpy scalar as the Python value, for messages."""
    return value.item() if isinstance(value, np.generic) else value


def group_column(values: Any, names: tuple[str, ...] = (), argument: str = "group") -> tuple[IntArray, tuple[str, ...]]:
    """Labels of groups or subjects as codes (N,) and their names, in sorted or categorical order; none missing.

    With ``names`` given, the values are codes into them already.
    """
    import pandas as pd

    column = series(values, argument)
    if names:
        known = column.isin(range(len(names))).to_numpy()
        require(known, column, argument, f"a code in 0..{len(names) - 1}", "fix the code or leave out the names")
        return np.array(column.to_numpy(dtype=np.int64)), tuple(names)
    require(~column.isna().to_numpy(), column, argument, "known", f"drop the row or name a {argument} 'unknown'")
    if column.dtype.kind in "iub":  # few values in many rows
        code, values = pd.factorize(column.to_numpy())
        column = pd.Series(np.array([str(value) for value in values.tolist()], dtype=object)[code])
    elif not isinstance(column.dtype, pd.CategoricalDtype) and pd.api.types.infer_dtype(column) != "string":
        column = column.map(lambda value: str(_plain(value)))
    coded = column.astype("category").cat.remove_unused_categories()
    codes: IntArray = coded.cat.codes.to_numpy().astype(np.int64)
    return codes, tuple(str(name) for name in coded.cat.categories)


def check_listed(argument: str, values: Any) -> None:
    """Refuse one name or value where a list is needed: the letters of a text would be taken one by one."""
    if isinstance(values, str) or not np.iterable(values):
        remedy = "write []" if values is None else f"write [{values!r}]"
        raise InvalidSurvivalDataError(f"{argument} must be a list, got {values!r}; {remedy}")


def require(ok: BoolArray, values: ArrayLike, argument: str, rule: str, remedy: str) -> None:
    """Raise one sentence naming the first row where ``ok`` is False, and how many there are."""
    if ok.all():
        return
    row, bad = int(np.argmin(ok)), int((~ok).sum())
    value = _plain(np.asarray(values, dtype=object)[row])
    shown = f"{value:g}" if isinstance(value, float) else repr(value)
    others = f" and {bad - 1} more" if bad > 1 else ""
    raise InvalidSurvivalDataError(f"{argument} must be {rule}, got {shown} at row {row}{others}; {remedy}")
