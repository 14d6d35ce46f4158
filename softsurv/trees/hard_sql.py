"""A hard tree as an expression of SQL that gives the leaf of every row of a table."""

from __future__ import annotations

import math

from softsurv.errors import InvalidParameterError
from softsurv.trees.hard_text import Questions

QUOTES = ('"', "`")


def hard_tree_sql(tree: Questions, quote: str) -> str:
    """A CASE expression whose value is the leaf; names of columns stand in ``quote``, which is doubled within them.

    Missing values (NULL) are filled or routed as in training.
    """
    check_quote(quote)

    def walk(node: int, indent: int) -> str:
        """A node and all below it."""
        leaf = int(tree.leaf[node])
        if leaf >= 0:
            return str(leaf)
        yes, no = (walk(int(side[node]), indent + 1) for side in (tree.left, tree.right))
        return case_lines(_question(tree, node, quote), yes, no, indent)

    return walk(0, 0)


def check_quote(quote: str) -> None:
    """Refuse what no database has around the names of columns."""
    if quote not in QUOTES:
        raise InvalidParameterError(f"quote must be one of {QUOTES}, got {quote!r}; most databases take '\"'")


def case_lines(question: str, yes: str, no: str, indent: int) -> str:
    """A branch node with what is below it, as CASE."""
    pad = "    " * indent
    return f"CASE WHEN {question}\n{pad}    THEN {yes}\n{pad}    ELSE {no}\n{pad}END"


def _question(tree: Questions, node: int, quote: str) -> str:
    """The question of a branch node. About NULL a comparison is unknown, which CASE takes for no."""
    source = tree.sources[int(tree.feature[node])]
    levels, cut, missing = tree.levels[node], float(tree.threshold[node]), tree.missing[node]
    column = sql_name(str(source.name), quote)
    if not levels and math.isnan(cut):
        return f"{column} IS NULL"
    if missing is None and source.fill is not None:
        missing = source.fill in levels if levels else float(source.fill) <= cut
    known = f"{column} <= {sql_number(cut)}"
    if levels:
        known = f"{column} IN ({', '.join(sql_text(v, quote) for v in levels)})"
    return f"{column} IS NULL OR {known}" if missing else known


def sql_name(name: str, quote: str) -> str:
    """The name of a column."""
    return quote + name.replace(quote, 2 * quote) + quote


def sql_number(value: float) -> str:
    """A number in double precision, which most databases take it for by its exponent.

    Without one it is a decimal, and DuckDB rounds decimals that meet single precision: values on a cut change sides.
    """
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def sql_text(level: str, quote: str) -> str:
    """A level as SQL writes texts. No value of the data gets into the expression another way.

    Databases that quote names with "`" read a backslash in a text as the start of an escape, and BigQuery knows no
    other way to write a quote or a new line. In standard SQL a backslash is a character as any other.
    """
    if quote != "`":
        return "'" + level.replace("'", "''") + "'"
    for plain, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r")):  # backslashes first
        level = level.replace(plain, escaped)
    return f"'{level}'"
