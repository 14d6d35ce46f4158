"""What classification trees share: classes as they were given, and the shares of a leaf."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.separable.classification import OptimalClassificationTree
from softsurv.estimators.separable.classifier import Classes

X = np.array([[0.0], [0.0], [1.0], [1.0], [1.0]])


def test_shares_of_a_leaf_are_those_of_the_weight():
    classes = Classes(np.array(["ill", "well"]), np.array([0, 1, 1, 1, 0]))
    weight = np.array([1.0, 3.0, 1.0, 1.0, 2.0])
    values, names = classes.leaf_values(np.array([1, 0]), np.array([0, 0, 1, 1, 1]), weight)
    np.testing.assert_allclose(values, [[0.25, 0.75], [0.5, 0.5]])
    assert names == ["share of ill", "share of well"]


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["a", "a", "b", "b", "b"], ["a", "b"]),
        (np.array([1, 1, 3, 3, 3]), [1, 3]),
        (pd.Series([False, False, True, True, True], index=[5, 6, 7, 8, 9]), [False, True]),
        (pd.Series(["a", "a", "b", "b", "b"], dtype="category"), ["a", "b"]),
        (np.array([1.0, 1.0, 2.0, 2.0, 2.0]), [1.0, 2.0]),
    ],
)
def test_classes_are_answered_as_they_were_given(y, classes):
    tree = OptimalClassificationTree(max_depth=1).fit(X, y)
    assert tree.classes_.tolist() == classes
    answers = tree.predict(X)
    assert answers[-1] == np.asarray(y)[-1]
    assert answers.dtype == tree.classes_.dtype
    np.testing.assert_allclose(tree.predict_proba(X), [[1.0, 0.0]] * 2 + [[0.0, 1.0]] * 3)


def test_rows_without_weight_bring_no_class():
    tree = OptimalClassificationTree(max_depth=1).fit(X, list("cabab"), sample_weight=[0, 1, 1, 1, 1])
    assert tree.classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("y", "error", "sentence"),
    [
        (None, InvalidSurvivalDataError, "requires y to be passed, but the target y is None"),
        (["a"] * 4, InvalidSurvivalDataError, "y must have one class for each of the 5 rows of X, got 4"),
        ([0.5, 1.2, 3.7, 4.1, 5.3], ValueError, "Unknown label type"),
        (["a", "b", None, "a", "b"], InvalidSurvivalDataError, "y must be known, got None at row 2; leave out such"),
        (
            pd.Series(["a", None, "b", "a", "b"], dtype="string"),
            InvalidSurvivalDataError,
            "y must be known, got .* row 1",
        ),
        (
            np.array(["a", 1, 1, 1, 1], dtype=object),
            InvalidSurvivalDataError,
            "y must hold numbers or text alone, got int",
        ),
        (
            np.array([1, 1, 1, 1, "a"], dtype=object),
            InvalidSurvivalDataError,
            "y must hold numbers or text alone, got int",
        ),
        (np.array([3, 1, 1, 1, 1], dtype=object), InvalidSurvivalDataError, "y must be numbers or text, got objects"),
        (
            np.zeros(5, [("e", bool), ("t", float)]),
            InvalidSurvivalDataError,
            "y must be one column, got the fields e, t",
        ),
        ([[1], [1, 2]], InvalidSurvivalDataError, "y must have rows of one length"),
    ],
    ids=str,
)
def test_what_is_no_class_is_told(y, error, sentence):
    with pytest.raises(error, match=sentence):
        OptimalClassificationTree(max_depth=1).fit(X, y)


def test_a_column_of_classes_is_flattened_with_a_warning():
    with pytest.warns(DataConversionWarning):
        tree = OptimalClassificationTree(max_depth=1).fit(X, np.array([["a"], ["b"], ["b"], ["b"], ["b"]]))
    assert tree.classes_.tolist() == ["a", "b"]
