"""What estimators are given: tables and columns in, checked columns and the bins of the exact search out."""

from __future__ import annotations

from collections.abc import Mapping
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
from softsurv.data.frames import as_frame
from softsurv.data.outcome_checks import check_size_of_weights
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.exact.prepare import check_weights


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
            validate_data(estimator, frame, skip_check_array=True, reset=reset)
        return frame
    X = plain_array(X) if isinstance(X, np.ma.MaskedArray) else X  # scikit-learn forgets what is masked
    array = validate_data(estimator, X, dtype=None, ensure_all_finite="allow-nan", reset=reset)
    return as_frame(np.asarray(array))


def checked_weight(weight: Any, n: int) -> FloatArray:
    """Case weights (N,), ones where None; the sum must be positive and none negative."""
    if weight is None:
        return np.ones(n)
    weight = plain_array(weight) if isinstance(weight, np.ma.MaskedArray) else weight
    try:
        checked = np.asarray(_check_sample_weight(weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True))
    except OverflowError:
        raise too_large("sample_weight") from None
    if not checked.any():
        raise InvalidSurvivalDataError("sample_weight must be > 0 in some row, got 0 in all")
    check_size_of_weights(checked, "sample_weight")
    return checked


def checked_target(y: Any, n: int, name: str = "y") -> FloatArray:
    """Numbers to predict, (N,), finite; ``name`` is that of the argument."""
    if y is None:
        raise InvalidSurvivalDataError("requires y to be passed, but the target y is None")
    y = plain_array(y) if isinstance(y, np.ma.MaskedArray) else y
    if np.asarray(y).dtype.kind in "OUS":
        try:
            y = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidSurvivalDataError(f"{name} must be numbers; {error}") from None
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
    given = np.asarray(treatment)
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
        If they are of kinds that have no order, such as numbers and text.
    """
    try:
        names, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        kinds = " and ".join(sorted({type(label).__name__ for label in labels}))
        raise InvalidSurvivalDataError(f"{name} must hold numbers or text alone, got {kinds}; make it text") from None
    return names, codes


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


def names_from_state(names: list[Any], kind: str) -> NDArray[Any]:
    """Names of classes, groups or treatments as they were before `save` made a list of them."""
    return np.array(names, dtype=object if kind == "|O" else kind)
