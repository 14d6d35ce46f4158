"""Sections of the report on trust: measures with intervals, Brier score over time, calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from softsurv.data.survival_data import SurvivalData
from softsurv.explore.bootstrap import bootstrap_quality
from softsurv.explore.curves import interval_censored, leaf_kaplan_meier, table_of
from softsurv.explore.page import counted, figure, new_figure, paragraph, table
from softsurv.explore.quality import calibration_of, d_calibration_of, default_horizons, one_row_each, subjects
from softsurv.explore.quality_plots import draw_calibration, draw_d_calibration, plot_brier
from softsurv.explore.report_causes import AT_RISK, cause_quality, quality_at_risk
from softsurv.explore.style import chance, unit_of, with_unit
from softsurv.metrics.ranges import evaluation_range
from softsurv.trees.leaf_table import same_rows

MEANING = {
    "harrell_c": ("Harrell's concordance", "share of pairs ranked in the order of their events; 0.5 is chance"),
    "uno_c": ("Uno's concordance", "the same, weighted so that censoring does not bias it"),
    "cd_auc": ("cumulative/dynamic AUC", "separates those with an event by t from those free of it; 0.5 is chance"),
    "ibs": ("integrated Brier score", "mean squared distance of predicted survival from what happened; 0 is perfect"),
}


def quality_section(tree: Any, data: SurvivalData, time_unit: str | None, n_boot: int, seed: int) -> str:
    """The four measures with bootstrap intervals, and the Brier score over time."""
    seen = paragraph(SEEN, "note") if same_rows(tree.leaf_table_, table_of(tree, data)) else ""
    if interval_censored(data):
        return seen + paragraph(UNMEASURED, "note") + _likelihood(tree, data)
    if data.n_subjects < data.n:
        return seen + quality_at_risk(tree, data, n_boot, seed)
    frame = bootstrap_quality(tree, data, n_boot, seed)
    shown = pd.DataFrame(
        {
            "value": [f"{v:.3f}" for v in frame["value"]],
            "95 % interval": [f"{a:.3f} to {b:.3f}" for a, b in zip(frame["lower"], frame["upper"], strict=True)],
            "meaning": [MEANING[str(name)][1] for name in frame.index],
        },
        index=[MEANING[str(name)][0] for name in frame.index],
    )
    known = tree._outcome(data)  # times 0 as in ``evaluate``
    span = evaluation_range(known["time"], known["event"], tree.censoring_)
    unit = unit_of(data, time_unit)
    words = (
        f"On {counted(data.n, 'row')} with {counted(data.n_events, 'event')}, from {with_unit(span.lower, unit)} to "
        f"{with_unit(span.upper, unit)}; observed beyond that: {span.n_beyond}. Intervals: {n_boot} bootstrap "
        "samples of these rows, the tree held fixed. Censoring weights come from the training rows."
    )
    ax = plot_brier(tree, data, ax=new_figure(5.6, 3.4), time_unit=time_unit)
    caption = "Lower is better. Dotted: one Kaplan-Meier curve for everybody, fitted to these very rows."
    picture = figure(ax, "Brier score over time", caption)
    causes = "" if data.cause is None else cause_quality(tree, data)
    return f'{seen}{table(shown, "Measures", "measure")}{causes}<div class="row">{picture}{paragraph(words)}</div>'


def _likelihood(tree: Any, data: SurvivalData) -> str:
    """The mean log-likelihood of the rows in a sentence; nothing where a tree has none."""
    if not hasattr(tree, "log_likelihood"):
        return ""
    weight = np.ones(data.n) if data.weight is None else data.weight.numpy()
    mean = tree.log_likelihood(data).sum() / weight.sum()
    return paragraph(
        f"Mean log-likelihood of a row: {mean:.4g}. Higher is better; compare it between models on these same rows."
    )


UNMEASURED = (
    "Some of these rows are interval-censored, which the measures would take for censored: they are left out here. "
    "The log-likelihood of the rows takes intervals for what they are."
)
SEEN = (
    "These look like the rows the tree was trained on: every leaf holds the same number of rows and events. "
    "Measures on training rows are better than what new rows will show."
)


def calibration_section(tree: Any, data: SurvivalData, time_unit: str | None) -> str:
    """Observed against predicted survival at three horizons, and over all of time."""
    if interval_censored(data):
        return paragraph(UNMEASURED, "note")
    if data.n_subjects < data.n:
        return paragraph(AT_RISK, "note")
    data, unit = one_row_each(data), unit_of(data, time_unit)
    horizons = default_horizons(tree, data)
    predicted = tree.predict_survival_function(data.X, times=horizons)
    curves, test = calibration_of(tree, data, horizons, predicted, 8), d_calibration_of(tree, data)
    left = draw_calibration(new_figure(4.6, 4.6), curves, test, data.n, unit)
    right = draw_d_calibration(new_figure(4.6, 3.4), test)
    verdict = (
        "no sign of miscalibration over time at the 5 % level"
        if test.p_value >= 0.05
        else "the predicted probabilities deviate from what happened by more than chance explains, or many rows share "
        "a time, as in whole months, while the test takes times to be exact"
    )
    rows = pd.DataFrame(
        {
            "rows in groups": [int(c.n.sum()) for c in curves],
            "groups": [int(c.n.size) for c in curves],
            "mean predicted": np.average(predicted, axis=0, weights=subjects(data)).tolist(),
            "observed": [_observed(data, h) for h in horizons],
        },
        index=[with_unit(float(h), unit) for h in horizons],
    )
    words = f"D-calibration: χ² = {test.statistic:.3g}, {chance(test.p_value)}: {verdict}."
    return (
        paragraph(words)
        + '<div class="row">'
        + figure(left, "Observed against predicted survival", "Groups of similar prediction with 95 % intervals.")
        + figure(right, "D-calibration", "Level bars: calibrated over all of time.")
        + "</div>"
        + table(rows, "Survival of all rows at the horizons", "time")
    )


def _observed(data: SurvivalData, horizon: float) -> float:
    return float(leaf_kaplan_meier(data, np.arange(data.n))(horizon))
