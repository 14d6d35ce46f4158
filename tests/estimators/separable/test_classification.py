"""Classification trees: errors by hand, weights of rows and classes, arguments."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score

from softsurv import (
    OptimalClassificationTree,
    load_model,
)
from softsurv.errors import InvalidParameterError


def test_classification_by_hand(rows):
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


def test_weights_of_rows_and_classes(rows):
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


def test_of_equally_good_trees_the_choice_does_not_depend_on_the_order_of_the_rows():
    """Classes weigh one over their size: sums of such weights are rounded by the order of the rows."""
    for seed in (17, 28, 33):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(12, 40))
        X, y = pd.DataFrame(rng.integers(0, 3, (n, 4)), columns=list("abcd")), rng.integers(0, 3, n)
        orders = [rng.permutation(n) for _ in range(6)]
        trees = [OptimalClassificationTree("balanced_accuracy", max_depth=2).fit(X.iloc[o], y[o]) for o in orders]
        assert len({tree.export_text() for tree in trees}) == 1


def test_numbers_name_classes_after_loading_too(rows, tmp_path):
    X, y = rows()
    label = (y == "well").astype(int)
    OptimalClassificationTree(max_depth=1, class_weight={0: 1.0, 1: 5.0}).fit(X, label).save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.class_weight == {0: 1.0, 1: 5.0}
    assert (clone(again).fit(X, label).predict(X) == again.predict(X)).all()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"objective": "f7"}, "objective must be one of"),
        ({"max_depth": 11}, "max_depth must be an integer from 0 to 10"),
        ({"min_weight_fraction_leaf": 0.7}, "at most 0.5"),
        ({"min_weight_fraction_leaf": 0.1, "min_samples_leaf": 2}, "must not both"),
        ({"class_weight": {"sick": 1}}, "class_weight must name classes"),
        ({"objective": "weighted_accuracy"}, "class_weight must be given"),
        (
            {"objective": "balanced_accuracy", "class_weight": "balanced"},
            "class_weight must be None for objective='bal",
        ),
        ({"objective": "f1", "class_weight": {"well": 2.0}}, "class_weight must be None for objective='f1'"),
        ({"class_weight": [1, 2]}, "class_weight must map classes, .* to numbers, got"),
    ],
)
def test_arguments_are_checked(rows, changes, sentence):
    X, y = rows()
    with pytest.raises(InvalidParameterError, match=sentence):
        OptimalClassificationTree(**changes).fit(X, y)
