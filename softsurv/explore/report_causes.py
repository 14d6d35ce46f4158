"""Sections of the report where events have causes, or subjects have several rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from softsurv.aalen_johansen import aalen_johansen
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import EvaluationWarning
from softsurv.explore.bootstrap import bootstrap_quality
from softsurv.explore.page import counted, paragraph, table
from softsurv.metrics import integrated_brier_score_incidence

AT_RISK = (
    "The subjects of these rows have several rows each. Brier score, AUC and calibration need one row for each "
    "subject and are left out; concordance compares the rows at risk at each event, each with its features of then."
)

INTERVAL = "Interval: {} bootstrap samples of these subjects, the tree held fixed."


def cause_quality(tree: Any, data: SurvivalData) -> str:
    """A table of the measures of each cause, the Brier score beside that of one curve for everybody."""
    result = tree.evaluate(data)
    first, last = result["range"]
    grid = np.linspace(first, last, result["n_times"])
    known, codes = tree._outcome(data), data.cause.numpy()  # type: ignore[union-attr]
    time, how = known["time"], {name: known[name] for name in ("weight", "entry")}
    null = aalen_johansen(time, codes, n_causes=data.n_causes, **how)
    rows = {}
    for name, found in result["causes"].items():
        code = data.cause_names.index(name) + 1 if name in data.cause_names else None
        common = None
        if code is not None:
            curves = np.broadcast_to(null.of_cause(code)(grid), (data.n, grid.size))
            common = integrated_brier_score_incidence(time, codes, curves, grid, tree.censoring_, code, **how)
        rows[name] = {
            "events": found["events"],
            "concordance": _shown(found["concordance"]),
            "AUC": _shown(found["auc"]),
            "integrated Brier score": _shown(found["ibs"]),
            "of one curve for all": _shown(common),
        }
    words = (
        "Of each cause among the others: how well its cumulative incidence ranks rows (concordance), separates "
        "rows with the event by t from all others (AUC), and its mean squared distance from what happened. The last "
        "column is the Brier score of one Aalen-Johansen curve for everybody, fitted to these very rows."
    )
    return table(pd.DataFrame(rows).T, "Measures by cause", "cause") + paragraph(words)


def quality_at_risk(tree: Any, data: SurvivalData, n_boot: int, seed: int) -> str:
    """What can be measured of subjects that have several rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)  # the sentence below says it
        result = tree.evaluate(data)
    sure = bootstrap_quality(tree, data, n_boot, seed).loc["harrell_c"]
    values = {"all events": {"events": result["events"], "concordance": _shown(result["harrell_c"])}}
    values["all events"]["95 % interval"] = f"{sure['lower']:.3f} to {sure['upper']:.3f}"
    for name, found in result.get("causes", {}).items():
        values[name] = {"events": found["events"], "concordance": _shown(found["concordance"]), "95 % interval": "-"}
    words = f"{counted(data.n, 'row')} of {counted(result['subjects'], 'subject')}. {AT_RISK} {INTERVAL.format(n_boot)}"
    return paragraph(words, "note") + table(pd.DataFrame(values).T, "Concordance of the rows at risk", "event")


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
