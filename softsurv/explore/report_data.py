"""Sections of the report on the rows: what they are, and how groups among them fare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from softsurv.arrays import FloatArray
from softsurv.data.encoding import is_number
from softsurv.data.rules import level_words, rounded_text
from softsurv.data.survival_data import SurvivalData
from softsurv.explore.curves import (
    curve_name,
    default_times,
    interval_censored,
    leaf_interval,
    leaf_kaplan_meier,
    steps,
)
from softsurv.explore.page import figure, new_figure, paragraph, table
from softsurv.explore.quality import sensitive_rows
from softsurv.explore.style import INK, series_style, survival_axes, time_label, unit_of
from softsurv.metrics.fairness import curve_gap, fairness_penalty, leaf_gini

MAX_FEATURES = 60
"""Features described one by one; a page that lists thousands is not read."""


def data_section(data: SurvivalData, time_unit: str | None) -> str:
    """Counts, features and the overall survival curve."""
    facts, unit = data.summary(), unit_of(data, time_unit)
    time = f" {unit}" if unit else ""
    middle = "" if interval_censored(data) else f", median {facts['time_median']:g}"
    several = facts["subjects"] < facts["n"]
    lines = {
        "rows": facts["n"],
        **({"subjects": facts["subjects"]} if several else {}),
        "features": facts["p"],
        "observed events": facts["events"],
        **{f"events of {name}": count for name, count in facts["causes"].items()},
        "events within an interval": facts["interval_censored"],
        "subjects without event" if several else "censored": f"{facts['censoring_percent']} %",
        "observed times": f"{facts['time_min']:g} to {facts['time_max']:g}{time}{middle}",
        "missing values": facts["missing_cells"],
        "repeated rows": facts["duplicate_rows"],
        "rows with time 0": facts["zero_times"],
        "late entries": facts["late_entries"],
        **({} if data.weight is None else {"weights": _weights(data.weight.numpy())}),
        "groups": ", ".join(map(level_words, facts["groups"])) or "none",
    }
    counts = pd.DataFrame({"value": [_plain(v) for v in lines.values()]}, index=list(lines))
    shown = data.X.columns[:MAX_FEATURES]
    features = pd.DataFrame([_describe(data.X[name]) for name in shown], index=list(shown))
    more = data.X.shape[1] - len(shown)
    rest = paragraph(f"{more} more features are not listed.") if more > 0 else ""
    return (
        f'<div class="row">{table(counts, "The rows of this report")}{_overall(data, time_unit)}</div>'
        f"{table(features, 'Features', 'feature')}{rest}"
    )


def _weights(weight: FloatArray) -> str:
    """What rows weigh in curves and measures; the counts beside it are of rows."""
    low, high, total = map(rounded_text, (weight.min(), weight.max(), weight.sum()))
    return f"{low} to {high}, sum {total}; counts are of rows"


def _plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _describe(column: pd.Series) -> dict[str, Any]:
    """Kind, missing values and spread of a raw column."""
    missing = int(column.isna().sum())
    if is_number(column):
        values = column.dropna().astype(float)
        mean, sd, low, high = map(rounded_text, (values.mean(), values.std(), values.min(), values.max()))
        spread = f"mean {mean}, sd {sd}, {low} to {high}"
        return {"kind": "number", "missing": missing, "values": spread if len(values) else "none"}
    counts = column.astype(str)[column.notna()].value_counts()
    if len(counts) > 6 and counts.iloc[0] == 1:
        return {"kind": "category", "missing": missing, "values": f"{len(counts):,} values, each once"}
    shares = counts / counts.sum()
    text = ", ".join(f"{level_words(str(level))} {_share(share)}" for level, share in shares.head(6).items())
    text += f", {len(shares) - 6} more" if len(shares) > 6 else ""
    return {"kind": "category", "missing": missing, "values": text}


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "<1%"


def _overall(data: SurvivalData, time_unit: str | None) -> str:
    everybody, name = np.arange(data.n), curve_name(data)
    curve, band = leaf_kaplan_meier(data, everybody), leaf_interval(data, everybody)
    end = float(curve.times[-1])
    at, values = steps(curve, end)
    ax = survival_axes(new_figure(4.8, 3.0), time_label(data, time_unit))
    if band is not None:
        color = series_style(0).color
        ax.fill_between(at, band[0](at), band[1](at), step="post", color=color, alpha=0.2, linewidth=0)
    ax.step(at, values, where="post", color=INK, linewidth=1.2)
    ax.set_xlim(0, end)
    words = f"{name} curve of all rows"
    return figure(ax, words, f"{words}{'' if band is None else ' with its 95 % interval'}.")


def fairness_section(tree: Any, data: SurvivalData, group: str | None, time_unit: str | None) -> str:
    """How the sensitive group and the others fare: curves, leaves, gap."""
    data = data.that_count()
    member, mass = sensitive_rows(data, group), np.ones(data.n) if data.weight is None else data.weight.numpy()
    name = group or data.group_names[-1]
    leaf, times = tree.apply(data.X), default_times(tree)
    survival = tree.predict_survival_function(data.X, times=times)
    gap, gini = curve_gap(survival, times, member, mass), leaf_gini(leaf, member, mass)
    used = np.unique(leaf)
    shares = pd.DataFrame(
        {
            "rows": [int((leaf == k).sum()) for k in used],
            f"share of {name}": [f"{np.average(member[leaf == k], weights=mass[leaf == k]):.0%}" for k in used],
            "mixing (Gini)": gini.by_leaf,
        },
        index=[f"leaf {k}" for k in used],
    )
    ax = survival_axes(new_figure(5.4, 3.6), time_label(data, time_unit))
    for k, (label, rows) in enumerate({name: member, "others": ~member}.items()):
        look = series_style(k)
        mean = np.average(survival[rows], axis=0, weights=mass[rows])
        ax.plot(times, mean, color=look.color, linestyle=look.linestyle, linewidth=2, label=f"{label}: predicted mean")
        at, values = steps(leaf_kaplan_meier(data, np.flatnonzero(rows)), times[-1])
        ax.step(at, values, where="post", color=look.color, linewidth=0.9, label=f"{label}: {curve_name(data)}")
    ax.set_xlim(0, times[-1])
    ax.legend(fontsize=8, frameon=False)
    words = (
        f"Sensitive group: {name}, {int(member.sum())} of {data.n} rows. The mean predicted curves of the group and "
        f"of the others lie {gap.mean:.3f} apart on average over time, at most {gap.largest:.3f}; the group's is "
        f"{abs(gap.signed):.3f} {'higher' if gap.signed > 0 else 'lower'} on average. The mean squared distance of a "
        f"pair of rows across the groups is {fairness_penalty(survival, times, member, True, mass):.4g} in units "
        f"of time. Leaves mix the groups with a weighted Gini of {gini.weighted:.3f}, where 1 is half and half."
    )
    caption = f"Lines: mean predicted curve of each group. Steps: {curve_name(data)} curve of the same rows."
    return (
        paragraph(words)
        + '<div class="row">'
        + figure(ax, "Survival of the groups", caption)
        + table(shares, "Groups in the leaves")
        + "</div>"
    )
