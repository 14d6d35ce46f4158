"""OptimalFairSurvivalTree and its front: promises hold, in any unit of weight, and wrong arguments are told."""

import re
import warnings

import numpy as np
import pytest

from softsurv import OptimalSurvivalTree, load_dataset, load_model
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError, InvalidTimesError, LimitWarning
from softsurv.estimators.survival.fair import OptimalFairSurvivalTree, group_difference, survival_fairness_front
from softsurv.results import Status


@pytest.mark.parametrize(
    "options", [{}, {"max_leaves": 3}, {"complexity": 4.0}, {"min_samples_leaf": 60}, {"n_jobs": 2}]
)
def test_estimator_keeps_its_promise(options):
    data = load_dataset("gbsg2")
    old = (data.X["age"] >= 55).to_numpy()
    features = data.X.drop(columns=["age"])
    free = OptimalSurvivalTree(max_depth=2, **({"min_samples_leaf": 1} | options)).fit(features, data.y)
    tree = OptimalFairSurvivalTree([800.0, 1600.0], 0.0015, max_depth=2, **options).fit(features, data.y, group=old)
    survival = tree.predict_survival_function(features, [800.0, 1600.0])
    np.testing.assert_allclose(group_difference(survival, old), tree.difference_, atol=1e-12)
    assert (tree.difference_ <= 0.0015 + 1e-9).all()
    assert tree.status_ == Status.OPTIMAL
    assert tree.objective_ >= free.objective_ - 1e-6
    wide = OptimalFairSurvivalTree(800.0, 1.0, max_depth=2, **options).fit(features, data.y, group=old)
    assert wide.objective_ == pytest.approx(free.objective_)


def test_near_optimal_trees_are_refused():
    """The search for them knows no groups: it counted one tree, with another objective than the fit."""
    data = load_dataset("gbsg2")
    old = (data.X["age"] >= 55).to_numpy()
    tree = OptimalFairSurvivalTree(1000.0, 0.001, max_depth=2).fit(data.X, data.y, group=old)
    with pytest.raises(InvalidParameterError, match="fit OptimalSurvivalTree"):
        tree.rashomon_set()


@pytest.mark.parametrize("scale", [1e-13, 1e-9, 1e12])
def test_any_unit_of_weight_gives_the_same_tree(scale):
    data = load_dataset("gbsg2")
    old = (data.X["age"] >= 55).to_numpy()
    plain, scaled = (
        OptimalFairSurvivalTree(1000.0, 0.001, max_depth=2).fit(
            data.X, data.y, group=old, sample_weight=np.full(len(old), weight)
        )
        for weight in (1.0, scale)
    )
    assert scaled.status_ == plain.status_ == Status.OPTIMAL
    assert plain.tree_.n_leaves > 1
    assert scaled.objective_ / scale == pytest.approx(plain.objective_)
    assert scaled.difference_[0] <= 0.001 + 1e-9


def test_front_of_the_estimator_is_nondominated_and_ends_at_the_free_tree():
    data = load_dataset("gbsg2")
    old = (data.X["age"] >= 55).to_numpy()
    features = data.X.drop(columns=["age"])
    front = survival_fairness_front(features, data.y, group=old, horizon=1000.0, resolution=0.002)
    assert front.status == Status.OPTIMAL
    numbers = front.table.to_numpy()
    for row in numbers:
        assert not ((numbers <= row).all(axis=1) & (numbers < row).any(axis=1)).any()
    assert [tree.n_leaves for tree in front.trees] == front.table["leaves"].tolist()
    free = OptimalSurvivalTree(max_depth=2, min_samples_leaf=1).fit(features, data.y)
    assert front.table["deviance"].min() == pytest.approx(free.objective_)


def test_a_front_does_not_depend_on_the_unit_of_the_weights():
    data = load_dataset("gbsg2")
    part = data.take(np.arange(0, data.n, 4))
    weight = np.random.default_rng(0).uniform(0.5, 2.0, part.n)
    fronts = []
    for unit in (1.0, 1e-12):
        rows = survival_data(part.X, (part.event, part.time), weight=unit * weight, group=part.X["age"] >= 55)
        fronts.append(survival_fairness_front(rows, group=None, horizon=1000.0, max_depth=1).table)
    one, other = fronts
    assert len(one) > 1
    np.testing.assert_allclose(other.assign(deviance=other["deviance"] * 1e12), one, atol=1e-9)


def test_wrong_arguments_are_met_by_a_remedy():
    X, y = np.arange(8.0)[:, None], (np.ones(8, bool), np.arange(1.0, 9.0))
    with pytest.raises(InvalidParameterError, match="group must say"):
        OptimalFairSurvivalTree(2.0).fit(X, y)
    with pytest.raises(InvalidParameterError, match="at least two values"):
        OptimalFairSurvivalTree(2.0).fit(X, y, group=np.zeros(8, int))
    with pytest.raises(InvalidTimesError, match="horizon must be finite"):
        OptimalFairSurvivalTree(-1.0).fit(X, y, group=np.arange(8) % 2)


def test_weights_that_differ_too_much_are_refused():
    X, y = np.arange(8.0)[:, None], (np.ones(8, bool), np.arange(1.0, 9.0))
    with pytest.raises(InvalidParameterError, match="weights must not differ"):
        OptimalFairSurvivalTree(2.0).fit(X, y, group=np.arange(8) % 2, sample_weight=[1e16, *np.ones(7)])


def test_the_difference_is_that_of_weighted_means_of_any_two_groups():
    survival = np.array([[1.0, 0.5], [0.0, 0.5], [0.25, 0.0], [0.75, 0.9]])
    group = np.array([7, 7, 2, 3])
    np.testing.assert_allclose(group_difference(survival, group), [0.5, 0.9])
    np.testing.assert_allclose(group_difference(survival, group, np.array([3.0, 1.0, 1.0, 1.0])), [0.5, 0.9])
    np.testing.assert_allclose(group_difference(survival[:3], group[:3], np.array([1.0, 3.0, 1.0])), [0.0, 0.5])


def test_groups_and_differences_are_saved(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)).round(1), (rng.random(60) < 0.8, rng.exponential(2.0, 60))
    group = rng.choice(["f", "m"], 60)
    tree = OptimalFairSurvivalTree([1.0, 2.0], 0.1, max_depth=1).fit(X, y, group=group)
    tree.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.groups_.tolist() == ["f", "m"]
    np.testing.assert_array_equal(again.difference_, tree.difference_)
    survival = again.predict_survival_function(X, [1.0, 2.0])
    np.testing.assert_allclose(group_difference(survival, group), tree.difference_, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"tolerance": 2}, InvalidParameterError, r"tolerance must be a number in \[0, 1\], got 2"),
        ({"horizon": []}, InvalidTimesError, r"horizon must be finite times > 0, got \[\]"),
        ({"horizon": "abc"}, InvalidTimesError, "horizon must be finite times > 0, got 'abc'"),
    ],
)
def test_tolerance_and_horizon_are_checked(change, error, sentence):
    data = load_dataset("veterans")
    group = (data.X["Age_in_years"] >= 60).to_numpy()
    with pytest.raises(error, match=sentence):
        OptimalFairSurvivalTree(**({"horizon": 100.0, "max_depth": 1} | change)).fit(data.X, data.y, group=group)


def test_the_least_rows_of_a_leaf_may_be_left_to_the_data():
    data = load_dataset("veterans")
    group = (data.X["Age_in_years"] >= 60).to_numpy()
    tree = OptimalFairSurvivalTree(100.0, 1.0, max_depth=2, min_samples_leaf="auto").fit(data.X, data.y, group=group)
    plain = OptimalSurvivalTree(max_depth=2).fit(data.X, data.y)
    assert tree.objective_ == pytest.approx(plain.objective_)
    assert tree.leaf_table_.n.min() >= 5


def test_a_front_takes_the_depth_that_a_tree_takes():
    """``max_depth="auto"``, which the estimator takes, was a TypeError."""
    X, y = np.arange(12.0)[:, None], (np.ones(12, bool), np.arange(1.0, 13.0))
    how = {"group": np.arange(12) % 2, "horizon": 6.0, "thresholds": [3.5, 7.5]}
    auto, three = (survival_fairness_front(X, y, max_depth=depth, **how) for depth in ("auto", 3))
    assert auto.table.equals(three.table)


def test_memory_is_told_with_what_the_search_over_both_objectives_makes_of_the_rows():
    """The sentence is said once: said before that search was made, it named half of what then was missing."""
    rng, n = np.random.default_rng(0), 20_000
    X, y = rng.integers(0, 3, (n, 12)).astype(float), (rng.random(n) < 0.5, rng.exponential(size=n))
    told = {}
    for limit in (1e6, 2e9):
        tree = OptimalFairSurvivalTree(1.0, 0.01, max_depth=3, time_limit=1, memory_limit=limit)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            tree.fit(X, y, group=X[:, 0])
        told[limit] = [float(re.search(r"less than the (\S+)", str(one.message))[1]) for one in said
                       if one.category is LimitWarning]  # fmt: skip
    table = X.nbytes + n * 8.0
    assert told[2e9] == []
    assert len(told[1e6]) == 1
    assert told[1e6][0] > 2.0 * table
