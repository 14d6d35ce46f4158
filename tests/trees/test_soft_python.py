"""Rules of a soft tree as a Python function: the words of each kind of rule, ties, and names that stay literals."""

import pytest
import torch
from oracles.encoded import COLUMNS, SOURCES
from oracles.soft_rules import dense_stump, stump

from softsurv.data.encoding import OutputColumn, Source
from softsurv.hazards import get_family
from softsurv.trees.linear_rule import LinearRule
from softsurv.trees.soft_python import soft_tree_python
from softsurv.trees.soft_tree import SoftTree


def function(tree, columns=COLUMNS, sources=SOURCES):
    """The written function."""
    scope = {}
    exec(soft_tree_python(tree, columns, sources, "leaf_of", ("few", "many")), scope)
    return scope["leaf_of"]


def question(rule):
    """The condition of a stump."""
    lines = soft_tree_python(stump(rule), COLUMNS, SOURCES, "leaf_of", ("", "")).splitlines()
    return next(line for line in lines if line.startswith("    if ")).removeprefix("    if ").removesuffix(":")


def test_each_kind_of_rule_is_written_as_it_is_printed():
    assert question(LinearRule((0,), (1.0,), 45.0)) == "v0 > 45.0"
    assert question(LinearRule((0,), (-1.0,), -45.0)) == "v0 < 45.0"
    assert question(LinearRule((1, 2), (1.0, 1.0), 0.5)) == "v0 in ('II', 'III',)"
    threshold = 60.0 + 1e-9 * 50.0  # as far above as `apply` takes for equal
    assert question(LinearRule((0, 2, 3), (1.0, 2.5, -1.0), 60.0)) == (
        f"1.0 * v0 + 2.5 * (v1 == 'III') + -1.0 * gap0 > {threshold!r}"
    )


def test_gaps_levels_and_ties_go_where_the_rule_sends_them():
    leaf = function(stump(LinearRule((0, 2, 3), (1.0, 2.5, -1.0), 52.0)))
    assert leaf({"age": 52.0, "grade": "I"}) == 1  # on the threshold
    assert leaf({"age": 52.1, "grade": "I"}) == 0
    assert leaf({"age": 50.0, "grade": "III"}) == 0
    assert leaf({"grade": "I"}) == 1  # 52 is filled in, less 1 for the gap
    assert leaf({"grade": "III"}) == 0
    assert leaf({"age": 52.0, "grade": "new"}) == 1
    assert function(stump(LinearRule((1, 2), (1.0, 1.0), 0.5)))({"age": 1.0}) == 0  # II is filled in


@pytest.mark.parametrize("text", ["'); import os; ('", 'x"""', "\\", "Größe", "a\nb"])
def test_names_and_levels_stay_literals(text):
    columns = [OutputColumn("n", text, "number"), OutputColumn("l", f"{text}2", "level", text)]
    sources = [Source(text, None, 9.0), Source(f"{text}2", ("", text), "")]
    leaf = function(stump(LinearRule((0, 1), (1.0, 2.0), 3.0), columns), columns, sources)
    assert [leaf({text: 2.0}), leaf({text: 2.0, f"{text}2": text}), leaf({})] == [1, 0, 0]


def test_a_dense_split_of_many_features_and_a_tree_without_splits():
    tree, columns, x = dense_stump(1_500)
    leaf = function(tree, columns, [])
    found = [leaf({column.name: value for column, value in zip(columns, row, strict=True)}) for row in x]
    assert found == tree.apply_leaf(torch.from_numpy(x))[0].tolist()
    assert set(found) == {0, 1}
    assert function(SoftTree(0, 3, get_family("exponential")))({}) == 0
