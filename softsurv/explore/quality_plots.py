"""Pictures of trust: calibration, Brier score over time, fairness over rho, training trace, size against quality."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from softsurv.errors import InvalidParameterError
from softsurv.estimators.shared.checks import grid_of
from softsurv.explore.quality import (
    brier_frame,
    calibration_curves,
    d_calibration_of,
    default_horizons,
    fairness_frame,
    one_row_each,
    refuse_list,
)
from softsurv.explore.style import (
    INK,
    MARKERS,
    MUTED,
    chance,
    key_below,
    literal_text,
    new_axes,
    plain_axes,
    read_data,
    series_style,
    takes_tables,
    time_label,
    unit_of,
    with_unit,
)
from softsurv.metrics.brier import mean_of_known
from softsurv.metrics.calibration import CalibrationCurve, DCalibration

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@literal_text
@takes_tables
def plot_calibration(
    tree: Any,
    data: Any,
    horizons: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    n_bins: int = 8,
    time_unit: str | None = None,
) -> Axes:
    """Observed against predicted survival at some horizons, with the p-value of D-calibration.

    Parameters
    ----------
    tree : fitted tree
    data : SurvivalData, (X, y), or a table with ``time=`` and ``event=``
        Rows the tree has not seen.
    horizons : array_like, optional
        Times; the quartiles of the event times by default.
    ax : matplotlib axes, optional
    n_bins : int
        Groups of similar prediction; their Kaplan-Meier estimates have 95 % bars.
    time_unit : str, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> ax = plot_calibration(tree, test, horizons=[365, 1095])  # doctest: +SKIP
    """
    read = one_row_each(read_data(data))
    at = default_horizons(tree, read) if horizons is None else grid_of(horizons, "horizons")
    curves, test = calibration_curves(tree, read, at, n_bins)
    return draw_calibration(new_axes(ax, 4.8, 4.8), curves, test, read.n, unit_of(read, time_unit))


def draw_calibration(ax: Axes, curves: list[CalibrationCurve], test: DCalibration, n: int, unit: str) -> Axes:
    """Calibration curves that are already computed."""
    plain_axes(ax)
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=":", label="perfect")
    for k, curve in enumerate(curves):
        look = series_style(k)
        below = np.maximum(curve.observed - curve.lower, 0)
        above = np.maximum(curve.upper - curve.observed, 0)
        ax.errorbar(
            curve.predicted,
            curve.observed,
            yerr=np.nan_to_num(np.array([below, above])),
            color=look.color,
            linestyle=look.linestyle,
            marker=MARKERS[k % len(MARKERS)],
            markersize=4.5,
            linewidth=1.3,
            elinewidth=0.8,
            capsize=2,
            label=f"at {with_unit(curve.horizon, unit)}",
        )
    ax.set(
        xlabel="Predicted survival probability",
        ylabel="Observed survival (Kaplan-Meier)",
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        aspect="equal",
    )
    ax.set_title(f"D-calibration: {chance(test.p_value)}, n = {n}", fontsize=9, color=INK)
    key_below(ax)  # a group may lie anywhere in the square
    return ax


@literal_text
@takes_tables
def plot_d_calibration(tree: Any, data: Any, ax: Axes | None = None, *, n_bins: int = 10) -> Axes:
    """Shares of rows by predicted survival at their own time: level bars mean calibrated over all of time.

    ``tree``, ``data`` and ``ax`` are those of :func:`plot_calibration`, ``n_bins`` the bars. A small p-value in the
    title, that of `softsurv.metrics.d_calibration`, says that predictions are off, or that many rows share a time.

    Examples
    --------
    >>> ax = plot_d_calibration(tree, test)                     # doctest: +SKIP
    """
    test = d_calibration_of(tree, one_row_each(read_data(data)), n_bins)
    return draw_d_calibration(new_axes(ax, 4.8, 3.6), test)


def draw_d_calibration(ax: Axes, test: DCalibration) -> Axes:
    """A D-calibration that is already computed."""
    plain_axes(ax)
    n_bins = len(test.shares)
    middles = (np.arange(n_bins) + 0.5) / n_bins
    ax.bar(middles, test.shares, width=0.9 / n_bins, color=series_style(0).color, alpha=0.75, label="share of rows")
    ax.axhline(1 / n_bins, color=INK, linestyle="--", linewidth=1, label="calibrated")
    ax.set(xlabel="Predicted survival probability at own time", ylabel="Share of rows", xlim=(0, 1))
    ax.set_title(f"D-calibration: χ² = {test.statistic:.3g}, {chance(test.p_value)}", fontsize=9, color=INK)
    ax.set_ylim(top=1.25 * max(test.shares.max(), 1 / n_bins))
    ax.legend(fontsize=8, frameon=False, ncols=2, loc="upper center")
    return ax


@literal_text
@takes_tables
def plot_brier(
    trees: Any,
    data: Any,
    ax: Axes | None = None,
    *,
    time_unit: str | None = None,
) -> Axes:
    """Brier score over time, lower is better, beside that of one common curve.

    Parameters
    ----------
    trees : fitted tree, or mapping of name to fitted tree
        The censoring curve of the first one weighs the scores.
    data : SurvivalData, (X, y), or a table with ``time=`` and ``event=``
        Rows the trees have not seen.
    ax : matplotlib axes, optional
    time_unit : str, optional

    Examples
    --------
    >>> ax = plot_brier({"soft": soft, "optimal": best}, test)  # doctest: +SKIP
    """
    read = read_data(data)
    refuse_list(trees, "name")
    frame = brier_frame(trees if isinstance(trees, Mapping) else {"tree": trees}, read)
    ax = plain_axes(new_axes(ax, 5.6, 3.8))
    for k, name in enumerate(frame.columns[:-1]):
        look = series_style(k)
        mean = _mean_over_time(frame, name)
        label = f"{name} (mean {mean:.3f})"
        ax.plot(frame.index, frame[name], color=look.color, linestyle=look.linestyle, linewidth=1.9, label=label)
    label = f"no features (mean {_mean_over_time(frame, 'no features'):.3f})"
    ax.plot(frame.index, frame["no features"], color=INK, linestyle=":", linewidth=1.2, label=label)
    ax.set(xlabel=time_label(read, time_unit), ylabel="Brier score", xlim=(0, frame.index[-1]))
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=8, frameon=False)
    return ax


def _mean_over_time(frame: pd.DataFrame, name: str) -> float:
    return mean_of_known(frame.index.to_numpy(), frame[name].to_numpy())


@literal_text
@takes_tables
def plot_fairness_trend(trees: Any, data: Any, ax: Axes | None = None, *, group: str | None = None) -> Axes:
    """Gap between the groups' curves, mixing of the groups in the leaves, and concordance, over rho.

    Parameters
    ----------
    trees : fitted tree, or mapping of rho to fitted tree
        Trees fitted with ``fairness=rho``.
    data : SurvivalData with a group
    ax : matplotlib axes, optional
    group : str, optional
        Name of the sensitive group; the last of ``data.group_names`` by default.

    Notes
    -----
    Weights are evenly spaced in the picture, whatever their size, so that 0 has a place. The mixing is the
    normalised Gini impurity of paper `sst`, section 5.4: 1 where every leaf holds the groups in equal parts.

    Examples
    --------
    >>> trees = {rho: SoftSurvivalTree(depth=1, fairness=rho).fit(train) for rho in (0, 1, 10)}  # doctest: +SKIP
    >>> ax = plot_fairness_trend(trees, test)                   # doctest: +SKIP
    """
    frame = fairness_frame(trees, data, group)
    ax = plain_axes(new_axes(ax, 5.6, 3.8))
    places = np.arange(len(frame))
    right: Any = ax.twinx()
    right.spines[["top"]].set_visible(False)
    lines = [
        (ax, "mean_gap", "gap of mean curves (left axis; 0 = fair)"),
        (right, "gini", "mixing of groups in leaves (right axis; 1 = even)"),
        (right, "harrell_c", "Harrell's concordance (right axis)"),
    ]
    handles = []
    for k, (axes, column, label) in enumerate(lines):
        look = series_style(k)
        handles += axes.plot(
            places, frame[column], color=look.color, linestyle=look.linestyle, marker=MARKERS[k], label=label
        )
    ax.set_xticks(places, [f"{rho:g}" for rho in frame.index])
    ax.set(xlabel="Weight of the fairness penalty, ρ", ylabel="Mean gap between survival curves")
    ax.set_ylim(0, 1.1 * max(float(frame["mean_gap"].max()), 1e-3))
    right.set(ylabel="Gini and concordance", ylim=(0, 1.02))
    right.legend(handles=handles, fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0))
    return ax


@literal_text
def plot_trace(tree: Any, ax: Axes | None = None) -> Axes:
    """Training objective of the kept tree after each round, with the ends of the other starts.

    ``tree`` is dense or optimal: one of rules has no trace, an `InvalidParameterError`. ``ax`` is new by default.

    Examples
    --------
    >>> ax = plot_trace(tree)                                   # doctest: +SKIP
    """
    from matplotlib.ticker import MaxNLocator

    report = tree.report_
    if not report.trace:
        raise InvalidParameterError(
            "tree must hold a training trace, got none: trees of rules keep none, dense trees (max_terms=None) and "
            "optimal trees do"
        )
    ax = plain_axes(new_axes(ax, 5.6, 3.4))
    look = series_style(0)
    rounds = np.arange(len(report.trace))
    look_of_line: dict[str, Any] = {"color": look.color, "linewidth": 1.8, "label": "best objective so far"}
    if len(rounds) == 1:  # a line through one point shows nothing
        look_of_line["marker"] = MARKERS[0]
    ax.plot(rounds, report.trace, **look_of_line)
    ends = np.asarray(report.details.get("objectives", []), dtype=float)
    if ends.size > 1:
        ax.plot(np.full(ends.size, rounds[-1]), ends, "_", color=series_style(1).color, label="end of each start")
    if np.isfinite(report.lower_bound):
        ax.axhline(report.lower_bound, color=INK, linestyle="--", linewidth=1, label="proven lower bound")
    ax.set(xlabel="Round", ylabel="Training objective")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.set_title(f"{report.status.replace('_', ' ')}, {report.seconds:.1f} s", fontsize=9, color=INK)
    ax.legend(fontsize=8, frameon=False)
    return ax


@literal_text
def plot_size_quality(path: Any, ax: Axes | None = None, *, ylabel: str | None = None) -> Axes:
    """Quality of optimal trees against their size, with the errors of held-out losses as in rpart's ``plotcp``.

    Parameters
    ----------
    path : fitted optimal tree or DataFrame
        A tree whose size was chosen by cross-validation: the held-out loss of each limit on the leaves above the best
        limit, with two standard errors of that difference. Of the limits as good as the best the largest is chosen.
        Settings with a cost per leaf are drawn apart, at their mean number of leaves over the folds. Another tree: the
        training objective of its ``path_``, which says nothing about new rows. Or a frame with a column ``leaves``, one
        column for each measure to draw, and where known a column ``<measure>_se`` for its error.
    ax : matplotlib axes, optional
    ylabel : str, optional
        What the measures are, with their unit.

    Examples
    --------
    >>> ax = plot_size_quality(best)                            # doctest: +SKIP
    >>> ax = plot_size_quality(pd.DataFrame({"leaves": [1, 2, 3], "test": [1.0, 0.8, 0.7], "test_se": [0.1, 0.1, 0.1]}))
    """
    label, chosen = "Training objective", None
    if len(getattr(path, "selection_", ())) and "max_leaves" in path.selection_:
        path, chosen = _held_out(path.selection_)
        label = "Held-out loss above the best limit"
    elif hasattr(path, "path_"):
        path = pd.DataFrame([{"leaves": one.max_leaves, "optimal tree": one.objective} for one in path.path_])
    if not isinstance(path, pd.DataFrame) or "leaves" not in path.columns or path.shape[1] < 2:
        got = list(map(str, path.columns)) if isinstance(path, pd.DataFrame) else type(path).__name__
        raise InvalidParameterError(f"path must have the column 'leaves' and a measure, got {got}")
    return _draw_sizes(path.sort_values("leaves"), chosen, ylabel or label, new_axes(ax, 5.6, 3.6))


_LIMIT, _COST = "limit on the leaves", "cost per leaf"


def _held_out(selection: pd.DataFrame) -> tuple[pd.DataFrame, tuple[float, float]]:
    """The best setting of each size: its loss above the best limit with two standard errors; and the chosen point."""
    kind = np.where(selection["complexity"] > selection["complexity"].min(), _COST, _LIMIT)
    point = selection.loc[selection["chosen"], ["leaves", "difference"]].iloc[0]
    parts = []
    for name in (one for one in (_LIMIT, _COST) if one in kind):
        best = selection[kind == name].sort_values("loss", kind="stable").drop_duplicates("leaves")
        parts.append(
            pd.DataFrame({"leaves": best["leaves"], name: best["difference"], f"{name}_se": 2 * best["error"]})
        )
    return pd.concat(parts), (float(point["leaves"]), float(point["difference"]))


def _draw_sizes(ordered: pd.DataFrame, chosen: tuple[float, float] | None, ylabel: str, ax: Axes) -> Axes:
    from matplotlib.ticker import MaxNLocator

    plain_axes(ax)
    measures = [name for name in ordered.columns.drop("leaves") if not str(name).endswith("_se")]
    for k, name in enumerate(measures):
        known = ordered[ordered[name].notna()]
        look, error = series_style(k), known.get(f"{name}_se")
        how: dict[str, Any] = {"color": look.color, "linestyle": look.linestyle, "marker": MARKERS[k % len(MARKERS)]}
        ax.errorbar(known["leaves"], known[name], yerr=error, capsize=3, label=str(name), **how)
    if chosen is not None:
        ax.plot(*chosen, "o", markersize=13, markerfacecolor="none", color=INK, linestyle="none", label="chosen")
        words = "best limit; bars that reach it: as good"
        ax.axhline(0, color=MUTED, linestyle="--", linewidth=1, label=words)
    ax.set(xlabel="Number of leaves", ylabel=ylabel)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.legend(fontsize=8, frameon=False)
    return ax
