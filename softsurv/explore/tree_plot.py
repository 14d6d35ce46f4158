"""The tree as a picture: rules at the branch nodes, survival curves in the leaves."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from softsurv.explore.curves import RowCurves, curves_by_leaf, default_times, leaf_looks
from softsurv.explore.leaf_panel import Drawing, draw_curves, draw_key
from softsurv.explore.sideways_tree import draw_sideways, places_of
from softsurv.explore.style import INK, MUTED, RULE_FILL, literal_text, read_data, takes_tables, time_label
from softsurv.explore.tree_layout import FONT, LINE, inches, wrapped
from softsurv.explore.view import TreeView, ViewNode, tree_view

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAF_WIDTH, PANEL_HEIGHT, LEVEL_HEIGHT, FOOT, HEAD, KEY, MARGIN = 1.9, 1.45, 1.0, 0.5, 0.6, 0.45, 0.12
"""Inches: width of a leaf, height of its panel, of a level of rules, of a panel's labels, of the numbers above it, of
the key to the lines, and the margin at the sides."""

MOST_ACROSS = 6
"""Most leaves side by side, unless given axes have room for more; larger trees have a line for each leaf. Seven leaves
are 13 inches wide, which a notebook shows at two thirds of its size or less."""

NUMBER_FONT = 7.5
"""Points of the numbers above a panel; at most 0.58 of it is an average character wide."""

WHOLE_LINE = 28
"""Characters of ``observed median 1234 days`` with some room: in narrower leaves the numbers take five lines."""

MORE_HEAD = 0.26
"""Inches that five lines of numbers need beyond ``HEAD``."""

LINES = 4
"""Most lines of a rule that ``LEVEL_HEIGHT`` has room for."""


@dataclass(frozen=True)
class Places:
    """Places in axes fractions."""

    centre: dict[int, float]
    level: tuple[float, ...]  # height of the branch nodes of each level
    panel_bottom: float
    panel_height: float
    panel_top: float  # with the numbers above the panel
    unit: float  # width of a leaf
    characters: int  # of a line of numbers above a panel
    width_inches: float


@literal_text
@takes_tables
def plot_tree(
    tree: Any,
    data: Any,
    ax: Axes | None = None,
    *,
    horizon: float | None = None,
    time_unit: str | None = None,
    max_terms: int = 3,
    max_curves: int = 300,
    sideways: bool | None = None,
) -> Axes:
    """The tree with a panel of survival curves in every leaf.

    Parameters
    ----------
    tree : fitted tree
        Soft or optimal.
    data : SurvivalData, (X, y), or a table with ``time=`` and ``event=``
        Rows to send down the tree.
    ax : matplotlib axes, optional
        A new figure by default, of the size that legible text needs: 1.9 inches a leaf wide, or about 0.7 inches a
        leaf high where the tree is drawn sideways; a given axes should offer nearly that. Where it is narrower, rules
        and numbers take more lines.
    horizon : float, optional
        End of the time axes; the last event time in training by default.
    time_unit : str, optional
        For the labels; known for the package's own data sets.
    max_terms : int
        Features that a rule names; the weaker ones are counted.
    max_curves : int
        Rows per leaf that the spread rests on; more rows are thinned evenly by risk.
    sideways : bool, optional
        Rules indented on the left and a line for each leaf, rather than leaves side by side; by default for trees of
        more than six leaves, where ``ax`` is not wide enough for all. `plot_tree_parts` draws these in parts for paper.

    Returns
    -------
    matplotlib axes

    Notes
    -----
    In a leaf: the band is the 5th to 95th centile of the rows' predicted curves, the coloured line their mean, which
    is what the black steps, the Kaplan-Meier curve (Turnbull's with intervals) of the same rows, should follow. At
    every split the side of the lower risk is on the left, or above; leaves keep their numbers. The median of a leaf is
    that of the black steps, so it may differ from the predicted one in the tree's text.

    Examples
    --------
    >>> ax = plot_tree(tree, test)                              # doctest: +SKIP
    >>> ax.figure.savefig("tree.pdf", bbox_inches="tight")      # doctest: +SKIP
    """
    read, view = read_data(data), tree_view(tree)
    times = default_times(tree, horizon=horizon)
    curves = curves_by_leaf(tree, read, times, max_curves=max_curves)
    titles = {leaf: f"leaf {leaf}" for leaf in view.leaves}
    drawing = Drawing(read, times, time_unit, max_terms, leaf_looks(tree), titles)
    if ax is None:
        import matplotlib.pyplot as plt

        ax = tree_axes(view, plt.figure, max_terms, sideways)
    return draw_tree(ax, view, curves, drawing, sideways=sideways)


def tree_axes(
    view: TreeView, new_figure: Callable[..., Figure], max_terms: int = 3, sideways: bool | None = None
) -> Axes:
    """Axes of a figure of the size that the tree needs, which ``new_figure(figsize=...)`` makes."""
    figure = new_figure(figsize=size_in_inches(view, max_terms, sideways))
    margin = MARGIN / figure.get_figwidth()
    return figure.add_axes((margin, 0.0, 1.0 - 2 * margin, 1.0))


def draw_tree(
    ax: Axes,
    view: TreeView,
    curves: Sequence[RowCurves],
    drawing: Drawing,
    later: frozenset[int] = frozenset(),
    sideways: bool | None = None,
) -> Axes:
    """Rules and panels; the ends in ``later`` stand for a part that has a picture of its own."""
    if _is_sideways(view, sideways, inches(ax)[0]):
        return draw_sideways(ax, view, curves, drawing, later)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.set_axis_off()
    place = _layout(ax, view, drawing.max_terms)
    for node in view.nodes:
        _draw_edge(ax, view, node, place, drawing.max_terms)
    for node in view.branches:
        _draw_rule(ax, node, place, drawing.max_terms)
    for one in curves:
        panel = _draw_panel(ax, view, one, place, drawing)
        if one.leaf in later:
            panel.set_facecolor(RULE_FILL)
    draw_key(ax, drawing, curves, "to the left", place.width_inches)
    return ax


def _is_sideways(view: TreeView, sideways: bool | None, width: float = 0.0) -> bool:
    return view.n_leaves > max(MOST_ACROSS, int(width / LEAF_WIDTH)) if sideways is None else sideways


def size_in_inches(view: TreeView, max_terms: int = 3, sideways: bool | None = None) -> tuple[float, float]:
    """Width and height of the picture of a tree."""
    if _is_sideways(view, sideways):
        place = places_of(view, max_terms)
        return place.width + 2 * MARGIN, place.height
    width = max(view.n_leaves * LEAF_WIDTH, 4.2)
    levels = sum(_level_heights(view, (width - 2 * MARGIN) / view.n_leaves, max_terms))
    return width, levels + PANEL_HEIGHT + FOOT + HEAD + KEY


def _level_heights(view: TreeView, leaf: float, max_terms: int) -> list[float]:
    """Inches of each level of rules, where a leaf is so many inches wide: more where a rule has many lines."""
    heights = [LEVEL_HEIGHT] * view.depth
    for node in view.branches:
        more = LINE * max(len(_rule_lines(node, leaf, max_terms)) - LINES, 0)
        heights[node.level] = max(heights[node.level], LEVEL_HEIGHT + more)
    return heights


def _layout(ax: Axes, view: TreeView, max_terms: int) -> Places:
    """Shares of the axes: fixed inches for labels, the rest divided between rules and panels."""
    width, height = inches(ax)
    unit = 1 / view.n_leaves
    heights = np.array(_level_heights(view, unit * width, max_terms))
    characters = max(int(unit * width / (0.58 * NUMBER_FONT / 72)), 8)
    numbers = HEAD if characters >= WHOLE_LINE else HEAD + MORE_HEAD
    foot, head, key = FOOT / height, numbers / height, KEY / height
    scale = (height - FOOT - numbers - KEY) / (PANEL_HEIGHT + heights.sum())
    panel = scale * PANEL_HEIGHT
    top = foot + panel / height + head
    # a box is above the middle of its level: below it are the answers
    middles = np.cumsum(heights) - heights / 2 - 0.1 * LEVEL_HEIGHT
    levels = tuple((1 - key - scale / height * middles).tolist())
    centre = {index: (place + 0.5) * unit for index, place in view.centres().items()}
    return Places(centre, levels, foot, panel / height, top, unit, characters, width)


def _draw_edge(ax: Axes, view: TreeView, node: ViewNode, place: Places, max_terms: int) -> None:
    """An elbow from the parent: across at the parent's height, then down; labelled just below the parent's box."""
    if node.parent < 0:
        return
    parent = view.nodes[node.parent]
    start, end = place.centre[parent.index], place.centre[node.index]
    high = place.level[parent.level]
    low = place.panel_top if node.leaf >= 0 else place.level[node.level]
    ax.plot([start, end, end], [high, high, low], color=MUTED, linewidth=1.1, zorder=1, solid_joinstyle="round")
    yes = parent.left == node.index
    lines = _rule_lines(parent, place.unit * place.width_inches, max_terms)
    below = 36 * LINE * len(lines) + 7  # points: half the box, and its padding
    ax.annotate(
        "yes" if yes else "no",
        (end, high),
        xytext=(4 if end < start else -4, -below),
        textcoords="offset points",
        ha="left" if end < start else "right",
        va="top",
        fontsize=FONT - 0.5,
        color=MUTED,
    )


def _draw_rule(ax: Axes, node: ViewNode, place: Places, max_terms: int) -> None:
    """A rule in its box."""
    ax.text(
        place.centre[node.index],
        place.level[node.level],
        "\n".join(_rule_lines(node, place.unit * place.width_inches, max_terms)),
        ha="center",
        va="center",
        fontsize=FONT,
        color=INK,
        zorder=3,
        bbox={"boxstyle": "round,pad=0.35", "facecolor": RULE_FILL, "edgecolor": MUTED, "linewidth": 0.8},
    )


def _rule_lines(node: ViewNode, leaf: float, max_terms: int) -> list[str]:
    """A rule in lines at most 1.5 leaves, of so many inches, wide: between neighbours and clear of their edges."""
    assert node.split is not None
    characters = max(int(1.5 * leaf / (0.58 * FONT / 72)), 12)
    return wrapped(node.split.text(max_terms, name_limit=characters - 8), characters)


def _draw_panel(
    ax: Axes,
    view: TreeView,
    one: RowCurves,
    place: Places,
    drawing: Drawing,
) -> Axes:
    """Curves of a leaf in inset axes, with its numbers above."""
    centre = place.centre[view.leaf_node(one.leaf).index]
    # room for tick labels at the left, and for a word on the first panel
    panel = ax.inset_axes((centre - 0.32 * place.unit, place.panel_bottom, 0.78 * place.unit, place.panel_height))
    rows, middle = draw_curves(panel, one, drawing)
    panel.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    panel.locator_params(axis="x", nbins=4 if place.characters >= WHOLE_LINE else 2)
    panel.tick_params(labelsize=NUMBER_FONT, length=2.5, pad=2)
    panel.set_xlabel(time_label(drawing.data, drawing.time_unit), fontsize=8, labelpad=2)
    if one.leaf == (view.order or view.leaves)[0]:
        panel.set_ylabel("Survival", fontsize=8, labelpad=1)
    if one.rows.size == 0:
        panel.text(0.5, 0.5, "no rows\narrive here", transform=panel.transAxes, ha="center", va="center", fontsize=8)
    title = _number_lines((drawing.titles[one.leaf], rows, middle), place.characters)
    panel.set_title("\n".join(title), fontsize=NUMBER_FONT, color=INK, pad=4, linespacing=1.25)
    return panel


def _number_lines(words: Sequence[str], characters: int) -> list[str]:
    """The numbers of a leaf in lines, broken after commas and before a median alone."""
    whole = [re.sub(r"(?<![,:])(?<!median) ", "\u00a0", text) for text in words]
    parts = (textwrap.wrap(text, characters, break_long_words=False) or [""] for text in whole)
    return [line.replace("\u00a0", " ") for lines in parts for line in lines]
