"""Rows that the tests of separable objectives share."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="session")
def rows():
    def rows(n=120, seed=0):
        """A frame with numbers, a category and missing values, and text classes that depend on it."""
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"age": rng.normal(60, 9, n), "dose": rng.gamma(2, 3, n), "arm": rng.choice(list("xyz"), n)})
        y = np.where((X["age"] > 60) & (X["arm"] != "x") ^ (rng.random(n) < 0.1), "ill", "well")
        X.loc[::17, "dose"] = np.nan
        return X, y

    return rows


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 5))
    y = (X[:, 0] * X[:, 1] + 0.6 * rng.normal(size=250) > 0.7).astype(int)
    group = (X[:, 2] + rng.normal(size=250) > 0).astype(int)
    return X, y, group
