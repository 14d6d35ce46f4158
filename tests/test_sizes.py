"""How large a file and a body may be, and that no class name stands for two things."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import softsurv

PACKAGE = Path(softsurv.__file__).parent
MODULES = sorted(file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py"))

MOST_LINES, MOST_IN_A_BODY = 350, 60

RECURSIONS = {("exact/kernels/recursion.py", "solve"), ("exact/kernels/listing.py", "front")}
"""Compiled recursions, which cannot be cut up without a call for each of millions of subsets."""


def body_of(function: ast.FunctionDef) -> int:
    """Lines of a function behind its docstring."""
    documented = ast.get_docstring(function) is not None
    begin = function.body[0].end_lineno + 1 if documented else function.body[0].lineno
    return function.end_lineno - begin + 1


@pytest.mark.parametrize("module", MODULES)
def test_no_file_and_no_body_is_too_long(module):
    text = (PACKAGE / module).read_text()
    assert text.count("\n") <= MOST_LINES
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    long = {(module, one.name) for one in functions if body_of(one) > MOST_IN_A_BODY}
    assert long <= RECURSIONS


def test_the_recursions_are_still_there():
    """An exception that no code needs any more would hide the next long body."""
    found = set()
    for module, name in RECURSIONS:
        tree = ast.parse((PACKAGE / module).read_text())
        found |= {
            (module, name)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.name == name and body_of(node) > MOST_IN_A_BODY
        }
    assert found == RECURSIONS


def test_no_class_name_stands_for_two_things():
    trees = (ast.parse((PACKAGE / module).read_text()) for module in MODULES)
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []
