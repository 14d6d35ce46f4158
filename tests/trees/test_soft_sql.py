"""Rules of a soft tree as SQL: the words of each kind of rule, and names and levels that read as SQL."""

import sqlite3

import numpy as np
import pandas as pd
import pytest
import torch
from oracles.encoded import COLUMNS
from oracles.encoded import SOURCES as GRADED
from oracles.soft_rules import dense_stump, stump

from softsurv.data.encoding import OutputColumn, Source
from softsurv.errors import InvalidParameterError
from softsurv.trees.linear_rule import LinearRule
from softsurv.trees.soft_sql import soft_tree_sql

SOURCES = [Source("age", None, 52.5), *GRADED[1:]]


def leaves(tree, columns, sources, frame):
    """Leaves of some rows by SQLite."""
    found = soft_tree_sql(tree, columns, sources, '"')
    with sqlite3.connect(":memory:") as base:
        frame.to_sql("rows", base, index=False)
        leaf = [leaf for (leaf,) in base.execute(f"SELECT {found} FROM rows ORDER BY rowid")]
    base.close()
    return leaf


def question(rule):
    """The first line of a stump's SQL, from WHEN on."""
    return soft_tree_sql(stump(rule), COLUMNS, SOURCES, '"').splitlines()[0].removeprefix("CASE WHEN ")


def test_each_kind_of_rule_is_written_as_it_is_printed():
    assert question(LinearRule((0,), (1.0,), 45.0)) == 'COALESCE("age", 52.5e0) > 45.0e0'
    assert question(LinearRule((0,), (-1.0,), -45.0)) == 'COALESCE("age", 52.5e0) < 45.0e0'
    assert question(LinearRule((2,), (1.0,), 0.5)) == "\"grade\" IN ('III')"
    assert question(LinearRule((1, 2), (1.0, 1.0), 0.5)) == "(\"grade\" IS NULL OR \"grade\" IN ('II', 'III'))"
    threshold = 60.0 + 1e-9 * 50.0  # as far above as `apply` takes for equal
    assert question(LinearRule((0, 2, 3), (1.0, 2.5, -1.0), 60.0)) == (
        '1.0e0 * COALESCE("age", 52.5e0) + CASE WHEN "grade" IN (\'III\') THEN 2.5e0 ELSE 0.0e0 END'
        f' + CASE WHEN "age" IS NULL THEN -1.0e0 ELSE 0.0e0 END > {threshold!r}e0'
    )


def test_a_score_on_the_threshold_goes_right():
    """0.1 * 1 + 0.1 * 2 exceeds 0.3 by rounding."""
    columns = [OutputColumn(name, name, "number", scale=4.0) for name in "ab"]
    tree = stump(LinearRule((0, 1), (0.1, 0.1), 0.3), columns)
    assert 0.1 * 1 + 0.1 * 2 > 0.3
    frame = pd.DataFrame({"a": [1, 1, None], "b": [2, 3, 4]})
    found = leaves(tree, columns, [Source(name, None, 0.0) for name in "ab"], frame)
    assert found == [1, 0, 0]
    x = torch.tensor([[1, 2], [1, 3], [0, 4]]).double() / 4
    np.testing.assert_array_equal(tree.apply_leaf(x)[0], found)


@pytest.mark.parametrize("text", ['a"; DROP TABLE rows; --', "'); SELECT 1; --", "it's", "Größe"])
def test_names_and_levels_stay_names_and_literals(text):
    columns = [OutputColumn("n", text, "number"), OutputColumn("l", f"{text}2", "level", text)]
    sources = [Source(text, None, 9.0), Source(f"{text}2", ("", text), "")]
    tree = stump(LinearRule((0, 1), (1.0, 2.0), 3.0), columns)
    frame = pd.DataFrame({text: [2.0, 2.0, None], f"{text}2": ["", text, None]})
    assert leaves(tree, columns, sources, frame) == [1, 0, 0]


def test_a_dense_split_of_more_features_than_sqlite_chains():
    """SQLite refuses expressions of more than a thousand levels."""
    tree, columns, x = dense_stump(1_500)
    found = leaves(tree, columns, [], pd.DataFrame(x, columns=[column.name for column in columns]))
    assert found == tree.apply_leaf(torch.from_numpy(x))[0].tolist()
    assert set(found) == {0, 1}


def test_other_quotes_are_refused():
    with pytest.raises(InvalidParameterError, match="quote must be one of"):
        soft_tree_sql(stump(LinearRule((0,), (1.0,), 45.0)), COLUMNS, SOURCES, "[")
