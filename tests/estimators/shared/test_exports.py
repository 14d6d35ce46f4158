"""Columns that a database holds otherwise than the tree reads them: its docstring says what to cast."""

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd

from softsurv import OptimalRegressionTree


def test_text_and_whole_numbers_beyond_doubles_are_cast():
    """SQLite compares whole numbers exactly, and takes any text for larger than any number."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": 2**53 + rng.integers(0, 40, 400), "size": rng.integers(0, 99, 400) / 8})
    tree = OptimalRegressionTree(max_depth=2, thresholds="all").fit(X, (X["id"] > 2**53 + 20) + 2 * (X["size"] > 6.0))
    held = X.assign(size=X["size"].astype(str))
    leaves = tree.apply(X).tolist()
    np.testing.assert_array_equal(tree.apply(held), leaves)

    def in_sqlite(columns):
        with closing(sqlite3.connect(":memory:")) as base:
            held.to_sql("patients", base, index=False)
            rows = f"(SELECT {columns} FROM patients ORDER BY rowid)"
            return [leaf for (leaf,) in base.execute(f"SELECT ({tree.export_sql()}) FROM {rows}")]

    assert in_sqlite('CAST("id" AS REAL) AS "id", CAST("size" AS REAL) AS "size"') == leaves
    assert in_sqlite('"id", CAST("size" AS REAL) AS "size"') != leaves
    assert in_sqlite('CAST("id" AS REAL) AS "id", "size"') != leaves


def test_booleans_as_categories_are_cast_to_texts():
    """SQLite and MariaDB hold booleans as 0 and 1, which are neither 'True' nor 'False'."""
    rng = np.random.default_rng(0)
    sold = pd.Series(rng.random(200) < 0.5)
    X = pd.DataFrame({"sold": sold.astype("category"), "size": rng.random(200)})
    tree = OptimalRegressionTree(max_depth=2).fit(X, sold * 2.0 + (X["size"] > 0.5))
    with closing(sqlite3.connect(":memory:")) as base:
        X.assign(sold=sold.astype(int)).to_sql("rows", base, index=False)
        cast = 'SELECT CASE WHEN "sold" THEN \'True\' ELSE \'False\' END AS "sold", "size" FROM rows ORDER BY rowid'
        found = [leaf for (leaf,) in base.execute(f"SELECT ({tree.export_sql()}) FROM ({cast})")]
        plain = [leaf for (leaf,) in base.execute(f"SELECT ({tree.export_sql()}) FROM rows ORDER BY rowid")]
    assert found == tree.apply(X).tolist()
    assert plain != found
