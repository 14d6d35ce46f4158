"""Survival data with numbers and categories."""

from __future__ import annotations

import numpy as np
import pandas as pd

from softsurv.data.readers import survival_data


def some_data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.random((n, 3)))
    return survival_data(frame, time=rng.exponential(size=n) + 0.01, event=rng.random(n) < 0.7)
