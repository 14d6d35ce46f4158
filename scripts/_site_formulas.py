"""Formulas of a page as MathML, which browsers draw by themselves: no script, and no other host is asked for one."""

from __future__ import annotations

import html
import re

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
"""As the Markdown extension arithmatex leaves them: in a line of text, or on a line of their own."""


def with_formulas(page: str) -> str:
    r"""The HTML of a page with MathML in the place of each formula, ``\(x\)`` or ``\[x\]``.

    Raises
    ------
    RuntimeError
        If a formula cannot be read.
    """
    return FORMULA.sub(lambda found: f'<{found[1]} class="arithmatex">{mathml(found[2], found[1])}</{found[1]}>', page)


def mathml(formula: str, tag: str) -> str:
    """MathML of an escaped formula, large in a ``div``."""
    from math_core import LatexError, LatexToMathML

    latex = html.unescape(formula).strip()
    try:
        return LatexToMathML().convert_with_local_state(latex, displaystyle=tag == "div")
    except LatexError as error:
        raise RuntimeError(f"the formula {latex} cannot be read: {error}") from error
