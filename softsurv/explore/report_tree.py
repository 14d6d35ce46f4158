"""Sections of the report on the tree: the picture, the effects, and a page for every leaf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softsurv.arrays import FloatArray
from softsurv.data.survival_data import SurvivalData
from softsurv.explore.curves import (
    RowCurves,
    curve_name,
    curves_by_leaf,
    default_times,
    interval_censored,
    leaf_interval,
    leaf_kaplan_meier,
    leaf_looks,
    leaf_summary,
    steps,
)
from softsurv.explore.effect_plots import plot_leaf_effects, plot_routing_effects
from softsurv.explore.folded import folded_tree
from softsurv.explore.page import counted, figure, new_figure, paragraph, table
from softsurv.explore.parts_plot import draw_parts
from softsurv.explore.plots import plot_leaf_curves
from softsurv.explore.stability import is_of_rules, plot_split_stability, split_stability
from softsurv.explore.style import (
    INK,
    MUTED,
    LineStyle,
    chance,
    escaped,
    survival_axes,
    time_label,
    unit_of,
    with_room_for_key,
    with_unit,
)
from softsurv.explore.tree_parts import MOST_LEAVES
from softsurv.explore.tree_plot import plot_tree, tree_axes
from softsurv.explore.view import TreeView, tree_view
from softsurv.explore.words import apart_words
from softsurv.metrics.logrank import logrank_test, numbers_at_risk
from softsurv.nonparametric import StepFunction
from softsurv.trees.typical_rows import as_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW_EVENTS = 10
"""A leaf with fewer events than this is called uncertain."""


def tree_section(tree: Any, data: SurvivalData, time_unit: str | None, samples: int = 0, seed: int = 0) -> str:
    """Picture, rules as text, curves of all rows, effects; with bootstrap ``samples`` the stability of the splits."""
    view = tree_view(tree)
    curves = plot_leaf_curves(
        tree, data, ax=new_figure(*with_room_for_key(view.n_leaves, 6.4, 3.8)), time_unit=time_unit
    )
    parts = [
        paragraph(
            "Yes: the rule is true. At every split the side of the lower risk comes first. The picture shows these "
            "rows; the list, which folds at every rule, the training rows. Every leaf has its own section below."
        ),
        f'<div class="tree">{_pictures(tree, data, view, time_unit)}',
        f"{folded_tree(tree) if view.branches else ''}</div>",
        "<details><summary>The tree as text</summary>"
        f'<pre class="scroll" tabindex="0">{escaped(tree.export_text())}</pre></details>',
    ]
    words = ("Thin: single rows. Thick: mean of a leaf. " if view.soft else "") + "Darker: higher risk."
    effects = [figure(curves, "Predicted survival curves of all rows by leaf", words)]
    if view.branches and view.soft and not tree.tree_.rules:  # rules and questions say as much by themselves
        ax = plot_routing_effects(tree, ax=new_figure(5.6, 3.9))
        effects.append(figure(ax, "Effects of features on the routing", "Right of 0: towards yes."))
    if (view.leaf_weights is not None or view.cause_weights) and view.names:
        ax = plot_leaf_effects(tree, ax=new_figure(5.6, 3.9))
        effects.append(figure(ax, "Effects of features in each leaf", "Right of 0: earlier events."))
    words = logrank_words(tree, data)
    parts.append(paragraph(words) if words else "")
    told = summary_section(tree) if view.soft else ""
    steady = stability_section(tree, data, samples, seed) if samples else ""
    return "".join(parts) + f'<div class="row">{"".join(effects)}</div>' + told + steady


def _pictures(tree: Any, data: SurvivalData, view: TreeView, time_unit: str | None) -> str:
    """The whole tree; on paper a large one in parts, as its words would be too small to read."""
    from matplotlib.figure import Figure

    picture = plot_tree(tree, data, ax=tree_axes(view, Figure), time_unit=time_unit)
    whole = figure(picture, "The tree with survival curves in its leaves", wide=True)
    if view.n_leaves <= MOST_LEAVES:
        return whole
    drawn = draw_parts(tree, data, Figure, time_unit=time_unit)
    parts = (figure(ax, f"Part {k} of {len(drawn)} of the tree", wide=True) for k, ax in enumerate(drawn, 1))
    return f'<div class="screen">{whole}</div><div class="paper">{"".join(parts)}</div>'


def summary_section(tree: Any) -> str:
    """Typical curve of each leaf and effects of the features, with intervals."""
    summary = tree.summary()
    leaves = summary.leaves.rename(columns=_as_words)
    parts = ["<h3>Leaves and effects</h3>", table(leaves, "Medians are those of typical rows", "leaf")]
    rows = as_words(summary.typical.dropna(axis=1, how="all"))
    parts.append(table(rows, summary.typical_title, "feature"))
    effects = summary.effects.drop(columns="coefficient").rename(columns=_as_words)
    if len(effects):
        where = {"all": ""} | {k: f"leaf {k}: " for k in summary.leaves.index}
        effects.index = [
            "".join(f"{cause}: " for cause in causes) + f"{where[leaf]}{feature}, {words}"
            for *causes, leaf, feature, words in effects.index
        ]
        parts.append(table(effects, f"Effects: {summary.measure}, with 95 % intervals", "feature"))
    return "".join([*parts, *(paragraph(note) for note in summary.notes)])


def stability_section(tree: Any, data: SurvivalData, samples: int, seed: int) -> str:
    """How steady the splits are, as a picture and a table; a sentence where the tree has no rules."""
    if not is_of_rules(tree):
        return paragraph("Stability over bootstrap samples is measured for soft trees of rules alone.", "note")
    found = split_stability(tree, data, samples, seed)
    ax = plot_split_stability(found, new_figure(7.2, 1.0 + 0.75 * len(found)))
    words = (
        f"The rules were found again on {samples} samples of these rows, drawn with replacement, with the same "
        "setting. Long blue bars: the data ask for this feature whatever the sample."
    )
    picture = figure(ax, "Stability of the splits", words)
    return "<h3>Stability of the splits</h3>" + picture + table(found.rename(columns=_as_words), "", "place")


def _as_words(name: str) -> str:
    return name.replace("_", " ")


def logrank_words(tree: Any, data: SurvivalData) -> str:
    """The log-rank test that the leaves do not differ, in a sentence; nothing where it cannot be made.

    Where events recur it is robust: those of a subject may depend on one another.
    """
    leaf = tree.apply(data.X)
    if interval_censored(data) or np.unique(leaf).size < 2:
        return ""
    known = data.outcomes()
    known.pop("upper")
    subject = data.subject.numpy() if data.recurrent and data.subject is not None else None
    test = logrank_test(group=leaf, subject=subject, **known)
    if test.degrees_of_freedom == 0:
        return ""
    return (
        f"{ONE_CURVE_FOR_ALL if subject is None else ONE_RATE_FOR_ALL}: statistic {test.statistic:.4g} on "
        f"{test.degrees_of_freedom} degrees of freedom, {chance(test.p_value)}. On rows that the tree was trained "
        "on this test promises too much, as the tree chose its leaves to differ."
    )


ONE_CURVE_FOR_ALL = "Log-rank test that these rows have one survival curve in all leaves"
ONE_RATE_FOR_ALL = (
    "Log-rank test that events have one rate in all leaves, robust by subject as the events of one may depend on one "
    "another"
)


def leaf_sections(tree: Any, data: SurvivalData, time_unit: str | None) -> list[tuple[str, str, str]]:
    """A section for every leaf."""
    view, times = tree_view(tree), default_times(tree)
    summary, encoded = leaf_summary(tree, data), view.encode(data.X)

    return [
        (
            f"leaf-{one.leaf}",
            f"Leaf {one.leaf}",
            _leaf_section(tree, view, data, one, summary, times, time_unit, encoded),
        )
        for one in curves_by_leaf(tree, data, times)
    ]


def _leaf_section(
    tree: Any,
    view: TreeView,
    data: SurvivalData,
    one: RowCurves,
    summary: pd.DataFrame,
    times: FloatArray,
    time_unit: str | None,
    encoded: FloatArray,  # (n, P)
) -> str:
    row: Any = summary.loc[one.leaf]
    unit = unit_of(data, time_unit)
    rule = paragraph("Where: " + row["rule"], "rule")
    table_ = tree.leaf_table_
    trained = f"{counted(table_.n[one.leaf], 'training row')}, {counted(table_.events[one.leaf], 'event')}"
    if ranked := tree.ranked_by():
        trained += f", {ranked[one.leaf]}"
    if one.rows.size == 0:
        return rule + paragraph(f"None of the rows arrives here ({trained}).")
    happened = counted(row["events"], "event")
    few = f"Only {happened}: the numbers of this leaf are uncertain." if row["events"] < FEW_EVENTS else ""
    words = (
        f"{counted(row['n'], 'row')} ({row['n'] / data.n:.0%}), {happened}; {trained}. Observed median "
        f"{with_unit(row['median'], unit)} ({_interval(row, unit)}); mean up to {with_unit(row['horizon'], unit)}: "
        f"{with_unit(row['restricted_mean'], unit)}. Strongest features on the way and in the leaf: "
        f"{row['top_features'] or 'none'}."
    )
    apart, band = apart_words(view, encoded, one.rows), leaf_interval(data, one.rows)
    pictures = figure(
        _leaf_picture(data, one, band, times, time_unit, leaf_looks(tree)[one.leaf]),
        f"Survival in leaf {one.leaf}",
        f"{SINGLE_ROWS if view.soft else ONE_CURVE} Black steps: {curve_name(data)}"
        f"{'' if band is None else ' with its 95 % interval'}. Small numbers below the axis: "
        f"{'rows' if data.weight is None else 'weight'} at risk.",
    )
    beside = table(apart, "What sets these rows apart (difference in standard deviations)", "feature")
    note = paragraph(few, "note") if few else ""
    return rule + note + paragraph(words) + f'<div class="row">{pictures}{beside if len(apart) else ""}</div>'


SINGLE_ROWS = "Thin: predicted curves of single rows; thick: their mean."
ONE_CURVE = "Coloured: the curve that the leaf predicts for all its rows."
"""Captions of the picture of a leaf, of a soft tree and of an optimal one."""


def _interval(row: Any, unit: str) -> str:
    """The interval of a leaf's median in words."""
    if not np.isfinite(row["median_lower"]):
        return "no interval"
    return f"95 % interval {with_unit(row['median_lower'], unit)} to {with_unit(row['median_upper'], unit)}"


def _leaf_picture(
    data: SurvivalData,
    one: RowCurves,
    band: tuple[StepFunction, StepFunction] | None,
    times: FloatArray,
    time_unit: str | None,
    look: LineStyle,
) -> Any:
    from matplotlib.collections import LineCollection

    ax = survival_axes(new_figure(5.4, 3.4), time_label(data, time_unit))
    lines = [np.column_stack([times, row]) for row in one.values[:: max(1, len(one.values) // 100)]]
    ax.add_collection(LineCollection(lines, colors=look.color, linewidths=0.5, alpha=0.25, rasterized=True))
    at, values = steps(leaf_kaplan_meier(data, one.rows), times[-1])
    if band is not None:
        ax.fill_between(at, band[0](at), band[1](at), step="post", color="#000000", alpha=0.12, linewidth=0)
    ax.step(at, values, where="post", color=INK, linewidth=1.1)
    ax.plot(times, one.mean, color=look.color, linestyle=look.linestyle, linewidth=2.2)
    ax.set_xlim(0, times[-1])
    write_at_risk(ax, data.take(one.rows))
    return ax


def write_at_risk(ax: Axes, data: SurvivalData) -> None:
    """The numbers at risk, below the ticks of the time axis and above its label."""
    known = data.outcomes()
    ticks = [float(t) for t in ax.get_xticks() if 0 <= t <= ax.get_xlim()[1]]
    counts = numbers_at_risk(np.maximum(ticks, np.nextafter(0.0, 1.0)), known["time"], known["weight"], known["entry"])
    for tick, count in zip(ticks, counts, strict=True):
        ax.annotate(
            f"{count:.4g}",
            (tick, 0),
            xycoords=ax.get_xaxis_transform(),
            xytext=(0, -19),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=8,
            color=MUTED,
        )
    ax.xaxis.labelpad = 14
