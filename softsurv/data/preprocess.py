"""Impute, one-hot encode and scale: learned on the training part, applied anywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from softsurv.data.alignment import align_columns
from softsurv.data.blocks import Labels, NumberBlock
from softsurv.data.encoding import (
    NumbersLearned,
    OutputColumn,
    Source,
    encoded_column,
    is_number,
    labels,
    numbers,
    observed_levels,
    raw_values,
    write_coded,
    write_scaled,
)
from softsurv.data.frames import as_frame, checked_features, has_names
from softsurv.data.in_time import read_in_time
from softsurv.data.kinds import is_identifier
from softsurv.data.rules import indicator_name
from softsurv.data.unlike_training import warn_of_first_missing, warn_of_unseen
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError, ModelFileError

FORMAT = 1  # version of the state that to_dict writes


@dataclass(eq=False, repr=False)
class Preprocessor(TransformerMixin, BaseEstimator):
    """Turn raw features into complete numbers in [0, 1].

    Numbers are imputed by the mean and scaled by the training range; later values outside that range are not
    clipped. Categories (text, pandas categories) are imputed by the most frequent level, the first in alphabetical
    order in a tie, and one-hot encoded in alphabetical order. Means and levels count rows, without weights. Levels
    are matched by their text, so that 1, 1.0 and "1" are one level. The order of a categorical type is kept for
    display and changes nothing here. Booleans are numbers, and so is text that reads as numbers, unless these are
    few small whole ones. A column that is constant, entirely missing or a list of names in training is left out and
    recorded in ``dropped_``. A level not seen in training is encoded as zero in every column of its source, with a
    `DataWarning`. Another one tells of columns with missing values that had none in training.

    Parameters
    ----------
    impute : bool
        Fill in missing values; otherwise they stay missing in every column of their source.
    encode : {"onehot", None}
        None refuses categories with a sentence.
    scale : bool
        Scale numbers to [0, 1]; otherwise they keep their units.
    drop_first : {"binary"}, True or False
        Leave out the alphabetically first level of two-level categories only (the default), of all, or of none.
    add_indicator : bool
        Add a 0/1 column for every source with missing values in training.

    Attributes
    ----------
    columns_ : list of OutputColumn
        One for each column of the result.
    dropped_ : dict of str to str
        Raw columns left out, with the reason.
    incomplete_ : list of str
        Raw columns kept that had missing values in training.
    feature_names_in_ : ndarray of str
        Names of the raw columns; only where fitted on a table with names.
    n_features_in_ : int

    Examples
    --------
    >>> raw = pd.DataFrame({"age": [40, None, 60], "sex": ["F", "M", "M"]})
    >>> Preprocessor().fit_transform(raw)
       age  sex=M
    0  0.0    0.0
    1  0.5    1.0
    2  1.0    1.0
    """

    impute: bool = True
    encode: Literal["onehot"] | None = "onehot"
    scale: bool = True
    drop_first: Literal["binary"] | bool = "binary"
    add_indicator: bool = False

    def fit(self, X: Any, y: Any = None) -> Preprocessor:
        """Learn means, modes, levels and ranges from the training table (N, P).

        Raises
        ------
        InvalidSurvivalDataError
            A column holds dates, infinities or (with ``encode=None``) categories.
        """
        self._check_parameters()
        return self.fit_checked(checked_features(as_frame(X)), named=has_names(X))

    def fit_checked(
        self,
        frame: pd.DataFrame,
        *,
        named: bool,
        block: NumberBlock | None = None,
        order: Sequence[str] | None = None,
    ) -> Preprocessor:
        """As :meth:`fit`, of a frame that `checked_features` made.

        Parameters
        ----------
        frame : DataFrame (N, P)
        named : bool
            Whether its names were given.
        block : NumberBlock, optional
            The block of the frame, where there is one already.
        order : sequence of str, optional
            Raw columns in the order that ``columns_`` is to have; that of the frame by default.
        """
        self.input_names_ = [str(name) for name in frame.columns.tolist()]
        self.n_features_in_ = len(self.input_names_)
        self.__dict__.pop("feature_names_in_", None)
        if named:
            self.feature_names_in_ = np.array(self.input_names_, dtype=object)
        self.sources_: list[Source] = []
        self.columns_: list[OutputColumn] = []
        self.dropped_: dict[str, str] = {}
        self.incomplete_: list[str] = []
        block = NumberBlock.of(frame) if block is None else block
        places = self.input_names_ if order is None else order
        absent = []
        if not block.holds_all(frame):
            absent = [name for name in places if name not in block.place and name not in block.labels]
        others = read_in_time(absent, "columns of text or categories")
        learned = NumbersLearned.of(block, impute=self.impute, scale=self.scale)
        for name in places:
            place = block.place.get(name)
            if place is None and name in block.labels:
                self._fit_labels(block.labels[name], name)
            elif place is None:
                self._fit_column(frame[next(others)], name)
            elif learned.plain[place]:
                self.sources_.append(learned.sources[place])
                self.columns_.append(learned.columns[place])
            else:
                self._fit_known(name, len(frame), *(part[place] for part in learned.ranges))
        names = [column.name for column in self.columns_]
        if len(set(names)) < len(names):
            twice = next(name for k, name in enumerate(names) if name in names[:k])
            raise InvalidSurvivalDataError(f"X would give two encoded columns {twice!r}; rename one")
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        """Encode a table with the columns seen in training, as float64 (N, number of ``columns_``).

        Columns are found by name: their order does not matter and others are ignored. A table without
        names is taken by position, with a `DataWarning` where the training table had names.

        Raises
        ------
        InvalidSurvivalDataError
            A column is missing, or holds text where training had numbers.
        """
        check_is_fitted(self, "columns_")
        return self.transform_aligned(self.aligned(X))

    def transform_aligned(self, frame: pd.DataFrame) -> pd.DataFrame:
        """As :meth:`transform`, of a frame that :meth:`aligned` made."""
        block = NumberBlock.of(frame)
        self.warn_of_first_missing(frame, block)
        return self.transform_checked(frame, block)

    def transform_checked(self, frame: pd.DataFrame, block: NumberBlock) -> pd.DataFrame:
        """As :meth:`transform`, of a frame that :meth:`aligned` made or that was fitted, and the block of it."""
        encoded = np.empty((len(self.columns_), len(frame)))
        fills = {source.name: source.fill for source in self.sources_ if source.name in block.place}
        plain = [k for k, column in enumerate(self.columns_) if column.kind == "number" and column.source in fills]
        write_scaled(encoded, plain, self.columns_, block, fills)
        rest = sorted(set(range(len(self.columns_))) - set(plain))
        if block.labels:
            rest = write_coded(encoded, rest, self.columns_, block, self.sources_)
        asked = {self.columns_[k].source for k in rest}
        raw, missing = {}, {}
        for source in read_in_time([one for one in self.sources_ if one.name in asked], "columns to be encoded"):
            in_block = source.levels is None and source.name in block.place
            values = block.column(source.name) if in_block else raw_values(frame[source.name], source)
            gone = missing[source.name] = np.isnan(values) if source.levels is None else pd.isna(values)
            raw[source.name] = values if source.fill is None else np.where(gone, source.fill, values)
            self.warn_of_unseen(raw[source.name], source)
        for k in rest:
            encoded[k] = encoded_column(self.columns_[k], raw, missing)
        return pd.DataFrame(encoded.T, index=frame.index, columns=self.get_feature_names_out(), copy=False)

    def alphabetical(self) -> Preprocessor:
        """Put the encoded columns into the alphabetical order of their raw columns, in place."""
        self.sources_.sort(key=lambda source: source.name)
        self.columns_.sort(key=lambda column: column.source)
        return self

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the encoded columns."""
        check_is_fitted(self, "columns_")
        return np.array([column.name for column in self.columns_], dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Parameters and fitted state as JSON values; numbers survive `from_dict` exactly."""
        check_is_fitted(self, "columns_")
        return {
            "format": FORMAT,
            "parameters": self.get_params(),
            "named": hasattr(self, "feature_names_in_"),
            "input_names": list(self.input_names_),
            "sources": [
                {"name": s.name, "levels": None if s.levels is None else list(s.levels), "fill": s.fill}
                for s in self.sources_
            ],
            "columns": [column._asdict() for column in self.columns_],
            "dropped": dict(self.dropped_),
            "incomplete": list(self.incomplete_),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Preprocessor:
        """Rebuild a fitted preprocessor from `to_dict`.

        Raises
        ------
        ModelFileError
            The state is incomplete or of another format.
        """
        if state.get("format") != FORMAT:
            raise ModelFileError(f"preprocessor state must have format {FORMAT}, got {state.get('format')!r}")
        try:
            fitted = cls(**state["parameters"])
            fitted.input_names_ = list(state["input_names"])
            fitted.n_features_in_ = len(fitted.input_names_)
            if state["named"]:
                fitted.feature_names_in_ = np.array(fitted.input_names_, dtype=object)
            fitted.sources_ = [
                Source(s["name"], None if s["levels"] is None else tuple(s["levels"]), s["fill"])
                for s in state["sources"]
            ]
            fitted.columns_ = [OutputColumn(**column) for column in state["columns"]]
            fitted.dropped_ = dict(state["dropped"])
            fitted.incomplete_ = list(state.get("incomplete", ()))  # states of earlier versions do not say
        except (KeyError, TypeError) as error:
            raise ModelFileError(f"preprocessor state is incomplete or damaged: {error}") from error
        return fitted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def _check_parameters(self) -> None:
        for name in ("impute", "scale", "add_indicator"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidParameterError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.encode not in ("onehot", None):
            raise InvalidParameterError(f"encode must be 'onehot' or None, got {self.encode!r}")
        if not isinstance(self.drop_first, bool) and self.drop_first != "binary":
            raise InvalidParameterError(f"drop_first must be 'binary', True or False, got {self.drop_first!r}")

    def _fit_column(self, column: pd.Series, name: str) -> None:
        """Learn one raw column: its source and its encoded columns, or why it is left out."""
        missing = column.isna().to_numpy()
        if missing.all():
            self.dropped_[name] = "all missing"
            return
        if is_number(column):
            values = numbers(column, name)
            values = values[~np.isnan(values)]
            with np.errstate(over="ignore", invalid="ignore"):
                mean = float(values.mean())
            self._fit_known(name, len(column), values.size, mean, float(values.min()), float(values.max()))
            return
        if is_identifier(column):
            self.dropped_[name] = "identifier"
            return
        text = labels(column, name)
        counts = {level: int(np.count_nonzero(text == level)) for level in observed_levels(column, text)}
        self._add(name, *self._of_levels(counts, name), some_missing=bool(missing.any()))

    def _fit_labels(self, read: Labels, name: str) -> None:
        """Learn one column of categories."""
        if not (counts := read.counts):
            self.dropped_[name] = "all missing"
            return
        self._add(name, *self._of_levels(counts, name), some_missing=sum(counts.values()) < len(read.code))

    def _fit_known(self, name: str, n: int, known: int, mean: float, low: float, high: float) -> None:
        """Learn a column of n numbers from how many are known, their mean and range."""
        if known == 0:
            self.dropped_[name] = "all missing"
            return
        span = high - low  # an overflow shows as infinity or NaN
        if not math.isfinite(mean) or not math.isfinite(span):
            raise InvalidSurvivalDataError(
                f"column {name!r} must have a finite range, got {low:g} to {high:g}; rescale it"
            )
        offset, scale = (low, span) if self.scale else (0.0, 1.0)
        encoded = [OutputColumn(name, name, "number", None, offset, scale)] if span > 0 else []
        self._add(name, Source(name, None, mean if self.impute else None), encoded, some_missing=known < n)

    def _add(self, name: str, source: Source, encoded: list[OutputColumn], *, some_missing: bool) -> None:
        """Keep a raw column with its encoded columns, or say why it is left out."""
        if not encoded:
            self.dropped_[name] = "constant"
        if self.add_indicator and some_missing:
            encoded.append(OutputColumn(f"{name} is missing", name, "missing"))
        if encoded:
            self.sources_.append(source)
            self.columns_ += encoded
            self.incomplete_ += [name] if some_missing else []

    def _of_levels(self, counts: dict[str, int], name: str) -> tuple[Source, list[OutputColumn]]:
        """Source and encoded columns of a category, by how many rows have each level, in the order of their type."""
        if self.encode is None:
            raise InvalidSurvivalDataError(
                f"X must be numeric where encode=None, got categories in column {name!r}; use encode='onehot'"
            )
        levels = sorted(counts)  # the order of a categorical type moves no fit
        kept = levels[1:] if len(levels) == 1 or self._drops_first(len(levels)) else levels
        encoded = [OutputColumn(indicator_name(name, level), name, "level", level) for level in kept]
        return Source(name, tuple(counts), max(levels, key=counts.__getitem__) if self.impute else None), encoded

    def _drops_first(self, n_levels: int) -> bool:
        return n_levels == 2 if self.drop_first == "binary" else bool(self.drop_first)

    def aligned(self, X: Any) -> pd.DataFrame:
        """The table with the training columns, in training order; others may hold anything."""
        known = hasattr(self, "feature_names_in_")
        frame = align_columns(as_frame(X), self.input_names_, named=has_names(X), trained_with_names=known)
        return checked_features(frame)

    def warn_of_unseen(self, labels: NDArray[Any], source: Source) -> None:
        """Warn of levels of one column that training did not show."""
        if source.levels is not None:
            first_is_base = self._drops_first(len(source.levels))
            warn_of_unseen(labels, source, repr(min(source.levels)) if first_is_base else "none of the levels known")

    def warn_of_first_missing(self, frame: pd.DataFrame, block: NumberBlock) -> None:
        """Warn of columns whose first missing values are filled, of a frame that :meth:`aligned` made."""
        warn_of_first_missing(frame, block, self.sources_, self.incomplete_)
