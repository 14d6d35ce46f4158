"""Who is under observation when, where subjects have several rows."""

from __future__ import annotations

import numpy as np

from softsurv.data.histories import stretches
from softsurv.data.survival_data import SurvivalData


def observed(data: SurvivalData) -> SurvivalData:
    """One row for each stretch that a subject is under observation, whatever its covariates: who is at risk, and when.

    A row that another follows is no censoring. Features and weight are those of the last row of each stretch.
    """
    if data.subject is None:
        return data
    columns = {name: getattr(data, name) for name in ("subject", "time", "event", "entry")}
    known = {name: None if values is None else values.cpu().numpy() for name, values in columns.items()}
    first, last = stretches(known | {"weight": None, "group": None}, data.X[[]])
    entry = None if data.entry is None else data.entry[first.tolist()]
    return data.take(np.asarray(last))._derive({"entry": entry})
