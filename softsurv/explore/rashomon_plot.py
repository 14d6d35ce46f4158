"""Picture of what features are worth over all near-optimal trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softsurv.estimators.rashomon import RashomonSet
from softsurv.explore.style import INK, MUTED, OKABE_ITO, literal_text, new_axes, plain_axes, shorten_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME_LIMIT = 34


@literal_text
def plot_importance_ranges(near: RashomonSet, ax: Axes | None = None, *, max_trees: int = 100_000) -> Axes:
    """Between what bounds the importance of each column lies over the near-optimal trees.

    Parameters
    ----------
    near : RashomonSet
        From ``tree.rashomon_set(...)``.
    ax : matplotlib axes, optional
    max_trees : int
        The best so many trees are looked at.

    Notes
    -----
    A bar goes from the least importance to the largest. The dot is the best tree's. Columns that every tree asks have a
    dark bar. The number behind a name is the share of the trees that ask it.

    Examples
    --------
    >>> from softsurv import OptimalSurvivalTree, load_dataset
    >>> from softsurv.explore import plot_importance_ranges
    >>> train, test = load_dataset("gbsg2").split(seed=0)
    >>> near = OptimalSurvivalTree(max_depth=2).fit(train.X, train.y).rashomon_set(0.02)
    >>> axes = plot_importance_ranges(near)
    """
    table = near.importances(max_trees)
    table = table[table["most"] > 0]
    height = 1.1 + 0.32 * max(len(table), 1)
    axes = new_axes(ax, height=height)
    place = np.arange(len(table))
    for needed, color, label in ((True, OKABE_ITO[0], "asked by every tree"), (False, "#9cc4de", "can be left out")):
        here = np.flatnonzero(table["needed"].to_numpy() == needed)
        if here.size:
            some = table.iloc[here]
            axes.barh(here, some["most"] - some["least"], left=some["least"], height=0.5, color=color, label=label)
    axes.plot(table["best"], place, "o", color=INK, markersize=5, label="best tree")
    names = shorten_all(table["share"].index, NAME_LIMIT)
    axes.set_yticks(place, [f"{name} ({_percent(s)})" for name, s in zip(names, table["share"], strict=True)])
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.set_xlabel("Importance: share of what\nthe splits take off the objective")
    n = table.attrs["n_trees"]
    whole = f"{n:,} trees" if n == near.n_trees else f"The best {n:,} of {near.n_trees:,} trees"
    title = f"{whole},\nobjective up to {near.threshold / near.objective - 1:.1%} above the best"
    axes.set_title(title, loc="left", fontsize=10, color=MUTED)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    plain_axes(axes)
    return axes


def _percent(share: float) -> str:
    """A share that is rounded neither to all nor to none."""
    return ">99%" if 0.995 <= share < 1 else "<1%" if 0 < share < 0.005 else f"{share:.0%}"
