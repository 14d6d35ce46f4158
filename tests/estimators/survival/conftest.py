"""A trial whose truth is known, shared by the tests of survival policies."""

import numpy as np
import pandas as pd
import pytest

HORIZON = 2.0


def _rates(x):
    base = np.exp(0.5 * x[:, 1])
    return np.column_stack([base, base * np.where(x[:, 0] > 0, 0.4, 2.0)])


@pytest.fixture(scope="session", name="rates")
def rates_():
    return _rates


def _true_means(x):
    r = _rates(x)
    return (1 - np.exp(-r * HORIZON)) / r


@pytest.fixture(scope="session", name="true_means")
def true_means_():
    return _true_means


def _trial(n, seed, *, confounded=False):
    """Exponential times: treatment 1 helps where x0 > 0 and harms elsewhere; independent censoring."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    chance = 1 / (1 + np.exp(-1.5 * x[:, 1])) if confounded else np.full(n, 0.5)
    treatment = (rng.random(n) < chance).astype(int)
    rate = _rates(x)[np.arange(n), treatment]
    event_time, censored = rng.exponential(1 / rate), rng.exponential(3.0, n)
    time = np.minimum(event_time, censored)
    return pd.DataFrame(x, columns=["a", "b", "c"]), time, event_time <= censored, treatment, chance, rate


@pytest.fixture(scope="session", name="trial")
def trial_():
    return _trial
