"""A fitted tree as an outline that folds: rules and leaves one below the other, readable at any width and on paper."""

from __future__ import annotations

from typing import Any

from softsurv.explore.curves import leaf_looks
from softsurv.explore.style import MUTED, LineStyle, escaped
from softsurv.explore.svg import curve_path
from softsurv.explore.view import ViewNode, tree_view
from softsurv.trees.soft_text import leaf_line

WIDE, TALL = 96, 24
"""Pixels of the curve beside a leaf."""

MAX_TERMS = 3
"""Features that a rule names; the weaker ones are counted."""


def folded_tree(tree: Any) -> str:
    """The tree as nested lists that fold, without scripts; a leaf links to its section and shows its training rows.

    Parameters
    ----------
    tree : fitted tree
        Soft or optimal.
    """
    view, places, looks = tree_view(tree), tree_view(tree).centres(), leaf_looks(tree)

    def below(node: ViewNode, answer: str) -> str:
        """A node and all below it, the lower risk first."""
        mark = f'<span class="answer">{answer}</span> ' if answer else ""
        if node.split is None:
            return f"<li>{mark}{_leaf(tree, node.leaf, looks[node.leaf])}</li>"
        sides = sorted(((node.left, "yes"), (node.right, "no")), key=lambda side: places[side[0]])
        inner = "".join(below(view.nodes[child], word) for child, word in sides)
        rule = escaped(node.split.text(MAX_TERMS))
        return f"<li><details open><summary>{mark}{rule}</summary><ul>{inner}</ul></details></li>"

    return f'<ul class="fold">{below(view.nodes[0], "")}</ul>'


def _leaf(tree: Any, leaf: int, look: LineStyle) -> str:
    """Number, training rows and curve of a leaf."""
    table, words = tree.leaf_table_, escaped(leaf_line(tree.leaf_table_, leaf))
    link = f'<a class="end" style="border-color:{look.color}" href="#leaf-{leaf}">leaf {leaf}</a>'
    if table.n[leaf] == 0:
        return f"{link} {words}"
    path = curve_path(table.curves[leaf], float(tree.unique_times_[-1]), 0.5, 1.0, WIDE, TALL - 2)
    return (
        f'{link} <svg width="{WIDE + 1}" height="{TALL}" aria-hidden="true">'
        f'<path d="M.5 0v{TALL - 1}h{WIDE}" fill="none" stroke="{MUTED}"/>'
        f'<path d="{path}" fill="none" stroke="{look.color}" stroke-width="2"/></svg> <span class="size">{words}</span>'
    )
