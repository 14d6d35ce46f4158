"""What of a history a fit needs: subjects where they have several rows, and who is at risk when."""

from __future__ import annotations

import numpy as np

from softsurv.data.histories import stretches
from softsurv.data.survival_data import SurvivalData


def plain(data: SurvivalData) -> SurvivalData:
    """The same rows without ``subject`` where each has one row, and then without ``entry`` where nobody is late.

    What is fitted to histories that were cut and joined again is then what is fitted to whole ones, digit by digit.
    """
    if data.subject is None or data.recurrent or data.n_subjects < data.n:
        return data
    changes = {"subject": None, "subject_names": ()}
    late = data.entry is not None and bool((data.entry > 0).any())
    return data._derive(changes if late else changes | {"entry": None})


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
