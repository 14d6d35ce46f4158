"""Rows with groups, gaps and categories, and trees fitted to them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sksurv.util import Surv

from softsurv import SoftSurvivalTree

FIXED = {"l2": 1.0, "shrinkage": 1.0, "routing_l2": 0.1, "n_restarts": 2, "device": "cpu"}


def simulated(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Two groups whose risk runs against each other in x, a number with gaps and a category."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "side": rng.choice(["left", "right"], n),
            "noise": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )
    slope = np.where(X["side"] == "left", 1.0, -1.0)
    time = 8 * rng.weibull(1.6, n) * np.exp(-slope * X["x"]) + 0.01
    censoring = rng.exponential(25.0, n)
    return X, Surv.from_arrays(time <= censoring, np.minimum(time, censoring))


@pytest.fixture(scope="session")
def make_rows():
    """Rows of a size and a seed."""
    return simulated


@pytest.fixture(scope="module")
def rows():
    return simulated()


@pytest.fixture(scope="module")
def trees(rows):
    """One fitted tree for each leaf family, made when asked for."""
    fitted: dict[str, SoftSurvivalTree] = {}

    def tree(family: str = "loglogistic") -> SoftSurvivalTree:
        if family not in fitted:
            fitted[family] = SoftSurvivalTree(depth=2, leaf=family, **FIXED).fit(*rows)
        return fitted[family]

    return tree
