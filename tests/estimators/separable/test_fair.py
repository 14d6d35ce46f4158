"""Classification trees under a fairness constraint."""

import fuzz_pareto
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from softsurv import (
    OptimalClassificationTree,
)
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.separable.fair import OptimalFairClassificationTree, common_unit
from softsurv.exact.objectives.fairness import KINDS, difference
from softsurv.results import Status


@pytest.mark.parametrize("kind", KINDS)
def test_fair_tree_keeps_its_tolerance(data, kind):
    X, y, group = data
    free = OptimalClassificationTree("accuracy", 2, thresholds=4).fit(X, y)
    previous = free.objective_
    for tolerance in (1.0, 0.1, 0.02):
        tree = OptimalFairClassificationTree(kind, tolerance, 2, thresholds=4).fit(X, y, group=group)
        assert tree.difference_ == pytest.approx(difference(tree.predict(X), y, group, kind))
        assert tree.difference_ <= tolerance + 1e-9
        assert tree.objective_ == pytest.approx((tree.predict(X) != y).mean())
        assert tree.objective_ >= previous - 1e-12  # a tighter tolerance costs accuracy
        previous = tree.objective_
    assert OptimalFairClassificationTree(kind, 1.0, 2, thresholds=4).fit(X, y, group=group).objective_ == pytest.approx(
        free.objective_
    )


def test_threads_find_the_same_tree_and_a_bar_shows_the_bound(data, capsys):
    X, y, group = data
    alone, two = (
        OptimalFairClassificationTree(tolerance=0.05, thresholds=4, n_jobs=jobs, progress=jobs == 2).fit(
            X, y, group=group
        )
        for jobs in (1, 2)
    )
    assert two.objective_ == alone.objective_
    shown = capsys.readouterr().err
    assert "100%" in shown
    assert f"incumbent={two.objective_ * len(y):.6g}" in shown


def test_fair_tree_with_text_groups_and_weights(data):
    X, y, group = data
    names = np.where(group == 1, "north", "south")
    weight = np.random.default_rng(2).uniform(0.5, 2, len(y))
    tree = clone(OptimalFairClassificationTree(tolerance=0.05, max_depth=2, thresholds=3)).fit(
        X, y, weight, group=names
    )
    assert tree.groups_.tolist() == ["north", "south"]
    assert difference(tree.predict(X), y, group, KINDS[0], weight) <= 0.05 + 1e-9
    assert tree.status_ == Status.OPTIMAL


def test_fair_tree_refuses_what_it_cannot_use(data):
    X, y, group = data
    with pytest.raises(InvalidParameterError, match="group must say"):
        OptimalFairClassificationTree().fit(X, y)
    with pytest.raises(InvalidParameterError, match="at least two values"):
        OptimalFairClassificationTree().fit(X, y, group=np.zeros(len(y)))
    with pytest.raises(InvalidParameterError, match="two classes"):
        OptimalFairClassificationTree().fit(X, y + group, group=group)
    words = np.where(y == 1, "yes", "no")
    with pytest.raises(InvalidParameterError, match="group 'women' must have rows of the positive class 'yes' for 'eq"):
        OptimalFairClassificationTree(KINDS[1]).fit(X, words, group=np.where((y == 1) | (group == 0), "men", "women"))
    with pytest.raises(InvalidParameterError, match=r"tolerance must be a number in \[0, 1\], got 2"):
        OptimalFairClassificationTree(tolerance=2).fit(X, y, group=group)


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        (None, "group must not be missing, got None at row 3"),
        (pd.NA, "group must not be missing, got <NA> at row 3"),
        (np.nan, "group must not be missing, got nan at row 3"),
        (7, "group must hold numbers or text alone, got int and str; make it text"),
    ],
)
def test_groups_of_no_kind_are_one_sentence(data, missing, sentence):
    X, y, group = data
    names = np.where(group == 1, "a", "b").astype(object)
    names[3] = missing
    with pytest.raises(InvalidSurvivalDataError, match=sentence):
        OptimalFairClassificationTree().fit(X, y, group=names)


@pytest.mark.parametrize(
    ("weight", "unit"),
    [([1, 1], 1), ([2, 3], 1), ([4, 6, 10], 2), ([0.5, 0.75], 0.25), ([1e12, 3e12], 1e12), ([1.0, 1.0 + 2e-16], 0)],
)
def test_weights_are_multiples_of_a_common_unit(weight, unit):
    weight = np.array(weight, dtype=float)
    assert common_unit(weight) == unit
    assert common_unit(weight * 2.0**-43) == unit * 2.0**-43


def test_weights_in_another_unit_give_the_same_tree():
    assert fuzz_pareto.trial("units", 2273229793) == ""
