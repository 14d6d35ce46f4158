"""SurvivalData: features, times and events, checked once at the door."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray
from softsurv.data.blocks import NumberBlock, column_types, frame_rows, rows_taken, with_ones
from softsurv.data.columns import event_column, float_column, group_column
from softsurv.data.event_history import EventHistory
from softsurv.data.frames import checked_features, checked_table, content_bytes, numeric_matrix
from softsurv.data.histories import cause_column, check_causes, check_histories, naming_subjects
from softsurv.data.outcome_checks import check_lengths, check_values
from softsurv.data.partition import stratified_split
from softsurv.errors import DataWarning, InvalidSurvivalDataError, warn

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from torch import Tensor

    from softsurv.numerics import Design

KEPT_CELLS = 1 << 18
"""Cells of a table whose numbers are kept as a block beside it: two megabytes."""

_ROW_FIELDS = ("time", "event", "entry", "weight", "group", "upper", "cause", "subject")


@dataclass(frozen=True, eq=False)
class SurvivalData(EventHistory):
    """A validated table of subjects: features, observed time, event indicator and what else is known.

    Columns may be given as arrays, lists, Series or tensors; they are stored as tensors. Nothing is
    dropped, clamped or imputed: a value that cannot be used is an error naming its row (from 0).

    Parameters
    ----------
    X : DataFrame of shape (N, P)
        Raw features; may hold categoricals and missing values, but no infinity. Copied. Column names
        become text and must be unique.
    time : (N,) float64
        Observed time, finite and >= 0, in any unit. Zero is allowed with a `DataWarning`: soft
        trees floor it at half the smallest positive time.
    event : (N,) bool
        True where the event was observed at ``time``. Given as bool or 0/1.
    entry : (N,) float64, optional
        Left truncation: time at which the subject came under observation; 0 means from the start.
        Must be below ``time``, or equal to it where the event lies in an interval that begins at entry.
    weight : (N,) float64, optional
        Sample weights, >= 0, not all zero.
    group : (N,) int64, optional
        Sensitive group, given as any labels, stored as codes into ``group_names``. Never a feature.
    upper : (N,) float64, optional
        Interval censoring: a row with ``event`` False and finite ``upper`` had its event in
        (time, upper]; ``inf`` is right censoring; time 0 with finite ``upper`` is left censoring. In
        rows with ``event`` True it must be ``inf`` or equal to ``time``.
    name : str, optional
        Shown in reports.
    group_names : tuple of str, optional
        Names of integer ``group`` codes; leave empty to have them read off the labels.
    cause : (N,) int64, optional
        Competing risks: 0 where the row is censored, else the code 1..K of what happened, so that ``event`` is
        ``cause > 0``. Given as codes, or as any labels with 0, False or a missing value for censored rows.
    cause_names : tuple of str (K,), optional
        Names of the codes 1..K; read off the labels where left empty.
    subject : (N,) int64, optional
        Event histories: rows of one subject share a label and follow one another as (entry, time], with the
        covariates of that stretch. Stored as codes into ``subject_names``. Folds and splits keep subjects whole.
    recurrent : bool
        Whether a subject may have several events (a counting process). Otherwise an event ends the history.

    Raises
    ------
    InvalidSurvivalDataError
        With the column, the row and the remedy; with the subject too where its rows do not fit together.

    Examples
    --------
    >>> import pandas as pd
    >>> data = SurvivalData(pd.DataFrame({"age": [61, 47, 70]}), time=[5.0, 3.0, 8.0], event=[1, 0, 1])
    >>> data.n, data.n_events, data.take([0, 2]).time.tolist()
    (3, 2, [5.0, 8.0])
    """

    X: pd.DataFrame
    time: Tensor
    event: Tensor
    entry: Tensor | None = None
    weight: Tensor | None = None
    group: Tensor | None = None
    upper: Tensor | None = None
    name: str | None = None
    group_names: tuple[str, ...] = ()
    cause: Tensor | None = None
    cause_names: tuple[str, ...] = ()
    subject: Tensor | None = None
    subject_names: tuple[str, ...] = ()
    recurrent: bool = False

    def __post_init__(self) -> None:
        with naming_subjects(self.subject):
            columns = self._checked_columns()
        import torch  # takes a second, so only after the checks

        for field in _ROW_FIELDS:
            if columns[field] is not None:
                columns[field] = torch.from_numpy(columns[field])
        for field, value in columns.items():
            object.__setattr__(self, field, value)
        _warn_of_zero_times(self)

    def _checked_columns(self) -> dict[str, Any]:
        """Every field as arrays that fit together."""
        from softsurv.data.encoding import plain_numbers  # as late as pandas

        X, types = checked_table(self.X)
        columns: dict[str, Any] = {"X": X, "event": event_column(self.event)}
        for field in ("time", "entry", "weight", "upper"):
            values = getattr(self, field)
            columns[field] = None if values is None else float_column(values, field)
        columns["group"], columns["group_names"] = (
            (None, ()) if self.group is None else group_column(self.group, self.group_names)
        )
        columns["cause"], columns["cause_names"] = (
            (None, ()) if self.cause is None else cause_column(self.cause, self.cause_names)
        )
        columns["subject"], columns["subject_names"] = (
            (None, ()) if self.subject is None else group_column(self.subject, self.subject_names, "subject")
        )
        check_lengths(columns, ("cause", *_ROW_FIELDS))  # events are those of the causes
        check_values(columns)
        check_causes(columns)
        check_histories(columns, self.recurrent)
        columns["X"] = plain_numbers(X, types)
        vars(self)["_types"] = types if columns["X"] is X else None
        return columns

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        label = "" if self.name is None else f"{self.name!r}, "
        causes = "" if self.cause is None else f", causes={self.n_causes}"
        subjects = "" if self.subject is None else f", subjects={self.n_subjects}"
        return f"SurvivalData({label}n={self.n}, p={self.X.shape[1]}, events={self.n_events}{causes}{subjects})"

    @property
    def n(self) -> int:
        """Number of rows N."""
        return len(self.X)

    @property
    def n_events(self) -> int:
        """Number of events observed at a known time."""
        return int(self.event.sum())

    @property
    def n_zero_times(self) -> int:
        """Rows with time 0 that are not left censored: soft trees floor them."""
        return int(_zero_times(self).sum())

    @property
    def feature_names(self) -> list[str]:
        """Column names of ``X``."""
        return list(self.X.columns)

    @cached_property
    def x(self) -> Tensor:
        """Features as a float64 tensor (N, P), where ``X`` is numeric and complete."""
        import torch

        return torch.from_numpy(numeric_matrix(self.X)).to(self.time.device)

    @cached_property
    def design(self) -> Design:
        """The same with a leading column of ones."""
        from softsurv.numerics import Design

        return Design(with_ones(self.x))

    def number_block(self) -> NumberBlock:
        """The columns of plain numbers as one block. That of a small table is kept, as a fit asks several times."""
        block = vars(self).get("_block")
        if block is None:
            from softsurv.data.encoding import read_columns

            block = read_columns(self.X, self.column_types())
            if block.values.size <= KEPT_CELLS:
                vars(self)["_block"] = block
        return block

    def column_types(self) -> list[Any]:
        """Type of each column of ``X``."""
        return vars(self).get("_types") or column_types(self.X)

    @cached_property
    def y(self) -> NDArray[np.void]:
        """Structured array (N,) with fields ``event`` and ``time``, as scikit-survival takes it."""
        y = np.empty(self.n, dtype=[("event", bool), ("time", np.float64)])
        y["event"], y["time"] = self.event.cpu().numpy(), self.time.cpu().numpy()
        return y

    def to(self, device: str | torch.device) -> SurvivalData:
        """The same data with its tensors on ``device``; ``X`` stays a frame in main memory."""
        return self._derive({f: v.to(device) for f in _ROW_FIELDS if (v := getattr(self, f)) is not None})

    def take(self, rows: Any) -> SurvivalData:
        """The given rows, in the given order.

        Parameters
        ----------
        rows : array of int, bool mask (N,), slice or tensor
            Rows to keep; at least one.
        """
        import torch

        index = np.arange(self.n)[rows.cpu().numpy() if isinstance(rows, torch.Tensor) else rows]
        if index.size == 0:
            raise InvalidSurvivalDataError("rows must select at least one row, got none")
        kept: dict[str, Any] = {"X": frame_rows(self.X, index)}
        for field in _ROW_FIELDS:
            if (values := getattr(self, field)) is not None:
                kept[field] = torch.from_numpy(rows_taken([values.cpu().numpy()], index)[0]).to(values.device)
        taken = self._derive(kept)
        if (block := vars(self).get("_block")) is not None:
            vars(taken)["_block"] = block.take(index)
        return taken

    def split(self, test_size: float = 0.2, seed: int = 0) -> tuple[SurvivalData, SurvivalData]:
        """Train and test part, the share of events equal in both; rows keep their order, subjects stay whole.

        Parameters
        ----------
        test_size : float
            Share of the rows in the test part, in (0, 1).
        seed : int
            Same seed, same split.
        """
        if self.subject is None:
            train, test = stratified_split(self.failed, test_size=test_size, seed=seed)
        else:
            failed, rows_of = self._by_subject()
            train, test = map(rows_of, stratified_split(failed, test_size=test_size, seed=seed))
        return self.take(train), self.take(test)

    def with_features(self, X: pd.DataFrame) -> SurvivalData:
        """The same subjects with other features, such as those that `Preprocessor` returns."""
        if len(X) != self.n:
            raise InvalidSurvivalDataError(f"X must have {self.n} rows like the data, got {len(X)}")
        return self._derive({"X": checked_features(X)})

    def with_encoded(self, X: pd.DataFrame) -> SurvivalData:
        """As `with_features`, of a frame that softsurv made: neither looked at nor copied."""
        return self._derive({"X": X})

    def require_events(self) -> SurvivalData:
        """Return self, or raise where no row had its event: nothing can be fitted on such data."""
        if not self.failed.any():
            raise InvalidSurvivalDataError(
                f"event must be True in at least one row, got none in {self.n} rows; "
                "check which code marks an observed event"
            )
        return self

    def fingerprint(self) -> str:
        """sha256 of the content (all columns and values, not the name), the same on every machine."""
        digest = hashlib.sha256()
        for column in self.X.columns:
            _update(digest, column, content_bytes(self.X[column]))
        for field in _ROW_FIELDS:
            if (values := getattr(self, field)) is not None:
                _update(digest, field, np.ascontiguousarray(values.cpu().numpy(), dtype="<f8").tobytes())
        _update(digest, "group_names", "\x1f".join(self.group_names).encode(errors="surrogatepass"))
        if self.cause is not None:
            _update(digest, "cause_names", "\x1f".join(self.cause_names).encode(errors="surrogatepass"))
        if self.recurrent:
            _update(digest, "recurrent", b"1")
        return digest.hexdigest()

    def summary(self) -> dict[str, Any]:
        """Counts that a report shows, JSON-serialisable; times, late entries and censoring are those of subjects."""
        time, ends = self.time.cpu().numpy(), self.last_times
        numeric = self.X.select_dtypes(["number", "bool"]).columns
        return {
            "name": self.name,
            "n": self.n,
            "p": self.X.shape[1],
            "events": self.n_events,
            "censoring_percent": round(100 * (1 - self.n_failed_subjects / self.n_subjects), 1),
            "time_min": float(ends.min()),
            "time_median": float(np.median(ends)),
            "time_max": float(ends.max()),
            "zero_times": self.n_zero_times,
            "categorical": [name for name in self.X.columns if name not in numeric],
            "missing_cells": int(self.X.isna().to_numpy().sum()),
            "duplicate_rows": int(self.X.assign(**{"": time, " ": self.y["event"]}).duplicated().sum()),
            "late_entries": int((self.first_times > 0).sum()),
            "interval_censored": int(self.failed.sum()) - self.n_events,
            "weighted": self.weight is not None,
            "groups": list(self.group_names),
            "causes": self._events_by_cause(),
            "subjects": self.n_subjects,
            "recurrent": self.recurrent,
        }

    @property
    def failed(self) -> BoolArray:
        """Rows (N,) known to have had their event, at a known time or within an interval."""
        failed = self.event if self.upper is None else self.event | self.upper.isfinite()
        return failed.cpu().numpy()

    def outcomes(self) -> dict[str, Any]:
        """Arrays (N,) of time, event, weight, entry and upper; None where there is none."""
        names = ("time", "event", "weight", "entry", "upper")
        return {k: None if (column := getattr(self, k)) is None else column.cpu().numpy() for k in names}

    def _derive(self, changes: dict[str, Any]) -> SurvivalData:
        """A copy with some fields replaced by values that are already checked."""
        derived = object.__new__(SurvivalData)
        for field in self.__dataclass_fields__:
            object.__setattr__(derived, field, changes.get(field, getattr(self, field)))
        return derived


def _zero_times(data: SurvivalData) -> BoolArray:
    """Mask (N,) of zero times, left-censored rows excepted."""
    zero = np.asarray(data.time.cpu().numpy() == 0)
    return zero if data.upper is None else zero & (data.event | data.upper.isinf()).cpu().numpy()


def _warn_of_zero_times(data: SurvivalData) -> None:
    if zeros := data.n_zero_times:
        warn(
            f"time is 0 in {zeros} of {data.n} rows: soft trees, whose leaves are models of log time, take half the "
            "smallest positive time instead; optimal trees take 0",
            DataWarning,
        )


def _update(digest: Any, label: str, content: bytes) -> None:
    """Feed one labelled block, with its length so that blocks cannot run together."""
    digest.update(f"{label}\x1e{len(content)}\x1e".encode(errors="surrogatepass"))
    digest.update(content)
