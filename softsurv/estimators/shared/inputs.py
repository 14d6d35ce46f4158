"""What estimators are given: tables and columns in, checked columns and the bins of the exact search out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import _check_sample_weight, validate_data

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.binarize import Binarizer
from softsurv.data.blocks import NumberBlock
from softsurv.data.columns import plain_array, too_large
from softsurv.data.frames import as_frame, refuse_twice
from softsurv.data.outcome_checks import check_size_of_weights
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.exact.prepare import check_weights

NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
"""Kinds of objects that are numbers which a file can hold; a fraction is none."""


@dataclass(frozen=True)
class BinnedRows:
    """Training rows as the exact search takes them.

    Attributes
    ----------
    codes : (N, P) int32
        Bin of each row on each feature.
    n_codes : (P,) int
        Bins of each feature.
    nominal : (P,) bool
        Features of which one level is split from the rest; the others are ordered.
    weight : (N,)
        Case weights > 0.
    sources : tuple of str (P,)
        The raw column of each feature.
    """

    codes: NDArray[np.int32]
    n_codes: NDArray[np.int32]
    nominal: BoolArray
    weight: FloatArray
    sources: tuple[str, ...]

    def __post_init__(self) -> None:
        check_weights(self.weight)

    @property
    def n(self) -> int:
        """N."""
        return len(self.codes)


def checked_frame(estimator: BaseEstimator, X: Any, *, reset: bool = False) -> pd.DataFrame:
    """A table of features (n, P) as a frame, by scikit-learn's rules: names, number of columns, no infinity.

    Frames, and mappings from name to column, may hold categories; missing values are filled or routed as in training.
    """
    if hasattr(type(X), "columns") or (isinstance(X, Mapping) and not issparse(X)):
        frame = as_frame(X, native=False)
        if reset and all(
            type(name) is str for name in frame.columns.tolist()
        ):  # as scikit-learn does, a tenth of a fit faster
            estimator.feature_names_in_ = frame.columns.to_numpy(dtype=object, copy=True)
            estimator.n_features_in_ = frame.shape[1]
        else:
            refuse_twice(frame)
            validate_data(estimator, frame, skip_check_array=True, reset=reset)
        return frame
    if isinstance(X, SurvivalData):
        raise InvalidSurvivalDataError("X must be a table of features, got SurvivalData; pass its X, data.X")
    if _holds_named_values(X):
        return as_frame(X)  # refuses it: scikit-learn would say to reshape
    X = plain_array(X) if _is_special(X) else X
    array = validate_data(estimator, X, dtype=None, ensure_all_finite="allow-nan", reset=reset)
    return as_frame(np.asarray(array))


def _holds_named_values(X: Any) -> bool:
    """Whether values have names, though not as columns: a row or column of a frame, named fields, a list of dicts."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and isinstance(X[0], Mapping)
    return isinstance(X, pd.Series) or getattr(getattr(X, "dtype", None), "names", None) is not None


def _is_special(values: Any) -> bool:
    """Whether scikit-learn would read an array wrongly: it forgets what is masked, and not every tensor has a numpy."""
    return isinstance(values, np.ma.MaskedArray) or type(values).__module__.split(".")[0] == "torch"


def plain(name: str, values: Any) -> Any:
    """A column or table for scikit-learn to check: tensors become arrays, masked values missing.

    Raises
    ------
    InvalidSurvivalDataError
        If rows are of unequal length, or hold several fields.
    """
    if isinstance(values, (pd.Series, pd.DataFrame)) or issparse(values):
        return values
    try:
        array = plain_array(values)
    except ValueError:
        raise InvalidSurvivalDataError(f"{name} must have rows of one length, got rows of unequal length") from None
    if array.dtype.names is not None:
        raise InvalidSurvivalDataError(f"{name} must be one column, got the fields {', '.join(array.dtype.names)}")
    return array if _is_special(values) else values


def as_numbers(name: str, values: Any) -> Any:
    """Numbers for scikit-learn to check, as `plain` gives them; dates and what reads as no number are refused."""
    values = plain(name, values)
    kind = "f" if issparse(values) else np.asarray(values).dtype.kind  # scikit-learn has a sentence on sparse ones
    if kind in "mM":
        raise InvalidSurvivalDataError(f"{name} must be numbers, got dates or durations; count them in a unit first")
    if kind in "OUS":
        try:
            return np.asarray(values, dtype=np.float64)
        except OverflowError:
            raise too_large(name) from None
        except (TypeError, ValueError) as error:
            raise InvalidSurvivalDataError(f"{name} must be numbers; {error}") from None
    return values


def checked_matrix(name: str, values: Any, names: NDArray[Any] | None = None) -> FloatArray:
    """A table (n, K) of finite numbers; its columns are in the order of ``names`` (K,), if they have these names."""
    if names is not None and hasattr(values, "columns"):
        refuse_other_order(f"the columns of {name}", values.columns, names)
    return np.asarray(check_array(as_numbers(name, values), dtype=np.float64, input_name=name))


def refuse_other_order(what: str, given: Iterable[Any], names: NDArray[Any]) -> None:
    """Columns are matched by position: refuse the names of the classes or treatments in another order."""
    found, wanted = [str(one) for one in given], [str(one) for one in names.tolist()]
    if found != wanted and sorted(found) == sorted(wanted):
        raise InvalidSurvivalDataError(f"{what} must be in the order {', '.join(wanted)}, got {', '.join(found)}")


def checked_weight(weight: Any, n: int) -> FloatArray:
    """Case weights (N,), ones where None; the sum must be positive and none negative."""
    if weight is None:
        return np.ones(n)
    weight = as_numbers("sample_weight", weight)
    checked = np.asarray(_check_sample_weight(weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True))
    if not checked.any():
        raise InvalidSurvivalDataError("sample_weight must be > 0 in some row, got 0 in all")
    check_size_of_weights(checked, "sample_weight")
    return checked


def checked_target(y: Any, n: int, name: str = "y") -> FloatArray:
    """Numbers to predict, (N,), finite; ``name`` is that of the argument."""
    if y is None:
        raise InvalidSurvivalDataError("requires y to be passed, but the target y is None")
    y = as_numbers(name, y)
    if np.asarray(y).ndim == 0:
        raise InvalidSurvivalDataError(f"{name} must have one number for each of the {n} rows of X, got {y!r}")
    values = check_array(y, ensure_2d=False, dtype=np.float64, input_name=name)
    if values.ndim > 1 and values.shape[1] != 1:
        raise InvalidSurvivalDataError(f"{name} must have one number for each row, ({n},), got {values.shape}")
    values = column_or_1d(values, warn=True)
    if len(values) != n:
        raise InvalidSurvivalDataError(f"{name} must have one number for each of the {n} rows of X, got {len(values)}")
    return np.asarray(values)


def checked_treatment(treatment: Any, n: int) -> NDArray[Any]:
    """The treatment given to each row, (N,), none missing."""
    if treatment is None:
        raise InvalidParameterError("treatment must say which treatment each row was given, got None")
    given = np.asarray(plain("treatment", treatment))
    if given.shape != (n,):
        raise InvalidSurvivalDataError(f"treatment must have one entry for each row of X, ({n},), got {given.shape}")
    missing = np.flatnonzero(pd.isna(given))
    if missing.size:
        raise InvalidSurvivalDataError(f"treatment must be known, got none at row {missing[0]}; leave out such rows")
    return given


def coded(name: str, labels: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """The different labels (K,) in their order, and the number of each row's (N,).

    Raises
    ------
    InvalidSurvivalDataError
        If they are of kinds that have no order, such as numbers and text, or that no file can hold.
    """
    try:
        names, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        names = None
    if names is None or not _can_be_saved(names):
        kinds = " and ".join(sorted({type(label).__name__ for label in labels}))
        raise InvalidSurvivalDataError(f"{name} must hold numbers or text alone, got {kinds}; make it text") from None
    return names, codes


def _can_be_saved(names: NDArray[Any]) -> bool:
    """Whether names (K,) are numbers or text, which `names_from_state` finds again."""
    if names.dtype.kind != "O":
        return names.dtype.kind not in "SV" and names.dtype != np.longdouble
    return all(isinstance(one, str) for one in names) or all(isinstance(one, NUMBERS) for one in names)


def binned_rows(
    binarizer: Binarizer, table: dict[str, NDArray[Any]], n: int, weight: FloatArray, block: NumberBlock | None = None
) -> BinnedRows:
    """Training rows, as `Binarizer.fit_filled` gives them, as the bins of a fitted binarizer."""
    return BinnedRows(
        binarizer.codes_of(table, n, block),
        binarizer.n_codes,
        binarizer.nominal,
        weight,
        tuple(column.name for column in binarizer.columns_),
    )


def names_for_state(names: NDArray[Any]) -> list[Any]:
    """Names of classes, groups or treatments as a list that JSON holds: dates and durations as counts of their unit."""
    counted: list[Any] = (names.view(np.int64) if names.dtype.kind in "mM" else names).tolist()
    return counted


def names_from_state(names: list[Any], kind: str) -> NDArray[Any]:
    """Names of classes, groups or treatments as they were before `save` made a list of them."""
    return np.array(names, dtype=object if kind == "|O" else kind)
