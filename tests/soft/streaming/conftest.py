"""A table and its file for the tests of streaming."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


def make_frame(n=500, seed=0):
    """Numbers, categories, missing values, a constant column; times with ties and one zero."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3))
    kind = rng.choice(["a", "b", "c"], n)
    time = np.round(rng.exponential(np.exp(-x[:, 0] * (x[:, 1] > 0) - (kind == "a"))), 3)
    censoring = np.round(rng.exponential(2.0, n), 3)
    frame = pd.DataFrame(x, columns=["u", "v", "w"]).assign(kind=kind, flag=rng.random(n) < 0.3, same=1.0)
    frame.loc[rng.random(n) < 0.1, "w"] = np.nan
    frame.loc[rng.random(n) < 0.1, "kind"] = None
    frame = frame.assign(t=np.minimum(time, censoring), died=time <= censoring)
    frame.loc[frame.index[3], "t"] = 0.25
    return frame


@pytest.fixture
def frame():
    return make_frame()


@pytest.fixture
def parquet(frame, tmp_path):
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=130)
    return path
