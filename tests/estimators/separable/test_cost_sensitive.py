"""Cost-sensitive trees: costs of errors and of tests by hand."""

import numpy as np
import pytest

from softsurv import (
    OptimalCostSensitiveTree,
)


def test_costs_of_tests_by_hand(rows):
    X, y = rows()
    free = OptimalCostSensitiveTree([[0, 1], [3, 0]], max_depth=2).fit(X, y)
    paid = OptimalCostSensitiveTree(
        [[0, 1], [3, 0]], {"age": 0.01, "lab": {"cost": 0.02, "columns": ("dose", "arm")}}, max_depth=2
    ).fit(X, y)
    cost = np.array([[0, 1], [3, 0]])[(y == "well").astype(int), (paid.predict(X) == "well").astype(int)].mean()
    asked = {name for node in range(paid.tree_.n_nodes) for name in [paid.tree_.feature[node]] if name >= 0}
    assert free.objective_ <= cost <= paid.objective_ <= cost + 0.03
    assert paid.objective_ > cost or not asked
    dear = OptimalCostSensitiveTree(feature_costs=dict.fromkeys(X, 9.0), max_depth=2).fit(X, y)
    assert dear.tree_.n_leaves == 1
    given = np.random.default_rng(0).random((len(y), 2))
    by_row = OptimalCostSensitiveTree(max_depth=2).fit(X, y, costs=given)
    chosen = (by_row.predict(X) == "well").astype(int)
    assert by_row.objective_ == pytest.approx(given[np.arange(len(y)), chosen].mean())
