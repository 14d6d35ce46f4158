"""Histories cut where nothing changes."""

from __future__ import annotations

import numpy as np

from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData


def cut_rows(data: SurvivalData, seed: int = 1) -> SurvivalData:
    """Data of one row a subject with every row cut at random times; a subject's rows come in any order."""
    rng, pieces = np.random.default_rng(seed), []
    codes = (data.event if data.cause is None else data.cause).numpy().astype(int)
    for row in range(data.n):
        start = 0.0 if data.entry is None else float(data.entry[row])
        stop = float(data.time[row])
        at = np.r_[start, np.sort(rng.uniform(start, stop, rng.integers(0, 5))), stop]
        for k in rng.permutation(len(at) - 1):
            pieces.append((row, at[k], at[k + 1], codes[row] if k == len(at) - 2 else 0))
    row, start, stop, code = (np.array(column) for column in zip(*pieces, strict=True))
    outcome = {"event": code > 0} if data.cause is None else {"cause": code, "cause_names": data.cause_names}
    weight = None if data.weight is None else data.weight.numpy()[row]
    X = data.X.iloc[row].reset_index(drop=True)
    return survival_data(X, start=start, stop=stop, weight=weight, id=1000 - row, **outcome)
