"""Aalen-Johansen estimate of competing risks: the probability of each state over time, without a model.

Ties, weights and late entry are those of `softsurv.nonparametric`: events come before censorings at one time, weights
count as cases, and a row is at risk on (entry, time].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.nonparametric import StepFunction, at_risk_table, ratio

ROUNDING = 1e-12
"""Sums of weights in different order differ by rounding: a share this close to one is everybody."""


@dataclass(frozen=True)
class AalenJohansen:
    """State probabilities as step functions of time; all are right-continuous and constant after the last time.

    Attributes
    ----------
    times : ndarray (T,)
        Distinct observed times.
    incidence : ndarray (T, K)
        Probability of an event of each cause up to each time.
    survival : ndarray (T,)
        Probability of being free of all events; with ``incidence`` it sums to one.
    variance : ndarray (T, K)
        Variance of ``incidence``.
    """

    times: FloatArray
    incidence: FloatArray
    survival: FloatArray
    variance: FloatArray

    @property
    def n_causes(self) -> int:
        """Number of causes K."""
        return self.incidence.shape[1]

    def state_probabilities(self, times: ArrayLike) -> FloatArray:
        """Probability of each state at each time, (..., K + 1) for times (...,): free of events, then the causes."""
        start = np.zeros((1, self.n_causes + 1))
        start[0, 0] = 1.0
        steps = np.concatenate([start, np.column_stack([self.survival, self.incidence])])  # (T + 1, K + 1)
        return np.asarray(steps[np.searchsorted(self.times, np.asarray(times, dtype=float), side="right")])

    def of_cause(self, code: int) -> StepFunction:
        """Cumulative incidence of the cause 1..K."""
        return StepFunction(self.times, self.incidence[:, self._column(code)], 0.0)

    def interval(
        self, code: int, level: float = 0.95, kind: Literal["log-log", "plain"] = "log-log"
    ) -> tuple[StepFunction, StepFunction]:
        """Pointwise confidence interval of the cumulative incidence of one cause.

        Parameters
        ----------
        code : int
            The cause, 1..K.
        level : float
            Two-sided coverage, between 0 and 1.
        kind : {"log-log", "plain"}
            Scale on which the interval is symmetric: log(-log F), or F itself cut to [0, 1].

        Returns
        -------
        lower, upper : StepFunction
            Both equal to F where F is 0 or 1.
        """
        if not 0.0 < level < 1.0:
            raise InvalidParameterError(f"level must be between 0 and 1, got {level!r}; 0.95 is usual")
        if kind not in ("log-log", "plain"):
            raise InvalidParameterError(f"kind must be 'log-log' or 'plain', got {kind!r}")
        value = self.incidence[:, self._column(code)]  # (T,)
        half = float(ndtri(0.5 + level / 2.0)) * np.sqrt(self.variance[:, code - 1])
        lower, upper = np.maximum(value - half, 0.0), np.minimum(value + half, 1.0)
        if kind == "log-log":
            inside = (value > 0.0) & (value < 1.0)
            lower, upper = value.copy(), value.copy()
            log_value = np.log(value[inside])
            spread = half[inside] / (value[inside] * log_value)  # negative: log F < 0
            with np.errstate(over="ignore"):  # an overflow gives the right limit, 0
                lower[inside] = np.exp(log_value * np.exp(-spread))
            upper[inside] = np.exp(log_value * np.exp(spread))
        return StepFunction(self.times, lower, 0.0), StepFunction(self.times, upper, 0.0)

    def _column(self, code: int) -> int:
        if not 1 <= code <= self.n_causes:
            raise InvalidParameterError(f"cause must be a code from 1 to {self.n_causes}, got {code!r}")
        return code - 1


def aalen_johansen(
    time: ArrayLike,
    cause: ArrayLike,
    weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
    n_causes: int | None = None,
) -> AalenJohansen:
    """Aalen-Johansen estimate of competing risks.

    Parameters
    ----------
    time : array_like (N,)
        Observed times.
    cause : array_like of int (N,)
        What happened: 0 for a censored row, else 1..K.
    weight : array_like (N,), optional
        Case weights >= 0; counts are sums of weights.
    entry : array_like (N,), optional
        A row is at risk on (entry, time], with 0 from the start. Rows (start, stop] of one subject enter like this.
    n_causes : int, optional
        K; the largest code by default.

    Returns
    -------
    AalenJohansen
        O(N log N + T K).

    Raises
    ------
    InvalidSurvivalDataError
        If a column has the wrong shape or holds an impossible value.

    Notes
    -----
    With n(s) at risk, d_k(s) events of cause k and d(s) of all: S(t) = prod (1 - d(s) / n(s)) and
    F_k(t) = sum S(s-) d_k(s) / n(s) over s <= t. The variance is Greenwood's for competing risks: with
    R = F_k(t) - F_k(s), the sum over s <= t of R^2 d / (n (n - d)) + S(s-)^2 d_k (n - d_k) / n^3 - 2 R S(s-) d_k / n^2.

    References
    ----------
    Andersen, Borgan, Gill, Keiding, Statistical Models Based on Counting Processes (1993), IV.4.
    Marubini, Valsecchi, Analysing Survival Data from Clinical Trials (1995), eq. 10.12.

    Examples
    --------
    >>> curve = aalen_johansen([1.0, 2.0, 3.0, 4.0], [1, 2, 0, 1])
    >>> curve.state_probabilities([0.5, 2.0]).tolist()
    [[1.0, 0.0, 0.0], [0.5, 0.25, 0.25]]
    """
    codes = _codes(cause, n_causes)
    table = at_risk_table(time, codes > 0, weight, entry)
    size = int(codes.max(initial=1)) if n_causes is None else n_causes
    events = _events(np.asarray(time, dtype=float), codes, weight, table.times, size)  # (T, K)
    total = table.events
    survival = np.asarray(np.cumprod(1.0 - ratio(total, table.at_risk)), dtype=float)
    before = np.concatenate([[1.0], survival[:-1]])[:, None]
    at_risk = table.at_risk[:, None]
    incidence = np.minimum(np.cumsum(before * ratio(events, at_risk), axis=0), 1.0)  # a sum may pass 1 by rounding
    # where all at risk fail, n = d, the curve stays level from there on: R is 0, and so is the first term
    left = np.where(total < (1.0 - ROUNDING) * table.at_risk, table.at_risk - total, 0.0)
    spread = ratio(total, table.at_risk * left)[:, None]
    own = before**2 * ratio(events * (at_risk - events), at_risk**3)
    both = before * ratio(events, at_risk**2)
    variance = np.cumsum(own, axis=0) + incidence**2 * np.cumsum(spread, axis=0)
    variance += np.cumsum(spread * incidence**2 + 2.0 * both * incidence, axis=0)
    variance -= 2.0 * incidence * np.cumsum(spread * incidence + both, axis=0)
    return AalenJohansen(table.times, incidence, survival, np.maximum(variance, 0.0))


def _codes(cause: ArrayLike, n_causes: int | None) -> IntArray:
    """Causes (N,) as whole numbers from 0 to ``n_causes``."""
    values = np.asarray(cause)
    whole = values.astype(np.int64) if values.dtype.kind in "biuf" else None
    highest = np.inf if n_causes is None else n_causes
    if whole is None or not np.array_equal(whole, values) or (whole < 0).any() or (whole > highest).any():
        wanted = "0 for censored and whole numbers" + ("" if n_causes is None else f" up to {n_causes}")
        raise InvalidSurvivalDataError(f"cause must hold {wanted}; got {np.unique(values)[:6].tolist()}")
    return whole


def _events(time: FloatArray, codes: IntArray, weight: ArrayLike | None, times: FloatArray, size: int) -> FloatArray:
    """Weighted events of each cause at each distinct time, (T, K)."""
    failed = codes > 0
    cell = np.searchsorted(times, time[failed]) * size + codes[failed] - 1
    weights = None if weight is None else np.asarray(weight, dtype=float)[failed]
    return np.bincount(cell, weights=weights, minlength=times.size * size).reshape(-1, size).astype(float)
