"""Parts of a tree's picture as SVG text: words, rules in boxes, and curves."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from softsurv.explore.curves import steps
from softsurv.explore.style import INK, MUTED, RULE_FILL, LineStyle, escaped
from softsurv.explore.tree_layout import wrapped
from softsurv.explore.view import ViewNode
from softsurv.nonparametric import StepFunction

LINE_HEIGHT = 13
"""Pixels of a line of text."""

CHARACTER = 6.1
"""Pixels of an average character at the font size of the rules."""


def picture(parts: Sequence[str], width: float, height: float, n_leaves: int) -> str:
    """The whole SVG element."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Arial,Helvetica,sans-serif" font-size="11" fill="{INK}" '
        f'role="img" aria-label="Survival tree with {n_leaves} leaves">{"".join(parts)}</svg>'
    )


def text_width(text: str) -> float:
    """Pixels of a text: a Chinese or Japanese character is as wide as two letters."""
    return CHARACTER * sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def text_lines(lines: Sequence[str], x: float, y: float, anchor: str = "middle", color: str = INK) -> str:
    """Lines of text, the first at height y."""
    return "".join(
        f'<text x="{x:.1f}" y="{y + k * LINE_HEIGHT:.1f}" text-anchor="{anchor}" fill="{color}">{escaped(line)}</text>'
        for k, line in enumerate(lines)
    )


def rule_lines(node: ViewNode, max_terms: int, characters: int) -> list[str]:
    """The rule of a node in lines of at most so many characters, where its names allow that."""
    assert node.split is not None
    return wrapped(node.split.text(max_terms, name_limit=characters - 8), characters)


def box_size(lines: Sequence[str]) -> tuple[float, float]:
    """Width and height of the box around a rule."""
    return max(map(text_width, lines)) + 14, len(lines) * LINE_HEIGHT + 10


def rule_box(lines: Sequence[str], x: float, y: float) -> str:
    """The lines of a rule in a box with its middle at (x, y)."""
    wide, tall = box_size(lines)
    box = (
        f'<rect x="{x - wide / 2:.1f}" y="{y - tall / 2:.1f}" width="{wide:.1f}" height="{tall}" rx="5" '
        f'fill="{RULE_FILL}" stroke="{MUTED}"/>'
    )
    return box + text_lines(lines, x, y - tall / 2 + LINE_HEIGHT + 2)


def leaf_curve(
    table: Any, leaf: int, look: LineStyle, end: float, left: float, top: float, width: float, height: float
) -> str:
    """Axes of a leaf, and the survival curve of its training rows where it has any."""
    axes = f'<path d="M{left:.1f} {top:.1f}v{height}h{width}" fill="none" stroke="{MUTED}"/>'
    if table.n[leaf] == 0:
        return axes
    path = curve_path(table.curves[leaf], end, left, top, width, height)
    dash = f'stroke-dasharray="{look.svg_dash}"'
    return axes + f'<path d="{path}" fill="none" stroke="{look.color}" stroke-width="2" {dash}/>'


def curve_path(curve: StepFunction, end: float, left: float, top: float, width: float, height: float) -> str:
    """A survival curve up to ``end`` as the steps of an SVG path within a box."""
    times, values = steps(curve, end)
    x, y = left + times / end * width, top + (1 - values) * height
    return f"M{x[0]:.1f} {y[0]:.1f}" + "".join(
        f"H{a:.1f}V{b:.1f}" for a, b in zip(x[1:], y[1:], strict=True) if np.isfinite(b)
    )


def ticks(end: str, left: float, top: float, width: float, height: float) -> str:
    """What stands at the axes of a panel: 0 and 1 of survival, and the times 0 and ``end``."""
    low = top + height
    times = ((0.0, "middle", "0"), (0.5, "middle", "time"), (1.0, "end", end))
    below = "".join(
        f'<text x="{left + at * width:.1f}" y="{low + 13:.1f}" text-anchor="{anchor}" font-size="9.5" '
        f'fill="{MUTED}">{text}</text>'
        for at, anchor, text in times
    )
    beside = "".join(
        f'<text x="{left - 3:.1f}" y="{low - height * at + 3:.1f}" text-anchor="end" font-size="9" '
        f'fill="{MUTED}">{at}</text>'
        for at in (0, 1)
    )
    return below + beside
