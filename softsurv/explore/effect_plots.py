"""Pictures of what features do: in the routing, in each leaf, and in the prediction as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from softsurv.arrays import FloatArray
from softsurv.data.encoding import is_number, labels
from softsurv.data.rules import rounded_text
from softsurv.errors import InvalidParameterError
from softsurv.explore.curves import default_times, leaf_looks
from softsurv.explore.style import (
    INK,
    LineStyle,
    literal_text,
    new_axes,
    plain_axes,
    read_data,
    series_marker,
    series_style,
    shorten,
    shorten_all,
    takes_tables,
    unit_of,
)
from softsurv.explore.view import CauseWeights, TreeView, tree_view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HATCHES = ("", "///", "\\\\\\", "...", "xxx", "---", "++", "oo")
NAME_LIMIT, AXIS_LIMIT = 34, 60
CHARACTERS_ACROSS = 45
"""So many characters of levels fit side by side below a picture; more are slanted."""
MOST_SLANTED = 12
"""More levels stand upright, as slanted ones would cover each other."""
BESIDE: dict[str, Any] = {"fontsize": 8, "frameon": False, "loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}


@literal_text
def plot_routing_effects(tree: Any, ax: Axes | None = None, *, n_features: int = 8) -> Axes:
    """What each feature does at each branch node.

    Parameters
    ----------
    tree : fitted soft tree
    ax : matplotlib axes, optional
    n_features : int
        The strongest ones are drawn.

    Raises
    ------
    InvalidParameterError
        For a single leaf, and for an optimal tree, whose splits ask one feature each.

    Notes
    -----
    Change of the log-odds of going left (yes) as the feature goes from its lowest to its highest training value. The
    legend says where a branch node stands by the answers that lead to it from the root.

    Examples
    --------
    >>> ax = plot_routing_effects(tree)                         # doctest: +SKIP
    """
    view = tree_view(tree)
    if not view.branches:
        raise InvalidParameterError("tree must have a branch node to show its routing, got a single leaf")
    if not view.soft:
        raise InvalidParameterError(
            "tree must be soft, got one whose splits ask one feature each; see feature_importances_"
        )
    effects = {view.place_words(node): node.split.effects() for node in view.branches if node.split is not None}
    label = "Effect on the log-odds of yes"
    ax = _dots(pd.DataFrame(effects), ax, n_features, label, [series_style(k) for k in range(len(effects))])
    ax.legend(**BESIDE, title="answers from\nthe root", title_fontsize=8)
    return ax


@literal_text
def plot_leaf_effects(
    tree: Any, ax: Axes | None = None, *, n_features: int = 8, cause: int | str | None = None
) -> Axes:
    """What each feature does within each leaf.

    Parameters
    ----------
    tree : fitted soft tree
    ax : matplotlib axes, optional
    n_features : int
        The strongest ones are drawn.
    cause : int or str, optional
        Code 1..K or name; of a tree with causes all are drawn by default.

    Raises
    ------
    InvalidParameterError
        For a tree whose leaves hold one curve each, and for a cause that the tree does not know.

    Notes
    -----
    Change of the leaf's linear predictor as the feature goes from its lowest to its highest training value: a log
    hazard ratio, or a log odds ratio, according to the family of the leaves. Above 0: earlier events. With causes the
    effect is one on the hazard of the cause; where the leaves share their slopes, a cause has one marker for all.

    Examples
    --------
    >>> ax = plot_leaf_effects(tree)                            # doctest: +SKIP
    """
    view = tree_view(tree)
    shown = view.cause_weights if cause is None else view.cause_weights[tree._cause(cause) - 1 :][:1]
    if shown:
        return _cause_effects(view, shown, ax, n_features)
    if view.leaf_weights is None:
        raise InvalidParameterError(
            "tree must have leaves whose curves vary with the features, got one curve per leaf; "
            "feature_importances_ says how much each feature matters"
        )
    table = pd.DataFrame({f"leaf {leaf}": view.leaf_weights[leaf] for leaf in view.leaves}, index=list(view.names))
    looks = leaf_looks(tree)
    styles = [looks[leaf] for leaf in view.leaves]
    ranks = [list(looks).index(leaf) for leaf in view.leaves]  # leaves of a like risk have like colours
    return _dots(table, ax, n_features, f"Effect over the feature's range\n({view.effect})", styles, ranks)


def _cause_effects(view: TreeView, shown: Sequence[CauseWeights], ax: Axes | None, n_features: int) -> Axes:
    """Effects on causes: a marker for each cause, or for each cause in each leaf."""
    columns: dict[str, FloatArray] = {}
    names = shorten_all([own[0] for own in shown], 24)
    for cause, (_, weights, _) in zip(names, shown, strict=True):
        shared = np.ptp(weights, axis=0).max(initial=0.0) <= 1e-9 * np.abs(weights).max(initial=0.0)
        named = {cause: 0} if shared else {f"{cause}, leaf {leaf}": leaf for leaf in view.leaves}
        columns |= {name: weights[leaf] for name, leaf in named.items()}
    effects = " / ".join(dict.fromkeys(own.effect for own in shown))
    table = pd.DataFrame(columns, index=list(view.names))
    looks = [series_style(k) for k in range(table.shape[1])]
    return _dots(table, ax, n_features, f"Effect over the feature's range\n({effects})", looks)


def _dots(
    table: pd.DataFrame,
    ax: Axes | None,
    n_features: int,
    label: str,
    looks: list[LineStyle],
    ranks: Sequence[int] | None = None,  # by which columns take their markers; their order by default
) -> Axes:
    """One row per feature, one marker per column, side by side within the row."""
    markers = [series_marker(k) for k in ranks or range(table.shape[1])]
    strongest = table.abs().max(axis=1).sort_values(ascending=False, kind="stable")
    shown = table.loc[strongest.index[:n_features]].iloc[::-1]
    ax = plain_axes(new_axes(ax, 6.4, 1.2 + max(0.42, 0.06 * shown.shape[1]) * len(shown)))
    places = np.arange(len(shown))
    spread = 0.6 / max(shown.shape[1], 1)
    for k, name in enumerate(shown.columns):
        offset = (shown.shape[1] - 1 - 2 * k) / 2 * spread
        look, marker = looks[k], markers[k]
        ax.hlines(places + offset, 0, shown[name], color=look.color, linewidth=1.0, alpha=0.7)
        ax.plot(shown[name], places + offset, marker, color=look.color, markersize=5, label=name)
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.set_yticks(places, shorten_all(shown.index, NAME_LIMIT))
    ax.set(xlabel=label, ylim=(-0.6, len(shown) - 0.4))
    ax.legend(**BESIDE)
    return ax


@literal_text
@takes_tables
def plot_feature_profile(
    tree: Any,
    data: Any,
    feature: str,
    ax: Axes | None = None,
    *,
    n_values: int = 21,
    max_rows: int = 300,
    time_unit: str | None = None,
) -> Axes:
    """How leaves and expected time change when one feature is set to each of its values in all rows.

    Parameters
    ----------
    tree : fitted tree
    data : SurvivalData, (X, y), or a table with ``time=`` and ``event=``
        Rows that keep their other features.
    feature : str
        Column of the raw table.
    ax : matplotlib axes, optional
        Gets a twin axes for the expected time.
    n_values : int
        Values of a numeric feature, between its 2nd and 98th centile.
    max_rows : int
        Rows used, evenly taken.
    time_unit : str, optional

    Notes
    -----
    Coloured areas: share of rows in each leaf. Black line: mean expected time, restricted to the last event time
    in training. The other features stay as they are, which may make rows that do not occur.

    Examples
    --------
    >>> ax = plot_feature_profile(tree, test, "age")            # doctest: +SKIP
    """
    read = read_data(data)
    if feature not in read.X.columns:
        raise InvalidParameterError(f"feature must be a column of the data, got {feature!r}")
    keep = np.unique(np.linspace(0, read.n - 1, min(max_rows, read.n)).round().astype(int))
    X = read.X.iloc[keep]
    values, places = _values_of(read.X[feature], n_values)
    if not values:
        raise InvalidParameterError(
            f"feature must have known values in the data, got none of {feature!r}; name another"
        )
    end = float(default_times(tree)[-1])
    shares, means = profile(tree, X, feature, values, end)
    ax = new_axes(ax, 6.4, 4.0)
    view, numeric = tree_view(tree), not isinstance(values[0], str)
    abrupt = numeric and not view.soft  # a question changes the leaf at once
    _draw_shares(ax, places, shares, leaf_looks(tree), view.leaves, numeric, "mid" if abrupt else None)
    if not numeric:
        slant = 30 if len(values) <= MOST_SLANTED else 90
        slanted: dict[str, Any] = {"rotation": slant, "ha": "right", "va": "center" if slant == 90 else "top"}
        slanted |= {"rotation_mode": "anchor"} | ({"fontsize": 7} if slant == 90 else {})
        crowded = sum(min(len(v), 18) for v in values) > CHARACTERS_ACROSS
        ax.set_xticks(places, shorten_all(values, 18), **(slanted if crowded else {}))
    ax.set(xlabel=shorten(str(feature), AXIS_LIMIT), ylabel="Share of rows in each leaf", ylim=(0, 1))
    twin: Any = ax.twinx()
    drawn = "steps-mid" if abrupt else "default"
    twin.plot(places, means, color="white", linewidth=4, drawstyle=drawn)
    twin.plot(
        places, means, color=INK, marker="o", markersize=3.5, linewidth=1.6, drawstyle=drawn, label="expected time"
    )
    unit = unit_of(read, time_unit)
    twin.set_ylabel(f"Expected time up to {rounded_text(end)} {unit}".rstrip())
    twin.set_ylim(0, 1.15 * float(means.max()))
    handles = [*ax.get_legend_handles_labels()[0], *twin.get_legend_handles_labels()[0]]
    names = [*ax.get_legend_handles_labels()[1], *twin.get_legend_handles_labels()[1]]
    twin.legend(handles, names, fontsize=8, framealpha=0.9, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)
    return ax


def profile(tree: Any, X: pd.DataFrame, feature: str, values: list[Any], end: float) -> tuple[FloatArray, FloatArray]:
    """Share of rows in each leaf (V, L) and mean expected time (V,) with the feature set to each value."""
    moved = pd.concat([X] * len(values), ignore_index=True)
    moved[feature] = np.repeat(np.array(values, dtype=object if isinstance(values[0], str) else float), len(X))
    leaf = tree.apply(moved).reshape(len(values), len(X))
    shares = np.stack([(leaf == k).mean(1) for k in tree_view(tree).leaves], 1)
    return shares, tree.predict_expectation(moved, end).reshape(len(values), len(X)).mean(1)


def _values_of(column: pd.Series, n_values: int) -> tuple[list[Any], FloatArray]:
    """Values to set, and their places on the axis: numbers at themselves, levels at 0, 1, ..."""
    if not is_number(column):
        levels = sorted({str(v) for v in labels(column, str(column.name)) if v is not None})
        return list(levels), np.arange(len(levels), dtype=float)
    numbers = column.dropna().astype(float).to_numpy()
    distinct = np.unique(numbers)
    if distinct.size > n_values:
        low, high = (float(v) for v in np.quantile(numbers, [0.02, 0.98]))
        distinct = np.linspace(low, high, n_values)
    return [float(v) for v in distinct], np.asarray(distinct, dtype=float)


def _draw_shares(
    ax: Axes,
    places: FloatArray,
    shares: FloatArray,
    looks: dict[int, LineStyle],
    leaves: list[int],
    numeric: bool,
    step: Literal["mid"] | None,
) -> None:
    """Areas or bars of the leaves, one upon the other."""
    base = np.zeros(len(places))
    for leaf, share in zip(leaves, shares.T, strict=True):
        top = base + share
        look: dict[str, Any] = {
            "facecolor": looks[leaf].color,
            "alpha": 0.35,
            "hatch": HATCHES[leaf % len(HATCHES)],
            "edgecolor": "white",
            "linewidth": 0.5,
            "label": f"leaf {leaf}",
        }
        if numeric and len(places) > 2:
            ax.fill_between(places, base, top, step=step, **look)
        else:
            width = 0.7 * float(np.min(np.diff(places))) if len(places) > 1 else 0.7
            ax.bar(places, share, width=width, bottom=base, **look)
        base = top


__all__ = ["plot_feature_profile", "plot_leaf_effects", "plot_routing_effects"]
