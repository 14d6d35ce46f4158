"""Missing values, routed or imputed: the optimum against enumeration, every way to read a tree against ``apply``."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.printed_tree import PrintedTree

from softsurv import (
    OptimalClassificationTree,
    OptimalRegressionTree,
    OptimalSurvivalTree,
    SoftSurvivalTree,
    load_model,
)
from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning, InvalidParameterError
from softsurv.estimators.separable.cost_sensitive import OptimalCostSensitiveTree
from softsurv.explore import explain, plot_path, plot_tree


def some_rows(n=240, seed=0):
    """Numbers and categories with missing values that say something, one complete column, and outcomes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.normal(60, 10, n).round(1),
            "grade": rng.choice(["I", "II or missing", "III", "4"], n),
            "sex": rng.choice(["F", "M"], n),
            "size": rng.integers(1, 6, n).astype(float),
        }
    )
    risk = 0.9 * (X["age"] > 62) + 0.8 * (X["grade"] == "III")
    X.loc[(risk > 0.8) & (rng.random(n) < 0.5), "age"] = np.nan
    X.loc[rng.random(n) < 0.2, "grade"] = None
    X.loc[rng.random(n) < 0.1, "sex"] = None
    time = rng.exponential(size=n) * np.exp(-1.5 * risk) + 0.01
    return X, risk.to_numpy(), (rng.random(n) < 0.8, time)


def later_rows(X, seed=1):
    """Rows with missing values anywhere."""
    rng = np.random.default_rng(seed)
    return X.sample(len(X), random_state=seed).reset_index(drop=True).mask(rng.random(X.shape) < 0.3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_printed_tree_is_the_tree_of_the_objective(seed, depth):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"grade": rng.choice(["I", "II", "III"], 90), "site": rng.choice(list("abcd"), 90)}, dtype=object)
    X = X.mask(rng.random(X.shape) < 0.25)
    time = rng.exponential(size=90) * np.exp(-1.0 * (X["grade"] == "III") - X["site"].isna()) + 0.01
    tree = OptimalRegressionTree(max_depth=depth, missing="route").fit(X, time)
    assert np.mean((tree.predict(X) - time) ** 2) == pytest.approx(tree.objective_)
    survival = OptimalSurvivalTree(max_depth=depth, missing="route", min_samples_leaf=5)
    survival.fit(X, (np.ones(90, bool), time))
    deviance = 0.0
    hazard = np.cumsum(1.0 / np.arange(90, 0, -1))[np.argsort(np.argsort(time))]  # Nelson-Aalen of all rows
    for leaf in range(survival.tree_.n_leaves):
        own = hazard[survival.apply(X) == leaf]
        deviance -= np.log(own).sum() + own.size * np.log(own.size / own.sum())
    assert deviance == pytest.approx(survival.objective_)


# -- the search ------------------------------------------------------------------------------------------------------
def questions_of(table):
    """Every question about a table: a cut or a level with missing values on either side, and whether one is missing."""
    found = {}
    for column in (table[name] for name in table):
        gone = column.isna().to_numpy()
        known = sorted(set(column[~gone]))
        if all(isinstance(value, str) for value in known):
            asked = [(column == level).to_numpy() for level in known]
        else:
            asked = [(column <= value).to_numpy() for value in known[:-1]]
        for yes in [*(np.where(gone, side, yes) for yes in asked for side in (False, True)), gone]:
            found[yes.astype(bool).tobytes()] = yes.astype(bool)
    return list(found.values())


def least_errors(rows, questions, label, depth):
    """Fewest rows of a class that is not their leaf's, over all trees of the questions."""
    best = min(int(label[rows].sum()), int((~label[rows]).sum()))
    if depth == 0 or best == 0:
        return best
    for yes in questions:
        left, right = rows[yes[rows]], rows[~yes[rows]]
        if left.size and right.size:
            found = least_errors(left, questions, label, depth - 1) + least_errors(right, questions, label, depth - 1)
            best = min(best, found)
    return best


@st.composite
def small_tables(draw):
    """Up to 14 rows of a number and two categories, with missing values."""
    n = draw(st.integers(2, 14))

    def column(values):
        return draw(st.lists(st.one_of(st.sampled_from(values), st.none()), min_size=n, max_size=n))

    table = {"x": column([1.0, 2.0, 3.0]), "c": column(["a", "b", "c"]), "d": column(["no", "yes"])}
    return pd.DataFrame(table).astype({"x": float}), np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))


@settings(max_examples=60, deadline=None)
@given(small_tables(), st.integers(1, 3))
def test_the_optimum_is_that_of_all_cuts_and_sides(problem, depth):
    table, label = problem
    if len(set(label)) < 2:
        return
    least = least_errors(np.arange(len(label)), questions_of(table), label, depth)
    tree = OptimalClassificationTree(max_depth=depth, thresholds="all", missing="route").fit(table, label)
    assert tree.objective_ * len(label) == pytest.approx(least, abs=1e-9)
    assert (tree.predict(table) != label).sum() == least


@pytest.mark.parametrize("objective", ["relative_risk", "ibs"])
def test_routing_is_never_worse_in_training_than_filling(objective):
    X, _, y = some_rows()
    cut = {"age": [50.0, 60.0, 65.0], "size": [2.5]}
    how = {"max_depth": 2, "thresholds": cut, "min_samples_leaf": 1, "shrinkage": 0.0}
    filled = OptimalSurvivalTree(objective, **how).fit(X, y)
    routed = OptimalSurvivalTree(objective, missing="route", **how).fit(X, y)
    assert routed.objective_ < filled.objective_ - 1e-3


def test_many_cuts_are_searched_with_both_sides():
    """So many cuts that they are searched one by one."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    label = (X["a"] > 0.2) ^ (X["b"] > 0)
    X.loc[label & (rng.random(400) < 0.3), "a"] = np.nan
    tree = OptimalClassificationTree(max_depth=2, thresholds="all", missing="route").fit(X, label)
    by_columns = OptimalClassificationTree(max_depth=2, thresholds=40, missing="route").fit(X, label)
    assert tree.gap_ == 0.0
    assert tree.objective_ <= by_columns.objective_
    assert (tree.predict(X) != label).mean() == pytest.approx(tree.objective_)


def test_prices_are_those_of_the_raw_column():
    X, risk, _ = some_rows(120)
    label = risk > 0.8
    tree = OptimalCostSensitiveTree(None, {"age": 0.05}, max_depth=2, missing="route").fit(X, label)
    asks = [node for node in range(tree.tree_.n_nodes) if tree.tree_.sources[tree.tree_.feature[node]].name == "age"]
    asks = [node for node in asks if tree.tree_.feature[node] >= 0]
    paid = np.asarray(tree.decision_path(X)[:, asks].sum(axis=1)).ravel() > 0
    assert len(asks) > 1
    assert tree.objective_ == pytest.approx((tree.predict(X) != label).mean() + 0.05 * paid.mean())


# -- reading a tree --------------------------------------------------------------------------------------------------
def fitted(kind):
    X, risk, y = some_rows()
    how = {"max_depth": 3, "missing": "route"}
    if kind == "survival":
        return OptimalSurvivalTree(min_samples_leaf=5, **how).fit(X, y)
    if kind == "level sets":
        return OptimalSurvivalTree(min_samples_leaf=5, level_sets=True, **how).fit(X, y)
    if kind == "ibs":
        return OptimalSurvivalTree("ibs", min_samples_leaf=5, **{**how, "max_depth": 2}).fit(X, y)
    if kind == "rare":
        return OptimalSurvivalTree(min_samples_leaf=5, max_levels=3, min_share=0.25, **how).fit(X, y)
    if kind == "classes":
        return OptimalClassificationTree(**how).fit(X, risk > 0.8)
    return OptimalRegressionTree(**how).fit(X, y[1])


@pytest.mark.filterwarnings("ignore:column 'size' has:softsurv.errors.DataWarning")
@pytest.mark.parametrize("kind", ["survival", "level sets", "ibs", "rare", "classes", "regression"])
def test_all_that_is_printed_or_stored_routes_as_apply(kind, tmp_path):
    tree = fitted(kind)
    rows = pd.concat([some_rows()[0], later_rows(some_rows()[0])], ignore_index=True)
    leaf = tree.apply(rows).tolist()
    listed = rows.to_dict("records")
    printed = PrintedTree(tree.export_text().split("\nRelative risk:")[0], rows.columns)
    assert [printed.leaf(row) for row in listed] == leaf
    scope = {}
    exec(tree.export_python(), scope)
    assert [scope["leaf_of"](row) for row in listed] == leaf
    assert tree.tree_.apply(rows).tolist() == leaf
    tree.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.apply(rows).tolist() == leaf
    assert again.export_text() == tree.export_text()
    assert again.missing == "route"
    questions = [tree.tree_.text(node) for node in np.flatnonzero(tree.tree_.feature >= 0)]
    assert all(json.dumps(question) in tree.export_dot() for question in questions)


def test_a_split_without_missing_rows_sends_them_to_the_larger_side():
    X = pd.DataFrame({"x": np.arange(10.0), "z": [0.0, 1.0] * 5})
    y = np.where(X["x"] <= 6, 1.0, 5.0)
    tree = OptimalRegressionTree(max_depth=1, missing="route").fit(X, y)
    assert tree.tree_.text(0) == "x <= 6.5 or missing"
    with pytest.warns(DataWarning, match="column 'x' has 1 missing value.* had none .* more training rows"):
        assert tree.predict(pd.DataFrame({"x": [np.nan], "z": [0.0]})).tolist() == pytest.approx([1.0])
    heavy = np.where(y == 5.0, 10.0, 1.0)
    assert OptimalRegressionTree(max_depth=1, missing="route").fit(X, y, heavy).tree_.text(0) == "x <= 6.5"


def test_a_column_of_one_value_may_be_asked_whether_it_is_missing():
    X = pd.DataFrame({"test": ["done"] * 6 + [None] * 6, "x": [1.0] * 11 + [np.nan]})
    y = np.repeat([0.0, 1.0], 6)
    tree = OptimalRegressionTree(max_depth=1, missing="route").fit(X, y)
    assert tree.tree_.text(0) in ("test is missing", "test = done")
    assert tree.objective_ == 0.0
    assert set(OptimalRegressionTree(max_depth=1).fit(X, y).binarizer_.dropped_) == {"test", "x"}


@pytest.mark.filterwarnings("ignore:column 'size' has:softsurv.errors.DataWarning")
def test_words_and_pictures_of_a_subject():
    tree = fitted("survival")
    X, _, y = some_rows()
    data = survival_data(X, y)
    rows = later_rows(X)
    for k in range(12):
        told = explain(tree, rows.iloc[[k]])
        assert told.leaf == tree.apply(rows.iloc[[k]])[0]
        assert [step.left for step in told.steps] == [left for _, left in tree.tree_.path(told.leaf)]
        plot_path(tree, data, rows.iloc[[k]])
    lone = pd.DataFrame([{"age": np.nan, "grade": None, "sex": None, "size": 2.0}])
    assert "age is missing" in str(explain(tree, lone))
    assert "counts as" not in str(explain(tree, lone))
    drawn = [text.get_text().replace("\n", " ") for text in plot_tree(tree, data).texts]
    assert any(text.endswith("or missing") for text in drawn)


def test_a_soft_tree_starts_from_a_routed_one_only_where_both_send_rows_the_same_way():
    X, _, y = some_rows()
    tree = fitted("survival")
    with pytest.raises(InvalidParameterError, match="missing='impute'"):
        SoftSurvivalTree(depth=3, max_terms=None, init=tree, l2=0.1, shrinkage=0.1, routing_l2=0.1).fit(X, y)


@pytest.mark.parametrize(
    "make", [OptimalClassificationTree, OptimalRegressionTree, OptimalSurvivalTree], ids=lambda one: one.__name__
)
def test_a_wrong_argument(make):
    X, _, y = some_rows(40)
    outcome = y if make is OptimalSurvivalTree else y[0].astype(float)
    with pytest.raises(InvalidParameterError, match='missing must be "impute" or "route", got \'drop\''):
        make(missing="drop").fit(X, outcome)


# -- imputed values in the text --------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [OptimalSurvivalTree, OptimalClassificationTree])
def test_the_text_of_an_imputed_tree_says_what_stands_for_missing_values(kind, tmp_path):
    """A cut may lie between the mean that was filled in and a neighbour: only the note makes it understood."""
    X, risk, outcome = some_rows()
    tree = kind(max_depth=3).fit(X, outcome if kind is OptimalSurvivalTree else (risk > 0.85).astype(int))
    text = tree.export_text()
    asked = {source.name for source in (tree.tree_.sources[k] for k in tree.tree_.feature if k >= 0)}
    printed = PrintedTree(text, X.columns)
    assert set(printed.fills) == asked & {"age", "grade", "sex"}
    assert X["age"].isna().any()
    assert float(printed.fills["age"]) == pytest.approx(X["age"].mean(), rel=1e-5)
    rows = X.where(X.notna(), None).to_dict("records")
    assert [printed.leaf(row) for row in rows] == tree.apply(X).tolist()
    tree.save(tmp_path / "model")
    assert load_model(tmp_path / "model").export_text() == text
    complete = kind(max_depth=1).fit(X[["size"]], outcome if kind is OptimalSurvivalTree else (risk > 0.85).astype(int))
    assert "Missing values" not in complete.export_text()
