"""One subject over time: which leaves it visits while its features change, and what to expect on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidParameterError, InvalidTimesError
from softsurv.estimators.shared.competing import path_rows, stretches
from softsurv.explore.curves import default_times, leaf_looks
from softsurv.explore.incidence_plot import cause_color
from softsurv.explore.style import INK, MUTED, literal_text, plain_axes, shorten, survival_tree, time_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STAYS = "#F2F2F2"
"""Colour of the ground where the picture assumes that the last row stays as it is."""

SIZE, SHARES = (6.4, 4.6), (1.0, 2.6)
"""Inches of the figure; heights of the leaves and of the probabilities."""


@literal_text
def plot_history(
    tree: Any,
    X: Any,
    start: Any = None,
    stop: Any = None,
    *,
    horizon: float | None = None,
    time_unit: str | None = None,
) -> Axes:
    """A subject's way through the leaves over time, above the probability of what may happen on it.

    Parameters
    ----------
    tree : fitted tree
        Soft or optimal.
    X : table, or SurvivalData
        Rows of one subject, each with the features of a stretch of time.
    start, stop : column name or array, optional
        Each row's stretch (start, stop]; not for `SurvivalData`, which knows it.
    horizon : float, optional
        End of the time axis; the last event time in training by default, or the end of the last row if that is later.
    time_unit : str, optional

    Returns
    -------
    matplotlib axes
        The axes of the leaves; their ``figure`` holds both.

    Raises
    ------
    InvalidParameterError
        If the rows are of several subjects.
    InvalidSurvivalDataError
        If the stretches overlap.
    InvalidTimesError
        If the horizon is not after the start of the first row.

    Notes
    -----
    Given that nothing has happened when the first row starts. With causes the areas are the probabilities of each, as
    ``predict_path`` gives them; otherwise the line is that of no event. Where the ground is grey the subject's rows
    have ended, and what is drawn is as if the last one stayed so.

    Examples
    --------
    >>> plot_history(tree, visits, "start", "stop").figure.savefig("history.png")  # doctest: +SKIP
    """
    import matplotlib.pyplot as plt

    survival_tree(tree)
    one = None if start is None and stop is None else np.zeros(len(X), dtype=int)
    rows = path_rows(X, start, stop, one)
    if rows.n_subjects > 1:
        raise InvalidParameterError(f"X must hold the rows of one subject, got {rows.n_subjects}; pass those of one")
    _, begin, _ = stretches(rows)
    order = np.argsort(begin)
    begin, over = begin[order], float(rows.time.max())
    leaf = tree.apply(rows.X)[order]
    times = _times(tree, begin, over, horizon)
    how: dict[str, Any] = {"figsize": SIZE, "sharex": True, "height_ratios": SHARES, "layout": "constrained"}
    above, below = plt.subplots(2, 1, **how)[1]
    _draw_leaves(above, tree, leaf, begin, times[-1])
    _draw_chances(below, tree, rows, times)
    if over < times[-1]:
        above.axvspan(over, times[-1], color=STAYS, zorder=0, linewidth=0)
        below.axvspan(over, times[-1], color=STAYS, zorder=0, linewidth=0, label="as if the last row stayed so")
    below.legend(loc="best", fontsize=8, framealpha=1.0, edgecolor="none")  # the grey of a sample shows on white
    above.set_xlim(times[0], times[-1])
    below.set_xlabel(time_label(rows, time_unit))
    first: Axes = above
    return first


def _times(tree: Any, begin: FloatArray, over: float, horizon: float | None) -> FloatArray:
    """Grid from the first row's start to the horizon, both sides of every change in it."""
    end = max(float(tree.unique_times_[-1]), over) if horizon is None else horizon
    grid = default_times(tree, horizon=end)
    if grid[-1] <= begin[0]:
        raise InvalidTimesError(f"horizon must lie after the start of the first row at {begin[0]:g}, got {horizon!r}")
    return np.unique(np.concatenate([grid[grid >= begin[0]], begin[begin < end], [end]]))


def _draw_leaves(ax: Axes, tree: Any, leaf: IntArray, begin: FloatArray, end: float) -> None:
    """A bar for each stretch at the height of its leaf, in the colour that the leaf has in every picture."""
    looks, visited = leaf_looks(tree), list(dict.fromkeys(leaf.tolist()))
    plain_axes(ax)
    for k, number in enumerate(leaf.tolist()):
        until = begin[k + 1] if k + 1 < len(begin) else end
        place = visited.index(number)
        ax.barh(place, min(until, end) - begin[k], left=begin[k], height=0.6, color=looks[number].color, zorder=3)
        if k and number != leaf[k - 1]:
            ax.plot([begin[k]] * 2, [visited.index(leaf[k - 1]), place], color=MUTED, linewidth=1.2, zorder=2)
    ax.set_yticks(range(len(visited)), [f"leaf {number}" for number in visited])
    ax.set_ylim(len(visited) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")


def _draw_chances(ax: Axes, tree: Any, rows: Any, times: FloatArray) -> None:
    """Stacked probabilities of the causes along the rows, or the probability of no event."""
    plain_axes(ax).set(ylim=(0.0, 1.0), ylabel="Probability")
    names = getattr(tree, "cause_names_", ())
    if not names:
        ax.plot(times, tree.predict_path(rows, None, times=times)[0], color=INK, linewidth=2.0, label="no event")
    else:
        risen = [tree.predict_path(rows, None, times=times, cause=name)[0] for name in names]
        colors = [cause_color(k) for k in range(len(names))]
        ax.stackplot(times, risen, colors=colors, labels=[shorten(name, 30) for name in names], alpha=0.6, linewidth=0)
