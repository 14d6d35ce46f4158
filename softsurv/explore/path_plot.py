"""One subject's way down the tree: at every split on it, where the subject lies among the rows that come there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from softsurv.arrays import BoolArray, FloatArray
from softsurv.data.encoding import Source
from softsurv.data.kinds import level_text
from softsurv.data.rules import rounded_text
from softsurv.explore.curves import default_times, leaf_looks
from softsurv.explore.splits import QuestionSplit
from softsurv.explore.style import (
    INK,
    MUTED,
    literal_text,
    plain_axes,
    read_data,
    shorten,
    shorten_all,
    takes_tables,
    time_label,
)
from softsurv.explore.tree_layout import wrapped
from softsurv.explore.view import TreeView, ViewNode, tree_view
from softsurv.explore.words import one_row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

YES, NO, SUBJECT = "#9ECAE1", "#D9D9D9", "#D55E00"
MISSING = "(missing)"
N_BINS, MAX_LEVELS, WIDTH, MAX_RULE = 24, 10, 34, 120
"""Bins of a histogram, bars of levels that are shown, characters of a rule in a line and at most."""


@literal_text
@takes_tables
def plot_path(tree: Any, data: Any, row: Any, *, time_unit: str | None = None) -> Axes:
    """A subject's path: a panel for each split with the rows that come there, and the subject's curve.

    Parameters
    ----------
    tree : fitted tree
        Soft or optimal.
    data : SurvivalData, (X, y), or a table with ``time=`` and ``event=``
        Rows to compare with.
    row : DataFrame of one row, Series or dict
        The subject.
    time_unit : str, optional

    Returns
    -------
    matplotlib axes
        The first panel; its ``figure`` holds all.

    Notes
    -----
    Bars count the rows that reach the split by the feature it asks for, or by the sum that its rule compares with a
    threshold: blue for yes, grey for no; those of levels lie. The dashed line is the threshold, the triangle the
    subject. In the last panel the subject's curve stands among those of the rows in its leaf.

    Examples
    --------
    >>> plot_path(tree, test, test.X.iloc[[0]]).figure.savefig("path.png")  # doctest: +SKIP
    """
    import matplotlib.pyplot as plt

    read, view, frame = read_data(data), tree_view(tree), one_row(row)
    leaf, reached = int(tree.apply(frame)[0]), tree.apply(read.X)
    path = view.path(leaf)
    _, panels = plt.subplots(1, len(path) + 1, figsize=(3.1 * (len(path) + 1), 3.1), layout="constrained")
    panels = np.atleast_1d(panels)
    for ax, (node, yes) in zip(panels, path, strict=False):
        here = np.isin(reached, view.leaves_below(node))
        _draw_split(ax, view, node, yes, read.X[here], frame)
    _draw_curves(panels[-1], tree, read.X[reached == leaf], frame, leaf)
    panels[-1].set_xlabel(time_label(read, time_unit))
    if not path:
        panels[0].set_ylabel("Survival probability")
    elif _asked(view, path[0][0].split) is None:
        panels[0].set_ylabel("Rows")
    first: Axes = panels[0]
    return first


def _draw_split(ax: Axes, view: TreeView, node: ViewNode, yes: bool, X: pd.DataFrame, row: pd.DataFrame) -> None:
    split = node.split
    plain_axes(ax)
    assert split is not None
    rule = shorten(split.text(name_limit=WIDTH - 8), MAX_RULE)  # the bars show levels that are left out
    ax.set_title("\n".join([*wrapped(rule, WIDTH), "yes" if yes else "no"]), fontsize=8.5)
    if (asked := _asked(view, split)) is not None:
        _draw_levels(ax, asked, X, row)
        return
    scores, own, edge, above = _scores(view, split, X, row)
    values, own_known = scores[~np.isnan(scores)], not np.isnan(own)
    span = np.append(values, [own, edge] if own_known else [edge])
    bins = _bins(float(span.min()), float(span.max()), edge)
    goes: BoolArray = values > edge if above else values <= edge
    ax.hist([values[goes], values[~goes]], bins=bins.tolist(), stacked=True, color=[YES, NO], edgecolor="white")
    ax.axvline(edge, color=INK, linestyle="--", linewidth=1)
    ax.locator_params(axis="x", nbins=4)  # numbers such as -1500 would touch
    if own_known:
        ax.plot([own], [0], "^", color=SUBJECT, markersize=11, clip_on=False, zorder=5)
    if len(values) < len(scores) or not own_known:
        side = "yes" if isinstance(split, QuestionSplit) and split.rule.missing else "no"
        told = f"{len(scores) - len(values)} missing: {side}"
        _tell(ax, told)
    elif (count := _imputed(view, split, X)) is not None:
        _tell(ax, count)
    words = rounded_text(own) if own_known else "missing"
    ax.set_xlabel(f"{_axis(split)}: {words}", color=SUBJECT, fontsize=8.5)


def _tell(ax: Axes, words: str) -> None:
    """Words above the bars."""
    ax.set_ylim(top=1.15 * ax.get_ylim()[1])
    ax.text(0.98, 0.98, words, transform=ax.transAxes, ha="right", va="top", color=MUTED, fontsize=7.5)


def _imputed(view: TreeView, split: Any, X: pd.DataFrame) -> str | None:
    """How many rows lack the one number that a split asks for, and what they count as."""
    names = [split.source.name] if isinstance(split, QuestionSplit) else list(split.sources())
    fill = next((source.fill for source in view.sources if [source.name] == names), None)
    if not isinstance(fill, float) or not (count := int(X[names[0]].isna().sum())):
        return None
    return f"{count} missing: taken as {rounded_text(fill)}"


def _bins(low: float, high: float, edge: float) -> FloatArray:
    """Ends of bars of one width from ``low`` to ``high``, one of them the threshold: no bar lies on both sides."""
    width = (high - low) / N_BINS or 1.0
    below, above = np.ceil((edge - low) / width), np.ceil((high - edge) / width)
    return edge + width * np.arange(-below, above + 1)


def _scores(view: TreeView, split: Any, X: pd.DataFrame, row: pd.DataFrame) -> tuple[FloatArray, float, float, bool]:
    """What the split compares with its threshold, of the rows and of the subject; the threshold; whether yes is above.

    A rule of one number is shown by that number, other sums as the rule prints them.
    """
    both = view.encode(pd.concat([X, row], ignore_index=True))
    if isinstance(split, QuestionSplit):
        place = [column.name for column in view.columns].index(split.source.name)
        raw = both[:, place] * view.columns[place].scale + view.columns[place].offset
        return raw[:-1], float(raw[-1]), split.rule.threshold, False
    weights = split.weights[1:]
    asked = np.flatnonzero(weights)
    if len(asked) == 1 and view.columns[asked[0]].kind == "number":
        column = view.columns[asked[0]]
        raw = both[:, asked[0]] * column.scale + column.offset
        edge = -split.weights[0] / weights[asked[0]] * column.scale + column.offset
        return raw[:-1], float(raw[-1]), float(edge), bool(weights[asked[0]] > 0)
    edge, coefficients = split.printed()
    in_units = both * [column.scale for column in view.columns] + [column.offset for column in view.columns]
    total = in_units @ coefficients
    return total[:-1], float(total[-1]), edge, True


class _Asked(NamedTuple):
    """A split by levels of a category, or by whether a value is missing."""

    source: Source
    yes: frozenset[str]
    is_missing: bool = False


def _asked(view: TreeView, split: Any) -> _Asked | None:
    """What a split asks of a category; None where it compares a number."""
    if isinstance(split, QuestionSplit):
        if not (split.rule.levels or split.rule.asks_missing):
            return None
        yes = {*split.rule.levels, MISSING} if split.rule.missing else set(split.rule.levels)
        return _Asked(split.source, frozenset(yes), split.rule.asks_missing)
    if split.rule is None or not split.rule.is_level_set(view.columns):
        return None
    columns = [view.columns[k] for k in split.rule.columns]
    source = next(source for source in view.sources if source.name == columns[0].source)
    return _Asked(source, frozenset(str(column.level) for column in columns))


def _axis(split: Any) -> str:
    names = [split.source.name] if isinstance(split, QuestionSplit) else list(split.sources())
    return shorten(names[0], WIDTH - 12) if len(names) == 1 else f"sum over {len(names)} features"


def _draw_levels(ax: Axes, asked: _Asked, X: pd.DataFrame, row: pd.DataFrame) -> None:
    """Counts of the levels, the subject's marked."""
    name, gone = asked.source.name, MISSING if asked.source.fill is None else str(asked.source.fill)

    def words(value: Any) -> str:
        return gone if pd.isna(value) else "known" if asked.is_missing else level_text(value)

    own = words(row[name].iloc[0])
    counts = X[name].map(words).astype(object).value_counts()
    shown = counts.head(MAX_LEVELS)
    if own not in shown.index:
        shown = pd.concat([shown.head(MAX_LEVELS - 1), pd.Series({own: counts.get(own, 0)})])
    places = np.arange(len(shown))
    colors = [YES if level in asked.yes else NO for level in shown.index]
    ax.barh(places, shown.to_numpy(), color=colors)
    ax.set_yticks(places, shorten_all(shown.index, 16))
    ax.plot([0], [list(shown.index).index(own)], ">", color=SUBJECT, markersize=11, clip_on=False, zorder=5)
    ax.invert_yaxis()
    ax.set_xlabel("Rows", fontsize=8.5)
    ax.set_ylabel(
        "\n".join(wrapped(f"{shorten(name, WIDTH - 12)}: {shorten(own, 20)}", WIDTH - 8)), color=SUBJECT, fontsize=8.5
    )


def _draw_curves(ax: Axes, tree: Any, X: pd.DataFrame, row: pd.DataFrame, leaf: int) -> None:
    """The subject's curve among those of the rows in its leaf."""
    times, look = default_times(tree), leaf_looks(tree)[leaf]
    plain_axes(ax)
    whose = "the subject"
    if len(X):
        survival = tree.predict_survival_function(X, times=times)
        low, high = np.quantile(survival, [0.05, 0.95], axis=0)
        if np.allclose(low, high):
            whose = "the subject, as all of the leaf's rows"
        else:
            label = "5–95 % of the leaf's rows"
            ax.fill_between(times, low, high, color=look.color, alpha=0.22, linewidth=0, label=label)
            ax.plot(times, survival.mean(0), color=look.color, linewidth=1.6, label="their mean")
    own = tree.predict_survival_function(row, times=times)[0]
    ax.plot(times, own, color=SUBJECT, linewidth=2.0, label=whose)
    ax.axhline(0.5, color=MUTED, linewidth=0.6)
    ax.set(xlim=(0, times[-1]), ylim=(0, 1.02))
    ax.set_title(f"leaf {leaf}: survival", fontsize=8.5)
    ax.legend(fontsize=7, frameon=False)
