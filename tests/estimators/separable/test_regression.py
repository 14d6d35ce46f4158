"""Regression trees: errors by hand, any unit of the target."""

import pytest

from softsurv import (
    OptimalRegressionTree,
)
from softsurv.errors import InvalidSurvivalDataError


def test_regression_by_hand(rows):
    X, _ = rows()
    y = 1e6 + X["age"].to_numpy()
    tree = OptimalRegressionTree(max_depth=2).fit(X, y)
    assert tree.objective_ == pytest.approx(((tree.predict(X) - y) ** 2).mean(), rel=1e-9)
    assert tree.score(X, y) > 0.7


@pytest.mark.parametrize("unit", [1e-100, 1e-9, 1e9, 1e100])
def test_the_unit_of_the_target_does_not_matter(rows, unit):
    X, y = rows()
    value = (y == "well") + X["age"] / 1000
    trees = [OptimalRegressionTree(max_depth=2).fit(X, value * u) for u in (1.0, unit)]
    assert trees[1].objective_ / unit / unit == pytest.approx(trees[0].objective_)
    assert trees[1].tree_.n_leaves == trees[0].tree_.n_leaves > 1
    with pytest.raises(InvalidSurvivalDataError, match="take another unit"):
        OptimalRegressionTree(max_depth=1).fit(X, value * 1e160)
