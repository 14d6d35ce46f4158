"""A small data set with structure, and a space that trains in milliseconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from softsurv.data.survival_data import SurvivalData


def small_data(n: int = 120, seed: int = 0, group: bool = False) -> SurvivalData:
    """Exponential times whose hazard depends on two of four features; a third of the rows is censored."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3))
    kind = rng.choice(["a", "b"], n)
    time = rng.exponential(np.exp(-x[:, 0] - (kind == "a")))
    censoring = rng.exponential(2.0, n)
    frame = pd.DataFrame(x, columns=["u", "v", "w"]).assign(kind=kind)
    columns: dict[str, Any] = {"group": rng.choice(["f", "m"], n)} if group else {}
    return SurvivalData(frame, np.minimum(time, censoring) + 1e-3, time <= censoring, **columns)


@pytest.fixture
def data() -> SurvivalData:
    """120 rows, 4 features."""
    return small_data()


@pytest.fixture
def grouped() -> SurvivalData:
    """The same with two groups."""
    return small_data(group=True)


@pytest.fixture
def quick_space() -> dict[str, Any]:
    """Depth 0 and 1, Weibull leaves, joint training from one start."""
    return {"leaf": "weibull", "depth": [0, 1], "solver": "lbfgs", "init": "random", "n_restarts": 1}
