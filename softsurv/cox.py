"""Cox regression under a time limit: for nuisance models of survival policies, and as the start of spline leaves.

The well-kept libraries work through the rows one by one and cannot be cut short: no time limit of the caller stops
them. Here a Newton step is three products of matrices.
`tests/test_cox.py` compares with scikit-survival.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from softsurv.arrays import BoolArray, FloatArray
from softsurv.nonparametric import at_risk_table
from softsurv.stopping import StopSignal

MOST_STEPS = 50
"""Newton steps; a handful is usual."""

WIDE = 300.0
"""Logarithms of risks that differ by up to so much are added up as they are: floats hold those of up to 700."""

RELATIVE_DECREMENT = 1e-12
"""The steps end where the next would gain less than this share of the loss."""


@dataclass(frozen=True)
class CoxFit:
    """A fitted model: the cumulative hazard of features x by time t is ``hazard(t) exp(x' coefficients)``.

    Attributes
    ----------
    coefficients : (P,)
    times : (T,)
        Distinct event times, rising.
    hazard : (T,)
        Breslow's cumulative baseline hazard at these times, 0 before.
    converged : bool
        False where the time or the steps ran out.
    """

    coefficients: FloatArray
    times: FloatArray
    hazard: FloatArray
    converged: bool

    def hazard_at(self, times: FloatArray) -> FloatArray:
        """The baseline at any times (M,), level after the last event."""
        return np.append(0.0, self.hazard)[np.searchsorted(self.times, times, side="right")]

    def log_risk(self, X: FloatArray) -> FloatArray:
        """x' coefficients of rows (N, P), as (N,)."""
        return np.asarray(X @ self.coefficients)


class _PartialLikelihood:
    """Breslow's partial likelihood of rows in order of falling time, with a ridge penalty."""

    def __init__(self, X: FloatArray, time: FloatArray, event: BoolArray, weight: FloatArray, ridge: float) -> None:
        order = np.argsort(-time, kind="stable")
        self.x, self.weight, self.ridge, self.total = X[order], weight[order], ridge, weight.sum()
        falling, happened = time[order], event[order]
        last = np.searchsorted(-falling, -falling, side="right") - 1  # the last row at risk when a row ends
        self.ends, place = np.unique(last[happened], return_inverse=True)  # one for each event time
        self.deaths = np.bincount(place, self.weight[happened], len(self.ends))
        self.times = falling[self.ends][::-1]
        self.event_sum = self.weight[happened] @ self.x[happened]

    def value(self, beta: FloatArray) -> float:
        """Minus the mean log-likelihood, with the penalty."""
        base, _, at_risk = self._risks(beta)
        gain = self.event_sum @ beta - self.deaths @ (np.log(at_risk) + base[self.ends])
        return float((self.ridge * (beta @ beta) / 2 - gain) / self.total)

    def slopes(self, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient (P,) and Hessian (P, P) of :meth:`value`."""
        base, risk, at_risk = self._risks(beta)
        share = np.zeros(len(risk))
        share[self.ends] = self.deaths / at_risk
        met = risk * running_sums(share[::-1], base[::-1])[::-1]  # expected events of each row
        means = running_sums(self.x * risk[:, None], base)[self.ends] / at_risk[:, None]
        squared = (self.x * met[:, None]).T @ self.x - (means * self.deaths[:, None]).T @ means
        gradient = met @ self.x - self.event_sum + self.ridge * beta
        return gradient / self.total, (squared + self.ridge * np.eye(len(beta))) / self.total

    def hazard(self, beta: FloatArray) -> FloatArray:
        """Breslow's cumulative baseline hazard at ``times``."""
        base, _, at_risk = self._risks(beta)
        with np.errstate(over="ignore"):  # no float holds it where all rows lie far from x = 0
            return np.cumsum((self.deaths / at_risk * np.exp(-base[self.ends]))[::-1])

    def _risks(self, beta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Units (N,) whose logarithms are given, weighted risks (N,) in them, and their sums at the event times (T,).

        The unit is the largest risk, or a smaller one for the rows before whose end all are small: in the largest one
        their sums would be 0.
        """
        log_risk = self.x @ beta
        top = np.maximum.accumulate(log_risk)
        base = top[-1] - np.floor((top[-1] - top) / WIDE) * WIDE
        risk = self.weight * np.exp(log_risk - base)
        return base, risk, running_sums(risk, base)[self.ends]


def running_sums(
    values: FloatArray,  # (N, ...)
    base: FloatArray,  # (N,) rises or falls
) -> FloatArray:  # (N, ...)
    """Sums of the values so far, in the unit of each row; a sum that is carried into another unit gets no larger."""
    begins = [0, *(np.flatnonzero(base[1:] != base[:-1]) + 1).tolist(), len(base)]
    found = np.empty_like(values)
    for first, end in pairwise(begins):
        np.cumsum(values[first:end], axis=0, out=found[first:end])
        if first:
            found[first:end] += found[first - 1] * np.exp(-abs(base[first] - base[first - 1]))
    return found


def fit_cox(
    X: FloatArray,
    time: FloatArray,
    event: BoolArray,
    ridge: float = 0.0,
    stop: StopSignal | None = None,
    weight: FloatArray | None = None,
) -> CoxFit:
    """Fit by Newton's method, events at one time by Breslow's approximation.

    Parameters
    ----------
    X : (N, P)
    time, event : (N,)
        At least one event.
    ridge : float
        Half of it times the squared coefficients is taken off the log-likelihood.
    stop : StopSignal, optional
        Asked before each step. When it is exhausted, the fit so far is returned.
    weight : (N,), optional
        Above 0; a row of weight 2 counts as two rows.
    """
    weight = np.ones(len(time)) if weight is None else weight
    stop = StopSignal() if stop is None else stop
    if ridge > 0 and X.shape[1] > X.shape[0]:
        return _in_row_space(X, time, event, ridge, stop, weight)
    rows = _PartialLikelihood(X, time, event, weight, ridge)
    beta, converged = np.zeros(X.shape[1]), False
    loss = rows.value(beta)
    for _ in range(MOST_STEPS):
        if stop.exhausted:
            break
        gradient, hessian = rows.slopes(beta)
        step = _newton_step(hessian, gradient, ridge)
        converged = bool(gradient @ step <= RELATIVE_DECREMENT * abs(loss))
        if converged:  # the last step is below what rounding leaves of the loss
            beta = beta - step
            break
        size, tried = 1.0, rows.value(beta - step)
        while not tried <= loss and size > 1e-6:  # also where it is no number
            size /= 2
            tried = rows.value(beta - size * step)
        if not tried <= loss:
            break
        beta, loss = beta - size * step, tried
    return CoxFit(beta, rows.times, rows.hazard(beta), converged)


def _in_row_space(
    X: FloatArray, time: FloatArray, event: BoolArray, ridge: float, stop: StopSignal, weight: FloatArray
) -> CoxFit:
    """The fit for more features than rows: the penalty keeps the coefficients in the span of the rows."""
    if stop.exhausted:
        basis, few = np.zeros((X.shape[1], 0)), np.zeros((len(X), 0))
    else:
        basis, triangle = np.linalg.qr(X.T)  # (P, N), (N, N)
        few = triangle.T
    found = fit_cox(few, time, event, ridge, stop, weight)
    return replace(found, coefficients=basis @ found.coefficients)


def _newton_step(hessian: FloatArray, gradient: FloatArray, ridge: float) -> FloatArray:
    """What a Newton step subtracts; the shortest one where there are several."""
    if ridge > 0:
        try:
            return np.asarray(cho_solve(cho_factor(hessian), gradient))
        except np.linalg.LinAlgError:  # not positive definite to rounding
            pass
    return np.asarray(np.linalg.lstsq(hessian, gradient, rcond=None)[0], dtype=np.float64)


def efron_steps(
    time: FloatArray,  # (N,)
    event: BoolArray,  # (N,)
    risk: FloatArray,  # (N,) exp(x' coefficients)
    weight: FloatArray | None = None,  # (N,)
    entry: FloatArray | None = None,  # (N,)
) -> FloatArray:
    """Efron's rise of the baseline hazard at each distinct time, (T,).

    With d events of total weight W and risk D among a risk S at a time: W / d times the sum of 1 / (S - l D / d) over
    l = 0 to d - 1.
    """
    weighted = risk if weight is None else risk * weight
    table = at_risk_table(time, event, weighted, entry)
    counts = at_risk_table(time, event).events
    weights = counts if weight is None else at_risk_table(time, event, weight).events
    steps = np.zeros(table.times.size)
    for t in np.flatnonzero(counts > 0):
        d = int(counts[t])
        left = table.at_risk[t] - np.arange(d) / d * table.events[t]
        steps[t] = weights[t] / d * (1.0 / left).sum()
    return steps
