"""Docstrings as the site's parser reads them right, with an entry for each parameter.

Of ``l2, shrinkage : float`` the parser shows the default of the first for both. It takes a second line of names for an
entry of its own, and the first of ``{"a", "b"}`` for the default whatever the code says. Backquotes in
types are shown.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

SECTION = re.compile(r"(?<=^Parameters\n----------\n).*?(?=\n\n\S[^\n]*\n---|\Z)", re.DOTALL | re.MULTILINE)
TYPED = re.compile(r"^(Parameters|Attributes|Returns)\n-+\n.*?(?=\n\n\S[^\n]*\n---|\Z)", re.DOTALL | re.MULTILINE)
CHOICE = re.compile(r"\{([^{}]*)\}")


def plain_parameters(docstring: str) -> str:
    """The docstring with an entry for each parameter, choices as ``"a" or "b"``, and types without backquotes."""
    plain = TYPED.sub(
        lambda found: re.sub(r"^\S.*", lambda line: line[0].replace("``", ""), found[0], flags=re.M), docstring
    )
    return SECTION.sub(lambda found: "\n".join(_entries(found[0])), plain)


def _entries(section: str) -> list[str]:
    """Lines of a section of parameters."""
    section = re.sub(r"^(\S.*,)\n(?=\S)", r"\1 ", section, flags=re.MULTILINE)  # names that go on in the next line
    lines: list[str] = []
    for head, *words in (entry.split("\n") for entry in re.split(r"\n(?=\S)", section)):
        names, colon, kind = head.partition(" : ")
        kind = CHOICE.sub(lambda found: " or ".join(part.strip() for part in found[1].split(",")), kind)
        for name in names.split(", "):
            lines += [f"{name}{colon}{kind}", *words]
    return lines


class PlainParameters(Extension):
    """Gives every object of the package its docstring in that form."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called by griffe for each object that it has read."""
        if obj.docstring is not None:
            obj.docstring.value = plain_parameters(obj.docstring.value)
