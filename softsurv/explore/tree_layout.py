"""How rules are broken into lines, for every picture of a tree, and the room of axes."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONT = 8.5
"""Points of the rules; at most 0.58 of it is an average character wide."""

LINE, PADDING, ANSWER = 1.33 * FONT / 72, 0.7 * FONT / 72, 0.18
"""Inches: height of a line of a rule, of what its box has above and below them, and of "yes" or "no" with some room."""


def wrapped(text: str, characters: int) -> list[str]:
    """Lines of a rule that keep a sign and a number with their name: ``- 3.2 nodes`` is never parted."""
    text = re.sub(r" ([+-]) (\d\S*) ", " \\1\u00a0\\2\u00a0", text)
    text = re.sub(r" (>|<=|=|\+|-) ", " \\1\u00a0", text)
    return textwrap.wrap(text, characters, break_long_words=False, break_on_hyphens=False)


def inches(ax: Axes) -> tuple[float, float]:
    """Width and height of axes."""
    figure: Any = ax.figure
    box = ax.get_position()
    return box.width * figure.get_figwidth(), box.height * figure.get_figheight()
