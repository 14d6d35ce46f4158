"""A fitted tree as a small page: what a notebook shows for it. Plain SVG text, without matplotlib."""

from __future__ import annotations

from typing import Any

from softsurv.data.rules import rounded_text
from softsurv.explore.curves import leaf_looks
from softsurv.explore.sideways_html import sideways_svg
from softsurv.explore.style import INK, MUTED, PAPER, LineStyle, escaped
from softsurv.explore.svg import (
    CHARACTER,
    LINE_HEIGHT,
    leaf_curve,
    picture,
    rule_box,
    rule_lines,
    text_lines,
    text_width,
    ticks,
)
from softsurv.explore.view import TreeView, ViewNode, tree_view
from softsurv.trees.soft_text import leaf_line

LEAF_WIDTH, PANEL_WIDTH, PANEL_HEIGHT = 172, 132, 74
LEVEL_HEIGHT, HEAD, FOOT, MARGIN = 92, 52, 22, 10
"""Pixels: a leaf's room, at least, and its panel, a level of rules, the words above and below a panel."""

MOST_WIDE = 740
"""Pixels of a notebook's output, about: leaves that do not fit side by side get a line each."""

BESIDE_RULES = 66
"""Pixels of a level beside the lines of its tallest rule: a rule of two lines takes the usual height."""

CHARACTERS = int(1.5 * LEAF_WIDTH / CHARACTER)
"""Of a line of a rule, at most."""


def tree_html(tree: Any, max_terms: int = 3) -> str:
    """The tree with the Kaplan-Meier curve of each leaf's training rows, as HTML with inline SVG.

    A tree of more than four leaves gets a line for each leaf, to be about as wide as a notebook's output.

    Parameters
    ----------
    tree : fitted tree
        Soft or optimal.
    max_terms : int
        Features that a rule names; the weaker ones are counted.

    Returns
    -------
    str
        HTML without scripts or outside references, for ``_repr_html_``.
    """
    view = tree_view(tree)
    name = escaped(type(tree).__name__)
    about = f"{view.n_leaves} {'leaf' if view.n_leaves == 1 else 'leaves'}"
    score = escaped(_outcome(tree))
    leaf = leaf_width(tree, view)
    across = view.n_leaves == 1 or view.n_leaves * leaf + 2 * MARGIN <= MOST_WIDE
    where = "to the left" if across else "above"
    key = f"; lower risk {where} at every split, higher risk darker" if view.n_leaves > 1 else ""
    words = f'<div style="font:13px sans-serif;color:{INK};padding:6px 10px 0"><b>{name}</b>, {about}{score}{key}</div>'
    box = f"background:{PAPER};border:1px solid #d5d9de;border-radius:6px;overflow-x:auto;max-width:100%"
    drawn = across_svg(tree, view, max_terms, leaf) if across else sideways_svg(tree, view, max_terms)
    return f'<div style="{box}">{words}{drawn}</div>'


def _outcome(tree: Any) -> str:
    report = getattr(tree, "report_", None)
    return "" if report is None else f", training objective {report.objective:.5g} ({report.status.replace('_', ' ')})"


def leaf_width(tree: Any, view: TreeView) -> float:
    """Pixels of a leaf's room: its words may need more than its panel."""
    words = (line for leaf in view.leaves for line in _leaf_words(tree.leaf_table_, leaf))
    return max(LEAF_WIDTH, max(map(text_width, words)) + 8)


def across_svg(tree: Any, view: TreeView, max_terms: int, leaf: float = LEAF_WIDTH) -> str:
    """The picture alone with the leaves side by side."""
    centre = {k: MARGIN + (place + 0.5) * leaf for k, place in view.centres().items()}
    lines = {node.index: rule_lines(node, max_terms, CHARACTERS) for node in view.branches}
    level = max(LEVEL_HEIGHT, max(map(len, lines.values()), default=0) * LINE_HEIGHT + BESIDE_RULES)
    top = MARGIN + view.depth * level
    end, looks = float(tree.unique_times_[-1]), leaf_looks(tree)
    parts = [_edge(view, node, centre, top, level, lines) for node in view.nodes if node.parent >= 0]
    for node in view.nodes:
        if node.leaf >= 0:
            parts.append(_panel(tree.leaf_table_, node.leaf, looks[node.leaf], centre[node.index], top, end))
        else:
            parts.append(rule_box(lines[node.index], centre[node.index], _middle(node.level, level)))
    width = 2 * MARGIN + view.n_leaves * leaf
    return picture(parts, width, top + HEAD + PANEL_HEIGHT + FOOT, view.n_leaves)


def _middle(level: int, height: float) -> float:
    return MARGIN + (level + 0.42) * height


def _edge(
    view: TreeView, node: ViewNode, centre: dict[int, float], top: float, level: float, lines: dict[int, list[str]]
) -> str:
    """From the parent to the side, then down, with the answer beside the line."""
    parent = view.nodes[node.parent]
    start, end, high = centre[parent.index], centre[node.index], _middle(parent.level, level)
    low = top + 4 if node.leaf >= 0 else _middle(node.level, level)
    word = "yes" if parent.left == node.index else "no"
    anchor, shift = ("start", 4) if end < start else ("end", -4)
    below = high + len(lines[parent.index]) * LINE_HEIGHT / 2 + 16
    line = f'<path d="M{start:.1f} {high:.1f}H{end:.1f}V{low:.1f}" fill="none" stroke="{MUTED}"/>'
    return line + text_lines([word], end + shift, below, anchor, MUTED)


def _panel(table: Any, leaf: int, look: LineStyle, x: float, top: float, end: float) -> str:
    """Words and curve of a leaf."""
    place = x - PANEL_WIDTH / 2, top + HEAD, PANEL_WIDTH, PANEL_HEIGHT
    words = text_lines(_leaf_words(table, leaf), x, top + 16)
    return words + leaf_curve(table, leaf, look, end, *place) + ticks(rounded_text(end), *place)


def _leaf_words(table: Any, leaf: int) -> list[str]:
    """Number, size and median of a leaf, a line each."""
    size, _, middle = leaf_line(table, leaf).rpartition(", ")
    return [f"leaf {leaf}", *([size] if size else []), middle]
