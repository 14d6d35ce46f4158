"""The tree as SQL: a database gives every row the leaf that the tree gives."""

import re
import sqlite3

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, survival_data
from softsurv.data.encoding import Source
from softsurv.data.rules import Rule
from softsurv.errors import InvalidParameterError
from softsurv.trees.hard_sql import hard_tree_sql, sql_number
from softsurv.trees.hard_tree import Branch, HardTree

HOSTILE = [
    'a"; DROP TABLE rows; --',
    "it's",
    "'); SELECT 1; --",
    "",
    "`",
    "age\n-- x",
    "Größe 年齢",
    "\\",
    "\\'); DROP TABLE rows; --",
]

ESCAPED = re.compile(r"'((?:[^'\\\n]|\\.)*)'")  # a text as MySQL, BigQuery and Spark read it


def as_sqlite_reads(expression):
    """The expression with texts that hold escapes written as SQLite has them."""
    decode = {r"\\": "\\", r"\'": "''", r"\n": "\n", r"\r": "\r"}
    names = r"`(?:[^`]|``)*`"
    return re.sub(
        f"{names}|{ESCAPED.pattern}",
        lambda found: found[0] if found[0][0] == "`" else re.sub(r"\\.", lambda one: decode[one[0]], found[0]),
        expression,
    )


def leaves_in_sql(tree, frame, quote='"'):
    """Leaves of the rows by SQLite."""
    expression = hard_tree_sql(tree, quote)
    if quote == "`":
        expression = as_sqlite_reads(expression)
    with sqlite3.connect(":memory:") as base:
        frame.to_sql("rows", base, index=False)
        found = [leaf for (leaf,) in base.execute(f"SELECT {expression} FROM rows ORDER BY rowid")]
    base.close()
    return found


@pytest.mark.parametrize("missing", ["impute", "route"])
def test_a_database_gives_the_leaves_of_the_tree(missing):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(60, 9, 500), "grade": rng.choice(["I", "II", "III"], 500)})
    X["code"] = rng.integers(0, 4, 500)
    risk = 1.0 + 3 * (X["age"] > 60) + 2 * (X["grade"] == "III") + (X["code"] == 2)
    X = X.mask(rng.random(X.shape) < 0.1)
    time = rng.exponential(1 / risk)
    data = survival_data(X.assign(time=time, event=True), time="time", event="event", categorical=["code"])
    tree = OptimalSurvivalTree(max_depth=4, max_leaves=12, missing=missing, shrinkage=0).fit(data)
    assert {tree.tree_.sources[f].name for f in tree.tree_.feature if f >= 0} == set(X.columns)
    assert tree.export_sql() == hard_tree_sql(tree.tree_, '"')
    np.testing.assert_array_equal(leaves_in_sql(tree.tree_, X), tree.apply(data.X))


@pytest.mark.parametrize("quote", ['"', "`"])
@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_names_of_the_data_are_names_and_literals_only(text, quote):
    name = text or "x"  # SQLite knows no column without a name
    sources = [Source(name, None, 1.5), Source(f"{name}2", (text, "other"), text)]
    right = Branch(Rule(1, levels=(text,)), None, None)
    tree = HardTree.grow(sources, Branch(Rule(0, threshold=2.0), None, right), [[1.0], [2.0], [3.0]], ["n"])
    frame = pd.DataFrame({name: [0.0, 3.0, 3.0, None, 3.0], f"{name}2": ["other", text, "other", text, None]})
    np.testing.assert_array_equal(leaves_in_sql(tree, frame, quote), tree.apply(frame))


def test_a_single_leaf_is_a_number_and_other_quotes_are_refused():
    tree = HardTree.grow([Source("x", None, 0.0)], None, [[1.0]], ["n"])
    assert hard_tree_sql(tree, '"') == "0"
    with pytest.raises(InvalidParameterError, match="quote must be one of"):
        hard_tree_sql(tree, "[")


def test_texts_end_where_databases_with_backslash_escapes_end_them():
    r"""In MySQL `'z\'` does not end, and BigQuery takes `'it''s'` for two texts; a level could add SQL of its own."""
    levels = ("it's", "z\\", "\\' OR 1=1 -- ", "a\r\nb")
    branch = Branch(Rule(0, levels=levels), None, None)
    tree = HardTree.grow([Source("s", levels, "z\\")], branch, [[1.0], [2.0]], ["n"])
    question = hard_tree_sql(tree, "`").splitlines()[0]
    assert question == r"CASE WHEN `s` IS NULL OR `s` IN ('it\'s', 'z\\', '\\\' OR 1=1 -- ', 'a\r\nb')"
    assert ESCAPED.sub("?", question) == "CASE WHEN `s` IS NULL OR `s` IN (?, ?, ?, ?)"
    assert r"'z\', '\'' OR 1=1 -- '" in hard_tree_sql(tree, '"')  # standard SQL


@pytest.mark.parametrize("number", [0.1, 0.0, -2.5, 1e15, 1e16, 1e300, -1e-300, 5e-324, 0.1 + 0.2])
def test_numbers_have_an_exponent(number):
    """DuckDB takes 0.1 for a decimal, and rounds it where it meets a column in single precision."""
    written = sql_number(number)
    assert written.count("e") == 1
    assert float(written) == number


def test_a_cut_beside_a_value_in_single_precision_is_no_decimal():
    """0.1 as a single is above the cut 0.1, which rounds to the same single."""
    value = float(np.float32(0.1))
    tree = HardTree.grow([Source("x", None, None)], Branch(Rule(0, threshold=0.1), None, None), [[1.0], [2.0]], ["n"])
    assert hard_tree_sql(tree, '"').startswith('CASE WHEN "x" <= 0.1e0\n')
    frame = pd.DataFrame({"x": [value, 0.1, None]})
    np.testing.assert_array_equal(leaves_in_sql(tree, frame), tree.apply(frame))
