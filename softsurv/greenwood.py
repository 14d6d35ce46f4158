"""Greenwood's variance of a Kaplan-Meier curve, and pointwise limits of the curve on the log-log scale."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from softsurv.arrays import FloatArray


def greenwood(events: FloatArray, at_risk: FloatArray) -> FloatArray:
    """Variance of log S at each time, (K,): the sum of d / (n (n - d)) so far. It stays where nobody survives."""
    product = at_risk * (at_risk - events)
    return np.cumsum(np.divide(events, product, out=np.zeros_like(product), where=product > 0.0))


def log_log_limits(survival: FloatArray, variance: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Limits of S at each time, (K,), from the variance of log S, (K,). Where S is 0 or 1, both are.

    S to the power of exp(+-q sd / log S), q the normal quantile: symmetric on the scale of log(-log S).
    """
    inside = (survival > 0.0) & (survival < 1.0)
    log_survival = np.log(np.where(inside, survival, 0.5))
    spread = float(ndtri(0.5 + level / 2.0)) * np.sqrt(variance) / log_survival  # negative: log S < 0
    with np.errstate(over="ignore"):  # an overflow gives the right limit, 0
        lower, upper = (np.exp(log_survival * np.exp(sign * spread)) for sign in (-1.0, 1.0))
    return np.where(inside, lower, survival), np.where(inside, upper, survival)


def falling_limits(survival: FloatArray, variance: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """The same limits where they fall with time, as the curve does.

    A lower limit holds for all times before it, and an upper limit for all times after it. Where nobody survives, the
    lower limit is 0 and the upper one stays as it was.
    """
    lower, upper = log_log_limits(survival, variance, level)
    upper = np.where(survival > 0.0, upper, 1.0)
    return np.maximum.accumulate(lower[::-1])[::-1], np.minimum.accumulate(upper)
