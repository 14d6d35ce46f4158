"""A tree of many leaves as a picture that grows downwards: rules indented on the left, a line for each leaf."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from softsurv.explore.curves import RowCurves
from softsurv.explore.leaf_panel import Drawing, draw_curves, draw_key
from softsurv.explore.style import INK, MUTED, RULE_FILL, time_label
from softsurv.explore.tree_layout import ANSWER, FONT, LINE, PADDING, inches, wrapped
from softsurv.explore.view import TreeView, ViewNode

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHARACTERS, FEWEST = 36, 18
"""Of a line of a rule, at most; and in axes that are too narrow."""

LEAST = 0.6
"""Inches: width of a panel in axes that are too narrow."""

LETTER = 0.58 * FONT / 72
"""Inches: width of a character, at most on average."""

INDENT, TRUNK, GAP, PANEL_WIDTH, NUMBERS, HEAD, FOOT = 0.55, 0.14, 0.35, 2.0, 2.3, 0.5, 0.5
"""Inches: indent of a level; from the left of a box to the line below it; room left of the panels;
width of a panel and of the numbers beside it; room for the key and for the labels of the lowest panel."""

PANEL_HEIGHT, BETWEEN, WORD = 0.38, 0.16, (0.05, 0.3)
"""Inches: height of a panel, the room between two lines of the picture, and where "yes" and "no" stand on an edge."""

FEW, TALL = 8, 0.55
"""Up to so many leaves, panels are so many inches high."""


@dataclass(frozen=True)
class PlacesDown:
    """Places in inches from the upper left corner."""

    x: dict[int, float]  # left of each rule
    y: dict[int, float]  # middle of each rule and leaf
    lines: dict[int, list[str]]  # of each rule
    panels: float  # left of the panels
    panel: tuple[float, float]  # width and height of a panel
    width: float
    height: float


def places_of(view: TreeView, max_terms: int, characters: int = CHARACTERS) -> PlacesDown:
    """A line for each leaf, the rules between them."""
    lines = {node.index: _lines(node, max_terms, characters) for node in view.branches}
    most = max((len(text) for text in lines.values()), default=1)
    panel = TALL if view.n_leaves <= FEW else PANEL_HEIGHT
    row = max(panel + BETWEEN, most * LINE + PADDING + ANSWER)  # an answer is half a row from a rule, at least
    x = {node.index: node.level * INDENT for node in view.branches}
    ends = (x[k] + LETTER * max(map(len, text)) + 0.1 for k, text in lines.items())
    panels = max(ends, default=0.0) + GAP
    width, height = panels + PANEL_WIDTH + NUMBERS, HEAD + view.n_leaves * row + FOOT
    return PlacesDown(x, _heights(view, row), lines, panels, (PANEL_WIDTH, row - BETWEEN), width, height)


def _heights(view: TreeView, row: float) -> dict[int, float]:
    return {index: HEAD + place * row for index, place in view.heights().items()}


def places_within(view: TreeView, max_terms: int, width: float, height: float) -> PlacesDown:
    """As `places_of` in axes of so many inches: panels as large as these allow, rules in shorter lines if need be."""
    place = places_of(view, max_terms)
    longest = max((len(line) for lines in place.lines.values() for line in lines), default=0)
    excess = math.ceil((place.width - width) / LETTER - 1e-6)  # rounding of the width is no excess
    if excess > 0:
        place = places_of(view, max_terms, max(longest - excess, FEWEST))
    row = (height - HEAD - FOOT) / view.n_leaves
    panel = max(width - place.panels - NUMBERS, LEAST), max(row - BETWEEN, row / 2)
    return replace(place, y=_heights(view, row), panel=panel, width=width, height=height)


def _lines(node: ViewNode, max_terms: int, characters: int) -> list[str]:
    assert node.split is not None
    return wrapped(node.split.text(max_terms, name_limit=characters - 8), characters)


def draw_sideways(
    ax: Axes, view: TreeView, curves: Sequence[RowCurves], drawing: Drawing, later: frozenset[int] = frozenset()
) -> Axes:
    """Rules, edges and panels on axes of the size that `places_of` says; ``later`` as in `draw_tree`."""
    place = places_within(view, drawing.max_terms, *inches(ax))
    ax.set(xlim=(0, place.width), ylim=(place.height, 0))
    ax.set_axis_off()
    for node in view.nodes:
        _draw_edge(ax, view, node, place)
    for index, lines in place.lines.items():
        _draw_rule(ax, place.x[index], place.y[index], lines)
    order = view.order or view.leaves
    for one in curves:
        panel = _draw_leaf(ax, place.y[view.leaf_node(one.leaf).index], one, place, drawing)
        if one.leaf in later:
            panel.set_facecolor(RULE_FILL)
        if one.leaf == order[0]:
            panel.set_yticks([0, 1], ["0", "1"])
            panel.set_title("Survival", fontsize=8, loc="left", pad=2)
        if one.leaf == order[-1]:
            panel.tick_params(labelbottom=True)
            panel.set_xlabel(time_label(drawing.data, drawing.time_unit), fontsize=8, labelpad=2)
    draw_key(ax, drawing, curves, "above", place.width)
    return ax


def _draw_edge(ax: Axes, view: TreeView, node: ViewNode, place: PlacesDown) -> None:
    """Down or up from the parent, then to the right, with the answer on the line."""
    if node.parent < 0:
        return
    parent, y = view.nodes[node.parent], place.y[node.index]
    trunk = place.x[parent.index] + TRUNK
    end = place.panels - 0.2 if node.leaf >= 0 else place.x[node.index]
    how: dict[str, Any] = {"color": MUTED, "linewidth": 1.1, "zorder": 1, "solid_joinstyle": "round"}
    ax.plot([trunk, trunk, trunk + WORD[0]], [place.y[parent.index], y, y], **how)
    ax.plot([trunk + WORD[1], end], [y, y], **how)
    word = "yes" if parent.left == node.index else "no"
    ax.text(trunk + sum(WORD) / 2, y, word, ha="center", va="center", fontsize=FONT - 0.5, color=MUTED)


def _draw_rule(ax: Axes, x: float, y: float, lines: list[str]) -> None:
    """A rule in its box."""
    box = {"boxstyle": "round,pad=0.35", "facecolor": RULE_FILL, "edgecolor": MUTED, "linewidth": 0.8}
    left = x + 0.35 * FONT / 72
    ax.text(left, y, "\n".join(lines), ha="left", va="center", fontsize=FONT, color=INK, zorder=3, bbox=box)


def _draw_leaf(ax: Axes, y: float, one: RowCurves, place: PlacesDown, drawing: Drawing) -> Axes:
    """Curves of a leaf, with its numbers to the right."""
    wide, high = place.panel
    at = place.panels / place.width, 1 - (y + high / 2) / place.height
    panel = ax.inset_axes((*at, wide / place.width, high / place.height))
    panel.tick_params(labelsize=7.5, length=2.5, pad=2, labelbottom=False)
    panel.locator_params(axis="x", nbins=4)
    rows, middle = draw_curves(panel, one, drawing)
    panel.set_yticks([])
    words = f"{drawing.titles[one.leaf]}: {rows}" + (f"\n{middle}" if middle else "")
    ax.text(place.panels + wide + 0.1, y, words, ha="left", va="center", fontsize=8, color=INK)
    return panel
