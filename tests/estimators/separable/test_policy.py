"""Policy trees: values by hand, and what they are given is named."""

import numpy as np
import pandas as pd
import pytest

from softsurv import (
    OptimalPolicyTree,
    OptimalRegressionTree,
)
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError


def test_policy_by_hand(rows):
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


def test_what_a_policy_is_given_is_named(rows):
    X, _ = rows()
    n, fit = len(X), OptimalPolicyTree("ips", max_depth=1).fit
    given = np.repeat(np.array([0.0, 1.0]), [n // 2, n - n // 2])
    with pytest.raises(InvalidSurvivalDataError, match="treatment must be known, got none at row 3"):
        fit(X, np.ones(n), treatment=np.where(np.arange(n) == 3, np.nan, given), propensity=np.full(n, 0.5))
    with pytest.raises(InvalidSurvivalDataError, match="propensity must have one number for each row"):
        fit(X, np.ones(n), treatment=given, propensity=np.full((n, 2), 0.5))
    with pytest.raises(InvalidSurvivalDataError, match=rf"propensity must have one number for each of the {n} rows"):
        fit(X, np.ones(n), treatment=given, propensity=0.5)
    with pytest.raises(InvalidSurvivalDataError, match="y must be numbers"):
        OptimalRegressionTree().fit(X, np.full(n, "much"))


def test_predictions_are_in_the_order_of_the_treatments(rows):
    X, _ = rows()
    n = len(X)
    given, outcome = np.array(["care", "drug"] * (n // 2)), np.arange(n) / n
    table = pd.DataFrame({"drug": outcome, "care": 1 - outcome})
    direct = OptimalPolicyTree("direct", max_depth=1)
    with pytest.raises(InvalidSurvivalDataError, match="columns of predicted must be in the order care, drug"):
        direct.fit(X, outcome, treatment=given, predicted=table)
    tree = direct.fit(X, outcome, treatment=given, predicted=table[["care", "drug"]])
    assert tree.policy_value(X, table[["care", "drug"]]) == pytest.approx(-tree.objective_)
    with pytest.raises(InvalidSurvivalDataError, match="columns of scores must be in the order care, drug, got drug"):
        tree.policy_value(X, table)
