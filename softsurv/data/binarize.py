"""Cut points and levels for the exact solvers: learned on the training part, applied anywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from softsurv.data.binarizer_checks import check_binarizer, check_named
from softsurv.data.blocks import FilledColumns, NumberBlock, in_blocks, stacked
from softsurv.data.coded_columns import CodedColumn, answers, codes_by_cuts, level_column, number_columns, routed
from softsurv.data.cuts import YES_NO, block_cuts, explicit_cuts
from softsurv.data.encoding import Source, level_counts
from softsurv.data.frames import as_frame, checked_features, has_names
from softsurv.data.in_time import look_at_numbers, read_in_time
from softsurv.data.preprocess import Preprocessor
from softsurv.data.rules import Rule, fill, rule_text
from softsurv.errors import DataWarning, ModelFileError, warn

FORMAT = 1  # version of the state that to_dict writes
DEFAULT_THRESHOLDS = 10
"""Quantiles of a number that an explicit ``thresholds`` mapping does not name; ten as in paper `surtree`."""

Thresholds = int | Literal["all"] | list[float] | Mapping[str, Any]


@dataclass(eq=False, repr=False)
class Binarizer(BaseEstimator):
    """Turn raw features into ordered and nominal codes, and into 0/1 columns, for the exact solvers.

    Numbers are cut at thresholds, categories are split one level against the rest. Booleans are numbers; constant
    columns are left out and recorded in ``dropped_``. A level not seen in training is none of the levels and goes
    where the rest goes, with a `DataWarning`.

    Parameters
    ----------
    thresholds : int, "all", list of float, or mapping
        An integer: that many quantiles of each number over the rows, whatever they weigh; fewer where values repeat.
        "all": one cut between any two neighbouring training values, so nothing is lost. A list: these cuts for every
        number. A mapping from column to any of these; numbers that it does not name get ten quantiles. A cut is placed
        midway between two training values, rounded to the six digits that are printed where these keep the two apart;
        an explicit one where it was put. A value equal to a cut lies below it.
    max_levels : int, optional
        Most levels per category; the least frequent ones are merged into one "other" (paper `surtree` takes 10).
    min_share : float
        Cuts with a smaller share of the rows on either side are left out, levels with a smaller share are merged
        into "other" (paper `surtree` takes 0.01).
    missing : {"impute", "route"}
        "impute" fills missing values as `Preprocessor` does: numbers by the training mean, categories by the most
        frequent level. "route" fills nothing: every split of a column with missing values is there twice, these left
        and right, and "is missing" is a split too. Thresholds are then those of the known values.

    Attributes
    ----------
    columns_ : list of CodedColumn
        One for each column of the codes. A raw column with missing values that are routed may have several.
    sources_ : list of Source
        Their raw columns, with levels and the value that stands for a missing one.
    dropped_ : dict of str to str
        Raw columns left out, with the reason.
    n_features_in_ : int

    Examples
    --------
    >>> import pandas as pd
    >>> raw = pd.DataFrame({"age": [40, 50, 60, None], "grade": ["I", "II", "III", "II"]})
    >>> binarizer = Binarizer("all").fit(raw)
    >>> binarizer.codes(raw).tolist()
    [[0, 0], [1, 1], [2, 2], [1, 1]]
    >>> binarizer.names
    ['age <= 45', 'age <= 55', 'grade = I', 'grade = II', 'grade = III']
    """

    thresholds: Any = DEFAULT_THRESHOLDS
    max_levels: int | None = None
    min_share: float = 0.0
    missing: str = "impute"

    # -- fitting -------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any = None) -> Binarizer:
        """Learn cuts and levels from the training table (N, P).

        Raises
        ------
        InvalidParameterError
            An argument is out of range, or ``thresholds`` names a column that is not there or holds categories.
        InvalidSurvivalDataError
            A column holds dates or infinities.
        """
        self.fit_filled(checked_features(as_frame(X)), named=has_names(X))
        return self

    def fit_filled(
        self,
        frame: pd.DataFrame,
        *,
        named: bool = True,
        order: Sequence[str] | None = None,
        block: NumberBlock | None = None,
    ) -> tuple[dict[str, NDArray[Any]], int]:
        """As :meth:`fit`, of a frame that `checked_features` made; returns what :meth:`filled` gives of it.

        ``order`` names the raw columns in the order that ``columns_`` is to have; that of the frame by default.
        ``block`` holds the frame's numbers, where they are read already.
        """
        check_binarizer(self.thresholds, self.max_levels, self.min_share, self.missing)
        block = NumberBlock.of(frame) if block is None else block
        filler = Preprocessor(impute=not self.routes, scale=False, drop_first=False, add_indicator=self.routes)
        self.filler_ = filler.fit_checked(frame, named=named, block=block, order=order)
        self.n_features_in_ = self.filler_.n_features_in_
        self.dropped_ = dict(self.filler_.dropped_)
        check_named(self.thresholds, self.filler_.input_names_, self.filler_.sources_)
        table = self._filled(frame, block)
        cuts = self._cuts(table, len(frame), block)
        self.sources_: list[Source] = []
        self.columns_: list[CodedColumn] = []
        of_numbers, routes = dict(zip(cuts, number_columns(cuts), strict=True)), self.routes
        for source in self.filler_.sources_:
            name, levels, _ = source
            if levels is None:
                column = of_numbers[name]
            else:
                count = level_counts(source, table, block)
                column = level_column(name, count, len(frame), self.max_levels, self.min_share)
            if routes:
                columns = [one for one in self._sided(column, table[name]) if one.n_codes > 1]
                self.sources_ += [source] * len(columns)
                self.columns_ += columns
            elif columns := [column] if column.cuts or column.n_codes > 1 else []:
                self.sources_.append(source)
                self.columns_.append(column)
            if not columns:
                self.dropped_[name] = "no split left"
        return table, len(frame)

    def _sided(self, column: CodedColumn, values: NDArray[Any]) -> Sequence[CodedColumn]:
        """The columns of codes that a raw column gives: several where it has missing values that are routed."""
        n_missing = int(pd.isna(values).sum())
        return routed(column, n_missing, len(values), self._least(len(values))) if n_missing else [column]

    def _least(self, n: int) -> int:
        """Least number of rows on either side of a split."""
        return max(1, math.ceil(self.min_share * n - 1e-9))

    def _cuts(self, table: Mapping[str, NDArray[Any]], n: int, block: NumberBlock) -> dict[str, tuple[float, ...]]:
        """Cuts of every number; columns that want the same number of quantiles are looked at together."""
        least, names = self._least(n), [source.name for source in self.filler_.sources_ if source.levels is None]
        cuts: dict[str, tuple[float, ...]] = {}
        alike = isinstance(self.thresholds, int | str) and not self.routes
        if alike and least == 1 and block.are_yes_no.all() and block.place.keys() >= set(names):
            return dict.fromkeys(names, YES_NO)  # a constant column has no source
        if alike:
            together: dict[Any, list[str]] = {self.thresholds: names}
        else:
            together = self._apart(names, table, n, cuts)
        for wanted, wanting in together.items():
            for some in in_blocks(wanting, n):
                look_at_numbers(n, len(wanting))
                found = block.found(some)
                values = stacked([table[name] for name in some]) if found is None else found.values
                answers = None if found is None else found.are_yes_no
                cuts |= zip(some, block_cuts(values, wanted, least, answers), strict=True)
        return cuts

    def _apart(
        self, names: Sequence[str], table: Mapping[str, NDArray[Any]], n: int, cuts: dict[str, tuple[float, ...]]
    ) -> dict[Any, list[str]]:
        """Columns without gaps by the number of quantiles that they want; the cuts of all others go into ``cuts``."""
        together: dict[Any, list[str]] = {}
        for name in names:
            wanted, known = self._thresholds_of(name), table[name]
            if self.routes:
                known = known[~np.isnan(known)]
            if isinstance(wanted, list | tuple | np.ndarray):
                cuts[name] = explicit_cuts(known, wanted, self._least(n))
            elif known.size < n:
                cuts[name] = block_cuts(known[None], wanted, self._least(n))[0]
            else:
                together.setdefault(wanted, []).append(name)
        return together

    def _thresholds_of(self, name: str) -> Any:
        if isinstance(self.thresholds, Mapping):
            return self.thresholds.get(name, DEFAULT_THRESHOLDS)
        return self.thresholds

    # -- applying ------------------------------------------------------------------------------------------------
    def filled(self, X: Any) -> tuple[dict[str, NDArray[Any]], int]:
        """Raw columns (N,) by name, and N: numbers as float64, categories as text; NaN and None where routed.

        Raises
        ------
        InvalidSurvivalDataError
            A column is missing, or holds text where training had numbers.

        Warns
        -----
        DataWarning
            A column has levels that training did not show, or its first missing values.
        """
        check_is_fitted(self, "filler_")
        frame = self.filler_.aligned(X)
        block = NumberBlock.of(frame)
        self.filler_.warn_of_first_missing(frame, block)
        table = self._filled(frame, block)
        for name in sorted({column.name for column in self.columns_ if not column.missing}):
            n_missing = int(pd.isna(table[name]).sum()) if self.routes else 0
            if n_missing:
                warn(
                    f"column {name!r} has {n_missing} missing value(s) and had none in training; at every split on it "
                    "they go to the side of more training rows",
                    DataWarning,
                )
        return table, len(frame)

    def _filled(self, frame: pd.DataFrame, block: NumberBlock) -> dict[str, NDArray[Any]]:
        """Raw columns (N,) by name, of a frame with the training columns."""
        sources, rows = self.filler_.sources_, list(block.values)
        values_of, gaps = dict(zip(block.place, rows, strict=True)), block.gaps
        some_gaps = {name for name, k in block.place.items() if gaps[k]} if gaps.any() else set()
        apart = [one for one in sources if one.levels is not None or one.name not in values_of]
        apart = [one for one in apart if one.name not in block.labels]
        others = read_in_time(apart, "columns of text")
        table = FilledColumns(block.labels, {one.name: one.fill for one in sources if one.name in block.labels})
        for name, levels, stand_in in sources:
            if levels is None and name in values_of:
                values = values_of[name]
                if stand_in is not None and name in some_gaps:
                    values = np.where(np.isnan(values), float(stand_in), values)
            elif name in block.labels:
                continue
            else:
                source = next(others)
                values = fill(frame[name], source)
                self.filler_.warn_of_unseen(values, source)
            table[name] = values
        return table

    def codes(self, X: Any) -> NDArray[np.int32]:
        """Codes (N, number of ``columns_``); those of categories are names, those of numbers are ordered."""
        check_is_fitted(self, "columns_")
        return self.codes_of(*self.filled(X))

    def codes_of(
        self, table: Mapping[str, NDArray[Any]], n: int, block: NumberBlock | None = None
    ) -> NDArray[np.int32]:
        """Codes of n rows as :meth:`filled` gives them, column after column in memory; ``block``: their numbers."""
        codes = np.empty((len(self.columns_), n), dtype=np.int32)
        rest = codes_by_cuts(self.columns_, table, codes, block)
        if block is not None and block.labels:
            read = [k for k in rest if self.columns_[k].name in block.labels]
            for k in read:
                codes[k] = self.columns_[k].codes_of(block.labels[self.columns_[k].name], self.sources_[k].fill)
            rest = sorted(set(rest).difference(read))
        of_levels = [k for k in rest if self.columns_[k].levels]
        for k in [*set(rest).difference(of_levels), *read_in_time(of_levels, "categories to be coded")]:
            codes[k] = self.columns_[k].codes(table[self.columns_[k].name])
        return codes.T

    @property
    def nominal(self) -> NDArray[np.bool_]:
        """Which columns of the codes are categories."""
        return np.array([column.levels != () and column.nominal for column in self.columns_], dtype=bool)

    @property
    def n_codes(self) -> NDArray[np.int32]:
        """Number of codes of each column in training."""
        plain = [0 if column.levels or column.missing else 1 + len(column.cuts) for column in self.columns_]
        return np.array([n or column.n_codes for n, column in zip(plain, self.columns_, strict=True)], dtype=np.int32)

    @property
    def splits(self) -> list[tuple[int, int]]:
        """Column and code of every split: code <= k of a number, code = k of a category."""
        return [(f, code) for f, column in enumerate(self.columns_) for code in column.splits]

    @property
    def names(self) -> list[str]:
        """The splits in the data's own units."""
        return [rule_text(self.rule(f, code)[0], self.columns_[f].name) for f, code in self.splits]

    def binary(self, X: Any) -> NDArray[np.uint8]:
        """One 0/1 column for every split (N, B): 1 where the row answers yes to the rule of its name."""
        return self.binary_of(self.codes(X))

    def binary_of(self, codes: NDArray[np.int32]) -> NDArray[np.uint8]:
        """The 0/1 columns (N, B) of codes (N, number of ``columns_``)."""
        return np.ascontiguousarray(answers(self.columns_, np.ascontiguousarray(codes.T), routes=self.routes).T)

    def rule(self, feature: int, code: int) -> tuple[Rule, bool]:
        """The question that a split asks, and whether its answers are swapped.

        The code of "other" asks for the levels that are named instead, so that a level never seen before stays with
        the rest; rows with that code then answer no.
        """
        return self.columns_[feature].rule(feature, code, routes=self.routes)

    @property
    def routes(self) -> bool:
        """Whether missing values are routed."""
        return bool(self.missing == "route")

    # -- saving --------------------------------------------------------------------------------------------------
    def to_dict(self) -> dict[str, Any]:
        """Parameters and fitted state as JSON values; numbers survive `from_dict` exactly."""
        check_is_fitted(self, "columns_")
        return {
            "format": FORMAT,
            "parameters": {k: _plain(v) for k, v in self.get_params().items()},
            "filler": self.filler_.to_dict(),
            "columns": [column._asdict() for column in self.columns_],
            "dropped": dict(self.dropped_),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Binarizer:
        """Rebuild a fitted binarizer from `to_dict`; a damaged state is a `ModelFileError`."""
        if state.get("format") != FORMAT:
            raise ModelFileError(f"binarizer state must have format {FORMAT}, got {state.get('format')!r}")
        try:
            fitted = cls(**state["parameters"])
            fitted.filler_ = Preprocessor.from_dict(state["filler"])
            fitted.n_features_in_ = fitted.filler_.n_features_in_
            fitted.columns_ = [
                CodedColumn(**{**c, "cuts": tuple(c["cuts"]), "levels": tuple(c["levels"])}) for c in state["columns"]
            ]
            known = {source.name: source for source in fitted.filler_.sources_}
            fitted.sources_ = [known[column.name] for column in fitted.columns_]
            fitted.dropped_ = dict(state["dropped"])
        except (KeyError, TypeError) as error:
            raise ModelFileError(f"binarizer state is incomplete or damaged: {error}") from error
        return fitted


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [float(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value
