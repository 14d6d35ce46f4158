"""The optimal trees beside the survival trees as estimators: scikit-learn's checks, answers, exports, saved models."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score
from sklearn.utils.estimator_checks import check_estimator

from softsurv import (
    OptimalClassificationTree,
    OptimalCostSensitiveTree,
    OptimalPolicyTree,
    OptimalRegressionTree,
    load_model,
)
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.separable.class_objectives import CLASSIFIERS, register


def rows(n=120, seed=0):
    """A frame with numbers, a category and missing values, and text classes that depend on it."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.normal(60, 9, n), "dose": rng.gamma(2, 3, n), "arm": rng.choice(list("xyz"), n)})
    y = np.where((X["age"] > 60) & (X["arm"] != "x") ^ (rng.random(n) < 0.1), "ill", "well")
    X.loc[::17, "dose"] = np.nan
    return X, y


@pytest.mark.slow
@pytest.mark.parametrize("kind", [OptimalClassificationTree, OptimalRegressionTree])
def test_scikit_learn_conventions(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(kind(max_depth=2))


def test_classification_by_hand():
    X, y = rows()
    tree = OptimalClassificationTree(max_depth=2, path=True).fit(X, y)
    assert tree.gap_ == 0.0
    assert tree.objective_ == pytest.approx((tree.predict(X) != y).mean())
    assert tree.classes_.tolist() == ["ill", "well"]
    np.testing.assert_allclose(tree.predict_proba(X).sum(axis=1), 1.0)
    assert [size.max_leaves for size in tree.path_] == list(range(1, tree.tree_.n_leaves + 1))
    assert all(a.objective > b.objective for a, b in zip(tree.path_, tree.path_[1:], strict=False))
    passed = tree.decision_path(X)
    assert (passed.sum(axis=1).ravel() == tree.tree_.level[tree.tree_.leaf >= 0][tree.apply(X)] + 1).all()
    assert "ill" in tree.export_text()
    leaf_of = {}
    exec(tree.export_python(), leaf_of)
    row = X.iloc[1].to_dict()
    assert leaf_of["leaf_of"](row) == tree.apply(X.iloc[[1]])[0]


def test_weights_of_rows_and_classes():
    X, y = rows()
    twice = np.arange(len(y)) % 3
    repeated = OptimalClassificationTree(max_depth=2, thresholds="all").fit(
        X.loc[X.index.repeat(twice)], np.repeat(y, twice)
    )
    weighted = OptimalClassificationTree(max_depth=2, thresholds="all").fit(X, y, sample_weight=twice)
    assert weighted.objective_ == pytest.approx(repeated.objective_)
    balanced = OptimalClassificationTree("balanced_accuracy", max_depth=2).fit(X, y)
    assert balanced.objective_ == pytest.approx(1 - balanced_accuracy_score(y, balanced.predict(X)))
    same = OptimalClassificationTree(max_depth=2, class_weight="balanced").fit(X, y)
    assert same.objective_ == pytest.approx(balanced.objective_)


def test_regression_by_hand():
    X, _ = rows()
    y = 1e6 + X["age"].to_numpy()
    tree = OptimalRegressionTree(max_depth=2).fit(X, y)
    assert tree.objective_ == pytest.approx(((tree.predict(X) - y) ** 2).mean(), rel=1e-9)
    assert tree.score(X, y) > 0.7


@pytest.mark.parametrize("unit", [1e-100, 1e-9, 1e9, 1e100])
def test_the_unit_of_the_target_does_not_matter(unit):
    X, y = rows()
    value = (y == "well") + X["age"] / 1000
    trees = [OptimalRegressionTree(max_depth=2).fit(X, value * u) for u in (1.0, unit)]
    assert trees[1].objective_ / unit / unit == pytest.approx(trees[0].objective_)
    assert trees[1].tree_.n_leaves == trees[0].tree_.n_leaves > 1
    with pytest.raises(InvalidSurvivalDataError, match="take another unit"):
        OptimalRegressionTree(max_depth=1).fit(X, value * 1e160)


def test_costs_of_tests_by_hand():
    X, y = rows()
    free = OptimalCostSensitiveTree([[0, 1], [3, 0]], max_depth=2).fit(X, y)
    paid = OptimalCostSensitiveTree(
        [[0, 1], [3, 0]], {"age": 0.01, "lab": {"cost": 0.02, "columns": ("dose", "arm")}}, max_depth=2
    ).fit(X, y)
    cost = np.array([[0, 1], [3, 0]])[(y == "well").astype(int), (paid.predict(X) == "well").astype(int)].mean()
    asked = {name for node in range(paid.tree_.n_nodes) for name in [paid.tree_.feature[node]] if name >= 0}
    assert free.objective_ <= cost <= paid.objective_ <= cost + 0.03
    assert paid.objective_ > cost or not asked
    dear = OptimalCostSensitiveTree(feature_costs=dict.fromkeys(X, 9.0), max_depth=2).fit(X, y)
    assert dear.tree_.n_leaves == 1
    given = np.random.default_rng(0).random((len(y), 2))
    by_row = OptimalCostSensitiveTree(max_depth=2).fit(X, y, costs=given)
    chosen = (by_row.predict(X) == "well").astype(int)
    assert by_row.objective_ == pytest.approx(given[np.arange(len(y)), chosen].mean())


def test_policy_by_hand():
    X, y = rows()
    rng = np.random.default_rng(1)
    treatment = rng.choice(["none", "some"], len(y))
    outcome = (y == "well").astype(float)
    predicted = rng.random((len(y), 2))
    tree = OptimalPolicyTree("direct", max_depth=2).fit(X, treatment=treatment, predicted=predicted, y=outcome)
    assert -tree.objective_ == pytest.approx(tree.policy_value(X, predicted))
    assert set(tree.predict(X)) <= {"none", "some"}
    same = OptimalPolicyTree(max_depth=2).fit(X, scores=predicted)
    assert same.objective_ == pytest.approx(tree.objective_)
    with pytest.raises(InvalidParameterError, match="propensity must be given"):
        OptimalPolicyTree("ips").fit(X, outcome, treatment=treatment)
    with pytest.raises(InvalidSurvivalDataError, match="propensity must be in"):
        OptimalPolicyTree("ips").fit(X, outcome, treatment=treatment, propensity=np.zeros(len(y)))


def test_what_a_policy_is_given_is_named():
    X, _ = rows()
    n, fit = len(X), OptimalPolicyTree("ips", max_depth=1).fit
    given = np.repeat(np.array([0.0, 1.0]), [n // 2, n - n // 2])
    with pytest.raises(InvalidSurvivalDataError, match="treatment must be known, got none at row 3"):
        fit(X, np.ones(n), treatment=np.where(np.arange(n) == 3, np.nan, given), propensity=np.full(n, 0.5))
    with pytest.raises(InvalidSurvivalDataError, match="propensity must have one number for each row"):
        fit(X, np.ones(n), treatment=given, propensity=np.full((n, 2), 0.5))
    with pytest.raises(InvalidSurvivalDataError, match="y must be numbers"):
        OptimalRegressionTree().fit(X, np.full(n, "much"))


def test_a_mapping_of_columns_is_a_table():
    X, y = rows()
    columns = {name: X[name].to_numpy() for name in X}
    as_frame, as_mapping = (OptimalClassificationTree(max_depth=2).fit(table, y) for table in (X, columns))
    assert as_mapping.export_text() == as_frame.export_text()
    assert (as_mapping.predict(columns) == as_frame.predict(X)).all()


def test_numbers_name_classes_after_loading_too(tmp_path):
    X, y = rows()
    label = (y == "well").astype(int)
    OptimalClassificationTree(max_depth=1, class_weight={0: 1.0, 1: 5.0}).fit(X, label).save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.class_weight == {0: 1.0, 1: 5.0}
    assert (clone(again).fit(X, label).predict(X) == again.predict(X)).all()


def fitted():
    X, y = rows()
    costs = {"age": 0.01, "lab": {"cost": 0.02, "columns": ["dose", "arm"], "group": "g", "discounted": 0.01}}
    return [
        OptimalClassificationTree(max_depth=2).fit(X, y),
        OptimalCostSensitiveTree([[0, 1], [2, 0]], costs, max_depth=2).fit(X, y),
        OptimalRegressionTree(max_depth=2).fit(X, X["age"]),
        OptimalPolicyTree(max_depth=2).fit(X, scores=np.column_stack([X["age"], 120 - X["age"]])),
    ]


def test_saved_models_answer_the_same(tmp_path):
    X, _ = rows()
    for tree in fitted():
        tree.save(tmp_path / type(tree).__name__)
        again = load_model(tmp_path / type(tree).__name__)
        assert (again.predict(X) == tree.predict(X)).all()
        assert again.export_text() == tree.export_text()
        assert again.objective_ == tree.objective_
        assert again.to_dict() == tree.to_dict()
        clone(again)


def test_a_stopped_search_says_so():
    X, y = rows(400)
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        tree = OptimalClassificationTree(max_depth=4, thresholds="all", time_limit=0.0).fit(X, y)
    assert tree.lower_bound_ <= tree.objective_ == pytest.approx((tree.predict(X) != y).mean())


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"objective": "f7"}, "objective must be one of"),
        ({"max_depth": 11}, "max_depth must be an integer from 0 to 10"),
        ({"min_weight_fraction_leaf": 0.7}, "at most 0.5"),
        ({"min_weight_fraction_leaf": 0.1, "min_samples_leaf": 2}, "must not both"),
        ({"class_weight": {"sick": 1}}, "class_weight must name classes"),
        ({"objective": "weighted_accuracy"}, "class_weight must be given"),
    ],
)
def test_arguments_are_checked(changes, sentence):
    X, y = rows()
    with pytest.raises(InvalidParameterError, match=sentence):
        OptimalClassificationTree(**changes).fit(X, y)


def test_an_objective_is_registered_once():
    with pytest.raises(InvalidParameterError, match="has a solver already"):
        register("accuracy")(CLASSIFIERS["accuracy"])
