"""A small table of a trial, and the options of a quick fit to it, for the command line."""

from __future__ import annotations

import numpy as np
import pandas as pd

QUICK = ["--depth", "1", "--l2", "1", "--shrinkage", "1", "--routing-l2", "1", "--restarts", "1", "--device", "cpu"]
OUTCOME = ["--time", "months", "--event", "died"]
FIT = ["fit", "trial.csv", "--drop", "id", "status", *QUICK]


def make_table(n: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": np.arange(n), "age": rng.normal(60, 9, n), "arm": rng.choice(["new", "old"], n)})
    months = 10 * rng.weibull(1.5, n) * np.exp(-(frame["age"] - 60) / 20) + 0.1
    died = rng.random(n) < 0.7
    return frame.assign(months=months, died=died.astype(int), status=np.where(died, "dead", "alive"))
