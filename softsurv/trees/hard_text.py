"""A hard tree in words: indented text, Graphviz, and the source of a plain function."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Protocol

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.encoding import Source
from softsurv.trees.python_source import function_head, is_in, leaf_return, literal


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


def hard_tree_python(tree: Questions, name: str, lines: Sequence[str]) -> str:
    """Source of a function ``name(row)`` that returns the leaf of one row, a mapping from column to value.

    ``lines`` describe the leaves in comments, as in :func:`hard_tree_text`.

    Missing values (absent, None, nan or pandas.NA) are filled or routed as in training. Numbers may be text, and are
    compared as double precision holds them, as in the tree. Names and labels of the data are literals in it.
    """
    used = sorted({int(f) for f in tree.feature if f >= 0})
    variable = {f: f"v{k}" for k, f in enumerate(used)}
    text = function_head(name, [tree.sources[f] for f in used])

    def walk(node: int, indent: int) -> None:
        """Write the branches of a node and all below it."""
        pad = "    " * indent
        leaf = int(tree.leaf[node])
        if leaf >= 0:
            text.append(leaf_return(leaf, lines[leaf], pad))
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
    known = is_in(v, levels) if levels else f"{v} <= {literal(cut)}"
    if missing is None:
        return known
    return f"{v} is None or {known}" if missing else f"{v} is not None and {known}"


def _leaf(leaf: int, line: str, separator: str = ": ") -> str:
    return f"leaf {leaf}{separator}{line}" if line else f"leaf {leaf}"


def quoted(text: str) -> str:
    """A double-quoted string with quotes, backslashes and line ends escaped as in JSON, which Graphviz understands."""
    return json.dumps(text, ensure_ascii=False)
