"""What survival data know of causes and subjects: a mixin of `SurvivalData`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.histories import cause_code, stretches
from softsurv.data.partition import stratified_folds
from softsurv.errors import InvalidSurvivalDataError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from torch import Tensor


class EventHistory:
    """Competing causes, and subjects with several rows; the fields are those of `SurvivalData`."""

    if TYPE_CHECKING:
        X: pd.DataFrame
        time: Tensor
        cause: Tensor | None
        cause_names: tuple[str, ...]
        subject: Tensor | None
        entry: Tensor | None
        recurrent: bool
        weight: Tensor | None

        @property
        def n(self) -> int: ...
        @property
        def failed(self) -> BoolArray: ...
        def take(self, rows: Any) -> Any: ...
        def _derive(self, changes: dict[str, Any]) -> Any: ...

    @property
    def n_causes(self) -> int:
        """Number of competing causes K; 1 where there is one kind of event."""
        return 1 if self.cause is None else len(self.cause_names)

    @property
    def n_subjects(self) -> int:
        """Number of subjects; each row is one where ``subject`` is not given."""
        return self.n if self.subject is None else int(self.subject.unique().numel())

    @property
    def subject_codes(self) -> Tensor | None:
        """Subject (N,) of each row, numbered from 0 in the order of their codes; None where each row is one."""
        return None if self.subject is None else self.subject.unique(return_inverse=True)[1]

    @property
    def n_failed_subjects(self) -> int:
        """Number of subjects known to have had an event."""
        return int(self.failed.sum()) if self.subject is None else int(self._by_subject()[0].sum())

    @property
    def first_times(self) -> FloatArray:
        """Since when each subject was observed, (S,)."""
        return np.zeros(self.n_subjects) if self.entry is None else self._extreme(np.minimum, self.entry)

    @property
    def last_times(self) -> FloatArray:
        """Until when each subject was observed, (S,)."""
        return self._extreme(np.maximum, self.time)

    def _extreme(self, of_two: np.ufunc, times: Tensor) -> FloatArray:
        """The first or last of the times (N,) of each subject, (S,)."""
        values, codes = times.double().cpu().numpy(), self.subject_codes
        if codes is None:
            return values
        order = codes.argsort(stable=True).cpu().numpy()
        first = np.unique(codes.cpu().numpy()[order], return_index=True)[1]
        return of_two.reduceat(values[order], first)

    def folds(self, n_splits: int = 5, seed: int = 0) -> list[tuple[IntArray, IntArray]]:
        """Rows of the train and test part of each fold, ascending; the share of events is equal in all folds.

        All rows of a subject are in the same part. See :func:`softsurv.data.partition.stratified_folds`.
        """
        if self.subject is None:
            return stratified_folds(self.failed, n_splits, seed)
        failed, rows_of = self._by_subject()
        return [(rows_of(train), rows_of(test)) for train, test in stratified_folds(failed, n_splits, seed)]

    def of_cause(self, cause: int | str) -> Self:
        """The same rows with the events of one cause alone: what happened from another cause is censored.

        This is what a cause-specific hazard is estimated from.

        Parameters
        ----------
        cause : int or str
            Code 1..K or name.
        """
        code = self.cause_code(cause)
        event = self.cause == code
        return self._derive({"event": event, "cause": None, "cause_names": ()})

    def by_cause(self) -> tuple[Self, ...]:
        """The data of each cause, all others censored; the data themselves where there is one kind of event."""
        return (self,) if self.cause is None else tuple(self.of_cause(k) for k in range(1, self.n_causes + 1))

    def that_count(self) -> Self:
        """The rows of weight above 0; the data themselves where all have. Rows of weight 0 change nothing."""
        if self.weight is None or bool((self.weight > 0).all()):
            return self
        return cast("Self", self.take(self.weight > 0))

    def joined(self) -> Self:
        """The same histories in as few rows as possible: rows that only cut a stretch of equal columns become one.

        So a fit does not depend on how histories are cut. Where each subject then has one row, the rows are plain ones,
        without ``subject``, and without ``entry`` where nobody is late.
        """
        if self.subject is None or self.recurrent:
            return self._in_stretches()
        data = self._in_stretches()
        if data.n_subjects < data.n:
            return data
        late = data.entry is not None and bool((data.entry > 0).any())
        plain: dict[str, Any] = {"subject": None, "subject_names": ()}
        return cast("Self", data._derive(plain if late else plain | {"entry": None}))

    def _in_stretches(self) -> Self:
        """One row for each stretch of a subject without event, gap or change."""
        if self.subject is None:
            return self
        names = ("subject", "time", "event", "entry", "weight", "group")
        columns = {k: None if (column := getattr(self, k)) is None else column.cpu().numpy() for k in names}
        first, last = stretches(columns, self.X)
        if len(first) == self.n:
            return self
        begin = self.take(first)
        return cast("Self", self.take(last)._derive({"X": begin.X, "entry": begin.entry}))

    def cause_code(self, cause: int | str) -> int:
        """The code 1..K of a cause given by code or name.

        Raises
        ------
        InvalidSurvivalDataError
            Where there is no such cause, with those there are.
        """
        if self.cause is None:
            raise InvalidSurvivalDataError("cause needs data with causes; pass cause= when the data are read")
        return cause_code(cause, self.cause_names)

    def _by_subject(self) -> tuple[BoolArray, Callable[[IntArray], IntArray]]:
        """Whether each subject had an event, in the order of their first rows; and a function from subjects to rows."""
        assert self.subject is not None
        _, first, inverse = np.unique(self.subject.cpu().numpy(), return_index=True, return_inverse=True)
        code = np.argsort(np.argsort(first))[inverse]
        failed = np.zeros(len(first), dtype=bool)
        failed[code[self.failed]] = True
        return failed, lambda chosen: np.flatnonzero(np.isin(code, chosen))

    def _events_by_cause(self) -> dict[str, int]:
        if self.cause is None:
            return {}
        return {name: int((self.cause == k).sum()) for k, name in enumerate(self.cause_names, start=1)}
