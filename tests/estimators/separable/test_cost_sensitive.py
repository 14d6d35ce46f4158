"""Cost-sensitive trees: costs of errors and of tests by hand."""

import numpy as np
import pandas as pd
import pytest

from softsurv import (
    OptimalCostSensitiveTree,
)
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError


def test_costs_of_tests_by_hand(rows):
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


@pytest.mark.parametrize(
    ("costs", "sentence"),
    [
        ({"age": {"cost": 1, "bogus": 2}}, "feature_costs\\['age'\\] must be a number, or hold cost and no more than"),
        ({"age": {"columns": ("age",)}}, "feature_costs\\['age'\\] must be a number, or hold cost"),
        ({"age": "x"}, "cost of feature_costs\\['age'\\] must be a finite number >= 0, got 'x'"),
        ({"age": None}, "cost of feature_costs\\['age'\\] must be a finite number >= 0, got None"),
        ({"age": -1}, "cost of feature_costs\\['age'\\] must be a finite number >= 0, got -1"),
        ({"age": {"cost": 1, "discounted": 2}}, "discounted of feature_costs\\['age'\\] must be at most its cost"),
        (
            {"t": {"cost": 1, "columns": "age"}},
            "columns of feature_costs\\['t'\\] must be a list, and group a name, got",
        ),
        ({"t": {"cost": 1, "columns": 5}}, "columns of feature_costs\\['t'\\] must be a list"),
        ({"age": {"cost": 1, "group": ["u"]}}, "columns of feature_costs\\['age'\\] must be a list, and group a name"),
        (["age"], "feature_costs must name the cost of each feature or test, got"),
    ],
)
def test_costs_of_tests_that_cannot_be_used_are_one_sentence(rows, costs, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        OptimalCostSensitiveTree(None, costs, max_depth=1).fit(*rows())


def test_groups_of_tests_may_have_any_names(rows):
    X, y = rows()
    costs = {name: {"cost": 0.2, "discounted": 0.1, "group": group} for name, group in (("age", 1), ("arm", "a"))}
    named = {name: value | {"group": str(value["group"])} for name, value in costs.items()}
    trees = [OptimalCostSensitiveTree(None, one, max_depth=2).fit(X, y) for one in (costs, named)]
    assert trees[0].objective_ == trees[1].objective_


def test_costs_are_in_the_order_of_the_classes(rows):
    X, y = rows()
    names = ["well", "ill"]
    by_class = pd.DataFrame([[0.0, 1.0], [5.0, 0.0]], index=names, columns=names)
    for wrong, what in ((by_class, "rows"), (by_class.loc[names[::-1]], "columns")):
        with pytest.raises(InvalidSurvivalDataError, match=f"the {what} of misclassification_costs must be in"):
            OptimalCostSensitiveTree(wrong, max_depth=1).fit(X, y)
    same = OptimalCostSensitiveTree([[0.0, 5.0], [1.0, 0.0]], max_depth=1).fit(X, y)
    named = OptimalCostSensitiveTree(by_class.loc[names[::-1], names[::-1]], max_depth=1).fit(X, y)
    assert named.objective_ == same.objective_
    with pytest.raises(InvalidSurvivalDataError, match="the columns of costs must be in the order ill, well, got well"):
        OptimalCostSensitiveTree(max_depth=1).fit(X, y, costs=pd.DataFrame(np.ones((len(y), 2)), columns=names))
