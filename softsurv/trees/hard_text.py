"""A hard tree in words: indented text, Graphviz, and the source of a plain function."""

from __future__ import annotations

import builtins
import json
import math
from collections.abc import Sequence
from keyword import iskeyword
from typing import Any, Protocol

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.encoding import Source
from softsurv.errors import InvalidParameterError


class Questions(Protocol):
    """What the exports read of a `HardTree`; its attributes are explained there."""

    @property
    def sources(self) -> tuple[Source, ...]: ...
    @property
    def feature(self) -> IntArray: ...
    @property
    def threshold(self) -> FloatArray: ...
    @property
    def levels(self) -> tuple[tuple[str, ...], ...]: ...
    @property
    def missing(self) -> tuple[bool | None, ...]: ...
    @property
    def left(self) -> IntArray: ...
    @property
    def right(self) -> IntArray: ...
    @property
    def leaf(self) -> IntArray: ...
    @property
    def n_nodes(self) -> int: ...
    def text(self, node: int) -> str: ...
    def leaf_lines(self) -> list[str]: ...


def hard_tree_text(tree: Questions, lines: Sequence[str]) -> str:
    """The tree as indented text; ``lines`` say what each of the L leaves holds."""
    text: list[str] = []

    def walk(node: int, label: str, indent: int) -> None:
        """Write a node and all below it."""
        pad = "    " * indent
        leaf = int(tree.leaf[node])
        if leaf >= 0:
            text.append(f"{pad}{label}{_leaf(leaf, lines[leaf])}")
            return
        text.append(f"{pad}{label}{tree.text(node)}")
        walk(int(tree.left[node]), "yes: ", indent + 1)
        walk(int(tree.right[node]), "no:  ", indent + 1)

    walk(0, "", 0)
    return "\n".join(text)


def hard_tree_dot(tree: Questions, lines: Sequence[str]) -> str:
    """The tree in Graphviz's language; ``lines`` as in :func:`hard_tree_text`."""
    text = ["digraph tree {", '  node [shape=box, fontname="sans-serif"];']
    for node in range(tree.n_nodes):
        leaf = int(tree.leaf[node])
        if leaf >= 0:
            text.append(f"  {node} [label={quoted(_leaf(leaf, lines[leaf], separator=chr(10)))}, style=rounded];")
            continue
        text.append(f"  {node} [label={quoted(tree.text(node))}];")
        text.append(f'  {node} -> {tree.left[node]} [label="yes"];')
        text.append(f'  {node} -> {tree.right[node]} [label="no"];')
    return "\n".join([*text, "}"])


LABEL = """    def label(value):
        whole = isinstance(value, float) and value.is_integer()
        return str(int(value)) if whole else str(value)
"""
"""Part of the written source. It reads levels as `softsurv.data.encoding` does: 1, 1.0 and "1" are one level."""


def hard_tree_python(tree: Questions, name: str, lines: Sequence[str]) -> str:
    """Source of a function ``name(row)`` that returns the leaf of one row, a mapping from column to value.

    ``lines`` describe the leaves in comments, as in :func:`hard_tree_text`.

    Missing values (absent, None or nan) are filled or routed as in training. Numbers may be text, and are compared as
    double precision holds them, as in the tree. Names and labels of the data are literals in it.
    """
    if not name.isidentifier() or iskeyword(name) or hasattr(builtins, name):
        raise InvalidParameterError(
            f"name must be a Python identifier, got {name!r}; choose one that is no keyword and no builtin"
        )
    used = sorted({int(f) for f in tree.feature if f >= 0})
    variable = {f: f"v{k}" for k, f in enumerate(used)}
    text = [f"def {name}(row):", '    """Leaf of one row, a mapping from column to value."""']
    if any(tree.sources[f].levels is not None for f in used):
        text.append(LABEL.rstrip())
    for f in used:
        source, v = tree.sources[f], variable[f]
        text.append(f"    {v} = {_cell(source.name)}")
        known = f"float({v})" if source.levels is None else f"label({v})"
        text.append(f"    {v} = {_literal(source.fill)} if {v} is None or {v} != {v} else {known}")

    def walk(node: int, indent: int) -> None:
        """Write the branches of a node and all below it."""
        pad = "    " * indent
        leaf = int(tree.leaf[node])
        if leaf >= 0:
            text.append(f"{pad}return {leaf}" + (f"  # {_literal(lines[leaf])}" if lines[leaf] else ""))
            return
        text.append(f"{pad}if {_question(tree, node, variable[int(tree.feature[node])])}:")
        walk(int(tree.left[node]), indent + 1)
        walk(int(tree.right[node]), indent)

    walk(0, 1)
    return "\n".join(text) + "\n"


def _question(tree: Questions, node: int, v: str) -> str:
    """The question of a branch node about a variable, which is None where a value is missing and routed."""
    levels, cut, missing = tree.levels[node], float(tree.threshold[node]), tree.missing[node]
    if not levels and math.isnan(cut):
        return f"{v} is None"
    known = f"{v} in ({', '.join(map(_literal, levels))},)" if levels else f"{v} <= {_literal(cut)}"
    if missing is None:
        return known
    return f"{v} is None or {known}" if missing else f"{v} is not None and {known}"


def _cell(name: str) -> str:
    """The cell of a column. Columns that are numbered in a table have text names in a tree, and numbers in its rows."""
    is_number = name.isascii() and name.isdigit() and name == str(int(name[:18]))
    return f"row.get({_literal(name)}, row.get({name}))" if is_number else f"row.get({_literal(name)})"


def _leaf(leaf: int, line: str, separator: str = ": ") -> str:
    return f"leaf {leaf}{separator}{line}" if line else f"leaf {leaf}"


def _literal(value: Any) -> str:
    """A text, a number or None as a Python literal in ASCII. No value of the data gets into the source another way."""
    if value is None:
        return "None"
    if isinstance(value, str):
        return ascii(str(value))
    number = float(value)
    return repr(number) if math.isfinite(number) else f'float("{number}")'


def quoted(text: str) -> str:
    """A double-quoted string with quotes, backslashes and line ends escaped as in JSON, which Graphviz understands."""
    return json.dumps(text, ensure_ascii=False)
