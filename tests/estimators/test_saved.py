"""Estimators to files and back: what is written of arguments and training, and what a file may not name."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from oracles.simulated import simulate

from softsurv import OptimalRegressionTree, OptimalSurvivalTree, SoftSurvivalTree
from softsurv.errors import InvalidParameterError, ModelFileError
from softsurv.estimators.saved import load_model, save_model
from softsurv.hazards import get_family
from softsurv.persistence import Saved, read_model, write_model


@pytest.fixture(scope="module")
def data():
    return simulate(60, 2)


@pytest.fixture
def stump(data):
    return OptimalSurvivalTree(max_depth=1, min_samples_leaf=5).fit(data)


def test_training_is_remembered_and_answers_are_the_same(stump, data, tmp_path):
    save_model(stump, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert type(again) is OptimalSurvivalTree
    assert (again.horizon_, again.ranges_, again.cause_names_) == (stump.horizon_, stump.ranges_, ())
    assert again.feature_names_in_.tolist() == ["x0", "x1"]
    np.testing.assert_array_equal(again.unique_times_, stump.unique_times_)
    np.testing.assert_array_equal(again.censoring_(data.time), stump.censoring_(data.time))
    np.testing.assert_array_equal(again.predict(data.X), stump.predict(data.X))
    assert again.get_params() == stump.get_params()


def test_a_tree_that_predicts_no_survival_keeps_no_curve(tmp_path):
    X = np.arange(20.0)[:, None]
    tree = OptimalRegressionTree(max_depth=1).fit(X, X[:, 0] > 9)
    save_model(tree, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert not hasattr(again, "censoring_")
    assert not hasattr(again, "feature_names_in_")
    np.testing.assert_array_equal(again.predict(X), tree.predict(X))


def test_arguments_that_hold_a_model_or_a_family_are_written_as_words(stump, data, tmp_path):
    family = get_family("spline_ph", n_knots=1)
    tree = SoftSurvivalTree(
        init=stump, leaf=family, max_terms=None, l2=1.0, shrinkage=1.0, routing_l2=1.0, device="cpu"
    ).fit(data)
    save_model(tree, tmp_path / "model")
    written = read_model(tmp_path / "model").parameters
    assert (written["init"], written["leaf"]) == ("auto", "spline_ph")
    again = load_model(tmp_path / "model", device="cpu")
    assert (again.tree_.family.n_knots, again.n_knots) == (1, 1)  # so that a new fit has the same knots
    np.testing.assert_array_equal(again.predict(data.X), tree.predict(data.X))


@pytest.mark.parametrize("path", [None, 3, b"model", ["model"]])
def test_what_names_no_folder_is_told(path):
    with pytest.raises(InvalidParameterError, match="path must be the folder of a model, got"):
        save_model(SoftSurvivalTree(), path)
    with pytest.raises(InvalidParameterError, match="path must be the folder of a model, got"):
        load_model(path)


@pytest.mark.parametrize("kind", ["SoftTree", "os.system", "__import__", ""])
def test_estimators_are_those_of_one_table(stump, tmp_path, kind):
    save_model(stump, tmp_path / "model")
    saved = read_model(tmp_path / "model")
    write_model(
        tmp_path / "model",
        Saved(kind, *(getattr(saved, name) for name in Saved.__dataclass_fields__ if name != "estimator")),
    )
    with pytest.raises(ModelFileError, match="unknown estimator"):
        load_model(tmp_path / "model")


def test_a_state_that_lacks_a_part_is_a_damaged_file(stump, tmp_path):
    save_model(stump, tmp_path / "model")
    saved = read_model(tmp_path / "model")
    del saved.state["tree"]
    write_model(tmp_path / "model", saved)
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "model")


def test_threads_may_share_a_loaded_model(data, stump, tmp_path):
    soft = SoftSurvivalTree(depth=1, leaf="weibull", max_terms=1, l2=0.3, shrinkage=10.0).fit(data)
    for name, tree in {"soft": soft, "optimal": stump}.items():
        tree.save(tmp_path / name)
        again = load_model(tmp_path / name)
        with ThreadPoolExecutor(4) as pool:
            rows = list(pool.map(lambda row, again=again: again.predict_median(data.X[row : row + 1]), range(data.n)))
        np.testing.assert_allclose(np.concatenate(rows), tree.predict_median(data.X))
