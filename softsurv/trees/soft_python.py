"""A soft tree as the source of a plain function that gives the leaf of one row."""

from __future__ import annotations

from collections.abc import Sequence

from softsurv.data.encoding import OutputColumn, Source
from softsurv.trees.python_source import function_head, is_in, leaf_return, literal
from softsurv.trees.soft_questions import Wording, question
from softsurv.trees.soft_tree import SoftTree
from softsurv.trees.topology import parting_node, used_leaves


def soft_tree_python(
    tree: SoftTree, columns: Sequence[OutputColumn], sources: Sequence[Source], name: str, lines: Sequence[str]
) -> str:
    """Source of a function ``name(row)`` that returns the leaf of one row, a mapping from column to value.

    Missing values (absent, None, nan or pandas.NA) count as in training. Names and levels of the data are literals.
    ``columns`` and ``sources`` as in `soft_tree_sql`; ``lines`` (L,) describe the leaves in comments.

    Raises
    ------
    InvalidParameterError
        If the name is no identifier, or taken by the language.
    """
    routing, words = tree.routing[0].detach().double().cpu().numpy(), InPython(columns, sources)
    number = {int(leaf): k for k, leaf in enumerate(used_leaves(routing))}
    body: list[str] = []

    def walk(node: int, indent: int) -> None:
        """Write a node and all below it."""
        node, pad = parting_node(routing, node), "    " * indent
        if node >= len(routing):
            leaf = number[node - len(routing)]
            body.append(leaf_return(leaf, lines[leaf], pad))
            return
        body.append(f"{pad}if {question(tree, node, words)}:")
        walk(2 * node + 1, indent + 1)
        walk(2 * node + 2, indent)

    walk(0, 1)
    used = [words.sources.get(source, Source(source, None, None)) for source in words.asked]
    return "\n".join([*function_head(name, used, words.marked), *body]) + "\n"


class InPython(Wording):
    """Encoded features in Python. ``asked`` numbers the raw columns in use; of those in ``marked`` gaps count too."""

    def __init__(self, columns: Sequence[OutputColumn], sources: Sequence[Source]) -> None:
        super().__init__(columns, sources)
        self.asked: dict[str, int] = {}
        self.marked: set[int] = set()

    def _place(self, source: str) -> int:
        return self.asked.setdefault(source, len(self.asked))

    def literal(self, value: float) -> str:
        """As Python writes it."""
        return literal(value)

    def number(self, source: str) -> str:
        """A variable."""
        return f"v{self._place(source)}"

    def is_one_of(self, source: str, levels: Sequence[str]) -> str:
        """A variable in a tuple."""
        return is_in(self.number(source), levels)

    def if_level(self, source: str, level: str, coefficient: float) -> str:
        """A product with True or False."""
        return f"{literal(coefficient)} * ({self.number(source)} == {literal(level)})"

    def if_missing(self, source: str, coefficient: float) -> str:
        """A product with True or False."""
        place = self._place(source)
        self.marked.add(place)
        return f"{literal(coefficient)} * gap{place}"
