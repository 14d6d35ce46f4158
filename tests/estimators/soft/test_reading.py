"""What a fitted soft tree says of itself: SQL and Python, on data sets with categories, gaps and booleans."""

import sqlite3

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalModelTree, SoftSurvivalTree, load_dataset, load_model

RULES = {"depth": 3, "leaf": "weibull", "l2": 0.3, "shrinkage": 5.0, "device": "cpu", "random_state": 0}
DENSE = RULES | {"depth": 2, "max_terms": None, "routing_l2": 0.1, "n_restarts": 1}


def leaves_in_sql(tree, X):
    """Leaves of the rows by SQLite."""
    with sqlite3.connect(":memory:") as base:
        X.to_sql("patients", base, index=False)
        found = [leaf for (leaf,) in base.execute(f"SELECT ({tree.export_sql()}) AS leaf FROM patients ORDER BY rowid")]
    base.close()
    return found


def leaves_in_python(tree, X):
    """Leaves of the rows by the written function."""
    scope = {}
    exec(tree.export_python(), scope)
    return [scope["leaf_of"](row) for row in X.to_dict("records")]


def with_gaps(X, share, seed=0):
    """The table with some values missing."""
    return X.mask(np.random.default_rng(seed).random(X.shape) < share)


@pytest.mark.filterwarnings("ignore:values are missing in columns")
@pytest.mark.parametrize("name", ["gbsg2", "veterans", "whas500", "framingham", "credit"])
@pytest.mark.parametrize("settings", [RULES, RULES | {"max_terms": 1}, DENSE], ids=["rules", "one term", "dense"])
def test_databases_and_programs_give_every_row_the_leaf_of_the_tree(name, settings):
    data = load_dataset(name)
    tree = SoftSurvivalTree(**settings).fit(data)
    assert len(np.unique(tree.apply(data))) > 1
    for X in (data.X, with_gaps(data.X, 0.2)):
        np.testing.assert_array_equal(leaves_in_sql(tree, X), tree.apply(X))
        np.testing.assert_array_equal(leaves_in_python(tree, X), tree.apply(X))


def mixed_rows(n, seed):
    """Numbers, booleans and categories, whose combinations act, and their outcomes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.normal(60, 9, n).round(), "grade": rng.choice(["I", "it's", "III"], n)})
    X["flag"], X["size"] = rng.random(n) < 0.4, rng.integers(0, 50, n)
    risk = 1.0 + 8 * (X["age"] + 12 * (X["grade"] == "III") - 10 * X["flag"] > 64)
    return X, (np.ones(n, bool), rng.exponential(1 / risk))


@pytest.mark.filterwarnings("ignore:values are missing in columns")
def test_sums_of_numbers_levels_and_booleans_tie_as_in_the_tree():
    """Ages are whole, so that many scores lie on the threshold."""
    X, y = mixed_rows(1500, 0)
    gaps = with_gaps(X.astype({"flag": "boolean", "size": float}), 0.1)
    for table in (X, gaps):
        tree = SoftSurvivalTree(depth=2, leaf="exponential", l2=0.3, shrinkage=5.0, device="cpu").fit(table, y)
        assert any(len(rule.columns) > 1 for rule in tree.tree_.rules if rule is not None)
        for rows in (X, gaps):
            np.testing.assert_array_equal(leaves_in_sql(tree, rows), tree.apply(rows))
            np.testing.assert_array_equal(leaves_in_python(tree, rows), tree.apply(rows))


def test_trees_of_plain_numbers_optimal_models_and_saved_ones_are_written_too(tmp_path):
    X, y = mixed_rows(400, 1)
    numbers = X[["age", "flag", "size"]].astype(float)
    plain = SoftSurvivalTree(depth=1, leaf="exponential", l2=0.3, shrinkage=5.0, preprocess=False).fit(numbers, y)
    np.testing.assert_array_equal(leaves_in_sql(plain, numbers), plain.apply(numbers))
    np.testing.assert_array_equal(leaves_in_python(plain, numbers), plain.apply(numbers))
    with pytest.raises(TypeError):  # such a tree has nothing to fill in
        leaves_in_python(plain, numbers.mask(numbers > -1))
    models = OptimalModelTree(max_depth=2).fit(X, y)
    np.testing.assert_array_equal(leaves_in_sql(models, X), models.apply(X))
    np.testing.assert_array_equal(leaves_in_python(models, X), models.apply(X))
    models.save(tmp_path / "model")
    assert load_model(tmp_path / "model").export_sql("`") == models.export_sql("`")
    assert SoftSurvivalTree(depth=0, leaf="exponential", l2=1.0).fit(X, y).export_sql() == "0"


def test_the_written_function_says_what_each_leaf_holds():
    X, y = mixed_rows(400, 1)
    tree = SoftSurvivalTree(depth=1, leaf="exponential", l2=0.3, shrinkage=5.0).fit(X, y)
    said = [
        line.partition("leaf ")[2][3:]
        for line in tree.export_text().splitlines()
        if "leaf 0" in line or "leaf 1" in line
    ]
    found = tree.export_python("side").splitlines()
    assert found[0] == "def side(row):"
    assert [line.split("# ")[1] for line in found if "return" in line and "#" in line] == [repr(line) for line in said]
    assert len(said) == 2
    numbered = X.set_axis(range(X.shape[1]), axis=1)  # rows of a table without names
    again = SoftSurvivalTree(depth=1, leaf="exponential", l2=0.3, shrinkage=5.0).fit(numbered, y)
    np.testing.assert_array_equal(leaves_in_python(again, numbered), tree.apply(X))
