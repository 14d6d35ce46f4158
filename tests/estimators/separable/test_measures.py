"""Trees for F1 and Matthews correlation: sizes, limits, weights."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score, matthews_corrcoef

from softsurv import (
    OptimalClassificationTree,
)
from softsurv.errors import InvalidParameterError
from softsurv.exact.whole_trees.measures import Oracle
from softsurv.results import Status

SCORES = {"f1": f1_score, "mcc": matthews_corrcoef}


@pytest.mark.parametrize("objective", SCORES)
def test_sizes_lead_to_the_free_tree(data, objective):
    X, y, _ = data
    free = OptimalClassificationTree(objective, 2, thresholds=4).fit(X, y)
    sized = OptimalClassificationTree(objective, 2, thresholds=4, path=True).fit(X, y)
    assert 1 - free.objective_ == pytest.approx(SCORES[objective](y, free.predict(X)))
    assert sized.objective_ == pytest.approx(free.objective_)
    losses = [size.objective for size in sized.path_]
    assert losses == sorted(losses, reverse=True)
    for size in sized.path_[:-1]:
        few = OptimalClassificationTree(objective, 2, size.max_leaves, thresholds=4).fit(X, y)
        assert few.tree_.n_leaves <= size.max_leaves
        assert few.objective_ == pytest.approx(size.objective)
        assert 1 - few.objective_ == pytest.approx(SCORES[objective](y, few.predict(X)))
    cost = 0.05
    dear = OptimalClassificationTree(objective, 2, thresholds=4, complexity=cost).fit(X, y)
    best = min(size.objective + cost * size.tree.n_leaves for size in sized.path_)
    assert dear.objective_ == pytest.approx(best)
    assert dear.status_ == Status.OPTIMAL


@pytest.mark.parametrize("objective", SCORES)
@pytest.mark.parametrize("cost", [0.02, 0.5])
def test_a_path_counts_the_cost_of_leaves(data, objective, cost):
    X, y, _ = data
    shared = {"thresholds": 4, "complexity": cost}
    tree = OptimalClassificationTree(objective, 2, **shared, path=True).fit(X, y)
    assert [size.max_leaves for size in tree.path_] == list(range(1, tree.tree_.n_leaves + 1))
    for size in tree.path_:
        few = OptimalClassificationTree(objective, 2, size.max_leaves, **shared).fit(X, y)
        assert few.objective_ == pytest.approx(size.objective)


@pytest.mark.parametrize("objective", SCORES)
def test_limits_on_leaves_hold(data, objective):
    X, y, _ = data
    tree = OptimalClassificationTree(objective, 2, thresholds=4, min_samples_leaf=40).fit(X, y)
    assert np.bincount(tree.apply(X)).min() >= 40
    heavy = OptimalClassificationTree(objective, 2, thresholds=4, min_weight_fraction_leaf=0.2).fit(X, y)
    assert np.bincount(heavy.apply(X)).min() >= 0.2 * len(y)


def test_sample_weights_repeat_rows(data):
    X, y, _ = data
    times = np.random.default_rng(1).integers(1, 4, len(y))
    cuts = {"thresholds": [-0.5, 0.0, 0.5]}
    weighted = OptimalClassificationTree("f1", 2, **cuts).fit(X, y, sample_weight=times)
    repeated = OptimalClassificationTree("f1", 2, **cuts).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.objective_ == pytest.approx(repeated.objective_)


@pytest.mark.parametrize("unit", [1e-90, 1e90])
@pytest.mark.parametrize("objective", SCORES)
def test_the_unit_of_the_weights_changes_nothing(data, objective, unit):
    X, y, _ = data
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    tree, same = (
        OptimalClassificationTree(objective, 2, thresholds=4).fit(X, y, sample_weight=w)
        for w in (weight, unit * weight)
    )
    assert tree.tree_.n_leaves > 1
    assert same.objective_ == pytest.approx(tree.objective_)
    assert 1 - same.objective_ == pytest.approx(SCORES[objective](y, same.predict(X), sample_weight=weight))


@pytest.mark.parametrize("objective", ["f1", "mcc"])
@pytest.mark.parametrize("n", [1, 3])
def test_other_numbers_of_classes_are_refused(objective, n):
    with pytest.raises(InvalidParameterError, match=f"two classes, got {n}"):
        OptimalClassificationTree(objective, 1).fit(np.arange(6.0)[:, None], np.arange(6) % n)


def test_stopped_fit_warns_and_bounds(data):

    X, y, _ = data
    with pytest.warns(ConvergenceWarning, match="time limit"):
        tree = OptimalClassificationTree("f1", 3, time_limit=0.0).fit(X, y)
    assert tree.status_ == Status.TIME_LIMIT
    assert tree.lower_bound_ <= OptimalClassificationTree("f1", 3).fit(X, y).objective_ <= tree.objective_


def test_a_tree_that_is_proven_when_time_ends_is_optimal(monkeypatch):
    """The last of four bounds meets the tree: no other tree can be better, whatever the clock says."""
    rng = np.random.default_rng(8)
    X = rng.integers(0, 4, (80, 4))
    y = (X[:, 0] + 0.7 * X[:, 1] + rng.normal(size=80) > 2.5).astype(int)
    whole, bounds, minimise = OptimalClassificationTree("mcc", max_depth=2).fit(X, y), [], Oracle.minimise

    def late(self, w, upper):
        least, found, status = minimise(self, w, upper)
        bounds.append(least)
        return least, found, Status.TIME_LIMIT if len(bounds) == 4 else status

    monkeypatch.setattr(Oracle, "minimise", late)
    tree = OptimalClassificationTree("mcc", max_depth=2).fit(X, y)  # a warning would be an error
    assert len(bounds) == 4
    assert (tree.status_, tree.gap_) == (Status.OPTIMAL, 0.0)
    assert tree.objective_ == pytest.approx(whole.objective_)
