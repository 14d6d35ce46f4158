"""A fitted tree as a small page: what a notebook shows for it. Plain SVG text, without matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from softsurv.data.rules import rounded_text
from softsurv.explore.curves import leaf_looks, steps
from softsurv.explore.style import INK, MUTED, PAPER, RULE_FILL, LineStyle, escaped
from softsurv.explore.tree_layout import wrapped
from softsurv.explore.view import TreeView, ViewNode, tree_view
from softsurv.nonparametric import StepFunction
from softsurv.trees.soft_text import leaf_line

LEAF_WIDTH, PANEL_WIDTH, PANEL_HEIGHT = 172, 132, 74
LEVEL_HEIGHT, LINE_HEIGHT, HEAD, FOOT, MARGIN = 92, 13, 52, 22, 10
"""Pixels: a leaf's room and its panel, a level of rules, a line of text, the words above and below a panel."""

BESIDE_RULES = 66
"""Pixels of a level beside the lines of its tallest rule: a rule of two lines takes the usual height."""

CHARACTER = 6.1
"""Pixels of an average character at the font size of the rules."""


def tree_html(tree: Any, max_terms: int = 3) -> str:
    """The tree with the Kaplan-Meier curve of each leaf's training rows, as HTML with inline SVG.

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
    key = "; lower risk to the left at every split, higher risk darker" if view.n_leaves > 1 else ""
    words = f'<div style="font:13px sans-serif;color:{INK};padding:6px 10px 0"><b>{name}</b>, {about}{score}{key}</div>'
    box = f"background:{PAPER};border:1px solid #d5d9de;border-radius:6px;overflow-x:auto;max-width:100%"
    return f'<div style="{box}">{words}{tree_svg(tree, view, max_terms)}</div>'


def _outcome(tree: Any) -> str:
    report = getattr(tree, "report_", None)
    return "" if report is None else f", training objective {report.objective:.5g} ({report.status.replace('_', ' ')})"


def tree_svg(tree: Any, view: TreeView, max_terms: int = 3) -> str:
    """The picture alone, (n_leaves * 172) pixels wide."""
    centre = {k: MARGIN + (place + 0.5) * LEAF_WIDTH for k, place in view.centres().items()}
    width = 2 * MARGIN + view.n_leaves * LEAF_WIDTH
    level = _level_height(view, max_terms)
    top = MARGIN + view.depth * level
    height = top + HEAD + PANEL_HEIGHT + FOOT
    end, looks = float(tree.unique_times_[-1]), leaf_looks(tree)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="11" fill="{INK}" role="img" '
        f'aria-label="Survival tree with {view.n_leaves} leaves">'
    ]
    for node in view.nodes:
        parts.append(_edge(view, node, centre, top, level, max_terms))
    for node in view.nodes:
        if node.leaf >= 0:
            parts.append(_panel(tree.leaf_table_, node.leaf, looks[node.leaf], centre[node.index], top, end))
        else:
            parts.append(rule_box(node, centre[node.index], max_terms, level))
    return "".join([*parts, "</svg>"])


def _level_height(view: TreeView, max_terms: int) -> float:
    """Room for the tallest rule and for the words below it."""
    lines = max((len(_rule_lines(node, max_terms)) for node in view.nodes if node.leaf < 0), default=0)
    return max(LEVEL_HEIGHT, lines * LINE_HEIGHT + BESIDE_RULES)


def _middle(level: int, height: float) -> float:
    return MARGIN + (level + 0.42) * height


def _edge(view: TreeView, node: ViewNode, centre: dict[int, float], top: float, level: float, max_terms: int) -> str:
    if node.parent < 0:
        return ""
    parent = view.nodes[node.parent]
    start, end, high = centre[parent.index], centre[node.index], _middle(parent.level, level)
    low = top + 4 if node.leaf >= 0 else _middle(node.level, level)
    word = "yes" if parent.left == node.index else "no"
    anchor, shift = ("start", 4) if end < start else ("end", -4)
    below = high + len(_rule_lines(parent, max_terms)) * LINE_HEIGHT / 2 + 16
    line = f'<path d="M{start:.1f} {high:.1f}H{end:.1f}V{low:.1f}" fill="none" stroke="{MUTED}"/>'
    label = f'<text x="{end + shift:.1f}" y="{below:.1f}" text-anchor="{anchor}" fill="{MUTED}">{word}</text>'
    return line + label


def _rule_lines(node: ViewNode, max_terms: int) -> list[str]:
    assert node.split is not None
    characters = int(1.5 * LEAF_WIDTH / CHARACTER)
    return wrapped(node.split.text(max_terms, name_limit=characters - 8), characters)


def rule_box(node: ViewNode, x: float, max_terms: int, level: float = LEVEL_HEIGHT) -> str:
    """The rule of a node in a box around x, at the height of its level."""
    lines = _rule_lines(node, max_terms)
    wide = max(len(line) for line in lines) * CHARACTER + 14
    tall = len(lines) * LINE_HEIGHT + 10
    y = _middle(node.level, level) - tall / 2
    box = (
        f'<rect x="{x - wide / 2:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall}" rx="5" fill="{RULE_FILL}" '
        f'stroke="{MUTED}"/>'
    )
    return box + _lines(lines, x, y + LINE_HEIGHT + 2)


def _lines(lines: list[str], x: float, y: float, size: int = 11) -> str:
    return "".join(
        f'<text x="{x:.1f}" y="{y + k * LINE_HEIGHT:.1f}" text-anchor="middle" font-size="{size}">'
        f"{escaped(line)}</text>"
        for k, line in enumerate(lines)
    )


def _panel(table: Any, leaf: int, look: LineStyle, x: float, top: float, end: float) -> str:
    """Words and curve of a leaf."""
    left, y = x - PANEL_WIDTH / 2, top + HEAD
    n, _, middle = leaf_line(table, leaf).rpartition(", ")
    words = _lines([f"leaf {leaf}", n or middle, middle if n else ""], x, top + 16)
    axes = f'<path d="M{left:.1f} {y}v{PANEL_HEIGHT}h{PANEL_WIDTH}" fill="none" stroke="{MUTED}"/>'
    ticks = "".join(
        f'<text x="{left + at * PANEL_WIDTH:.1f}" y="{y + PANEL_HEIGHT + 13}" text-anchor="{anchor}" '
        f'font-size="9.5" fill="{MUTED}">{text}</text>'
        for at, anchor, text in ((0, "middle", "0"), (0.5, "middle", "time"), (1, "end", rounded_text(end)))
    )
    scale = "".join(
        f'<text x="{left - 3:.1f}" y="{y + PANEL_HEIGHT * (1 - at) + 3:.1f}" text-anchor="end" font-size="9" '
        f'fill="{MUTED}">{at:g}</text>'
        for at in (0, 1)
    )
    if table.n[leaf] == 0:
        return words + axes + ticks + scale
    path = curve_path(table.curves[leaf], end, left, y, PANEL_WIDTH, PANEL_HEIGHT)
    curve = f'<path d="{path}" fill="none" stroke="{look.color}" stroke-width="2" stroke-dasharray="{look.svg_dash}"/>'
    return words + axes + ticks + scale + curve


def curve_path(curve: StepFunction, end: float, left: float, top: float, width: float, height: float) -> str:
    """A survival curve up to ``end`` as the steps of an SVG path within a box."""
    times, values = steps(curve, end)
    x, y = left + times / end * width, top + (1 - values) * height
    return f"M{x[0]:.1f} {y[0]:.1f}" + "".join(
        f"H{a:.1f}V{b:.1f}" for a, b in zip(x[1:], y[1:], strict=True) if np.isfinite(b)
    )
