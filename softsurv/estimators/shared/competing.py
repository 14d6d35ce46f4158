"""What survival trees answer where events have causes, or covariates change: a mixin of their base class."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.frames import as_frame
from softsurv.data.histories import cause_code
from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.estimators.shared import tables
from softsurv.estimators.shared.tables import check_room, new_table, row_blocks
from softsurv.metrics.histories import Incidence, by_code
from softsurv.trees.incidence import LARGEST_HAZARD, accumulated, incidences, log_lattice, simpson_from_both_ends

EARLIEST, REACH = 1e-30, 1e6
"""Quantiles are sought between so many times the largest training time; beyond the second they are infinite."""


class CompetingRisks:
    """Mixin of the survival trees: cumulative incidences, and predictions along changing covariates.

    A subclass answers `_cause_hazards`. Where its hazards jump, `_hazard_grid` returns the times of the jumps, and H is
    minus the logarithm of the product-limit curve, shared among the causes in proportion to their events.
    """

    horizon_: float
    cause_names_: tuple[str, ...] = ()
    """Names of the causes 1..K; empty where there is one kind of event."""

    @property
    def recurrent_(self) -> bool:
        """Whether the tree was fitted to events that recur, so that it has `predict_mean_count`."""
        return False

    # -- hooks ---------------------------------------------------------------------------------------------------
    def _cause_hazards(self, prepared: Any, times: FloatArray) -> FloatArray:
        """Cumulative hazard of each cause at times >= 0, (n, T, K); one column where there is one kind of event."""
        with np.errstate(over="ignore"):
            return np.exp(self._log_cumulative_hazard(prepared, times))[..., None]  # type: ignore[attr-defined]

    def _hazard_grid(self, last: float) -> FloatArray:
        """Times (G,) between which the causes' shares in the hazard may be taken as constant, up to ``last``."""
        return log_lattice(self.horizon_, last, float(self.unique_times_[0]))  # type: ignore[attr-defined]

    def _incidence_of(self, prepared: Any) -> Incidence:
        """The incidences of rows as the measures take them."""
        return by_code(partial(self._incidences, prepared))

    def _incidences(self, prepared: Any, times: FloatArray) -> FloatArray:
        """Cumulative incidences (n, T, K) at times >= 0."""
        grid = self._hazard_grid(float(times.max()))
        found = np.empty((len(prepared), len(times), max(len(self.cause_names_), 1)))
        for rows in self._chunks(len(prepared), len(grid) + len(times)):
            found[rows] = incidences(partial(self._cause_hazards, prepared[rows]), grid, times)[1]
        return found

    def _incidence_quantile(self, prepared: Any, probability: float, code: int) -> FloatArray:
        """Smallest time at which the incidence of a cause reaches a probability, (n,); linear in log time between."""
        grid = self._hazard_grid(self.horizon_ * REACH)
        found = self._first_reached(prepared, probability, code, grid)
        early = np.flatnonzero(found <= grid[0])
        if early.size:  # seldom: most curves rise within the grid
            earlier = np.append(np.geomspace(self.horizon_ * EARLIEST, grid[0], 2 * len(grid)), grid[1])
            found[early] = self._first_reached(prepared[early], probability, code, earlier)
        return found

    def _first_reached(self, prepared: Any, probability: float, code: int, grid: FloatArray) -> FloatArray:
        """The same within a grid (G,); its first time where the probability is reached before, inf where never."""
        found = np.full(len(prepared), np.inf)
        for rows in self._chunks(len(prepared), 2 * len(grid)):
            risen = self._incidences(prepared[rows], grid)[..., code - 1]
            after = (risen < probability).sum(1)
            reached = np.flatnonzero(after < len(grid))
            end = after[reached]
            begin = np.maximum(end - 1, 0)
            low, high = risen[reached, begin], risen[reached, end]
            share = np.divide(probability - low, high - low, out=np.ones_like(low), where=high > low)
            found[rows][reached] = grid[begin] * (grid[end] / grid[begin]) ** share
        return found

    def _time_lost(self, prepared: Any, horizon: float) -> FloatArray:
        """Integral of each cumulative incidence from 0 to the horizon, (n, K)."""
        grid, width = simpson_from_both_ends(horizon)
        found = np.empty((len(prepared), len(self.cause_names_)))
        for rows in self._chunks(len(prepared), 2 * len(grid)):
            found[rows] = np.einsum("ntk,t->nk", self._incidences(prepared[rows], grid), width)
        return found

    # -- predictions ---------------------------------------------------------------------------------------------
    def predict_mean_count(self, X: Any, times: ArrayLike | None = None) -> FloatArray:
        """Mean number of events of a subject by each time, (n, T), where events recur.

        Parameters
        ----------
        X : table of n rows
        times : array_like (T,), optional
            ``unique_times_`` by default.

        Raises
        ------
        InvalidParameterError
            If the tree was not fitted to recurrent events.

        Notes
        -----
        The cumulative rate of the leaf, for a row that stays as it is: in an optimal tree the Nelson-Aalen estimate,
        pulled to those of the nodes above the leaf (Andersen and Gill 1982; Lawless and Nadeau 1995).
        ``predict_cumulative_hazard_function`` is the same number, and ``predict_survival_function`` the probability of
        no event yet if events come as a Poisson process.
        """
        check_is_fitted(self, "censoring_")
        if not self.recurrent_:
            raise InvalidParameterError(
                "mean counts need a tree of recurrent events; pass recurrent=True and id= to fit, "
                "or use predict_cumulative_hazard_function"
            )
        return self.predict_cumulative_hazard_function(X, times)  # type: ignore[attr-defined]

    def predict_cumulative_incidence(
        self, X: Any, times: ArrayLike | None = None, cause: int | str | None = None, **how: Any
    ) -> FloatArray:
        """Probability that the event of a cause has happened by each time, before any other.

        Parameters
        ----------
        X : table of n rows
        times : array_like (T,), optional
            Any times >= 0, in the unit of the training times; ``unique_times_`` by default.
        cause : int or str, optional
            Code 1..K or name; all causes by default.
        **how
            As in ``predict``.

        Returns
        -------
        ndarray (n, T), or (n, T, K) without ``cause``

        Raises
        ------
        InvalidParameterError
            If the tree was fitted to one kind of event.

        Notes
        -----
        F_k(t), the integral of S dH_k up to t, with S the probability of no event at all. It is what is seen in the
        world, where the other causes act; one minus exp(-H_k) is not.
        """
        grid, prepared = self._of_causes(X, times, how)
        found = self._incidences(prepared, grid)
        return found if cause is None else found[..., self._cause(cause) - 1]

    def predict_state_probabilities(self, X: Any, times: ArrayLike | None = None, **how: Any) -> FloatArray:
        """Probability of each state at each time, (n, T, K + 1): free of events, then each cause; they sum to one.

        Arguments as in :meth:`predict_cumulative_incidence`.
        """
        grid, prepared = self._of_causes(X, times, how)
        found = self._incidences(prepared, grid)
        with np.errstate(over="ignore"):
            free = np.exp(-np.exp(self._log_cumulative_hazard(prepared, grid)))  # type: ignore[attr-defined]
        return np.concatenate([free[..., None], found], -1)

    def predict_restricted_time_lost(
        self, X: Any, horizon: float | None = None, cause: int | str | None = None, **how: Any
    ) -> FloatArray:
        """Expected time lost to a cause before the horizon: the area under its cumulative incidence.

        Parameters
        ----------
        X : table of n rows
        horizon : float, optional
            In the unit of the training times; the largest training time by default.
        cause : int or str, optional
            Code 1..K or name; all causes by default.

        Returns
        -------
        ndarray (n,), or (n, K) without ``cause``
            With ``predict_expectation`` they sum to the horizon.

        References
        ----------
        Andersen (2013), Decomposition of number of life years lost according to causes of death.
        """
        self._require_causes()
        prepared, end = self._prepare(X, **how), self._end(horizon)  # type: ignore[attr-defined]
        found = self._time_lost(prepared, end)
        return found if cause is None else found[:, self._cause(cause) - 1]

    def predict_path(
        self,
        X: Any,
        start: Any,
        stop: Any = None,
        id: Any = None,
        times: ArrayLike | None = None,
        cause: int | str | None = None,
        **how: Any,
    ) -> FloatArray:
        """Survival, or the incidence of a cause, of subjects whose covariates change.

        Parameters
        ----------
        X : table of rows
            Covariates of a subject over (start, stop].
        start, stop, id : column name or array
            Each row's stretch of time, and its subject. Without ``id`` every row is a subject.
        times : array_like (T,), optional
            ``unique_times_`` by default.
        cause : int or str, optional
            Code 1..K or name: its cumulative incidence. Without it the probability of no event of any kind.

        Returns
        -------
        ndarray (subjects, T)
            Subjects in the order of their first rows. Given that the subject is free of events when its first row
            starts: survival is 1 and incidences are 0 until then. A row from 0 is at risk of events at time 0 too.

        Notes
        -----
        A row's covariates hold until the subject's next row starts, and those of its last row from then on: the
        prediction for later times is as if nothing changed any more. For one row it is as if it stayed so. Where the
        curve of a leaf has reached 0, nothing is known of later events there: rows that start after that have none.
        """
        check_is_fitted(self, "censoring_")
        code = None if cause is None else self._cause(cause)
        grid = self._grid(times)  # type: ignore[attr-defined]
        rows = path_rows(X, start, stop, id)
        subject, begin, end = stretches(rows)
        order = np.lexsort((begin, subject))
        prepared = self._prepare(rows.X.iloc[order], **how)  # type: ignore[attr-defined]
        subject, begin, end = subject[order], begin[order], end[order]
        lattice = self._hazard_grid(float(max(grid.max(), begin.max())))
        found = new_table(int(subject[-1]) + 1, len(grid))
        width, cells = len(lattice) + len(grid), tables.CELLS / max(len(self.cause_names_), 1)
        starts = (np.sqrt(width**2 + 4 * cells) - width) / 2  # rows at once: each may add its start to the times
        for some in self._chunks(len(found), int((width + starts) * len(subject) / len(found)) + 1):
            mine = np.arange(*np.searchsorted(subject, [some.start, some.stop]))
            own = np.unique(np.concatenate([lattice, grid, begin[mine], [0.0]]))
            hazards = np.minimum(self._cause_hazards(prepared[mine], own), LARGEST_HAZARD)
            before = np.append(0.0, own[:-1])  # the first step is that at time 0: who begins there is at risk at it
            within = (before >= begin[mine, None]) & (own <= end[mine, None])
            rises = np.where(within[..., None], np.diff(hazards, axis=1, prepend=0.0), 0.0)
            first = np.searchsorted(subject[mine], np.unique(subject[mine]))
            survival, risen = accumulated(np.add.reduceat(rises, first, 0))
            found[some] = (survival if code is None else risen[..., code - 1])[:, np.searchsorted(own, grid)]
        return found

    # -- inside --------------------------------------------------------------------------------------------------
    def _cause(self, cause: int | str) -> int:
        """The code 1..K of a cause given by code or name."""
        self._require_causes()
        return cause_code(cause, self.cause_names_)

    def _require_causes(self) -> None:
        check_is_fitted(self, "censoring_")
        if not self.cause_names_:
            raise InvalidParameterError(
                "cause asks for one of several kinds of events, and this tree was fitted to one; "
                "pass cause= to fit, or use predict_survival_function"
            )

    def _of_causes(self, X: Any, times: ArrayLike | None, how: dict[str, Any]) -> tuple[FloatArray, Any]:
        """The grid and the prepared rows of a prediction by cause."""
        self._require_causes()
        grid, prepared = self._grid(times), self._prepare(X, **how)  # type: ignore[attr-defined]
        check_room(len(prepared), len(grid), len(self.cause_names_))
        return grid, prepared

    def _cause_risk(self, prepared: Any, times: FloatArray, code: int) -> FloatArray:
        """Mean over times of log(-log(1 - F_k)), which is log H where there is one cause; (n,)."""
        with np.errstate(divide="ignore"):
            log_hazard = np.log(-np.log1p(-np.minimum(self._incidences(prepared, times)[..., code - 1], 1.0)))
        return np.clip(log_hazard, -745.0, 745.0).mean(1)

    def _chunks(self, n: int, n_times: int) -> list[slice]:
        """Slices of n rows, as many at once as `row_blocks` allows for all causes."""
        return row_blocks(n, n_times * max(len(self.cause_names_), 1))


def path_rows(X: Any, start: Any, stop: Any, id: Any) -> SurvivalData:
    """The rows of a path as data without events."""
    if isinstance(X, SurvivalData):
        return X
    frame = as_frame(X)
    if stop is None:
        raise InvalidParameterError("stop must say until when each row's covariates hold; pass a column name or array")
    return survival_data(frame, event=np.zeros(len(frame), dtype=bool), start=start, stop=stop, id=id)


def stretches(rows: SurvivalData) -> tuple[IntArray, FloatArray, FloatArray]:
    """Subject (N,) by first appearance, and from when until when each row's covariates hold."""
    n = rows.n
    begin = np.zeros(n) if rows.entry is None else rows.entry.cpu().numpy()
    if rows.subject is None:
        return np.arange(n), begin, np.full(n, np.inf)
    _, first, code = np.unique(rows.subject.cpu().numpy(), return_index=True, return_inverse=True)
    subject = np.argsort(np.argsort(first))[code]
    order = np.lexsort((begin, subject))
    end = np.full(n, np.inf)
    follows = subject[order[1:]] == subject[order[:-1]]
    end[order[:-1][follows]] = begin[order[1:][follows]]
    return subject, begin, end
