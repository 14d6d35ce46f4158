"""Simulated folds shared by the tests of the measures."""

from types import SimpleNamespace

import numpy as np
import pytest
from sksurv.util import Surv


def simulate(seed, n=80, ties=False):
    """Weibull times with non-proportional hazards, exponential censoring; optionally on a coarse clock."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    shape = np.where(rng.random(n) < 0.5, 0.6, 1.8)
    event_time = 10.0 * rng.weibull(shape) * np.exp(-x / 2)
    censoring_time = rng.exponential(15.0, n)
    time = np.minimum(event_time, censoring_time)
    if ties:
        time = np.ceil(time / 2)
    event = event_time <= censoring_time

    def log_cumulative_hazard(times):
        log_time = np.log(np.maximum(times, 1e-300))[None, :]
        return shape[:, None] * (log_time - np.log(10.0) + x[:, None] / 2)

    return SimpleNamespace(time=time, event=event, risk=x, log_h=log_cumulative_hazard, y=Surv.from_arrays(event, time))


@pytest.fixture
def fold():
    """The simulating function itself: fold(seed, n, ties)."""
    return simulate
