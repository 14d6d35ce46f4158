"""What all estimators for separable objectives do: scikit-learn's checks, exports, saved models, limits."""

import inspect
import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from softsurv import (
    OptimalCapacityPolicyTree,
    OptimalClassificationTree,
    OptimalCostSensitiveTree,
    OptimalFairClassificationTree,
    OptimalFairSurvivalTree,
    OptimalPolicyTree,
    OptimalRegressionTree,
    OptimalSurvivalPolicyTree,
    load_model,
)
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError


@pytest.mark.slow
@pytest.mark.parametrize("kind", [OptimalClassificationTree, OptimalCostSensitiveTree, OptimalRegressionTree])
def test_scikit_learn_conventions(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checked = check_estimator(kind(max_depth=2))
    assert {check["status"] for check in checked} <= {"passed", "skipped"}


def test_a_mapping_of_columns_is_a_table(rows):
    X, y = rows()
    columns = {name: X[name].to_numpy() for name in X}
    as_frame, as_mapping = (OptimalClassificationTree(max_depth=2).fit(table, y) for table in (X, columns))
    assert as_mapping.export_text() == as_frame.export_text()
    assert (as_mapping.predict(columns) == as_frame.predict(X)).all()


@pytest.fixture(scope="module")
def fitted(rows):
    X, y = rows()
    costs = {"age": 0.01, "lab": {"cost": 0.02, "columns": ["dose", "arm"], "group": "g", "discounted": 0.01}}
    return [
        OptimalClassificationTree(max_depth=2).fit(X, y),
        OptimalCostSensitiveTree([[0, 1], [2, 0]], costs, max_depth=2).fit(X, y),
        OptimalRegressionTree(max_depth=2).fit(X, X["age"]),
        OptimalPolicyTree(max_depth=2).fit(X, scores=np.column_stack([X["age"], 120 - X["age"]])),
    ]


def test_saved_models_answer_the_same(rows, fitted, tmp_path):
    X, _ = rows()
    for tree in fitted:
        tree.save(tmp_path / type(tree).__name__)
        again = load_model(tmp_path / type(tree).__name__)
        assert (again.predict(X) == tree.predict(X)).all()
        assert again.export_text() == tree.export_text()
        assert again.objective_ == tree.objective_
        assert again.to_dict() == tree.to_dict()
        clone(again)


def test_a_stopped_search_says_so(rows):
    X, y = rows(400)
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        tree = OptimalClassificationTree(max_depth=4, thresholds="all", time_limit=0.0).fit(X, y)
    assert tree.lower_bound_ <= tree.objective_ == pytest.approx((tree.predict(X) != y).mean())


def test_constrained_trees_answer_the_same_once_saved(data, tmp_path):
    X, y, group = data
    rng = np.random.default_rng(3)
    outcome = rng.random(len(y)) < 0.7, rng.exponential(size=len(y)) + 0.01
    scores = np.column_stack([np.zeros(len(y)), X[:, 0]])
    fitted = {
        "fair": OptimalFairClassificationTree(tolerance=0.1, max_depth=1).fit(X, y, group=group),
        "survival": OptimalFairSurvivalTree(1.0, 0.1, max_depth=1).fit(X, outcome, group=group),
        "capacity": OptimalCapacityPolicyTree({1: 0.3}, max_depth=1).fit(X, scores=scores),
        "policy": OptimalSurvivalPolicyTree(1.0, max_depth=1).fit(X, outcome, treatment=group, propensity=[0.5, 0.5]),
    }
    for name, model in fitted.items():
        model.save(tmp_path / name)
        again = load_model(tmp_path / name)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        for attribute in ("difference_", "groups_", "share_", "treatments_"):
            if hasattr(model, attribute):
                np.testing.assert_array_equal(
                    np.asarray(getattr(again, attribute), dtype=object),
                    np.asarray(getattr(model, attribute), dtype=object),
                )
        assert again.export_text() == model.export_text()


POSITIONAL = {
    OptimalClassificationTree: ("objective", "max_depth", "max_leaves"),
    OptimalCostSensitiveTree: ("misclassification_costs", "feature_costs", "max_depth", "max_leaves"),
    OptimalRegressionTree: ("max_depth", "max_leaves"),
    OptimalPolicyTree: ("method", "max_depth", "max_leaves"),
    OptimalFairClassificationTree: ("constraint", "tolerance", "max_depth", "max_leaves"),
    OptimalCapacityPolicyTree: ("capacity", "method", "max_depth", "max_leaves"),
    OptimalSurvivalPolicyTree: ("horizon", "method", "max_depth", "max_leaves"),
}


@pytest.mark.parametrize("kind", POSITIONAL)
def test_arguments_that_need_no_name(kind):
    values = inspect.signature(kind).parameters.values()
    assert tuple(v.name for v in values if v.kind is v.POSITIONAL_OR_KEYWORD) == POSITIONAL[kind]
    assert {v.name for v in values} == set(kind().get_params(deep=False))
    assert kind(complexity=0.5).set_params(max_depth=1).get_params()["complexity"] == 0.5


@pytest.mark.parametrize("kind", POSITIONAL)
def test_an_estimator_is_shown_by_what_was_given(kind):
    assert repr(kind(max_depth=2, complexity=0.5)).startswith(f"{kind.__name__}(")
    assert "complexity=0.5" in repr(kind(complexity=0.5))
    assert kind() != kind()  # no two fitted trees are equal because their arguments are
    assert len({kind(), kind()}) == 2


def test_a_fit_leaves_arguments_and_results_and_nothing_else(fitted):
    """But for the rows that `rashomon_set` searches again, which no pickle takes along."""
    for tree in fitted:
        rest = set(vars(tree)) - set(tree.get_params(deep=False)) - {"_kept"}
        assert all(name.endswith("_") or name.startswith("n_features") for name in rest), rest


def test_a_failed_fit_leaves_no_rows_behind(rows):
    X, y = rows()
    tree = OptimalClassificationTree("f1", max_depth=1)
    with pytest.raises(InvalidParameterError, match="two classes"):
        tree.fit(X, np.where(X["arm"] == "x", "other", y))
    assert not any(isinstance(v, np.ndarray) and len(v) == len(y) for v in vars(tree).values())


@pytest.mark.parametrize("kind", [OptimalClassificationTree, OptimalPolicyTree])
def test_a_warning_points_at_the_line_that_fits(rows, kind):
    X, y = rows(400)
    tree = kind(max_depth=4, thresholds="all", time_limit=0.0)
    given = {"y": y} if kind is OptimalClassificationTree else {"scores": np.random.default_rng(0).random((400, 3))}
    with pytest.warns(ConvergenceWarning) as caught:
        tree.fit(X, **given)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("names", [["a", "b"], [0, 1]], ids=str)
def test_arrays_are_read_by_position_where_training_had_names(data, names, tmp_path):
    X, y = data[0][:, :2], data[1]
    frame = pd.DataFrame(X, columns=names)
    tree = OptimalClassificationTree(max_depth=2).fit(frame, y)
    expected = tree.predict(frame).tolist()
    tree.save(tmp_path / "tree")
    for model in (tree, load_model(tmp_path / "tree")):
        with pytest.warns(UserWarning, match="valid feature names") if names == ["a", "b"] else nullcontext():
            assert model.predict(X).tolist() == expected
        with pytest.raises(InvalidSurvivalDataError, match=r"X must have unique column names, got .* twice"):
            model.predict(frame.set_axis([names[0]] * 2, axis="columns"))


def test_a_table_without_rows_is_refused():
    with pytest.raises(InvalidSurvivalDataError, match="X must have at least one row, got none"):
        OptimalClassificationTree().fit(pd.DataFrame({"a": []}), [])
