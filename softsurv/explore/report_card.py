"""The model card: what was fitted, on what, with which settings and versions, and where not to trust it."""

from __future__ import annotations

import platform
from datetime import date
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

import softsurv
from softsurv.data.survival_data import SurvivalData
from softsurv.explore.page import counted, paragraph, table
from softsurv.explore.report_tree import FEW_EVENTS
from softsurv.explore.style import unit_of, with_unit
from softsurv.explore.view import tree_view

RECURRENT = (
    "Events recur. Survival curves, medians and means on this page are those of the time to a first event, were events "
    "to come at random at the rate seen."
)

PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "torch")


def intro(tree: Any, data: SurvivalData) -> str:
    """What this page is, in a line."""
    leaves = tree_view(tree).n_leaves
    words = (
        f"{type(tree).__name__} with {leaves} {'leaf' if leaves == 1 else 'leaves'}, reported on "
        f"{counted(data.n, 'row')} with {counted(int(data.failed.sum()), 'event')}; softsurv {softsurv.__version__}, "
        f"{date.today().isoformat()}."
    )
    return paragraph(words) + (paragraph(RECURRENT, "note") if data.recurrent else "")


def card_section(tree: Any, data: SurvivalData, time_unit: str | None) -> str:
    """Training, settings, versions and limits."""
    settings = {name: _short(value) for name, value in sorted(tree.get_params(deep=False).items())}
    versions = {"softsurv": softsurv.__version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in PACKAGES}
    limits = "".join(f"<li>{paragraph(text)}</li>" for text in limits_of(tree, data, time_unit))
    return (
        "<h3>Training</h3>"
        + table(_frame(_training(tree, data, time_unit)), "What was fitted")
        + "<h3>Limits</h3>"
        + f"<ul>{limits}</ul>"
        + "<h3>Settings</h3>"
        + table(_frame(settings), "Arguments of the estimator")
        + "<h3>Versions</h3>"
        + table(_frame(versions), "Software that wrote this page")
        + paragraph(f"Fingerprint of the rows of this report: {data.fingerprint()}", "rule")
    )


def _frame(values: dict[str, str]) -> pd.DataFrame:
    return pd.DataFrame({"value": list(values.values())}, index=list(values))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _training(tree: Any, data: SurvivalData, time_unit: str | None) -> dict[str, str]:
    table_, report, unit = tree.leaf_table_, getattr(tree, "report_", None), unit_of(data, time_unit)
    facts = {
        "estimator": type(tree).__name__,
        "training rows": str(int(table_.n.sum())),
        "training events": str(int(table_.events.sum())),
        "raw features": str(tree.n_features_in_),
        "last training event": with_unit(float(tree.unique_times_[-1]), unit),
        "leaves": str(tree_view(tree).n_leaves),
    }
    candidate = getattr(tree, "candidate_", None)
    if candidate is not None:
        facts["depth and penalties used"] = ", ".join(f"{k} {v}" for k, v in vars(candidate).items())
    if report is not None:
        facts |= {"status": report.status.replace("_", " "), "training objective": f"{report.objective:.6g}"}
        facts["seconds"] = f"{report.seconds:.1f}"
        if np.isfinite(report.lower_bound):
            facts["proven lower bound"] = f"{report.lower_bound:.6g}"
    return facts


def limits_of(tree: Any, data: SurvivalData, time_unit: str | None) -> list[str]:
    """Where not to trust the tree, as sentences."""
    unit, table_ = unit_of(data, time_unit), tree.leaf_table_
    last = with_unit(float(tree.unique_times_[-1]), unit)
    found = [
        "The tree describes how features and event times went together in the training rows. It does not say what "
        "would happen if a feature were changed.",
        f"The last training event was at {last}; curves beyond it are extrapolated.",
        "Censoring is taken to be unrelated to the event, given the features.",
    ]
    few = [str(k) for k in tree_view(tree).leaves if table_.n[k] > 0 and table_.events[k] < FEW_EVENTS]
    empty = [str(k) for k in tree_view(tree).leaves if table_.n[k] == 0]
    if few:
        found.append(f"Fewer than {FEW_EVENTS} training events in leaf {', '.join(few)}: their curves are uncertain.")
    if empty:
        found.append(f"No training row reached leaf {', '.join(empty)}: their curves rest on the penalties alone.")
    outside = _outside(tree, data)
    if outside:
        found.append(f"Values outside the training range, where the tree extrapolates: {outside}.")
    return found


def _outside(tree: Any, data: SurvivalData) -> str:
    """Numeric features with rows outside the training range, and how many."""
    view = tree_view(tree)
    if view.preprocessor is None:
        return ""
    encoded = view.encode(data.X)
    counts = {
        column.source: int(((encoded[:, k] < -1e-9) | (encoded[:, k] > 1 + 1e-9)).sum())
        for k, column in enumerate(view.columns)
        if column.kind == "number"
    }
    found = [f"{name} in {count} rows" for name, count in counts.items() if count]
    return ", ".join(found[:8]) + (f" and {len(found) - 8} more" if len(found) > 8 else "")
