"""Held-out rows measured with whole stacks of trees, against the measures of one estimator at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from oracles.spells import KINDS, rows_of_kind

from softsurv import SoftSurvivalTree
from softsurv.errors import InvalidParameterError
from softsurv.hazards import get_family
from softsurv.metrics import curve_gap
from softsurv.soft.held_out import HeldOut, TrainingTimes, alike_trees, measure_stacks, two_groups
from softsurv.trees.soft_tree import SoftTree

DENSE = {"max_terms": None, "l2": 1.0, "routing_l2": 1.0, "n_restarts": 1, "init": "random", "device": "cpu"}
SETTINGS = [
    {"leaf": "weibull", "depth": 1, "shrinkage": 1.0, "max_iter": 5},
    {"leaf": "loglogistic", "depth": 1, "shrinkage": 3.0, "max_iter": 5},
    {"leaf": "weibull", "depth": 1, "shrinkage": 30.0, "max_iter": 5},
    {"leaf": "weibull", "depth": 2, "shrinkage": 3.0, "max_iter": 5},
]
TOLERANCE = 1e-10

pytestmark = pytest.mark.filterwarnings("ignore::softsurv.errors.EvaluationWarning", "ignore:the fit took all its")


def fitted_to(train, settings=SETTINGS, **more):
    return [SoftSurvivalTree(**DENSE, **one, **more).fit(train) for one in settings]


def placed(tree, test, **how):
    known = TrainingTimes(tree.censoring_, tree.time_floor_, tree.horizon_, float(tree.unique_times_[0]))
    return HeldOut(test, tree._prepare(test.X).x, known, tree.tree_.leaves, **how)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, dict):
            assert_same(found[name], value)
        else:
            assert found[name] == (value if value is None else pytest.approx(value, abs=TOLERANCE)), name


def expected_of(tree, test):
    """What the estimator says, and the gap between the groups."""
    result = tree.evaluate(test)
    if test.group is not None:
        times = np.linspace(*result["range"], result["n_times"])
        members = (test.group == test.group.max()).numpy()
        result["fairness"] = curve_gap(tree.predict_survival_function(test.X, times), times, members, test.weight).mean
    return result


@pytest.mark.parametrize("kind", KINDS)
def test_each_tree_of_a_stack_has_the_measures_of_its_estimator(kind):
    data = rows_of_kind(kind).joined()
    train, test = data.split(0.4, seed=0)
    trees = fitted_to(train)
    found = measure_stacks([placed(trees[0], test)], [[tree._trees] for tree in trees])
    for (own,), tree in zip(found, trees, strict=True):
        assert_same(own, expected_of(tree, test))


def test_short_floats_are_measured_as_by_the_estimator():
    train, test = rows_of_kind("causes").split(0.4, seed=0)
    (tree,) = fitted_to(train, SETTINGS[:1], dtype="float32")
    ((found,),) = measure_stacks([placed(tree, test)], [[tree._trees]])
    assert_same(found, expected_of(tree, test))


def test_without_causes_the_measures_of_all_events_are_the_same():
    train, test = rows_of_kind("causes").split(0.4, seed=0)
    (tree,) = fitted_to(train, SETTINGS[:1])
    (((both,),), ((events,),)) = (
        measure_stacks([placed(tree, test, by_cause=one)], [[tree._trees]]) for one in (True, False)
    )
    del both["causes"]
    assert events == both


@pytest.mark.parametrize("kind", ["causes", "histories of causes", "events"])
def test_measures_bring_nothing_to_the_host(kind, monkeypatch):
    train, test = rows_of_kind(kind).joined().split(0.4, seed=0)
    (tree,) = fitted_to(train, SETTINGS[:1])
    rows = placed(tree, test)

    def refused(*arguments):
        raise AssertionError("a value of the device is asked for")

    for name in ("cpu", "numpy", "item", "tolist", "__bool__", "__float__", "__array__"):
        monkeypatch.setattr(torch.Tensor, name, refused)
    found = rows.measures(tree._trees)
    with pytest.raises(AssertionError):
        found.tolist()
    monkeypatch.undo()
    assert found.isfinite().all()


def test_scores_come_after_the_word_whether_fits_failed():
    train, test = rows_of_kind("events").split(0.4, seed=0)
    (tree,) = fitted_to(train, SETTINGS[:1])
    with torch.no_grad():
        tree.tree_.leaves[:] = torch.nan

    def failed():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measure_stacks([placed(tree, test)], [[tree._trees]], failed)
    with pytest.raises(InvalidParameterError, match="must not be NaN"):
        measure_stacks([placed(tree, test)], [[tree._trees]])


def test_trees_are_alike_in_family_depth_features_and_type():
    weibull, spline = get_family("weibull"), get_family("spline_ph", n_knots=3)
    trees = [
        SoftTree(1, 2, weibull), SoftTree(1, 2, weibull), SoftTree(2, 2, weibull), SoftTree(1, 3, weibull),
        SoftTree(1, 2, weibull, dtype=torch.float32), SoftTree(1, 2, spline), SoftTree(1, 2, get_family("spline_ph")),
        SoftTree(1, 2, get_family("weibull")),
    ]  # fmt: skip
    assert alike_trees(trees) == [[0, 1, 7], [2], [3], [4], [5], [6]]


def test_two_groups_or_none():
    data = rows_of_kind("events")
    members = two_groups(data)
    assert members.tolist() == (data.group == 1).tolist()
    assert two_groups(data.take(np.flatnonzero(members))) is None
    assert two_groups(rows_of_kind("histories")) is None
