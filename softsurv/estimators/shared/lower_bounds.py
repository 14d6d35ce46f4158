"""Lower bounds on the survival time of a row that hold with a stated probability: a mixin of the survival trees."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.frames import as_frame
from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, warn
from softsurv.estimators.column_names import reader_columns
from softsurv.estimators.shared.checks import whole
from softsurv.metrics.conformal import followed_weight, lower_cutoff
from softsurv.metrics.ranges import survival_from_log_cumulative_hazard

REACH, MARGINS = 0.99, (2.0, 3.0, 5.0)
"""Cut-offs tried in a leaf: quantile ``REACH``, over its rows, of the times at which F reaches ``MARGINS`` times the
allowed error. The first cut-off that cuts few bounds is taken."""

EARLIER = (0.9, 0.75, 0.5, 0.25)
"""Smaller quantiles than ``REACH``, tried where too few rows are followed until the first cut-off."""

CUT = 0.005
"""Share of a leaf's bounds that the cut-off may cut; such a bound is shorter than it needs to be."""

PIECE = 500
"""Rows whose curves are worked out at once, each at the times of all of them."""


class LowerBounds:
    """Mixin of the survival trees: `calibrate`, then `predict_lower_bound`."""

    horizon_: float
    calibration_: pd.DataFrame
    """Found by `calibrate`, by coverage and leaf: rows, those that count as followed, level of the score, cut-off."""

    def calibrate(
        self, X: Any, y: Any = None, *, coverage: float | Sequence[float] = 0.9, n_folds: int | None = None, **how: Any
    ) -> Any:
        """Set the bounds of `predict_lower_bound` by rows that the fit has not seen, leaf by leaf.

        Parameters
        ----------
        X, y, **how
            As in ``fit``: rows that the tree was not fitted to. With ``n_folds``, the training rows.
        coverage : float or sequence of float
            Probability with which a bound is to hold, in (0, 1); several to choose from later.
        n_folds : int, optional
            Cross-conformal: each row is scored by a copy of this tree that is fitted without its fold. No rows are
            set aside, and the promise is kept closely rather than proven.

        Returns
        -------
        self

        Raises
        ------
        InvalidSurvivalDataError
            With late entry, intervals, weights or several rows for a subject, for which the promise is not known.

        Warns
        -----
        DataWarning
            Where a leaf has too few rows for a bound above 0; it needs 1 / (1 - coverage) - 1 followed rows.

        Notes
        -----
        A row's score is F(min(T, c) | x), c a time chosen for its leaf. The bound is the time at
        which the curve of a new row of the leaf reaches the score that 1 - coverage of the leaf's rows stay below, or
        c. It holds with at least the stated probability in each leaf where censoring is independent of the event time
        within the leaf; the model may be wrong. Only levels and times are kept, no rows: ``calibration_`` has for each
        leaf its rows ``n``, how many of them count as ``followed`` until c, the ``level`` of the score (of an optimal
        tree the bound itself) and c, the ``cutoff``.

        References
        ----------
        Candes, Lei and Ren (2023), Conformalized survival analysis. Sesia and Svetnik (2024), Doubly robust
        conformalized survival analysis with right-censored data, arXiv 2412.09729.
        """
        check_is_fitted(self, "censoring_")
        data = _plain_rows(survival_data(X, y, **reader_columns(LowerBounds.calibrate, how)))
        coverages = [_checked_coverage(share) for share in np.atleast_1d(np.asarray(coverage, dtype=object))]
        time, event = data.time.double().cpu().numpy(), data.event.cpu().numpy()
        scorers = self._scorers(data, n_folds)
        leaf = self.apply(data.X)  # type: ignore[attr-defined]
        found = []
        for share in coverages:
            for one in range(self.leaf_table_.n.size):  # type: ignore[attr-defined]
                some = np.flatnonzero(leaf == one)
                found.append((share, one, *self._calibrated(data, some, time, event, scorers, 1.0 - share)))
        names = ["coverage", "leaf", "n", "followed", "level", "cutoff"]
        self.calibration_ = pd.DataFrame(found, columns=names).set_index(["coverage", "leaf"])
        _warn_of_few(self.calibration_)
        return self

    def predict_lower_bound(self, X: Any, coverage: float = 0.9) -> FloatArray:
        """Time that a row survives with at least the stated probability, (n,), whether or not the model is right.

        Parameters
        ----------
        X : table of n rows
        coverage : float
            One of those that `calibrate` was given.

        Returns
        -------
        ndarray (n,)
            In the unit of the training times; 0 where the leaf had too few rows to say more.

        Raises
        ------
        InvalidParameterError
            If `calibrate` has not been called with this coverage.
        """
        check_is_fitted(self, "censoring_")
        known = self.calibration_.index.unique("coverage").tolist() if hasattr(self, "calibration_") else []
        share = next((one for one in known if abs(one - coverage) < 1e-12), None)
        if share is None:
            has = f"was calibrated for {', '.join(f'{one:g}' for one in known)}" if known else "is not calibrated"
            raise InvalidParameterError(
                f"coverage is {coverage!r} and the tree {has}; call calibrate(X, y, coverage=...) with other rows first"
            )
        frame = _frame(X)
        leaf = self.apply(frame)  # type: ignore[attr-defined]
        bound = np.zeros(len(leaf))
        for one in np.unique(leaf):
            row = self.calibration_.loc[(share, one)]
            some = np.flatnonzero(leaf == one)
            if row["level"] > 0:
                bound[some] = np.minimum(self._time_of_score(frame.iloc[some], float(row["level"])), row["cutoff"])
        return bound

    # -- hooks ---------------------------------------------------------------------------------------------------
    def _score(self, X: pd.DataFrame, time: FloatArray) -> FloatArray:
        """How early each row failed by its own curve, F(t_i | x_i), (n,)."""
        found = np.empty(len(time))
        for begin in range(0, len(time), PIECE):
            part = slice(begin, begin + PIECE)
            at, place = np.unique(time[part], return_inverse=True)
            log_hazard = self._log_cumulative_hazard(self._prepare(X.iloc[part]), at)  # type: ignore[attr-defined]
            curves = survival_from_log_cumulative_hazard(log_hazard)
            found[part] = 1.0 - curves[np.arange(len(place)), place]
        return found

    def _time_of_score(self, X: pd.DataFrame, level: float) -> FloatArray:
        """Time at which each row has a score, (n,)."""
        return self._time_at(X, level)

    # -- inside --------------------------------------------------------------------------------------------------
    def _calibrated(
        self, data: SurvivalData, some: IntArray, time: FloatArray, event: Any, scorers: list[Any], alpha: float
    ) -> tuple[int, float, float, float]:
        """How many rows a leaf has, how many of them count as followed, the level of the score, and the cut-off."""
        if not some.size:
            return 0, 0.0, 0.0, 0.0
        rows = data.X.iloc[some]

        def tried(margin: float, reach: float) -> tuple[float, float, float]:
            """Followed rows, level and cut-off."""
            early = self._time_at(rows, min(margin * alpha, 0.5 * (1.0 + alpha)))
            cutoff = float(np.minimum(np.quantile(early, reach, method="higher"), self.horizon_))
            score = np.empty(some.size)
            for model, scored in scorers:
                mine = np.flatnonzero(np.isin(some, scored))
                score[mine] = model._score(rows.iloc[mine], np.minimum(time[some[mine]], cutoff))
            weight = followed_weight(time[some], event[some], cutoff)
            return float(weight.sum()), lower_cutoff(score, weight, alpha), cutoff

        for reach in (REACH, *EARLIER):
            found = tried(MARGINS[0], reach)
            if found[1] > 0:
                break
        for margin in MARGINS[1:]:
            if found[1] <= 0 or np.mean(self._time_of_score(rows, found[1]) > found[2]) <= CUT:
                break
            later = tried(margin, REACH)
            if later[1] <= 0:  # too few rows are followed until then
                break
            found = later
        return some.size, *found

    def _scorers(self, data: SurvivalData, n_folds: int | None) -> list[Any]:
        """Models with the rows that each of them scores."""
        if n_folds is None:
            return [(self, np.arange(data.n))]
        whole("n_folds", n_folds, 2)
        return [(clone(self).fit(data.take(train)), test) for train, test in data.folds(n_folds)]

    def _time_at(self, X: pd.DataFrame, level: float) -> FloatArray:
        """Time at which F reaches a level, (n,); a rounding error makes it earlier, never later."""
        return np.asarray(self._quantile(self._prepare(X), min(1.0 - level + 1e-12, 1.0)))  # type: ignore[attr-defined]


def _plain_rows(data: SurvivalData) -> SurvivalData:
    """The data in as few rows as possible, if these are right-censored, of one weight, one for each subject."""
    begins = "entry" if data.subject is None else "start after 0"
    data = data.joined()
    if data.n_subjects < data.n:
        raise InvalidSurvivalDataError(
            f"calibration needs one row for each subject, got {data.n_subjects} subjects in {data.n} rows; "
            "calibrate on subjects whose features do not change, up to their first event"
        )
    late = data.entry is not None and bool((data.entry > 0).any())
    odd = {
        begins: late,
        "upper": data.upper is not None and bool(data.upper.isfinite().logical_and(~data.event).any()),
        "weight": data.weight is not None and bool((data.weight != 1).any()),
    }
    for name, there in odd.items():
        if there:
            raise InvalidSurvivalDataError(
                f"{name} must be left out of calibration: lower bounds are known for right-censored rows of equal "
                "weight, one for each subject; calibrate on such rows"
            )
    return data


def _frame(X: Any) -> pd.DataFrame:
    return X.X if isinstance(X, SurvivalData) else as_frame(X)


def _checked_coverage(share: Any) -> float:
    if not isinstance(share, numbers.Real) or not 0 < float(share) < 1:
        raise InvalidParameterError(f"coverage must be between 0 and 1, got {share!r}; 0.9 is usual")
    return float(share)


def _warn_of_few(table: pd.DataFrame) -> None:
    """Name the leaves without a bound."""
    few = table[table["level"] <= 0]
    if few.empty:
        return
    rows = few.reset_index()[["leaf", "followed"]].itertuples(index=False)
    told = ", ".join(f"leaf {leaf} ({followed:.0f} rows)" for leaf, followed in rows)
    warn(
        f"too few followed rows for a bound above 0 in {told}; give more rows to calibrate, or a smaller coverage",
        DataWarning,
    )
