"""What scikit-learn's tools are told about the tables of an estimator."""

import pytest
from sklearn.base import is_regressor

from softsurv import OptimalModelTree, OptimalRegressionTree, OptimalSurvivalTree, SoftSurvivalTree


@pytest.mark.parametrize("kind", [OptimalRegressionTree, OptimalSurvivalTree, OptimalModelTree, SoftSurvivalTree])
def test_scikit_learn_is_told_what_tables_may_hold(kind):
    """`SequentialFeatureSelector` refuses missing values for an estimator that does not tell."""
    tags = kind().__sklearn_tags__().input_tags
    assert (tags.allow_nan, tags.string, tags.categorical) == (True, True, True)
    assert is_regressor(kind()) == (kind is OptimalRegressionTree)
