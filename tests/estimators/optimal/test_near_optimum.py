"""What an optimal survival tree keeps for the trees near its optimum."""

import pickle

import numpy as np
import pytest

from softsurv import OptimalSurvivalTree
from softsurv.errors import InvalidParameterError
from softsurv.estimators.optimal.near_optimum import near_source
from softsurv.results import FitReport, Status
from softsurv.stopping import StopSignal


def test_the_source_is_the_search_of_the_fit(rows, trees):
    model = trees()
    source = near_source(model)
    assert (source.depth, source.leaves, source.scale) == (2, None, 1.0)
    assert source.names == tuple(model.feature_names_in_)
    assert set(source.columns) <= set(source.names)
    solution = source.problem.search(1e9).solve(source.depth, source.leaves, stop=StopSignal(30.0))
    assert solution.report.objective == pytest.approx(model.objective_)


def test_another_tree_makes_another_estimator_and_leaves_the_first(rows, trees):
    model = trees()
    model.calibration_ = "of the leaves of the first tree"
    try:
        before, source = model.export_text(), near_source(model)
        stump = source.problem.search(1e9).solve(1, None, stop=StopSignal(30.0))
        other = source.fitted(stump.tree, FitReport(Status.NEAR_OPTIMAL, stump.report.objective))
        plain = OptimalSurvivalTree(max_depth=1, leaf="nelson_aalen", min_samples_leaf=1, shrinkage=0.0).fit(*rows)
        assert (other.status_, other.objective_) == (Status.NEAR_OPTIMAL, pytest.approx(plain.objective_))
        np.testing.assert_allclose(other.predict(rows[0]), plain.predict(rows[0]))
        assert not hasattr(other, "calibration_")
        assert model.export_text() == before
        assert model.calibration_ == "of the leaves of the first tree"
    finally:
        del model.calibration_


def test_arguments_set_since_the_fit_change_nothing(rows, trees):
    model = trees().set_params(objective="ibs", level_sets=True)
    try:
        assert near_source(model).depth == 2
    finally:
        model.set_params(objective="relative_risk", level_sets=False)
    X, y = rows
    levels = np.resize(list("abcdef"), len(X))
    sets = OptimalSurvivalTree(max_depth=1, level_sets=True).fit(X.assign(level=levels), y)
    with pytest.raises(InvalidParameterError, match="level_sets=False, got True; fit without sets of levels"):
        near_source(sets.set_params(level_sets=False))


def test_what_has_no_such_source_is_told(rows, trees):
    with pytest.raises(InvalidParameterError, match="objective='relative_risk', got 'ibs'"):
        near_source(OptimalSurvivalTree("ibs", max_depth=1).fit(*rows).set_params(objective="relative_risk"))
    with pytest.raises(InvalidParameterError, match="needs the training rows"):
        near_source(pickle.loads(pickle.dumps(trees())))
