"""What the written functions of hard and soft trees share: names, literals, and how a row is read."""

from __future__ import annotations

import builtins
import math
from collections.abc import Container, Sequence
from keyword import iskeyword
from typing import Any

from softsurv.data.encoding import Source
from softsurv.errors import InvalidParameterError

MISSING = """    def missing(value):
        return value is None or repr(value) == "<NA>" or value != value
"""
"""Part of the written source. The missing value of pandas, unlike nan, cannot be compared."""

LABEL = """    def label(value):
        short = value.__class__.__name__ in ("float16", "float32")
        whole = (short or isinstance(value, float)) and value.is_integer()
        return str(int(value)) if whole else str(value)
"""
"""Part of the written source. It reads levels as `softsurv.data.encoding` does: 1, 1.0 and "1" are one level."""


def function_head(name: str, sources: Sequence[Source], marked: Container[int] = ()) -> list[str]:
    """First lines of a function ``name(row)``; column k of ``sources`` is the variable ``v{k}`` from there on.

    Missing values (absent, None, nan or pandas.NA) are filled as in training, or None where nothing is filled in; of
    the columns in ``marked``, ``gap{k}`` tells whether the value is missing. Numbers may be text, and are read in
    double precision.
    """
    if not name.isidentifier() or iskeyword(name) or hasattr(builtins, name):
        raise InvalidParameterError(
            f"name must be a Python identifier, got {name!r}; choose one that is no keyword and no builtin"
        )
    text = [f"def {name}(row):", '    """Leaf of one row, a mapping from column to value."""']
    if sources:
        text.append(MISSING.rstrip())
    if any(source.levels is not None for source in sources):
        text.append(LABEL.rstrip())
    for k, source in enumerate(sources):
        v, missing = f"v{k}", f"missing(v{k})"
        text.append(f"    {v} = {_cell(source.name)}")
        if k in marked:
            text.append(f"    gap{k} = {missing}")
            missing = f"gap{k}"
        known = f"float({v})" if source.levels is None else f"label({v})"
        text.append(f"    {v} = {literal(source.fill)} if {missing} else {known}")
    return text


def leaf_return(leaf: int, line: str, pad: str) -> str:
    """The line that gives a leaf, with what is said of it as a comment."""
    return f"{pad}return {leaf}" + (f"  # {literal(line)}" if line else "")


def _cell(name: str) -> str:
    """The cell of a column. Columns that are numbered in a table have text names in a tree, and numbers in its rows."""
    is_number = name.isascii() and name.isdigit() and name == str(int(name[:18]))
    return f"row.get({literal(name)}, row.get({name}))" if is_number else f"row.get({literal(name)})"


def is_in(v: str, levels: Sequence[str]) -> str:
    """Whether a variable is one of some levels."""
    return f"{v} in ({', '.join(map(literal, levels))},)"


def literal(value: Any) -> str:
    """A text, a number or None as a Python literal in ASCII. No value of the data gets into the source another way."""
    if value is None:
        return "None"
    if isinstance(value, str):
        return ascii(str(value))
    number = float(value)
    return repr(number) if math.isfinite(number) else f'float("{number}")'
