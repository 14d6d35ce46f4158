"""A soft tree in words: rules in the data's own units, for text and Graphviz."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.trees.leaf_table import LeafTable

if TYPE_CHECKING:
    from softsurv.data.preprocess import Preprocessor
    from softsurv.trees.soft_tree import SoftTree


def rule(
    weights: FloatArray,  # (P + 1,) intercept first
    names: list[str],
    preprocessor: Preprocessor | None,
    max_terms: int = 3,
) -> str:
    """A branch node's split, ``goes left if ... > ...``, with its strongest features.

    Features are ranked by the range of their term over the training data. Terms are scaled so that the strongest
    has weight one; the terms left out are counted, and stand at the middle of their range in the threshold.
    """
    columns = None if preprocessor is None else preprocessor.columns_
    slopes = weights[1:]
    order = [int(k) for k in np.argsort(-np.abs(slopes), kind="stable") if slopes[k] != 0]
    if not order:
        return "goes left" if weights[0] >= 0 else "goes right"
    shown, hidden = order[:max_terms], order[max_terms:]
    threshold = -weights[0] - 0.5 * float(slopes[hidden].sum())
    terms = []
    lead = 1.0
    for rank, k in enumerate(shown):
        offset, scale = (0.0, 1.0) if columns is None else (columns[k].offset, columns[k].scale)
        slope = slopes[k] / scale
        threshold += slope * offset
        if rank == 0:
            lead = abs(slope)
        terms.append((slope / lead, names[k]))
    text = " ".join(_term(value, name, first=k == 0) for k, (value, name) in enumerate(terms))
    rest = f" + {len(hidden)} weaker" if hidden else ""
    return f"{text}{rest} > {threshold / lead:.4g}"


def _term(value: float, name: str, first: bool) -> str:
    sign = "-" if value < 0 else ("" if first else "+ ")
    sign = "- " if value < 0 and not first else sign
    size = abs(value)
    return f"{sign}{name}" if math.isclose(size, 1.0) else f"{sign}{size:.3g} {name}"


def parting_node(routing: FloatArray, node: int) -> int:
    """First node from ``node`` down (heap order) that divides the rows: a branch node, or the leaf at the end.

    A branch node without weights sends all rows to one side. It is skipped.
    """
    while node < len(routing) and not routing[node, 1:].any():
        node = 2 * node + (1 if routing[node, 0] >= 0 else 2)
    return node


def leaf_line(table: LeafTable, leaf: int) -> str:
    """Size, events and median of a leaf."""
    if table.n[leaf] == 0:
        return "no training rows"
    middle = table.median[leaf]
    words = f"median {middle:.4g}" if np.isfinite(middle) else "median not reached"
    return f"n {table.n[leaf]}, events {table.events[leaf]}, {words}"


def soft_tree_text(
    tree: SoftTree, preprocessor: Preprocessor | None, names: list[str], table: LeafTable, max_terms: int = 3
) -> str:
    """The tree as indented text."""
    routing = tree.routing[0].detach().double().cpu().numpy()
    lines: list[str] = []

    def walk(node: int, label: str, indent: int) -> None:
        """Write a node and all below it."""
        node, pad = parting_node(routing, node), "    " * indent
        if node >= len(routing):
            leaf = node - len(routing)
            lines.append(f"{pad}{label}leaf {leaf}: {leaf_line(table, leaf)}")
            return
        lines.append(f"{pad}{label}{rule(routing[node], names, preprocessor, max_terms)}")
        walk(2 * node + 1, "yes: ", indent + 1)
        walk(2 * node + 2, "no:  ", indent + 1)

    walk(0, "", 0)
    return "\n".join(lines)


def soft_tree_dot(
    tree: SoftTree, preprocessor: Preprocessor | None, names: list[str], table: LeafTable, max_terms: int = 3
) -> str:
    """The tree in Graphviz's language."""
    routing = tree.routing[0].detach().double().cpu().numpy()
    lines = ["digraph tree {", '  node [shape=box, fontname="sans-serif"];']

    def walk(node: int) -> int:
        """Draw what is below a node; returns the number it has there."""
        node = parting_node(routing, node)
        if node >= len(routing):
            leaf = node - len(routing)
            label = _quoted(f"leaf {leaf}\n{leaf_line(table, leaf)}")
            lines.append(f"  {node} [label={label}, style=rounded];")
            return node
        lines.append(f"  {node} [label={_quoted(rule(routing[node], names, preprocessor, max_terms))}];")
        for child, side in ((2 * node + 1, "yes"), (2 * node + 2, "no")):
            lines.append(f'  {node} -> {walk(child)} [label="{side}"];')
        return node

    walk(0)
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    """A double-quoted string; Graphviz reads the escapes of JSON."""
    return json.dumps(text, ensure_ascii=False)
