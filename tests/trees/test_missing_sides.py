"""Missing values go to the side of more training weight, at splits that met none in training."""

import numpy as np
import pytest

from softsurv.data.encoding import Source
from softsurv.data.rules import Rule
from softsurv.trees.hard_tree import Branch, HardTree
from softsurv.trees.missing_sides import larger_sides

SOURCES = [Source("age", None, None), Source("grade", ("I", "II", "III"), None)]
TABLE = {
    "age": np.array([30.0, 40.0, 50.0, 60.0, 70.0]),
    "grade": np.array(["I", "II", "I", "III", "III"], dtype=object),
}


def two_levels(missing=False):
    below = Branch(Rule(1, levels=("III",), missing=missing), None, None)
    return HardTree.grow(SOURCES, Branch(Rule(0, threshold=45.0, missing=missing), None, below))


def test_the_side_of_more_rows_takes_missing_values():
    tree = larger_sides(two_levels(), TABLE, np.ones(5))
    assert tree.missing == (False, None, True, None, None)  # 2 rows against 3; below, 2 of these 3 say yes
    assert tree.apply({"age": [None, 50], "grade": ["I", None]}).tolist() == [2, 1]


def test_weights_count_and_not_rows():
    tree = larger_sides(two_levels(), TABLE, np.array([3.0, 3.0, 5.0, 0.5, 0.0]))
    assert tree.missing == (True, None, False, None, None)


def test_equal_sides_go_right():
    tree = larger_sides(two_levels(True), TABLE, np.array([1.0, 1.0, 0.0, 1.0, 1.0]))
    assert tree.missing[0] is False


def test_a_split_that_met_missing_values_keeps_its_side():
    table = TABLE | {"age": np.array([30.0, np.nan, 50.0, 60.0, 70.0])}
    for side in (False, True):
        assert larger_sides(two_levels(side), table, np.ones(5)).missing[0] is side


def test_what_is_missing_above_does_not_count_below():
    """The row without a grade goes left at the root: the split by grade met no missing value among its own rows."""
    table = TABLE | {"grade": np.array([None, "II", "I", "III", "III"], dtype=object)}
    assert larger_sides(two_levels(), table, np.ones(5)).missing[2] is True


def test_the_question_whether_a_value_is_missing_stays():
    tree = HardTree.grow(SOURCES, Branch(Rule(0, missing=True), None, None))
    assert larger_sides(tree, TABLE, np.ones(5)).missing[0] is True


def test_a_single_leaf_and_a_node_without_rows():
    leaf = HardTree.grow(SOURCES, None)
    assert larger_sides(leaf, TABLE, np.ones(5)).n_leaves == 1
    none = {name: column[:0] for name, column in TABLE.items()}
    assert larger_sides(two_levels(), none, np.ones(0)).missing == (False, None, False, None, None)


@pytest.mark.parametrize("side", [False, True])
def test_the_given_tree_is_not_written_to(side):
    tree = two_levels(side)
    larger_sides(tree, TABLE, np.ones(5))
    assert tree.missing[0] is side
