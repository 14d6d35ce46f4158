"""Curves of the rows, coloured by leaf: survival, hazard, cumulative hazard."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.explore.curves import (
    RowCurves,
    curve_name,
    curves_by_leaf,
    default_times,
    leaf_kaplan_meier,
    leaf_looks,
    steps,
)
from softsurv.explore.style import (
    INK,
    LineStyle,
    key_beside,
    literal_text,
    new_axes,
    plain_axes,
    read_data,
    survival_axes,
    takes_tables,
    time_label,
    unit_of,
    with_room_for_key,
)
from softsurv.explore.view import tree_view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from softsurv.data.survival_data import SurvivalData


FEW_LEAVES = 5
"""So many entries of a legend find room between the curves."""

N_SPANS = 20
"""Spans of time over which hazards of steps are averaged."""


@literal_text
@takes_tables
def plot_leaf_curves(
    tree: Any,
    data: Any,
    ax: Axes | None = None,
    *,
    horizon: float | None = None,
    time_unit: str | None = None,
    show_kaplan_meier: bool = False,
    max_curves: int = 300,
) -> Axes:
    """Survival curves of all rows, coloured by the leaf they fall into.

    Parameters
    ----------
    tree : fitted tree
        Soft or optimal.
    data : SurvivalData, (X, y), or a table with ``time=`` and ``event=``
        Rows to draw.
    ax : matplotlib axes, optional
        A new figure by default.
    horizon : float, optional
        End of the time axis; the last event time in training by default.
    time_unit : str, optional
        For the label; known for the package's own data sets.
    show_kaplan_meier : bool
        Add the Kaplan-Meier curve (Turnbull's with intervals) of each leaf's rows as thin steps, in the leaf's
        colour and line style.
    max_curves : int
        Most thin curves per leaf; more rows are thinned evenly by risk.

    Returns
    -------
    matplotlib axes

    Notes
    -----
    Thin lines are individual rows, the thick line with the leaf's own dashes is the mean of its curves, which a
    Kaplan-Meier curve of the same rows should follow.
    Leaves without rows are named in the legend.

    References
    ----------
    Paper `sst`, Figure 6.

    Examples
    --------
    >>> ax = plot_leaf_curves(tree, test)                       # doctest: +SKIP
    >>> ax.figure.savefig("curves.png")                         # doctest: +SKIP
    """
    read = read_data(data)
    times = default_times(tree, horizon=horizon)
    new = new_axes(ax, *with_room_for_key(tree_view(tree).n_leaves))
    ax = survival_axes(new, time_label(read, time_unit))
    leaves = curves_by_leaf(tree, read, times, max_curves=max_curves)
    looks = leaf_looks(tree)
    _draw_leaves(ax, [replace(one, middle=one.mean) for one in leaves], times, looks)
    if show_kaplan_meier:
        for one in leaves:
            if one.rows.size:
                x, y = steps(leaf_kaplan_meier(read, one.rows), times[-1])
                look = looks[one.leaf]
                ax.step(x, y, where="post", color=look.color, linestyle=look.linestyle, linewidth=1.0)
        ax.plot([], [], color=INK, linewidth=1.0, drawstyle="steps", label=f"steps: {curve_name(read)}\nof the leaf")
    ax.set_xlim(0, times[-1])
    key_beside(ax, FEW_LEAVES, "lowest risk first")
    return ax


@literal_text
@takes_tables
def plot_hazard(
    tree: Any,
    data: Any,
    ax: Axes | None = None,
    *,
    horizon: float | None = None,
    time_unit: str | None = None,
    max_curves: int = 100,
) -> Axes:
    """Hazards of all rows, coloured by leaf, per unit of time; arguments as in :func:`plot_leaf_curves`.

    Notes
    -----
    Thick lines are medians: a few rows of high hazard would draw a mean away from the others.
    A curve of steps has no hazard at a time: of an optimal tree, mean hazards over 20 equal spans of time are drawn.

    Examples
    --------
    >>> ax = plot_hazard(tree, test, time_unit="days")          # doctest: +SKIP
    """
    return _plot_kind("hazard", tree, data, ax, horizon, time_unit, max_curves)


@literal_text
@takes_tables
def plot_cumulative_hazard(
    tree: Any,
    data: Any,
    ax: Axes | None = None,
    *,
    horizon: float | None = None,
    time_unit: str | None = None,
    max_curves: int = 100,
) -> Axes:
    """Cumulative hazards of all rows, coloured by leaf; arguments as in :func:`plot_leaf_curves`.

    Examples
    --------
    >>> ax = plot_cumulative_hazard(tree, test)                 # doctest: +SKIP
    """
    return _plot_kind("cumulative_hazard", tree, data, ax, horizon, time_unit, max_curves)


def _plot_kind(
    kind: str,
    tree: Any,
    data: Any,
    ax: Axes | None,
    horizon: float | None,
    time_unit: str | None,
    max_curves: int,
) -> Axes:
    read = read_data(data)
    ax = plain_axes(new_axes(ax, *with_room_for_key(tree_view(tree).n_leaves)))
    if kind == "hazard" and not tree_view(tree).soft:
        edges = np.linspace(0.0, default_times(tree, horizon=horizon)[-1], N_SPANS + 1)
        leaves = [_mean_hazards(one, edges) for one in curves_by_leaf(tree, read, edges, "cumulative_hazard", 1)]
        times = np.repeat(edges, 2)[1:-1]
    else:
        times = default_times(tree, horizon=horizon, positive=kind == "hazard")
        leaves = curves_by_leaf(tree, read, times, kind, max_curves)
    _draw_leaves(ax, leaves, times, leaf_looks(tree))
    ax.set(xlabel=time_label(read, time_unit), ylabel=_hazard_label(kind, read, time_unit), xlim=(0, times[-1]))
    ax.set_ylim(0, _robust_top(leaves))
    key_beside(ax, FEW_LEAVES, "lowest risk first")
    return ax


def _mean_hazards(one: RowCurves, edges: FloatArray) -> RowCurves:
    """Cumulative hazards at the edges of some spans as mean hazards, at both ends of every span."""

    def slope(curves: FloatArray) -> FloatArray:
        finite = np.where(np.isfinite(curves), curves, np.nan)  # a curve that has reached 0 has no hazard any more
        return np.repeat(np.diff(finite, axis=-1) / np.diff(edges), 2, axis=-1)

    curves = (one.values, one.middle, one.lower, one.upper, one.mean)
    return RowCurves(one.leaf, one.rows, *map(slope, curves))


def _hazard_label(kind: str, data: SurvivalData, time_unit: str | None) -> str:
    if kind == "cumulative_hazard":
        return "Cumulative hazard"
    unit = unit_of(data, time_unit)
    return f"Hazard (events per {unit.removesuffix('s')})" if unit else "Hazard (events per unit of time)"


def _robust_top(leaves: list[RowCurves]) -> float:
    """Top of the axis: all of the leaves' medians, and most of the spread; a single row cannot flatten the rest."""
    tops = []
    for one in leaves:
        middle, upper = (curve[np.isfinite(curve)] for curve in (one.middle, one.upper))
        if middle.size and upper.size:
            tops += [1.05 * float(middle.max()), 1.1 * float(np.quantile(upper, 0.9))]
    return max(tops, default=0.0) or 1.0  # where no hazard is above 0 and finite


def _draw_leaves(ax: Axes, leaves: list[RowCurves], times: FloatArray, looks: dict[int, LineStyle]) -> None:
    """Thin individual curves in one collection per leaf, then the middle ones above them all, the lowest risk first."""
    from matplotlib.collections import LineCollection

    for one in leaves:
        if one.rows.size:
            alpha = float(np.clip(12 / len(one.values), 0.06, 0.6))
            lines = [np.column_stack([times, row]) for row in one.values]
            thin = LineCollection(
                lines, colors=looks[one.leaf].color, linewidths=0.6, alpha=alpha, zorder=2, rasterized=True
            )
            ax.add_collection(thin)
    drawn = {one.leaf: one for one in leaves if one.rows.size}
    for one in [drawn[leaf] for leaf in looks if leaf in drawn]:
        look = looks[one.leaf]
        ax.plot(times, one.middle, color="white", linewidth=3.4, zorder=3)
        label = f"leaf {one.leaf}: n = {one.rows.size}"
        ax.plot(times, one.middle, color=look.color, linestyle=look.linestyle, linewidth=2.0, zorder=4, label=label)


__all__ = ["plot_cumulative_hazard", "plot_hazard", "plot_leaf_curves"]
