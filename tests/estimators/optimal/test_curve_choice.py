"""Curves of leaves, chosen for held-out rows: relative risks where they are enough, own curves where not."""

import numpy as np
import pandas as pd
import pytest
from sksurv.util import Surv

from softsurv import OptimalSurvivalTree
from softsurv.estimators.optimal.curve_choice import FoldTree, choose_curve
from softsurv.estimators.optimal.leaves import held_out_loss, leaf_curves
from softsurv.estimators.optimal.shrinkage import with_risk
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
            out.append(held_out_loss(curves, held_out.leaf_of(tree), held_out, score))
        return np.array(out)

    own = {strength: losses("km", strength, 10.0) for strength in strengths}
    best = min(own, key=lambda strength: own[strength].mean())
    assert choose_curve(folds, 10.0, strengths, score, StopSignal(0.0)) == ("adaptive", 10.0)
    gained = losses("adaptive", 10.0, 10.0) - own[best]
    clear = gained.mean() > 2 * gained.std(ddof=1) / 2
    assert choose_curve(folds, 10.0, strengths, score, StopSignal()) == (("km", best) if clear else ("adaptive", 10.0))


def test_late_entry_keeps_relative_risks():
    """The Brier score knows no late entry."""
    X, y = two_leaves(800, False)
    tree = OptimalSurvivalTree(max_depth=1, tune="cv").fit(X, y, entry=y["time"] * 0.01)
    assert tree.leaf_ == "adaptive"


def test_without_room_for_the_curves_relative_risks_stay(monkeypatch):
    X, y = two_leaves(800, False)
    monkeypatch.setattr("softsurv.estimators.optimal.cross_validation.CURVE_TABLES", 1e9)
    assert OptimalSurvivalTree(max_depth=2, tune="cv").fit(X, y).leaf_ == "adaptive"
