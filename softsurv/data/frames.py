"""Feature frames: from any table to a checked pandas frame, and from there to numbers or bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softsurv.data.columns import is_polars
from softsurv.errors import InvalidSurvivalDataError

if TYPE_CHECKING:
    import pandas as pd


def as_frame(X: Any) -> pd.DataFrame:
    """A table of features as a pandas frame.

    Takes pandas, polars, numpy, torch, a list of rows, a dict of columns, and csv or parquet paths.
    Columns of a table without names are called x0, x1, ... A pandas frame is returned as it is.
    """
    import pandas as pd

    if isinstance(X, pd.DataFrame):
        return X
    if isinstance(X, (str, Path)):
        return read_table(Path(X))
    if is_polars(X):
        return _from_polars(X)
    if isinstance(X, dict):
        return pd.DataFrame(X)
    if type(X).__module__.split(".")[0] == "torch":
        X = X.detach().cpu().numpy()
    try:
        array = np.asarray(X)
    except ValueError:
        raise InvalidSurvivalDataError("X must be a table, got rows of unequal length") from None
    if array.ndim != 2:
        raise InvalidSurvivalDataError(
            f"X must be two-dimensional, one row per subject, got shape {array.shape}; "
            "use X.reshape(-1, 1) for a single feature"
        )
    return pd.DataFrame(X if isinstance(X, list) else array, columns=[f"x{j}" for j in range(array.shape[1])])


def read_table(path: Path) -> pd.DataFrame:
    """A csv (comma separated, with a header line) or parquet file as a pandas frame."""
    import pandas as pd

    suffixes = {s.lower() for s in path.suffixes}
    if not suffixes & {".csv", ".parquet"}:
        raise InvalidSurvivalDataError(f"X must be a .csv or .parquet file, got {str(path)!r}")
    if not path.is_file():
        raise InvalidSurvivalDataError(f"X must be an existing file, got {str(path)!r}; check the path")
    try:
        frame = pd.read_parquet(path) if ".parquet" in suffixes else pd.read_csv(path)
    except (ValueError, OSError) as error:  # parser, encoding and arrow errors are all ValueErrors
        reason = str(error).strip().splitlines()[0]
        raise InvalidSurvivalDataError(f"X must be a readable table, got {str(path)!r}: {reason}") from error
    if frame.shape[1] == 1 and any(mark in str(frame.columns[0]) for mark in ";\t|"):
        raise InvalidSurvivalDataError(
            f"X must be comma separated, got the single column {frame.columns[0]!r} in {str(path)!r}; "
            "read it with pandas.read_csv(path, sep=...) and pass the frame"
        )
    return frame


def _from_polars(X: Any) -> pd.DataFrame:
    """A polars frame, lazy or not, as a pandas frame."""
    X = X.collect() if hasattr(X, "collect") else X
    return X.to_frame().to_pandas() if hasattr(X, "to_frame") else X.to_pandas()


def checked_features(X: pd.DataFrame) -> pd.DataFrame:
    """A copy of the frame with unique text column names, at least one row and no infinity."""
    import pandas as pd

    if not isinstance(X, pd.DataFrame):
        raise InvalidSurvivalDataError(
            f"X must be a pandas DataFrame, got {type(X).__name__}; survival_data() reads other forms"
        )
    names = X.columns.tolist()
    X = X.copy() if all(type(name) is str for name in names) else X.set_axis(list(map(str, names)), axis="columns")
    if not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()][0]
        raise InvalidSurvivalDataError(f"X must have unique column names, got {twice!r} twice; rename one")
    if len(X) == 0:
        raise InvalidSurvivalDataError("X must have at least one row, got none")
    floats = X.select_dtypes("float")
    infinite = np.isinf(floats.to_numpy(dtype=np.float64, na_value=np.nan))
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise InvalidSurvivalDataError(
            f"X must be finite or missing, got an infinite value in column {floats.columns[column]!r} "
            f"at row {row}; replace it by a number or by NaN"
        )
    return X


def numeric_matrix(X: pd.DataFrame) -> NDArray[np.float64]:
    """Features (N, P) as float64, refusing text, categories and missing values."""
    text = X.columns.difference(X.select_dtypes(["number", "bool"]).columns, sort=False)
    if len(text):
        raise InvalidSurvivalDataError(
            f"X must be numeric to become a tensor, got {X[text[0]].dtype} in column {text[0]!r}; "
            "encode it first with softsurv.data.preprocess.Preprocessor"
        )
    matrix = X.to_numpy(dtype=np.float64, na_value=np.nan)
    missing = np.isnan(matrix)
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise InvalidSurvivalDataError(
            f"X must be complete to become a tensor, got a missing value in column {X.columns[column]!r} "
            f"at row {row} ({int(missing.sum())} in all); impute with softsurv.data.preprocess.Preprocessor"
        )
    return matrix


def content_bytes(column: pd.Series) -> bytes:
    """Bytes that depend on a column's values only: numbers as little-endian float64, else text."""
    if column.dtype.kind in "biuf":
        numbers = column.to_numpy(dtype="<f8", na_value=np.nan)
        return np.where(np.isnan(numbers), np.nan, numbers).tobytes()  # one bit pattern for every NaN
    values = column.astype(object)
    return "\x1f".join("\x00" if missing else str(v) for v, missing in zip(values, column.isna(), strict=True)).encode()
