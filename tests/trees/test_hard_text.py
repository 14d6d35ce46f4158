"""Source of a tree: whatever the data are called, it holds them as literals and answers as the tree does."""

from __future__ import annotations

import ast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv.data.encoding import Source
from softsurv.data.rules import Rule
from softsurv.errors import InvalidParameterError
from softsurv.trees.hard_tree import Branch, HardTree

HOSTILE = [
    "a\n    import os; os.system('true')",
    "a\r    raise SystemExit",
    "# -*- coding: utf-7 -*-",
    "'); raise SystemExit #",
    '"""',
    "\\",
    "\x00\x0c\x85\u2028\u2029",
    "\ud800",
    "{0.__class__}",
    "",
]
"""Names that would run, or break the source, were they not literals."""

PLAIN = (ast.FunctionDef, ast.If, ast.Return, ast.Assign, ast.Expr)
"""Statements of the source."""


def tree_of(number, category, levels, value_name):
    """Asks a number, then a category; one leaf number has a name of its own."""
    sources = [Source(number, None, 1.5), Source(category, tuple(levels), levels[0])]
    right = Branch(Rule(1, levels=tuple(levels[:-1]) or tuple(levels)), None, None)
    return HardTree.grow(sources, Branch(Rule(0, threshold=2.0), None, right), [[1.0], [2.0], [3.0]], [value_name])


def leaves_by_source(tree, number, category, levels):
    """Leaves of some rows by the exported source, which is plain, and by the tree."""
    source = tree.to_python("leaf_of")
    assert source.isascii()
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    assert all(isinstance(node, PLAIN) for node in statements)
    called = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    calls = {function.id for function in called if isinstance(function, ast.Name)}
    assert calls <= {"isinstance", "str", "int", "repr", "missing", "label", "float"}
    scope = {}
    exec(source, scope)
    rows = [{number: x, category: level} for x in (0.0, 2.0, 3.0, None) for level in (*levels, None, "other")]
    names = pd.Index([number, category], dtype=object)  # the text of pandas 3 holds no lone surrogate
    frame = pd.DataFrame(rows, columns=names, dtype=object)
    expected = [tree.apply(frame.iloc[[k]])[0] for k in range(len(rows))]
    return [scope["leaf_of"](row) for row in rows], expected


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_names_are_literals(text):
    for names in ((text, "b", ["u", "v"], "risk"), ("a", text, ["u", "v"], "risk"), ("a", "b", ["u", "v"], text)):
        number, category, levels, value_name = names
        found, expected = leaves_by_source(tree_of(number, category, levels, value_name), number, category, levels)
        assert found == expected
    found, expected = leaves_by_source(tree_of("a", "b", [text, "v"], "risk"), "a", "b", [text, "v"])
    assert found == expected


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(), min_size=2, max_size=2, unique=True), st.lists(st.text(), min_size=1, unique=True), st.text()
)
def test_any_name_is_a_literal(columns, levels, value_name):
    tree = tree_of(*columns, levels, value_name)
    scope = {}
    exec(compile(tree.to_python("leaf_of"), "<tree>", "exec"), scope)
    row = dict.fromkeys(columns)
    assert scope["leaf_of"](row) == tree.apply(pd.DataFrame([row], dtype=object))[0]


@pytest.mark.parametrize("name", ["class", "None", "my tree", "1a", "", "str", "isinstance", "a\nb"])
def test_names_that_are_no_functions_of_ones_own_are_refused(name):
    with pytest.raises(
        InvalidParameterError, match=r"(?s)name must be a Python identifier, got .*; choose one that is"
    ):
        tree_of("a", "b", ["u", "v"], "risk").to_python(name)


def test_numbers_that_python_does_not_write_are_literals():
    tree = HardTree.grow([Source("a", None, float("nan"))], Branch(Rule(0, threshold=2.0), None, None))
    scope = {}
    exec(tree.to_python("leaf_of"), scope)
    assert [scope["leaf_of"]({"a": value}) for value in (1.0, 3.0, None)] == [0, 1, 1]


def test_python_source_reads_numbers_as_the_tree_does():
    """Doubles: text, whole numbers beyond 2**53 and single precision too; columns may be numbered."""
    cut = 2.0**53 + 2
    tree = HardTree.grow([Source("0", None, 1.0)], Branch(Rule(0, threshold=cut), None, None), [[1.0], [2.0]], ["n"])
    scope = {}
    exec(tree.to_python("leaf_of"), scope)
    cells = [2**53 + 2, 2**53 + 3, 2**53 + 5, "1.5", str(2**60), np.float32(2**54), True, None]
    frame = pd.DataFrame({"0": cells}, dtype=object)
    expected = [tree.apply(frame.iloc[[k]].infer_objects())[0] for k in range(len(cells))]
    assert [scope["leaf_of"]({"0": cell}) for cell in cells] == expected
    assert [scope["leaf_of"]({0: cell}) for cell in cells] == expected
    single = HardTree.grow([Source("a", None, 1.0)], Branch(Rule(0, threshold=0.1), None, None))
    exec(single.to_python("leaf_of"), scope)
    assert scope["leaf_of"]({"a": np.float32(0.1)}) == single.apply(pd.DataFrame({"a": np.float32([0.1])}))[0] == 1
