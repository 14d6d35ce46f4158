"""Reference models of OptimalSurvivalTree."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from sksurv.ensemble import RandomSurvivalForest

from softsurv import OptimalSurvivalTree, load_model
from softsurv.errors import InvalidParameterError
from softsurv.nonparametric import kaplan_meier
from softsurv.results import Status


def test_a_reference_makes_the_result_conditional(rows):
    X, y = rows
    numbers = X[["x"]].assign(left=X["side"] == "left")
    forest = RandomSurvivalForest(30, min_samples_leaf=5, random_state=0)
    settings = {"objective": "ibs", "max_depth": 2, "complexity": 0.01}
    exact = OptimalSurvivalTree(**settings).fit(numbers, y)
    inner = OptimalSurvivalTree("ibs", max_depth=3, complexity=0.01)
    grid = np.unique(y["time"])
    curves = np.tile(kaplan_meier(y["time"], y["event"])(grid), (len(y), 1))
    fitted = clone(forest).fit(numbers, y)
    for reference in (forest, fitted, inner, curves):
        tree = OptimalSurvivalTree(**settings, reference=reference).fit(numbers, y)
        assert tree.status_ is Status.CONDITIONALLY_OPTIMAL
        distance = tree.report_.details["guaranteed_distance"]
        assert exact.objective_ - 1e-9 <= tree.objective_ <= exact.objective_ + distance + 1e-9
        assert tree.lower_bound_ <= exact.objective_ + 1e-9
    clones = OptimalSurvivalTree(**settings, reference=fitted)
    assert clone(clones).fit(numbers, y).objective_ == pytest.approx(
        OptimalSurvivalTree(**settings, reference=forest).fit(numbers, y).objective_
    )
    with pytest.raises(InvalidParameterError, match=r"reference must have shape \(N, T\)"):
        OptimalSurvivalTree(**settings, reference=curves[:, 1:]).fit(numbers, y)
    with pytest.raises(InvalidParameterError, match="a model with predict_survival_function, got StandardScaler"):
        OptimalSurvivalTree(**settings, reference=StandardScaler()).fit(numbers, y)


def test_a_reference_sees_encoded_categories(rows):
    tree = OptimalSurvivalTree("ibs", max_depth=1, reference=RandomSurvivalForest(5, random_state=0)).fit(*rows)
    assert tree.status_ is Status.CONDITIONALLY_OPTIMAL


def test_a_reference_is_not_saved(rows, tmp_path):
    tree = OptimalSurvivalTree("ibs", max_depth=1, reference=RandomSurvivalForest(5, random_state=0)).fit(*rows)
    tree.save(tmp_path / "model")
    assert load_model(tmp_path / "model").reference is None
    assert tree.reference is not None
