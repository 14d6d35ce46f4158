"""Rows of each kind of outcome that a study measures: one kind of event, causes, histories, and both."""

from __future__ import annotations

import numpy as np
import pandas as pd

from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData

KINDS = ("events", "causes", "late causes", "histories", "histories of causes", "recurrent")


def rows_of_kind(kind: str, n: int = 90, seed: int = 0) -> SurvivalData:
    """So many rows, of half as many subjects where they have histories; x0 is a risk of the first cause."""
    rng = np.random.default_rng(seed)
    x = pd.DataFrame(rng.standard_normal((n, 3)).round(1), columns=["x0", "x1", "x2"])
    first, second = (rng.exponential(np.exp(-x[name])) for name in ("x0", "x1"))
    end = rng.uniform(0.3, 3.0, n)
    time = np.minimum(np.minimum(first, second), end).round(2) + 0.01
    cause = np.select([end < np.minimum(first, second), first < second], [0, 1], 2)
    if kind == "events":
        group = np.where(rng.random(n) < 0.4, "a", "b")
        return survival_data(x, time=time, event=cause > 0, weight=rng.uniform(0.5, 2, n), group=group)
    if "causes" in kind and "histories" not in kind:
        late = {"entry": np.where(rng.random(n) < 0.3, 0.4 * time, 0.0)} if kind.startswith("late") else {}
        group = np.where(rng.random(n) < 0.4, "a", "b")
        return survival_data(x, time=time, cause=cause, cause_names=["seal", "motor"], group=group, **late)
    who, after = np.arange(n) // 2, np.arange(n) % 2 == 1
    spell = {"start": np.where(after, 1.0, 0.0), "stop": np.where(after, 1.0 + time, 1.0), "id": who}
    if kind == "recurrent":
        return survival_data(x, event=cause > 0, recurrent=True, **spell)
    cause = np.where(after, cause, 0)
    outcome = {"event": cause > 0} if kind == "histories" else {"cause": cause, "cause_names": ["seal", "motor"]}
    return survival_data(x, **outcome, **spell)
