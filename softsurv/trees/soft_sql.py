"""A soft tree as an expression of SQL that gives the leaf of every row of a table: its splits are sums of terms."""

from __future__ import annotations

from collections.abc import Sequence

from softsurv.data.encoding import OutputColumn, Source
from softsurv.trees.hard_sql import case_lines, check_quote, sql_name, sql_number, sql_text
from softsurv.trees.soft_questions import Wording, question
from softsurv.trees.soft_tree import SoftTree
from softsurv.trees.topology import parting_node, used_leaves


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
    routing, words = tree.routing[0].detach().double().cpu().numpy(), InSQL(columns, sources, quote)
    number = {int(leaf): k for k, leaf in enumerate(used_leaves(routing))}

    def walk(node: int, indent: int) -> str:
        """A node and all below it."""
        node = parting_node(routing, node)
        if node >= len(routing):
            return str(number[node - len(routing)])
        yes, no = (walk(2 * node + side, indent + 1) for side in (1, 2))
        return case_lines(question(tree, node, words), yes, no, indent)

    return walk(0, 0)


class InSQL(Wording):
    """Encoded features in SQL."""

    def __init__(self, columns: Sequence[OutputColumn], sources: Sequence[Source], quote: str) -> None:
        super().__init__(columns, sources)
        self.quote = quote

    def _fill(self, source: str) -> float | str | None:
        return self.sources[source].fill if source in self.sources else None

    def literal(self, value: float) -> str:
        """In double precision."""
        return sql_number(value)

    def number(self, source: str) -> str:
        """A column, or what stands for NULL."""
        name, fill = sql_name(source, self.quote), self._fill(source)
        return name if fill is None else f"COALESCE({name}, {sql_number(float(fill))})"

    def is_one_of(self, source: str, levels: Sequence[str]) -> str:
        """A list of levels, or NULL."""
        name = sql_name(source, self.quote)
        known = f"{name} IN ({', '.join(sql_text(level, self.quote) for level in levels)})"
        return f"({name} IS NULL OR {known})" if self._fill(source) in levels else known

    def if_level(self, source: str, level: str, coefficient: float) -> str:
        """As CASE."""
        return _either(self.is_one_of(source, [level]), coefficient)

    def if_missing(self, source: str, coefficient: float) -> str:
        """As CASE."""
        return _either(f"{sql_name(source, self.quote)} IS NULL", coefficient)


def _either(asked: str, coefficient: float) -> str:
    """A coefficient, or 0."""
    return f"CASE WHEN {asked} THEN {sql_number(coefficient)} ELSE {sql_number(0.0)} END"
