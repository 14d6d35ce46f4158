"""What policy trees share: rewards against all stumps, scores of leaves, and how many rows each treatment is given."""

import numpy as np
import pandas as pd
import pytest

from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.separable.policy import OptimalPolicyTree
from softsurv.estimators.separable.policy_tree import Rewards


def test_leaves_show_the_weighted_mean_score_of_every_treatment():
    scores = np.array([[1.0, 0.0], [3.0, 2.0], [5.0, 7.0]])
    rewards = Rewards(np.array(["new", "old"]), scores)
    values, names = rewards.leaf_values(np.array([0, 1]), np.array([0, 0, 1]), np.array([1.0, 3.0, 2.0]))
    np.testing.assert_allclose(values, [[2.5, 1.5], [5.0, 7.0]])
    assert names == ["score of new", "score of old"]


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=60).round(1), "b": rng.normal(size=60).round(1)})
    scores = np.column_stack([np.where(X["a"] > 0, 2.0, -1.0), np.zeros(60), X["b"]]) + rng.normal(size=(60, 3))
    weight = rng.integers(1, 4, 60).astype(float)
    return X, scores, weight, scores_tree(X, scores, weight)


def scores_tree(X, scores, weight):
    return OptimalPolicyTree(max_depth=1, thresholds="all").fit(X, scores=scores, sample_weight=weight)


def test_no_stump_has_a_larger_mean_score(fitted):
    X, scores, weight, tree = fitted
    best = max((weight @ scores).max(), *(
        sum((weight[side] @ scores[side]).max() for side in (left, ~left))
        for name in X for cut in np.unique(X[name])[:-1] for left in [(X[name] <= cut).to_numpy()]
    )) / weight.sum()  # fmt: skip
    assert -tree.objective_ == pytest.approx(best)
    assert np.average(scores[np.arange(60), tree.predict(X)], weights=weight) == pytest.approx(best)


def test_the_value_of_a_policy_is_the_mean_score_of_what_it_chooses(fitted):
    X, scores, _, tree = fitted
    assert tree.policy_value(X, scores) == pytest.approx(scores[np.arange(60), tree.predict(X)].mean())
    with pytest.raises(ValueError, match="NaN"):
        tree.policy_value(X, np.full((60, 3), np.nan))
    for table in (scores[:50], np.vstack([scores, scores]), scores[:, :1], np.hstack([scores, scores])):
        with pytest.raises(InvalidSurvivalDataError, match="a row for each row of X and a column for each treatment"):
            tree.policy_value(X, table)


def test_every_row_has_the_scores_of_its_leaf(fitted):
    X, scores, weight, tree = fitted
    leaf, found = tree.apply(X), tree.predict_scores(X)
    for k in range(tree.tree_.n_leaves):
        expected = np.average(scores[leaf == k], axis=0, weights=weight[leaf == k])
        np.testing.assert_allclose(found[leaf == k], np.tile(expected, ((leaf == k).sum(), 1)))
        assert tree.label_[k] == expected.argmax()


def test_shares_are_those_of_the_weight(fitted):
    X, _, weight, tree = fitted
    assert sum(tree.share_.values()) == pytest.approx(1.0)
    for treatment, share in tree.share_.items():
        assert share == pytest.approx(weight[tree.predict(X) == treatment].sum() / weight.sum())
