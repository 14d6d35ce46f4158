"""Classification and policy trees of the estimators against all trees; the other tasks have their own beside them.

Costs per row and squared error: `objectives`; paid tests: `test_split_costs`. Capacity and survival policies:
`tests/estimators/survival/test_policy.py`. F1, Matthews correlation, AUC, fairness and fair survival:
`test_vector_search`, `whole_trees` and `objectives`.
"""

import fuzz_pareto
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv import OptimalClassificationTree
from softsurv.estimators.separable.policy import OptimalPolicyTree

few = settings(max_examples=25, deadline=None)
SEEDS, LEAVES = st.integers(0, 10_000), st.sampled_from([None, 2, 3, 5])


def least_cost(columns, costs, depth, leaves, least, complexity):
    """Of all trees, where a leaf costs the least of its labels (N, L)."""
    return least_of_all(columns, lambda rows: costs[rows].sum(axis=0).min(), depth, leaves, least, complexity)


def least_of_all(columns, cost, depth, leaves, least, complexity):
    """Least cost of all trees, from the cost of a leaf's rows."""

    def leaf(rows):
        return np.array([[cost(rows), 1.0]])

    trees = fuzz_pareto.all_trees(columns, depth, leaf, lambda rows: len(rows) >= least)
    trees = trees[trees[:, 1] <= (leaves or 99)]
    return (trees[:, 0] + complexity * trees[:, 1]).min()


def classes(seed, n_classes, weighted):
    """Columns, classes that all occur, and weights."""
    rng = np.random.default_rng(seed)
    columns, _ = fuzz_pareto.table(rng, 30, 4)
    columns = np.vstack([columns, rng.random((n_classes, columns.shape[1])) < 0.5])
    label = rng.integers(0, n_classes, len(columns))
    label[-n_classes:] = np.arange(n_classes)
    weight = rng.integers(1, 8, len(label)) / 4 if weighted else np.ones(len(label))
    return columns, label, weight


def classifier(objective, columns, label, weight, depth, leaves, least, complexity):
    """The optimal tree under these limits."""
    tree = OptimalClassificationTree(
        objective, max_depth=depth, max_leaves=leaves, min_samples_leaf=least, complexity=complexity
    )
    return tree.fit(columns.astype(float), label, sample_weight=weight)


@few
@given(SEEDS, st.sampled_from(["accuracy", "balanced_accuracy"]), st.integers(2, 4), st.integers(1, 3), LEAVES,
       st.sampled_from([1, 3]), st.sampled_from([0.0, 0.02]), st.booleans())  # fmt: skip
def test_classes(seed, objective, n_classes, depth, leaves, least, complexity, weighted):
    columns, label, weight = classes(seed, n_classes, weighted)
    limits = depth, leaves, least, complexity
    tree = classifier(objective, columns, label, weight, *limits)
    share = weight / weight.sum()
    if objective == "balanced_accuracy":
        share = weight / np.bincount(label, weight)[label] / n_classes
    costs = np.where(np.arange(n_classes) == label[:, None], 0.0, share[:, None])
    expected = least_cost(columns, costs, *limits)
    assert tree.objective_ == pytest.approx(expected, abs=1e-9)
    assert tree.lower_bound_ == pytest.approx(expected, abs=1e-9)


IMPURITY = {
    "gini": lambda p: 1 - (p**2).sum(),
    "entropy": lambda p: -(p[p > 0] * np.log(p[p > 0])).sum(),
    "root_gini": lambda p: np.sqrt(max(1 - (p**2).sum(), 0.0)),
}


@few
@given(SEEDS, st.sampled_from(list(IMPURITY)), st.integers(2, 4), st.integers(1, 3), LEAVES, st.sampled_from([1, 3]),
       st.sampled_from([0.0, 0.02]), st.booleans())  # fmt: skip
def test_impurities(seed, objective, n_classes, depth, leaves, least, complexity, weighted):
    columns, label, weight = classes(seed, n_classes, weighted)
    limits = depth, leaves, least, complexity
    tree = classifier(objective, columns, label, weight, *limits)

    def cost(rows):
        inside = np.bincount(label[rows], weight[rows], n_classes)
        n = max(inside.sum(), 1e-300)
        return n / weight.sum() * IMPURITY[objective](inside / n)

    expected = least_of_all(columns, cost, *limits)
    assert tree.objective_ == pytest.approx(expected, abs=1e-9)
    assert tree.lower_bound_ == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("objective", ["gini", "entropy"])
def test_impurities_are_scores_of_the_shares(objective):
    from sklearn.metrics import log_loss

    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4))
    label = np.digitize(X[:, 0] + 0.5 * rng.normal(size=300), [-0.5, 0.5])
    tree = OptimalClassificationTree(objective, max_depth=2, thresholds=5).fit(X, label)
    share = tree.predict_proba(X)
    brier = ((np.eye(3)[label] - share) ** 2).sum(axis=1).mean()
    assert tree.objective_ == pytest.approx(brier if objective == "gini" else log_loss(label, share))


@few
@given(SEEDS, st.sampled_from(["direct", "ips", "doubly_robust"]), st.integers(2, 3), st.integers(1, 3), LEAVES,
       st.sampled_from([1, 3]), st.booleans())  # fmt: skip
def test_policies(seed, method, n_treatments, depth, leaves, least, weighted):
    rng = np.random.default_rng(seed)
    columns, _ = fuzz_pareto.table(rng, 30, 4)
    columns = np.vstack([columns, rng.random((n_treatments, columns.shape[1])) < 0.5])
    n = len(columns)
    treatment, y = rng.integers(0, n_treatments, n), rng.normal(size=n)
    treatment[-n_treatments:] = np.arange(n_treatments)
    propensity, predicted = rng.uniform(0.1, 1.0, n), rng.normal(size=(n, n_treatments))
    weight = rng.integers(1, 8, n) / 4 if weighted else np.ones(n)
    tree = OptimalPolicyTree(method, max_depth=depth, max_leaves=leaves, min_samples_leaf=least).fit(
        columns.astype(float), y, treatment=treatment, propensity=propensity, predicted=predicted, sample_weight=weight
    )
    taken = np.arange(n_treatments) == treatment[:, None]
    scores = {
        "direct": predicted,
        "ips": taken * (y / propensity)[:, None],
        "doubly_robust": predicted + taken * ((y - predicted[np.arange(n), treatment]) / propensity)[:, None],
    }[method]
    expected = least_cost(columns, -scores * weight[:, None] / weight.sum(), depth, leaves, least, 0.0)
    assert tree.objective_ == pytest.approx(expected, abs=1e-9)
    chosen = tree.predict(columns.astype(float))
    reward = (weight * scores[np.arange(n), chosen.astype(int)]).sum() / weight.sum()
    assert -reward == pytest.approx(expected, abs=1e-9)
