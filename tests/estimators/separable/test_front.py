"""The front of false negatives and false positives."""

import numpy as np
import pytest

from softsurv import (
    OptimalClassificationTree,
)
from softsurv.errors import InvalidParameterError
from softsurv.estimators.separable.front import misclassification_front
from softsurv.results import Status


def test_front_holds_the_best_measures(data):
    X, y, _ = data
    front = misclassification_front(X, y, max_depth=2, thresholds=4)
    assert front.status == Status.OPTIMAL
    assert (np.diff(front.table["false_negatives"]) > 0).all()
    assert (np.diff(front.table["false_positives"]) < 0).all()
    for objective in ("f1", "mcc"):
        best = OptimalClassificationTree(objective, 2, thresholds=4).fit(X, y)
        assert front.table[objective].max() == pytest.approx(1 - best.objective_)
    for k, (tree, label) in enumerate(zip(front.trees, front.labels, strict=True)):
        predicted = label[tree.apply(np.asarray(X))] if tree.n_leaves > 1 else np.full(len(y), label[0])
        row = front.table.iloc[k]
        assert ((y == 1) & (predicted == 0)).sum() == row["false_negatives"]
        assert ((y == 0) & (predicted == 1)).sum() == row["false_positives"]


@pytest.mark.parametrize("leaves", [1, 2, 3])
def test_a_front_keeps_to_the_largest_number_of_leaves(data, leaves):
    X, y, _ = data
    front = misclassification_front(X, y, max_depth=2, max_leaves=leaves, thresholds=4)
    assert max(tree.n_leaves for tree in front.trees) == leaves
    for objective in ("f1", "mcc"):
        best = OptimalClassificationTree(objective, 2, leaves, thresholds=4).fit(X, y)
        assert front.table[objective].max() == pytest.approx(1 - best.objective_)
    rest = misclassification_front(X, y, max_depth=2, thresholds=4).table
    for _, row in front.table.iterrows():
        at_least = rest["false_positives"][rest["false_negatives"] <= row["false_negatives"]].min()
        assert row["false_positives"] >= at_least


@pytest.mark.parametrize("argument", ["objective", "class_weight", "complexity"])
def test_what_chooses_among_its_trees_is_refused(data, argument):
    with pytest.raises(InvalidParameterError, match=f"{argument} must be left out for a front of two errors, got"):
        misclassification_front(*data[:2], **{argument: "balanced"})
