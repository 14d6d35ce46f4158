"""What soft and optimal survival trees share as estimators: reading data in, predictions out, scores.

A subclass fits itself and answers four questions about prepared features: the leaf of each row
(`_leaf`), log H at given times (`_log_cumulative_hazard`), the hazard (`_hazard`), and the time at
which S falls to a level (`_quantile`). Method names follow scikit-survival.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from softsurv.arrays import FloatArray, IntArray, as_time
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning, InvalidParameterError, InvalidTimesError, warn
from softsurv.estimators.shared.checks import grid_of, say_beyond, share_with_event
from softsurv.estimators.shared.competing import CompetingRisks
from softsurv.estimators.shared.conditional import ConditionalSurvival, ages
from softsurv.estimators.shared.evaluation import evaluate_fitted, score_fitted
from softsurv.estimators.shared.lower_bounds import LowerBounds
from softsurv.estimators.shared.pictures import Pictures
from softsurv.estimators.shared.tables import by_rows
from softsurv.estimators.shared.tags import TakesAnyTable
from softsurv.estimators.shared.training_data import TrainingData
from softsurv.estimators.shared.training_rows import (
    held_out_rows,
    warn_of_far_values,
)
from softsurv.metrics.evaluate import outcome
from softsurv.metrics.ranges import survival_from_log_cumulative_hazard
from softsurv.trees.incidence import simpson_from_both_ends

ROWS_AT_ONCE, CELLS_AT_ONCE = 8192, 800_000
"""Rows of an integral over time whose curves are held together, and rows x times: so few stay near the processor."""


class SurvivalTreeBase(
    TakesAnyTable, TrainingData, Pictures, CompetingRisks, ConditionalSurvival, LowerBounds, BaseEstimator
):
    """Shared surface of the survival trees; see the subclasses."""

    # -- hooks ---------------------------------------------------------------------------------------------------
    @abstractmethod
    def _prepare(self, X: Any, **how: Any) -> Any:
        """Features in the form that the hooks below take. ``how`` holds choices of a subclass, such as ``path``."""

    @abstractmethod
    def _leaf(self, prepared: Any) -> IntArray:
        """Leaf of each row, (n,)."""

    @abstractmethod
    def _log_cumulative_hazard(self, prepared: Any, times: FloatArray) -> FloatArray:
        """Log H at times >= 0, (n, T); -inf where S is 1."""

    @abstractmethod
    def _hazard(self, prepared: Any, times: FloatArray) -> FloatArray:
        """Hazard per unit of time, (n, T)."""

    @abstractmethod
    def _quantile(self, prepared: Any, level: float | FloatArray) -> FloatArray:
        """Smallest time with S <= level, (n,); inf where S never falls to it."""

    # -- predictions ---------------------------------------------------------------------------------------------
    def apply(self, X: Any) -> IntArray:
        """Leaf of each row, (n,): leaves are numbered from 0, as they are printed."""
        check_is_fitted(self, "censoring_")
        return self._leaf(self._prepare(X))

    def predict(self, X: Any, cause: int | str | None = None, **how: Any) -> FloatArray:
        """Risk score of each row, (n,); higher means an earlier event.

        Parameters
        ----------
        X : table of n rows
        cause : int or str, optional
            Of the events of this cause; of all events by default.
        **how
            Choices of the subclass: soft trees take ``path="soft"`` for the mixture of all leaves. The other
            predictions take them too.

        Notes
        -----
        The mean of log H over the deciles of ``unique_times_``, the distinct training event times (one that many
        rows share counts once), so that curves may cross and survival near 0 or 1 still ranks. For a cause, of
        log(-log(1 - F)) with its cumulative incidence F.
        """
        check_is_fitted(self, "censoring_")
        deciles = np.quantile(self.unique_times_, np.linspace(0.1, 0.9, 9))
        if cause is not None:
            code = self._cause(cause)
            return self._cause_risk(self._checked(X, how), deciles, code)
        log_hazard = self._log_cumulative_hazard(self._checked(X, how), deciles)
        return np.clip(log_hazard, -745.0, 745.0).mean(1)

    def predict_survival_function(
        self, X: Any, times: ArrayLike | None = None, *, return_array: bool = True, **how: Any
    ) -> Any:
        """Survival probability of each row at each time.

        Parameters
        ----------
        X : table of n rows
        times : array_like (T,), optional
            Any times >= 0, in the unit of the training times; ``unique_times_`` by default.
        return_array : bool
            False returns scikit-survival's ``StepFunction`` objects over the times instead.

        Returns
        -------
        ndarray (n, T), or ndarray (n,) of StepFunction

        Notes
        -----
        Nothing was observed after ``horizon_``, the last training time. Later times are extrapolated: by the formula of
        the leaf in a soft tree, by the last value of the curve in an optimal one. A
        `DataWarning` names them.

        Raises
        ------
        NotEnoughMemoryError
            If the table takes more memory than is free: 8 bytes for each row and time.
        """
        return self._curves(self._grid(times), self._checked(X, how), return_array, survival_from_log_cumulative_hazard)

    def predict_cumulative_hazard_function(
        self, X: Any, times: ArrayLike | None = None, *, return_array: bool = True, **how: Any
    ) -> Any:
        """Cumulative hazard of each row at each time; arguments as in :meth:`predict_survival_function`."""
        with np.errstate(over="ignore"):
            return self._curves(self._grid(times), self._checked(X, how), return_array, np.exp)

    def predict_hazard_function(self, X: Any, times: ArrayLike | None = None, **how: Any) -> FloatArray:
        """Hazard of each row at each time, per unit of time, (n, T).

        Raises
        ------
        InvalidTimesError
            If ``times``, ``unique_times_`` by default, are not finite and > 0.
        """
        grid = self._grid(times)
        if grid.min() <= 0:
            raise InvalidTimesError(f"times must be > 0 for a hazard, got {grid.min():g}; leave time 0 out")
        prepared = self._checked(X, how)
        return by_rows(len(prepared), len(grid), lambda rows: self._hazard(prepared[rows], grid))

    def predict_quantile(
        self, X: Any, probability: float = 0.5, cause: int | str | None = None, *, after: Any = None, **how: Any
    ) -> FloatArray:
        """Time by which the event has happened with the given probability, (n,); ``inf`` if it never does.

        Parameters
        ----------
        X : table of n rows
        probability : float
            Between 0 and 1.
        cause : int or str, optional
            The event of this cause, which the other causes may prevent; any event by default.
        after : float, or array_like (n,), optional
            How long rows have been free of the event, as in :meth:`predict_conditional_survival`: the time counts from
            there on.

        Returns
        -------
        ndarray (n,)
            In the unit of the training times. 0 where no row of a leaf survives ``after``.

        Raises
        ------
        InvalidParameterError
            If the probability is not between 0 and 1, or both ``cause`` and ``after`` are given.
        """
        check_is_fitted(self, "censoring_")
        share = share_with_event(probability)
        if cause is not None and after is not None:
            raise InvalidParameterError("after takes the time until any event; leave out cause, or after")
        prepared = self._checked(X, how)
        if cause is not None:
            return self._incidence_quantile(prepared, share, self._cause(cause))
        if after is None:
            return self._quantile(prepared, 1 - share)
        age = ages(after, X, len(self._leaf(prepared)))
        say_beyond([age.max(initial=0.0)], self.horizon_)
        return self._remaining_quantile(prepared, age, 1 - share)

    def predict_median(self, X: Any, *, after: Any = None, **how: Any) -> FloatArray:
        """Median survival time, (n,), in the unit of the training times; ``inf`` where S stays above one half.

        The curve of an optimal tree ends with the last training time, ``horizon_``. That of a soft tree goes on: a
        median beyond it is extrapolated. With ``after`` it is the remaining time: see :meth:`predict_quantile`.
        """
        return self.predict_quantile(X, 0.5, after=after, **how)

    def predict_expectation(self, X: Any, horizon: float | None = None, *, after: Any = None, **how: Any) -> FloatArray:
        """Expected time until the event or the horizon, whichever is first, (n,): the restricted mean.

        It is exact for the steps of optimal trees.

        Parameters
        ----------
        X : table of n rows
        horizon : float, optional
            In the unit of the training times; the largest training time by default.
        after : float, or array_like (n,), optional
            How long rows have been free of the event, as in :meth:`predict_conditional_survival`: the time counts from
            there on, the mean remaining life. 0 where ``after`` lies beyond the horizon, or no row survives it.

        Raises
        ------
        InvalidTimesError
            If the horizon is not finite and > 0.

        Warns
        -----
        DataWarning
            If ages lie at or beyond the horizon.
        """
        check_is_fitted(self, "censoring_")
        end = self._end(horizon)
        prepared = self._checked(X, how)
        if after is None:
            return self._restricted_mean(prepared, end)
        age = ages(after, X, len(self._leaf(prepared)))
        if late := np.count_nonzero(age >= end):
            reached = f"the horizon {end:g} lies at or before {late} of {len(age)} ages in after"
            warn(f"{reached}, to which no time remains: 0; give a later horizon", DataWarning)
        return self._remaining_mean(prepared, age, end)

    def _restricted_mean(self, prepared: Any, end: float) -> FloatArray:
        grid, width = simpson_from_both_ends(end)  # in log time survival is smooth on every scale
        total = np.full(len(prepared), grid[0])  # S = 1 before the first point
        n_parts = min(len(total), ROWS_AT_ONCE) * len(grid) // CELLS_AT_ONCE + 1
        for begin in range(0, len(total), ROWS_AT_ONCE):
            rows = slice(begin, begin + ROWS_AT_ONCE)
            for chunk in np.array_split(np.arange(len(grid)), n_parts):
                log_hazard = self._log_cumulative_hazard(prepared[rows], grid[chunk])
                total[rows] += survival_from_log_cumulative_hazard(log_hazard) @ width[chunk]
        return total

    # -- scores --------------------------------------------------------------------------------------------------
    def evaluate(self, X: Any, y: Any = None, **options: Any) -> dict[str, Any]:
        """Quality on held-out rows: harrell_c, uno_c, cd_auc, ibs, n, events, and the range they rest on.

        Parameters
        ----------
        X, y
            As in ``fit``.
        **options
            ``time``, ``event``, ``entry``, ``upper``, ``cause``, ``start``, ``stop``, ``id``, ``sample_weight`` as in
            ``fit``, by default the columns ``fit`` was told; ``times``, ``n_times``, ``scale``, ``tied_event_times`` as
            in :func:`softsurv.metrics.evaluate.evaluate`. Censoring weights come from the training data.

        Returns
        -------
        dict
            Where events have causes, these measures are of all events, and ``causes`` holds those of each:
            see :func:`softsurv.metrics.histories.evaluate_causes`. Where subjects have several rows, all but the
            concordances are None: see :func:`softsurv.metrics.histories.evaluate_histories`.

        Warns
        -----
        EvaluationWarning
            If events are only known to lie in intervals, for which the measures are not corrected; if some ``times``
            are not attainable; if subjects have several rows, so that only concordances are measured.
        """
        check_is_fitted(self, "censoring_")
        data = held_out_rows(self, X, y, options)
        return evaluate_fitted(self, data, options)

    # -- reading -------------------------------------------------------------------------------------------------
    def ranked_by(self) -> Sequence[str]:
        """The number of each leaf that ``predict`` gives, in words; empty where rows of a leaf differ."""
        return ()

    def ranking_note(self) -> str:
        """What that number is, in a sentence; empty where there is none."""
        return ""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a folder: tensors and JSON, no code and no training rows; see ``load_model``."""
        from softsurv.estimators.saved import save_model

        save_model(self, path)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, entry: Any = None) -> float:
        """Time-dependent Harrell concordance of held-out rows, so that model selection tools work.

        With late entry (``entry``, or in `SurvivalData`) only rows under observation together are compared. With
        ``sample_weight`` a pair counts by the product of its two. Where events have causes, all of them count.
        """
        check_is_fitted(self, "censoring_")
        given = {"entry": entry, "sample_weight": sample_weight}
        told = {name: value for name, value in given.items() if value is not None}
        return score_fitted(self, held_out_rows(self, X, y, told))

    # -- inside --------------------------------------------------------------------------------------------------
    def _outcome(self, data: SurvivalData) -> dict[str, Any]:
        """Outcome columns of held-out rows as the measures take them."""
        return outcome(data)

    def _log_hazard_of(self, prepared: Any) -> Callable[[FloatArray], FloatArray]:
        return lambda times: self._log_cumulative_hazard(prepared, np.asarray(times, dtype=float))

    def _checked(self, X: Any, how: dict[str, Any]) -> Any:
        """Prepared features; says which values lie far outside those of training."""
        check_is_fitted(self, "censoring_")
        prepared = self._prepare(X, **how)  # a table that is refused needs no word on its values
        warn_of_far_values(X, getattr(self, "ranges_", {}))
        return prepared

    def _curves(
        self, grid: FloatArray, prepared: Any, return_array: bool, of: Callable[[FloatArray], FloatArray]
    ) -> Any:
        values = by_rows(len(prepared), len(grid), lambda rows: of(self._log_cumulative_hazard(prepared[rows], grid)))
        if return_array:
            return values
        from sksurv.functions import StepFunction as SksurvStepFunction

        if not np.all(np.diff(grid) > 0):
            raise InvalidTimesError("times must increase for step functions; sort them or take the array")
        return np.array([SksurvStepFunction(grid, row) for row in values], dtype=object)

    def _grid(self, times: ArrayLike | None) -> FloatArray:
        check_is_fitted(self, "censoring_")
        if times is None:
            return self.unique_times_
        grid = grid_of(times)
        say_beyond(grid, self.horizon_)
        return grid

    def _end(self, horizon: float | None) -> float:
        if horizon is None:
            return self.horizon_
        end = as_time(horizon)
        if not 0 < end < np.inf:
            raise InvalidTimesError(f"horizon must be a finite time > 0, got {horizon!r}")
        say_beyond([end], self.horizon_)
        return end
