"""Feature frames: from any table to a checked pandas frame, and from there to numbers or bytes."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray
from softsurv.data.alignment import text_named
from softsurv.data.blocks import any_missing, are_numbers, column_types, distinct, float_columns, place_names, values_of
from softsurv.data.columns import is_arrow, plain_array, too_large
from softsurv.errors import DataWarning, InvalidSurvivalDataError, warn

if TYPE_CHECKING:
    import pandas as pd

MISSING = [
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "NaN", "None", "n/a", "nan", "null"),
]
"""Cells of a csv file that are missing: those of ``pandas.read_csv``, whichever reader is at work."""

PLAIN_NUMBERS = {float, int, np.float64, np.float32, np.int64, np.int32, type(None)}
"""Types of cells that become doubles as they are; None is missing."""

LONGEST_NAMES = 1 << 20
"""Bytes of the first line of a csv file that are looked at for its encoding."""

MANY_OBJECTS = 100
"""Columns of objects that are looked at together; fewer take no time one by one."""


def as_frame(X: Any, *, native: bool = True) -> pd.DataFrame:
    """A table of features as a pandas frame.

    Takes pandas, polars, pyarrow, numpy, torch, a list of rows, a dict of columns, and csv or parquet paths.
    Columns of a table without names are called x0, x1, ... A pandas frame is returned as it is, in the machine's byte
    order where ``native``: `checked_features` sees to that too.
    """
    import pandas as pd

    if isinstance(X, pd.DataFrame):
        return _native(X) if native else X
    if isinstance(X, (str, Path)):
        return read_table(Path(X))
    if is_arrow(X):
        return _from_arrow(X)
    if hasattr(X, "toarray"):
        raise InvalidSurvivalDataError(f"X must be a dense table, got a sparse {type(X).__name__}; pass X.toarray()")
    try:
        if isinstance(X, dict):
            return pd.DataFrame({name: _column(values) for name, values in X.items()})
        array = plain_array(X)
        if array.ndim == 2:
            return pd.DataFrame(X if isinstance(X, list) else array, columns=place_names(array.shape[1]))
    except ValueError:
        if isinstance(X, dict) and all(pd.api.types.is_scalar(value) for value in X.values()):
            remedy = "pass pandas.DataFrame([X]) for one row"
            raise InvalidSurvivalDataError(f"X must hold a list for each column, got single values; {remedy}") from None
        raise InvalidSurvivalDataError("X must be a table, got rows of unequal length") from None
    except OverflowError:
        raise too_large("X") from None
    raise InvalidSurvivalDataError(
        f"X must be two-dimensional, one row per subject, got shape {array.shape}; {_remedy_for_shape(X, array)}"
    )


def _remedy_for_shape(X: Any, array: NDArray[Any]) -> str:
    """What to pass in the place of values ``X``, an ``array`` that is no matrix."""
    import pandas as pd

    if isinstance(X, pd.Series):
        return "use X.to_frame() for a single feature, X.to_frame().T for a single row"
    if array.dtype.names or (array.size and isinstance(array.flat[0], dict)):
        return "use pandas.DataFrame(X) for rows of named fields"
    return "use X.reshape(-1, 1) for a single feature" if array.ndim == 1 else "pass a frame, or a dict of columns"


def has_names(X: Any) -> bool:
    """Whether the columns of a table that :func:`as_frame` takes have names of their own."""
    return hasattr(type(X), "columns") or isinstance(X, (str, Path, dict))  # a lazy table warns when asked itself


def read_table(path: Path, names: Sequence[str] = ()) -> pd.DataFrame:
    """A csv (comma separated, with a header line) or parquet file as a pandas frame.

    In the columns ``names`` of a csv file, such as an id, whole numbers beside gaps stay what they are.
    """
    import pandas as pd

    suffixes = {s.lower() for s in path.suffixes}
    if not suffixes & {".csv", ".parquet"}:
        raise InvalidSurvivalDataError(f"X must be a .csv or .parquet file, got {str(path)!r}")
    if not path.is_file():
        raise InvalidSurvivalDataError(f"X must be an existing file, got {str(path)!r}; check the path")
    with readable(path, "X", "check the file"):
        unnamed = [] if ".parquet" in suffixes else unnamed_columns(path)
        frame = pd.read_parquet(path) if ".parquet" in suffixes else _read_csv(path, names)
    mark = next((mark for mark in ";\t|" if frame.shape[1] == 1 and mark in str(frame.columns[0])), None)
    if mark is not None:
        raise InvalidSurvivalDataError(
            f"X must be comma separated, got the single column {frame.columns[0]!r} in {str(path)!r}; read it with "
            f"pandas.read_csv({str(path)!r}, sep={mark!r}), with decimal=',' where decimals have commas, and pass the "
            "frame or save it by to_csv('commas.csv', index=False)"
        )
    return without_unnamed(frame, unnamed, path)


def _read_csv(path: Path, names: Sequence[str]) -> pd.DataFrame:
    """A csv file; its first column is never the index."""
    import pandas as pd

    with catch_warnings():
        simplefilter("error", pd.errors.ParserWarning)  # pandas leaves out the cells without a name
        try:
            frame = pd.read_csv(path, low_memory=False, index_col=False)
        except pd.errors.ParserWarning:
            raise InvalidSurvivalDataError(
                f"X must have a name for every column, got more cells than names in {str(path)!r}; "
                "complete its first line"
            ) from None
    rounded = [name for name in names if name in frame and frame[name].dtype == float]
    if rounded:
        known = pd.read_csv(path, usecols=rounded, index_col=False, low_memory=False, dtype_backend="numpy_nullable")
        frame = frame.assign(**{name: known[name].astype(object) for name in rounded if known[name].dtype == "Int64"})
    return frame


@contextmanager
def readable(path: Path, argument: str, remedy: str) -> Iterator[None]:
    """Raise any error of reading a table as one sentence."""
    import pandas as pd
    import pyarrow as pa

    try:
        yield
    except InvalidSurvivalDataError:
        raise
    except (ValueError, OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException, RecursionError) as error:
        if isinstance(error, pd.errors.EmptyDataError):
            raise InvalidSurvivalDataError(
                f"{argument} must be a readable table, got {str(path)!r}, which is empty; write or remove it"
            ) from None
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in reason:
            raise InvalidSurvivalDataError(not_utf8(path, argument)) from None
        raise InvalidSurvivalDataError(
            f"{argument} must be a readable table, got {str(path)!r}: {reason}; {remedy}"
        ) from error


def not_utf8(path: Path, argument: str, likely: str = "latin-1") -> str:
    """The sentence on a csv file in another encoding."""
    return (
        f"{argument} must be encoded as UTF-8, got other bytes in {str(path)!r}; save it as UTF-8, or read it with "
        f"pandas.read_csv(path, encoding={likely!r}) and pass the frame"
    )


def unnamed_columns(path: Path, argument: str = "X") -> list[int]:
    """Places of columns without a name in the first line of a csv file.

    Raises
    ------
    InvalidSurvivalDataError
        If two columns have the same name: readers would rename or mix them.
    """
    import pandas as pd

    if path.suffix.lower() == ".csv":
        with open(path, "rb") as file:
            if b"\0" in file.readline(LONGEST_NAMES):  # UTF-16 of plain letters reads as UTF-8
                raise InvalidSurvivalDataError(not_utf8(path, argument, "utf-16"))
    line = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False)
    names = [] if line.empty else [str(name) for name in line.iloc[0]]
    unique_names([name for name in names if name.strip()], path, argument)
    return [place for place, name in enumerate(names) if not name.strip()]


def unique_names(names: list[str], path: Path, argument: str) -> None:
    """Raise where two columns have the same name."""
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise InvalidSurvivalDataError(
            f"{argument} must have unique column names, got {twice!r} twice in {str(path)!r}; rename one or remove it"
        )


def without_unnamed(frame: pd.DataFrame, unnamed: list[int], path: Path, says: bool = True) -> pd.DataFrame:
    """The table without the columns at these places, with a warning."""
    if unnamed and says:
        words = f"column {unnamed[0] + 1} of {path.name!r} has no name and is left out; give it a name to use it"
        warn(words, DataWarning)
    return frame.drop(columns=[frame.columns[place] for place in unnamed])


def _native(X: pd.DataFrame) -> pd.DataFrame:
    """The frame with every column in the machine's byte order; pandas cannot select rows of others."""
    dtypes = X.dtypes.tolist()
    if any(isinstance(dtype, np.dtype) and not dtype.isnative for dtype in set(dtypes)):
        swapped = [k for k, dtype in enumerate(dtypes) if isinstance(dtype, np.dtype) and not dtype.isnative]
        X = X.copy()
        for place in swapped:
            X.isetitem(place, plain_array(X.iloc[:, place].to_numpy()))
    return X


def _column(values: Any) -> Any:
    """A column of a mapping; one value for all rows stays as it is."""
    import pandas as pd

    plain = isinstance(values, np.ndarray) or type(values).__module__.split(".")[0] == "torch"
    return plain_array(values) if plain and not isinstance(values, pd.Series) else values


def _from_arrow(X: Any) -> pd.DataFrame:
    """A table of pyarrow or polars, lazy or not, as a pandas frame."""
    X = X.collect() if hasattr(X, "collect") else X
    return X.to_frame().to_pandas() if hasattr(X, "to_frame") else X.to_pandas()


def checked_features(X: pd.DataFrame) -> pd.DataFrame:
    """A copy of the frame with unique text column names, at least one row and no infinity."""
    return checked_table(X)[0]


def checked_table(X: pd.DataFrame) -> tuple[pd.DataFrame, list[Any] | None]:
    """As :func:`checked_features`, and the types of its columns where they are those of the frame given."""
    import pandas as pd

    if not isinstance(X, pd.DataFrame):
        raise InvalidSurvivalDataError(
            f"X must be a pandas DataFrame, got {type(X).__name__}; survival_data() reads other forms"
        )
    types: list[Any] | None = column_types(X)
    dtypes = distinct(types or ())
    if any(isinstance(dtype, np.dtype) and not dtype.isnative for dtype in dtypes):
        X, types = _native(X), None
    kinds = {dtype.kind if isinstance(dtype, np.dtype) else "" for dtype in dtypes}
    named = text_named(X)
    X = X.copy() if named is X else named
    refuse_twice(X)
    if len(X) == 0:
        raise InvalidSurvivalDataError("X must have at least one row, got none")
    if kinds <= set("biu"):
        return X, types
    if "O" in kinds:
        X, types = objects_as_numbers(X), None
    names = X.columns.tolist() if kinds == {"f"} else float_columns(X, column_types(X) if types is None else types)
    if not names:
        return X, types
    # a table of floats alone is looked at as it is; of another one the floats are copied
    how = {"na_value": np.nan} if any(map(_is_nullable_float, dtypes)) else {}  # ten times as long, so only where asked
    floats = X.to_numpy().T if kinds == {"f"} else values_of(X, names, **how)
    if (infinite := np.isinf(floats)).any():
        row, column = np.argwhere(infinite.T)[0]
        raise InvalidSurvivalDataError(
            f"X must be finite or missing, got an infinite value in column {names[column]!r} "
            f"at row {row}; replace it by a number or by NaN"
        )
    return X, types


def _is_nullable_float(dtype: Any) -> bool:
    """Whether a type is one of pandas' own for floats, such as Float64 or double[pyarrow]."""
    return not isinstance(dtype, np.dtype) and dtype.kind == "f"


def refuse_twice(X: pd.DataFrame, argument: str = "X") -> None:
    """Raise where two columns have the same name."""
    if not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()][0]
        raise InvalidSurvivalDataError(f"{argument} must have unique column names, got {twice!r} twice; rename one")


def objects_as_numbers(X: pd.DataFrame) -> pd.DataFrame:
    """The frame with its objects as numbers where all are plain ones, as in a table that was transposed.

    Column by column (`is_number`) tens of thousands of columns take a minute.
    """
    import pandas as pd

    kinds = [isinstance(dtype, np.dtype) and dtype.kind == "O" for dtype in X.dtypes.tolist()]
    objects = [name for name, is_object in zip(X.columns.tolist(), kinds, strict=True) if is_object]
    if len(objects) < MANY_OBJECTS:
        return X
    cells = X[objects].to_numpy()
    if not set(map(type, cells.ravel().tolist())) <= PLAIN_NUMBERS:
        return X
    try:
        values = cells.astype(np.float64)
    except OverflowError:  # a whole number beyond all doubles: `is_number` says where
        return X
    numbers = pd.DataFrame(values, index=X.index, columns=objects)
    return numbers if len(objects) == X.shape[1] else pd.concat([X.drop(columns=objects), numbers], axis=1)[X.columns]


def numeric_matrix(X: pd.DataFrame) -> FloatArray:
    """Features (N, P) as float64, views where the frame holds them so, refusing text, categories and missing values."""
    types, text = column_types(X), X.columns[:0]
    if not are_numbers(types):
        text = X.columns.difference(X.select_dtypes(["number", "bool"]).columns, sort=False)
    if len(text):
        raise InvalidSurvivalDataError(
            f"X must be numeric to become a tensor, got {X[text[0]].dtype} in column {text[0]!r}; "
            "encode it first with softsurv.data.preprocess.Preprocessor"
        )
    floats = all(dtype == np.float64 for dtype in distinct(types))
    matrix = X.to_numpy() if floats else X.to_numpy(dtype=np.float64, na_value=np.nan)
    if any_missing(matrix):
        missing = np.isnan(matrix)
        row, column = np.argwhere(missing)[0]
        raise InvalidSurvivalDataError(
            f"X must be complete to become a tensor, got a missing value in column {X.columns[column]!r} "
            f"at row {row} ({int(missing.sum())} in all); impute with softsurv.data.preprocess.Preprocessor"
        )
    return matrix if matrix.flags.writeable else matrix.copy()  # pandas 3 guards the frame's own numbers


def content_bytes(column: pd.Series) -> bytes:
    """Bytes that depend on a column's values only: numbers as little-endian float64, else text."""
    if column.dtype.kind in "biuf":
        numbers = column.to_numpy(dtype="<f8", na_value=np.nan)
        return np.where(np.isnan(numbers), np.nan, numbers).tobytes()  # one bit pattern for every NaN
    cells = zip(column.astype(object), column.isna(), strict=True)
    return "\x1f".join("\x00" if missing else str(v) for v, missing in cells).encode(errors="surrogatepass")


def checksum(frame: pd.DataFrame) -> int:
    """A number that differs where a cell or a name does: to notice a table that changes, not to prove who wrote it."""
    import pandas as pd

    total = 0
    for name in frame.columns:
        column = frame[name]
        plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf"
        content = column.to_numpy() if plain else pd.util.hash_pandas_object(column, index=False).to_numpy()
        total = zlib.crc32(
            np.ascontiguousarray(content).data, zlib.crc32(str(name).encode(errors="surrogatepass"), total)
        )
    return total
