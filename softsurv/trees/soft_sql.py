"""A soft tree as an expression of SQL that gives the leaf of every row of a table: its splits are sums of terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from softsurv.data.encoding import OutputColumn, Source
from softsurv.trees.hard_sql import case_lines, check_quote, sql_name, sql_number, sql_text
from softsurv.trees.linear_rule import LinearRule, tie_of
from softsurv.trees.soft_text import points
from softsurv.trees.soft_tree import SoftTree
from softsurv.trees.topology import parting_node, used_leaves

CHAIN = 100
"""Most terms that are added up without brackets."""


def soft_tree_sql(tree: SoftTree, columns: Sequence[OutputColumn], sources: Sequence[Source], quote: str) -> str:
    """A CASE expression whose value is the leaf; missing values (NULL) count as in training.

    Parameters
    ----------
    tree : SoftTree
    columns : sequence of OutputColumn (P,)
        Encoded features.
    sources : sequence of Source
        What training knows of the raw features; empty for features that are plain numbers.
    quote : str
        What stands around names of columns, and is doubled within them.
    """
    check_quote(quote)
    routing, words = tree.routing[0].detach().double().cpu().numpy(), _Words(columns, sources, quote)
    number = {int(leaf): k for k, leaf in enumerate(used_leaves(routing))}

    def walk(node: int, indent: int) -> str:
        """A node and all below it."""
        node = parting_node(routing, node)
        if node >= len(routing):
            return str(number[node - len(routing)])
        yes, no = (walk(2 * node + side, indent + 1) for side in (1, 2))
        return case_lines(_question(tree, node, words), yes, no, indent)

    return walk(0, 0)


class _Words:
    """Encoded features in SQL, in the data's units."""

    def __init__(self, columns: Sequence[OutputColumn], sources: Sequence[Source], quote: str) -> None:
        self.columns, self.quote = columns, quote
        self.fills = {source.name: source.fill for source in sources}

    def number(self, column: OutputColumn) -> str:
        """A number, or what training filled in."""
        name, fill = sql_name(column.source, self.quote), self.fills.get(column.source)
        return name if fill is None else f"COALESCE({name}, {sql_number(float(fill))})"

    def is_one_of(self, source: str, levels: Sequence[str]) -> str:
        """Whether a category has one of some levels."""
        name = sql_name(source, self.quote)
        known = f"{name} IN ({', '.join(sql_text(level, self.quote) for level in levels)})"
        return f"({name} IS NULL OR {known})" if self.fills.get(source) in levels else known

    def term(self, column: OutputColumn, coefficient: float) -> str:
        """A feature times its coefficient."""
        if column.kind == "number":
            return f"{sql_number(coefficient)} * {self.number(column)}"
        asked = f"{sql_name(column.source, self.quote)} IS NULL"
        if column.kind == "level":
            asked = self.is_one_of(column.source, [str(column.level)])
        return f"CASE WHEN {asked} THEN {sql_number(coefficient)} ELSE {sql_number(0.0)} END"


def _question(tree: SoftTree, node: int, words: _Words) -> str:
    """The question of a branch node: of a rule as it is printed, of a dense split its points."""
    if not tree.rules:
        threshold, per_unit = points(tree, node, words.columns)
        return _sum_exceeds([(k, float(per_unit[k])) for k in np.flatnonzero(per_unit).tolist()], threshold, words)
    rule, columns = tree.rules[node], words.columns
    assert rule is not None
    first = columns[rule.columns[0]]
    if rule.is_level_set(columns):
        return words.is_one_of(first.source, [str(columns[k].level) for k in rule.columns])
    if len(rule.columns) == 1 and first.kind == "number" and abs(rule.coefficients[0]) == 1.0:
        sign = rule.coefficients[0]  # exact as it is: a difference of one term has no rounding
        return f"{words.number(first)} {'>' if sign > 0 else '<'} {sql_number(sign * rule.threshold + 0.0)}"
    terms = list(zip(rule.columns, rule.coefficients, strict=True))
    return _sum_exceeds(terms, rule.threshold + _margin(rule, tree, columns), words)


def _margin(rule: LinearRule, tree: SoftTree, columns: Sequence[OutputColumn]) -> float:
    """By how much a score must exceed the threshold: as in `apply`, rounding of a sum does not decide."""
    tie = tie_of(tree.routing.dtype == torch.float64)
    return tie * max(abs(size) * columns[k].scale for k, size in zip(rule.columns, rule.coefficients, strict=True))


def _sum_exceeds(terms: Sequence[tuple[int, float]], threshold: float, words: _Words) -> str:
    """Whether a sum of terms, by encoded feature and coefficient, exceeds a threshold."""
    return f"{_sum([words.term(words.columns[k], size) for k, size in terms])} > {sql_number(threshold)}"


def _sum(terms: Sequence[str]) -> str:
    """Terms added up: many of them in halves, as SQLite refuses a chain of a thousand operators."""
    if len(terms) <= CHAIN:
        return " + ".join(terms)
    middle = len(terms) // 2
    return f"({_sum(terms[:middle])}) + ({_sum(terms[middle:])})"
