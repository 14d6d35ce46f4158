"""Curves of leaves, chosen for held-out rows: relative risks where they are enough, own curves where not."""

import weakref
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sksurv.util import Surv

from softsurv import OptimalSurvivalTree
from softsurv.data.binarize import Binarizer
from softsurv.data.readers import survival_data
from softsurv.estimators.optimal import curve_choice
from softsurv.estimators.optimal.curve_choice import MOST_TIMES, FoldTree, choose_curve, rounded
from softsurv.estimators.optimal.held_out import HeldOutRows
from softsurv.estimators.optimal.leaves import held_out_losses, kaplan_meier_curves, leaf_curves
from softsurv.estimators.optimal.rows import Rows
from softsurv.estimators.optimal.search import RelativeRiskSearch
from softsurv.estimators.optimal.shrinkage import with_risk
from softsurv.exact.memory import Room
from softsurv.exact.objectives.brier import IbsScore
from softsurv.stopping import StopSignal


def two_leaves(n, proportional, seed=0):
    """Two groups: hazards in proportion, or Weibull curves that cross."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, n)
    time = rng.exponential(1, n)
    time = time / (1 + 3 * x) if proportional else time ** np.where(x == 1, 0.25, 2.0)
    return pd.DataFrame({"x": x}), Surv.from_arrays(time < 3, np.minimum(time, 3))


@pytest.mark.parametrize(("proportional", "leaf"), [(True, "adaptive"), (False, "km")])
def test_curves_that_cross_are_seen(proportional, leaf):
    X, y = two_leaves(800, proportional)
    tree = OptimalSurvivalTree(max_depth=2, tune="cv").fit(X, y)
    assert tree.leaf_ == leaf
    assert ("Time lost: expected before" in tree.export_text()) == (leaf == "km")
    assert OptimalSurvivalTree(max_depth=2).fit(X, y).leaf_ == "adaptive"
    assert OptimalSurvivalTree(max_depth=2, tune="cv", leaf="adaptive").fit(X, y).leaf_ == "adaptive"


def test_the_leaves_are_those_that_the_arguments_would_give():
    X, y = two_leaves(800, False)
    tree = OptimalSurvivalTree(max_depth=1, tune="cv").fit(X, y)
    given = OptimalSurvivalTree(max_depth=1, leaf="km", shrinkage=tree.shrinkage_).fit(X, y)
    times = np.linspace(0.1, 2.9, 20)
    np.testing.assert_allclose(
        tree.predict_survival_function(X, times), given.predict_survival_function(X, times), atol=1e-12
    )


def folds_of(proportional):
    found = []
    for seed in range(4):
        X, y = two_leaves(400, proportional, seed)
        tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
        other = OptimalSurvivalTree(max_depth=1).fit(*two_leaves(200, proportional, seed + 10))
        found.append(FoldTree(tree._parts._search, tree.tree_, other._parts._rows))
    return found


@pytest.mark.parametrize("score", ["ibs", "concordance"])
@pytest.mark.parametrize("proportional", [True, False])
def test_the_choice_is_that_of_the_losses_one_by_one(proportional, score):
    folds, strengths = folds_of(proportional), (5.0, 40.0)

    def losses(kind, strength, shrinkage):
        out = []
        for search, tree, held_out in folds:
            shrunk = with_risk(search.rows, tree, search.leaf_sums(tree), shrinkage)
            curves = leaf_curves(search.rows, shrunk, kind, strength)
            out += held_out_losses([curves], held_out.leaf_of(tree), held_out, score)
        return np.array(out)

    own = {strength: losses("km", strength, 10.0) for strength in strengths}
    best = min(own, key=lambda strength: own[strength].mean())
    assert choose_curve(folds, 10.0, strengths, score, StopSignal(0.0)) is None
    gained = losses("adaptive", 10.0, 10.0) - own[best]
    clear = gained.mean() > 2 * gained.std(ddof=1) / 2
    assert choose_curve(folds, 10.0, strengths, score, StopSignal()) == (("km", best) if clear else ("adaptive", 10.0))


def test_one_fold_is_held_at_a_time():
    """The next one is made in the memory of the last."""
    seen = []

    def folds():
        for seed in range(3):
            assert all(search() is None for search in seen)
            yield made(seed)

    def made(seed):
        data = survival_data(*two_leaves(100, True, seed))
        rows, p = Rows.of(data, Binarizer().fit(data.X)), OptimalSurvivalTree(min_samples_leaf=1)
        search = RelativeRiskSearch(rows, p, "adaptive", Room(1e9))
        seen.append(weakref.ref(search))
        return FoldTree.of(search.best(1, None, 10.0, None).tree, search, HeldOutRows(search, rows))

    assert choose_curve(folds(), 10.0, (5.0,), "ibs", StopSignal()) is not None
    assert len(seen) == 3


def test_late_entry_keeps_relative_risks():
    """The Brier score knows no late entry."""
    X, y = two_leaves(800, False)
    tree = OptimalSurvivalTree(max_depth=1, tune="cv").fit(X, y, entry=y["time"] * 0.01)
    assert tree.leaf_ == "adaptive"


def test_without_room_for_the_curves_relative_risks_stay(monkeypatch):
    X, y = two_leaves(800, False)
    monkeypatch.setattr("softsurv.estimators.optimal.curve_choice.CURVE_COPIES", 1e9)
    assert OptimalSurvivalTree(max_depth=2, tune="cv").fit(X, y).leaf_ == "adaptive"


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_shared_by_all_strengths_give_the_curves_of_each(weighted):
    X, y = two_leaves(500, False)
    X["other"] = np.random.default_rng(1).normal(size=500)
    weight = np.random.default_rng(2).integers(1, 4, 500) if weighted else None
    tree, strengths = OptimalSurvivalTree(max_depth=3).fit(X, y, sample_weight=weight), (0.0, 1.0, 10.0, 80.0)
    rows = tree._parts._rows
    for strength, shared in zip(strengths, kaplan_meier_curves(rows, tree.tree_, strengths), strict=True):
        alone = leaf_curves(rows, tree.tree_, "km", strength)
        for one, other in zip(shared.hazards, alone.hazards, strict=True):
            np.testing.assert_array_equal(one.times, other.times)
            np.testing.assert_array_equal(one.values, other.values)


def test_losses_of_several_curves_are_those_of_each_by_its_rows():
    (search, tree, held_out), *_ = folds_of(False)
    curves = kaplan_meier_curves(search.rows, tree, (1.0, 30.0))
    leaf = held_out.leaf_of(tree)
    brier = IbsScore.from_columns(held_out.time, held_out.event)
    for one, loss in zip(curves, held_out_losses(curves, leaf, held_out, "ibs"), strict=True):
        survival = np.array([one.survival[k](brier.grid().times) for k in leaf])
        assert loss == pytest.approx(brier.row_losses(survival).sum(), rel=1e-12)


def test_few_times_stay_and_many_are_rounded_up_to_a_grid():
    (search, _, held_out), *_ = folds_of(True)
    assert rounded(search.rows, held_out)[0] is search.rows
    rng = np.random.default_rng(0)
    time = np.concatenate([rng.exponential(1, 9000) ** 3, [0.0]])  # a long tail
    parts = [replace(search.rows, time=time[:7000]), replace(search.rows, time=time[7000:])]
    new = np.concatenate([one.time for one in rounded(*parts)])
    grid, counts = np.unique(new, return_counts=True)
    assert grid.size <= MOST_TIMES
    assert (new >= time).all()
    assert (new - time).max() <= 2 * np.ptp(time) / MOST_TIMES + 1e-12
    assert counts.max() <= 2 * time.size / MOST_TIMES + 1
    assert (grid[[0, -1]] == [time.min(), time.max()]).all()


def test_the_grid_moves_no_difference_of_losses(monkeypatch):
    """Against every time: by less than a millionth, as the losses of all curves move together."""
    rng, n = np.random.default_rng(3), 6000
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    time = rng.exponential(1, n) ** np.where(X["a"] > 0, 0.5, 1.5)
    y = Surv.from_arrays(time < 3, np.minimum(time, 3))
    tree, other = (OptimalSurvivalTree(max_depth=2).fit(X[k::2], y[k::2]) for k in (0, 1))
    fold = FoldTree(tree._parts._search, tree.tree_, other._parts._rows)
    coarse = curve_choice._losses_of(fold, 10.0, (5.0, 40.0), "ibs", StopSignal())
    monkeypatch.setattr(curve_choice, "MOST_TIMES", 10 * n)
    exact = curve_choice._losses_of(fold, 10.0, (5.0, 40.0), "ibs", StopSignal())
    assert coarse != exact
    np.testing.assert_allclose(coarse, exact, rtol=1e-3)
    np.testing.assert_allclose(np.diff(coarse), np.diff(exact), atol=1e-6)
