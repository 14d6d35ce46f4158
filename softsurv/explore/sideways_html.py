"""A tree of many leaves as SVG text: rules indented on the left, a line for each leaf, about as wide as a notebook."""

from __future__ import annotations

from typing import Any

from softsurv.data.rules import rounded_text
from softsurv.explore import svg
from softsurv.explore.curves import leaf_looks
from softsurv.explore.style import MUTED, PAPER
from softsurv.explore.tree_layout import wrapped
from softsurv.explore.view import TreeView, ViewNode
from softsurv.trees.soft_text import leaf_line

CHARACTERS, WORDS = 36, 36
"""Of a line of a rule and of the words of a leaf, at most."""

INDENT, TRUNK, GAP, MARGIN = 40, 12, 34, 10
"""Pixels: indent of a level, from the left of a box to the line below it, and the room left of the panels."""

PANEL_WIDTH, PANEL_HEIGHT, BETWEEN, FOOT = 110, 30, 12, 18
"""Pixels: a panel, the room between two lines of the picture, and the words below the last panel."""


def sideways_svg(tree: Any, view: TreeView, max_terms: int) -> str:
    """The picture alone."""
    lines = {node.index: svg.rule_lines(node, max_terms, CHARACTERS) for node in view.branches}
    sizes = {index: svg.box_size(text) for index, text in lines.items()}
    words = {leaf: leaf_words(tree, leaf) for leaf in view.leaves}
    most = max(map(len, words.values())) * svg.LINE_HEIGHT
    row = max(PANEL_HEIGHT, most, *(tall for _, tall in sizes.values())) + BETWEEN
    y = {index: MARGIN + place * row for index, place in view.heights().items()}
    x = {node.index: MARGIN + float(node.level * INDENT) for node in view.branches}
    panels = max(x[index] + wide for index, (wide, _) in sizes.items()) + GAP
    beside = panels + PANEL_WIDTH + 10
    parts = [_edge(view, node, x, y, panels) for node in view.nodes if node.parent >= 0]
    parts += [svg.rule_box(text, x[index] + sizes[index][0] / 2, y[index]) for index, text in lines.items()]
    end, looks = float(tree.unique_times_[-1]), leaf_looks(tree)
    for leaf, own in words.items():
        middle = y[view.leaf_node(leaf).index]
        place = panels, middle - PANEL_HEIGHT / 2, PANEL_WIDTH, PANEL_HEIGHT
        parts.append(svg.leaf_curve(tree.leaf_table_, leaf, looks[leaf], end, *place))
        if leaf == view.order[-1]:
            parts.append(svg.ticks(rounded_text(end), *place))
        parts.append(svg.text_lines(own, beside, middle + 4 - (len(own) - 1) * svg.LINE_HEIGHT / 2, "start"))
    width = beside + max(svg.text_width(line) for own in words.values() for line in own) + MARGIN
    return svg.picture(parts, width, 2 * MARGIN + view.n_leaves * row + FOOT, view.n_leaves)


def leaf_words(tree: Any, leaf: int) -> list[str]:
    """Number and size of a leaf, and below them its median."""
    size, _, middle = leaf_line(tree.leaf_table_, leaf).rpartition(", ")
    return [*wrapped(f"leaf {leaf}: {size or middle}", WORDS), *([middle] if size else [])]


def _edge(view: TreeView, node: ViewNode, x: dict[int, float], y: dict[int, float], panels: float) -> str:
    """Down or up from the parent, then to the right, with the answer on the line."""
    parent = view.nodes[node.parent]
    trunk, high = x[parent.index] + TRUNK, y[node.index]
    end = panels - 14 if node.leaf >= 0 else x[node.index]
    word = "yes" if parent.left == node.index else "no"
    line = f'<path d="M{trunk:.1f} {y[parent.index]:.1f}V{high:.1f}H{end:.1f}" fill="none" stroke="{MUTED}"/>'
    paper = (
        f'<rect x="{trunk + 3:.1f}" y="{high - 7:.1f}" width="{svg.text_width(word):.1f}" height="14" fill="{PAPER}"/>'
    )
    return line + paper + svg.text_lines([word], trunk + 4, high + 4, "start", MUTED)
