"""Policy trees: values by hand, and what they are given is named."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from softsurv import (
    OptimalCapacityPolicyTree,
    OptimalPolicyTree,
    OptimalRegressionTree,
)
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.exact.objectives.policy import treatment_scores


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


def observed(n=240, seed=3):
    """Rows, outcomes and what a policy tree is told about them: three treatments, the best one known."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["x", "y"], n)})
    names = np.array(["care", "drug", "none"])
    mean = np.column_stack([np.where(X["a"] > 0, 1.0, -1.0), (X["b"] == "x").to_numpy() * 0.5, np.zeros(n)])
    code = rng.integers(0, 3, n)
    told = {"treatment": names[code], "propensity": np.full(n, 1 / 3), "predicted": mean + rng.normal(size=(n, 3)) / 9}
    return X, mean[np.arange(n), code] + rng.normal(size=n) / 2, told


@pytest.mark.parametrize("method", ["direct", "ips", "doubly_robust"])
@pytest.mark.parametrize("tree", [OptimalPolicyTree, partial(OptimalCapacityPolicyTree, {"care": 0.4})])
def test_the_score_is_the_mean_of_the_scores_of_what_is_chosen(method, tree):
    X, y, told = observed()
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.5], len(y))
    fitted = tree(method=method, max_depth=2, complexity=0.01).fit(X, y, **told, sample_weight=weight)
    leaves = 0.01 * fitted.tree_.n_leaves
    assert fitted.score(X, y, **told, sample_weight=weight) == pytest.approx(leaves - fitted.objective_)
    code = np.searchsorted(fitted.treatments_, told["treatment"])
    by_hand = treatment_scores(method, y, code, 3, told["propensity"], told["predicted"])
    assert fitted.score(X, y, **told) == pytest.approx(fitted.policy_value(X, by_hand))
    assert fitted.score(X, scores=by_hand) == pytest.approx(fitted.policy_value(X, by_hand))
    few = told["treatment"] != "care"  # a fold may lack a treatment
    part = {name: values[few] for name, values in told.items()}
    assert fitted.score(X[few], y[few], **part) == pytest.approx(fitted.policy_value(X[few], by_hand[few]))


def test_a_score_names_what_it_lacks():
    X, y, told = observed()
    with pytest.raises(NotFittedError):
        OptimalPolicyTree().score(X, y, **told)
    fitted = OptimalPolicyTree(max_depth=1).fit(X, y, **told)
    with pytest.raises(InvalidParameterError, match=r"treatment must say .* enable_metadata_routing is set"):
        fitted.score(X, y)
    with pytest.raises(InvalidSurvivalDataError, match="one of those seen in training, care, drug, none, got 'pill'"):
        fitted.score(X, y, **told | {"treatment": np.full(len(y), "pill")})
    with pytest.raises(InvalidSurvivalDataError, match="scores must have one column for each of the 3 treatments, got"):
        fitted.score(X, scores=np.zeros((len(y), 2)))


def test_scikit_learn_compares_policies():
    X, y, told = observed()
    with config_context(enable_metadata_routing=True):
        asked = dict.fromkeys(told, True)
        tree = OptimalPolicyTree().set_fit_request(**asked).set_score_request(**asked)
        search = GridSearchCV(tree, {"max_depth": [0, 1, 2]}, cv=3).fit(X, y, **told)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_["max_depth"] > 0
