"""Survival of rows that have been under observation for some time: how long those last that are still there."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from softsurv.arrays import FloatArray, IntArray, as_time
from softsurv.data.columns import float_column, require
from softsurv.data.readers import refuse_other_rows
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, InvalidTimesError
from softsurv.estimators.shared.checks import grid_of, say_beyond
from softsurv.estimators.shared.tables import by_rows
from softsurv.metrics.ranges import survival_from_log_cumulative_hazard
from softsurv.trees.incidence import area_from, by_time_left

ROWS = 64
"""Rows looked at together, where a table of them by times is held of which little is kept."""


class ConditionalSurvival:
    """Mixin of the estimators that predict a curve for each row."""

    horizon_: float

    @abstractmethod
    def _checked(self, X: Any, how: dict[str, Any]) -> Any:
        """Prepared features."""

    @abstractmethod
    def _grid(self, times: ArrayLike | None) -> FloatArray:
        """Times of a prediction."""

    @abstractmethod
    def _leaf(self, prepared: Any) -> IntArray:
        """Leaf of each row, (n,)."""

    @abstractmethod
    def _log_cumulative_hazard(self, prepared: Any, times: FloatArray) -> FloatArray:
        """Log H at times >= 0, (n, T); -inf where S is 1."""

    @abstractmethod
    def _quantile(self, prepared: Any, level: float | FloatArray) -> FloatArray:
        """Smallest time with S <= level, the same for all rows or that of each, (n,)."""

    def predict_conditional_survival(
        self, X: Any, after: Any, times: ArrayLike | None = None, *, ahead: ArrayLike | None = None, **how: Any
    ) -> FloatArray:
        """Probability of surviving to each time given survival up to ``after``, (n, T); 1 for times before it.

        Parameters
        ----------
        X : table of n rows
        after : float, or array_like (n,)
            In the unit of the training times, >= 0: the same for all rows, or the age of each.
        times : array_like (T,), optional
            ``unique_times_`` by default. Where no row of a leaf survives ``after``, later times have probability 0.
        ahead : array_like (T,), optional
            Times counted from ``after`` on, instead of ``times``: the chance of a row to last so much longer.

        Raises
        ------
        InvalidTimesError
            If ``after`` or a time is not finite and >= 0.
        InvalidSurvivalDataError
            If one of several ``after`` is not, or if they are not those of the rows.
        InvalidParameterError
            If both ``times`` and ``ahead`` are given.
        """
        if times is not None and ahead is not None:
            raise InvalidParameterError("give times, or ahead for times counted from after, and not both")
        grid = self._grid(times) if ahead is None else grid_of(ahead, "ahead")
        prepared = self._checked(X, how)
        n = len(prepared)
        begin = ages(after, X, n)[:, None]
        if ahead is not None:
            say_beyond(begin.max(initial=0.0) + grid, self.horizon_)

        def of(rows: slice) -> FloatArray:
            own = begin if len(begin) == 1 else begin[rows]
            return self._lasting(prepared[rows], own, grid[None] if ahead is None else own + grid)

        return by_rows(n, len(grid), of)

    def _lasting(self, prepared: Any, begin: FloatArray, due: FloatArray) -> FloatArray:
        """Probability of surviving to times (n, T) or (1, T) given survival up to others, (n, 1) or (1, 1): (n, T)."""
        with np.errstate(over="ignore", invalid="ignore"):
            rise = np.exp(self._at_own_times(prepared, due)) - np.exp(self._at_own_times(prepared, begin))
        return np.where(due <= begin, 1.0, np.exp(-np.nan_to_num(np.maximum(rise, 0.0), nan=np.inf, posinf=np.inf)))

    def _remaining_mean(self, prepared: Any, age: FloatArray, end: float) -> FloatArray:
        """Expected time from an age, (n,) or (1,), until the event or ``end``, of those left, (n,)."""
        now = self._at_own_times(prepared, age[:, None])[:, 0]
        age, found = np.broadcast_to(age, len(now)), np.empty(len(now))
        for alike, grid in by_time_left(age, end):
            for begin in range(0, len(alike), ROWS):
                rows = alike[begin : begin + ROWS]
                found[rows] = area_from(age[rows], now[rows], self._log_cumulative_hazard(prepared[rows], grid), grid)
        return found

    def _remaining_quantile(self, prepared: Any, age: FloatArray, share: float) -> FloatArray:
        """Time from an age, (n,) or (1,), on by which the survival of those left has fallen to a share, (n,)."""
        alive = survival_from_log_cumulative_hazard(self._at_own_times(prepared, age[:, None]))[:, 0]
        return np.maximum(self._quantile(prepared, share * alive) - age, 0.0)

    def _at_own_times(self, prepared: Any, times: FloatArray) -> FloatArray:
        """Log H of each row at its own times (n, T), or of all at the same (1, T): (n, T)."""
        if len(times) == 1:
            return self._log_cumulative_hazard(prepared, times[0])
        found = np.empty_like(times)
        for begin in range(0, len(times), ROWS):
            rows = slice(begin, begin + ROWS)
            for k, own in enumerate(times[rows].T):
                found[rows, k] = self._log_cumulative_hazard(prepared[rows], own).diagonal()
        return found


def ages(after: Any, X: Any, n: int) -> FloatArray:
    """``after`` of each row, (n,), or of all, (1,)."""
    if np.ndim(after) == 0:
        age = as_time(after)
        if not 0 <= age < np.inf:
            raise InvalidTimesError(f"after must be a finite time >= 0, or one for each row, got {after!r}")
        return np.array([age])
    X = X.X if isinstance(X, SurvivalData) else X
    if isinstance(X, pd.DataFrame):
        refuse_other_rows(X, after, "after")
    ages = float_column(after, "after")
    if ages.shape != (n,):
        raise InvalidTimesError(f"after must be one time, or one for each of the {n} rows, got shape {ages.shape}")
    require(np.isfinite(ages) & (ages >= 0), ages, "after", "finite and >= 0", "correct it")
    return ages[:1] if n and (ages == ages[0]).all() else ages
