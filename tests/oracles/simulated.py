"""Simulated survival data, plain and with everything that rows may have."""

import numpy as np
import pandas as pd

from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData


def simulate(n=60, p=3, seed=0, **columns):
    """Censored Weibull times whose scale jumps with the sign of the first feature."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    jump = np.where(x[:, 0] > 0, 1.5, -0.5) if p else 0.0
    slope = x[:, -1] * 0.4 if p else 0.0
    event_time = np.exp(1 + jump + slope) * rng.weibull(1.4, n)
    censoring = rng.exponential(12.0, n)
    time, event = np.minimum(event_time, censoring), event_time <= censoring
    return SurvivalData(pd.DataFrame(x, columns=[f"x{k}" for k in range(p)]), time, event, **columns)


def with_everything(n=60, p=3, seed=0):
    """Simulated data with weights, late entries, interval and left censoring."""
    rng = np.random.default_rng(seed + 1)
    plain = simulate(n, p, seed)
    time, event = plain.time.numpy().copy(), plain.event.numpy().copy()
    upper = np.full(n, np.inf)
    interval = rng.random(n) < 0.3
    past = ~interval & (rng.random(n) < 0.2)
    upper[interval] = time[interval] * rng.uniform(1.1, 3, interval.sum())
    upper[past], time[past] = time[past] + 0.5, 0.0
    event[interval | past] = False
    entry = np.where((rng.random(n) < 0.4) & (time > 0), 0.5 * time, 0.0)
    return SurvivalData(plain.X, time, event, entry=entry, upper=upper, weight=rng.uniform(0.2, 3, n))


def two_causes(n=150, weight=False):
    """Exponential times of two causes, motor and seal, that depend on x and not on the kind; a third is censored."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=n), "kind": rng.choice(["a", "b"], n)})
    time = rng.exponential(np.exp(-X["x"])) + 0.01
    how = {"weight": rng.uniform(0.5, 2, n)} if weight else {}
    return survival_data(X, time=time, cause=rng.choice(["", "seal", "motor"], n), **how)
