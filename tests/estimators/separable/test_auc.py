"""Trees for the area under the ROC convex hull."""

import pytest

from softsurv import (
    OptimalClassificationTree,
)
from softsurv.errors import InvalidParameterError


def test_the_whole_false_positive_range_is_the_auc(data):
    X, y, _ = data
    whole = OptimalClassificationTree("auc", 2, thresholds=4).fit(X, y)
    part = OptimalClassificationTree("partial_auc", 2, thresholds=4, false_positive_rate=1.0).fit(X, y)
    least = OptimalClassificationTree("partial_auc", 2, thresholds=4, false_positive_rate=0.2).fit(X, y)
    assert part.objective_ == pytest.approx(whole.objective_)
    assert least.objective_ > whole.objective_  # the leftmost part is the hard one


@pytest.mark.parametrize("rate", [0, 1.5, "0.1"])
def test_a_false_positive_rate_is_a_share(data, rate):
    X, y, _ = data
    with pytest.raises(InvalidParameterError, match="false_positive_rate"):
        OptimalClassificationTree("partial_auc", 2, false_positive_rate=rate).fit(X, y)


def test_a_path_has_the_best_tree_of_every_number_of_leaves(data):
    X, y, _ = data
    tree = OptimalClassificationTree("auc", 2, thresholds=4, complexity=0.01, path=True).fit(X, y)
    assert [size.max_leaves for size in tree.path_] == list(range(1, tree.tree_.n_leaves + 1))
    for size in tree.path_:
        few = OptimalClassificationTree("auc", 2, size.max_leaves, thresholds=4, complexity=0.01).fit(X, y)
        assert few.objective_ == pytest.approx(size.objective)
    assert tree.tree_.n_leaves > 1
