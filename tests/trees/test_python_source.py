"""The head of a written function: how it reads the cells of a row."""

import numpy as np
import pandas as pd
import pytest

from softsurv.data.encoding import Source
from softsurv.data.kinds import level_text
from softsurv.errors import InvalidParameterError
from softsurv.trees.python_source import function_head, is_in, literal

SOURCES = [Source("age", None, 52.5), Source("grade", ("1", "2"), "2"), Source("7", None, None)]


def read(row):
    """What the head makes of a row: the three variables, and the gap of the first."""
    scope = {}
    exec("\n".join([*function_head("f", SOURCES, {0}), "    return v0, v1, v2, gap0"]), scope)
    return scope["f"](row)


@pytest.mark.parametrize("gap", [None, np.nan, float("nan"), pd.NA, pd.NaT])
def test_missing_values_are_filled_and_marked(gap):
    assert read({"age": gap, "grade": gap, "7": gap}) == (52.5, "2", None, True)


def test_values_are_read_as_the_tree_reads_them():
    assert read({"age": "61", "grade": 1.0, 7: 3}) == (61.0, "1", 3.0, False)
    assert read({"age": True, "grade": "<NA>", "7": 2.5}) == (1.0, "<NA>", 2.5, False)
    assert read({}) == (52.5, "2", None, True)


@pytest.mark.parametrize("name", ["1st", "class", "print", "a b"])
def test_names_that_the_language_has_are_refused(name):
    with pytest.raises(InvalidParameterError, match="name must be a Python identifier"):
        function_head(name, SOURCES)


@pytest.mark.parametrize("value", ["it's", "Größe", "\n#", 0.1, float("inf"), float("-inf"), None])
def test_literals_are_read_back(value):
    found = literal(value)
    assert found.isascii()
    assert "\n" not in found
    assert eval(found) == value
    assert value is None or eval(is_in("v", [str(value)]), {"v": str(value)})


@pytest.mark.parametrize(
    "cell", [1, 1.0, "1", True, 0.5, np.float32(1), np.float32(0.5), np.int8(1), np.float64(1), np.True_]
)
def test_levels_are_the_texts_that_training_reads(cell):
    """A row of a frame of 32-bit floats has numbers that are no floats of Python: 1.0 was another level than 1."""
    source = Source("g", ("1", "0.5", "True"), "1")
    space = {}
    exec("\n".join([*function_head("level", [source]), "    return v0"]), space)
    assert space["level"]({"g": cell}) == level_text(cell)
