"""A soft tree in words: rules in the data's own units, for text and Graphviz."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.data.encoding import OutputColumn
from softsurv.data.rules import rounded_text
from softsurv.trees.hard_text import quoted
from softsurv.trees.leaf_table import LeafTable
from softsurv.trees.linear_rule import term_text
from softsurv.trees.topology import parting_node, used_leaves

if TYPE_CHECKING:
    from softsurv.data.preprocess import Preprocessor
    from softsurv.trees.soft_tree import SoftTree


POINT_DIGITS = 10
"""Digits of a dense split's printed points, enough that they send every row where the tree sends it."""


def encoded_columns(preprocessor: Preprocessor | None, names: Sequence[str]) -> tuple[OutputColumn, ...]:
    """Where each encoded feature comes from; without a preprocessor the features are plain numbers."""
    if preprocessor is not None:
        return tuple(preprocessor.columns_)
    return tuple(OutputColumn(name, name, "number") for name in names)


def split_label(node: int) -> str:
    """The letter of a branch node (heap order) of a dense tree: A, B, ..., Z, A1, ..."""
    letter, round_ = chr(ord("A") + node % 26), node // 26
    return letter + (str(round_) if round_ else "")


def split_text(
    tree: SoftTree,
    node: int,
    columns: Sequence[OutputColumn],
    name: Callable[[str], str] = str,
) -> str:
    """The question of a branch node: a rule of few terms in the data's units, or the points of a dense split."""
    if tree.rules:
        found = tree.rules[node]
        assert found is not None
        return found.text(columns, name)
    return f"points {split_label(node)} > {points(tree, node, columns)[0]:.{POINT_DIGITS}g}"


def points(tree: SoftTree, node: int, columns: Sequence[OutputColumn]) -> tuple[float, FloatArray]:
    """Threshold of a dense split and points per unit of each feature, (P,). A row with more points goes left."""
    weights = tree.routing[0, node].detach().double().cpu().numpy()
    per_unit = weights[1:] / [column.scale for column in columns]
    return float(per_unit @ [column.offset for column in columns] - weights[0]), per_unit


def point_table(tree: SoftTree, nodes: Sequence[int], columns: Sequence[OutputColumn]) -> list[str]:
    """Lines of a table of the points of dense splits: a row for each feature, a column for each split."""
    header = ["points per unit", *(split_label(node) for node in nodes)]
    found = [points(tree, node, columns)[1] for node in nodes]
    rows = [
        [term_text(column), *(f"{of_node[k]:.{POINT_DIGITS}g}" for of_node in found)]
        for k, column in enumerate(columns)
        if any(of_node[k] != 0 for of_node in found)
    ]
    widths = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]
    lines = ["  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
             for row in (header, *rows)]  # fmt: skip
    said = "The splits are dense: the answer is yes where a row's points sum to more than the split's threshold."
    return ["", said, *(line.rstrip() for line in lines)]


def leaf_line(table: LeafTable, leaf: int) -> str:
    """Rows of a leaf, events (by cause where there are several), and the predicted median."""
    if table.n[leaf] == 0:
        return "no training rows"
    return f"{leaf_size(table, leaf)}, {_median_words(table, leaf)}"


def _median_words(table: LeafTable, leaf: int) -> str:
    """The median: an observed time with four digits where the leaf is one curve, else a fitted value with three."""
    if table.predicted is None:
        middle, digits = table.median[leaf], 4
    else:
        middle, digits = table.predicted[leaf], 3
    return f"predicted median {rounded_text(middle, digits) if np.isfinite(middle) else 'not reached'}"


def leaf_size(table: LeafTable, leaf: int) -> str:
    """Rows and events of a leaf, and subjects where they have several rows."""
    size = f"n {table.n[leaf]}" if table.subjects is None else f"subjects {table.subjects[leaf]}, rows {table.n[leaf]}"
    events = f"events {table.events[leaf]}"
    if table.cause_names:
        by_cause = zip(table.cause_names, table.cause_events[leaf], strict=True)
        events += f" ({', '.join(f'{name} {count}' for name, count in by_cause)})"
    return f"{size}, {events}"


def soft_tree_text(
    tree: SoftTree, preprocessor: Preprocessor | None, names: Sequence[str], table: LeafTable, notes: Sequence[str] = ()
) -> str:
    """The tree as indented text; dense splits with a table of their points, and notes at the end."""
    routing = tree.routing[0].detach().double().cpu().numpy()
    columns = encoded_columns(preprocessor, names)
    lines: list[str] = []
    asked: list[int] = []
    number = {int(leaf): k for k, leaf in enumerate(used_leaves(routing))}

    def walk(node: int, label: str, indent: int) -> None:
        """Write a node and all below it."""
        node, pad = parting_node(routing, node), "    " * indent
        if node >= len(routing):
            leaf = number[node - len(routing)]
            lines.append(f"{pad}{label}leaf {leaf}: {leaf_line(table, leaf)}")
            return
        asked.append(node)
        lines.append(f"{pad}{label}{split_text(tree, node, columns)}")
        walk(2 * node + 1, "yes: ", indent + 1)
        walk(2 * node + 2, "no:  ", indent + 1)

    walk(0, "", 0)
    if asked and not tree.rules:
        lines += point_table(tree, sorted(asked), columns)
    return "\n".join([*lines, *notes])


def soft_tree_dot(tree: SoftTree, preprocessor: Preprocessor | None, names: Sequence[str], table: LeafTable) -> str:
    """The tree in Graphviz's language."""
    routing = tree.routing[0].detach().double().cpu().numpy()
    columns = encoded_columns(preprocessor, names)
    lines = ["digraph tree {", '  node [shape=box, fontname="sans-serif"];']
    asked: list[int] = []
    number = {int(leaf): k for k, leaf in enumerate(used_leaves(routing))}

    def walk(node: int) -> int:
        """Draw a node and all below it; returns the number of the node drawn."""
        node = parting_node(routing, node)
        if node >= len(routing):
            leaf = number[node - len(routing)]
            label = quoted(f"leaf {leaf}\n{leaf_line(table, leaf)}")
            lines.append(f"  {node} [label={label}, style=rounded];")
            return node
        asked.append(node)
        lines.append(f"  {node} [label={quoted(split_text(tree, node, columns))}];")
        for child, side in ((2 * node + 1, "yes"), (2 * node + 2, "no")):
            lines.append(f'  {node} -> {walk(child)} [label="{side}"];')
        return node

    walk(0)
    if asked and not tree.rules:
        table_lines = "\\l".join(quoted(line)[1:-1] for line in point_table(tree, sorted(asked), columns)[1:])
        lines.append(f'  points [shape=note, fontname="monospace", label="{table_lines}\\l"];')
    return "\n".join([*lines, "}"])
