"""Trees that go on below the best tree of eight leaves: when they do, what they are, and what their report says."""

import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sksurv.util import Surv

from softsurv import OptimalSurvivalTree, load_model
from softsurv.errors import DataWarning
from softsurv.estimators.optimal import cross_validation
from softsurv.estimators.optimal.continued import ERRORS, LEVELS, PRICES, best_price, continued
from softsurv.estimators.optimal.parameters import CONTINUED_LEAVES
from softsurv.exact.search import Search
from softsurv.results import Status, how_it_ended
from softsurv.stopping import StopSignal

CELLS = np.random.default_rng(3).permutation(np.geomspace(0.02, 6.4, 32))


def coins(n, hazards):
    """Rows of coins, each of whose cells has a hazard of its own."""
    rng, k = np.random.default_rng(5), int(np.log2(len(hazards)))
    thrown = rng.integers(0, 2, (n, k))
    time = rng.exponential(1 / np.asarray(hazards)[thrown @ (1 << np.arange(k)[::-1])])
    return pd.DataFrame(thrown, columns=list("abcdef")[:k]), Surv.from_arrays(time < 10, np.minimum(time, 10))


@pytest.fixture(scope="module")
def large():
    X, y = coins(3000, CELLS)
    return OptimalSurvivalTree().fit(X, y), X, y


def test_the_default_goes_on_where_more_leaves_are_clearly_better(large):
    tree, X, y = large
    chosen = tree.selection_.loc[tree.selection_["chosen"]].iloc[0]
    assert tree.status_ == Status.CONTINUED
    assert 16 < tree.tree_.n_leaves <= 32
    assert tree.tree_.depth <= 3 + LEVELS
    assert chosen["max_depth"] == 3 + LEVELS
    assert chosen["complexity"] == tree.report_.details["cost_per_leaf_below"]
    assert chosen["complexity"] in PRICES
    eight = OptimalSurvivalTree(max_depth=3, tune="cv").fit(X, y)
    assert eight.tree_.n_leaves == 8
    assert eight.status_ == Status.OPTIMAL


def test_its_report_says_what_is_proven(large):
    tree, X, y = large
    proven = OptimalSurvivalTree(max_depth=3).fit(X, y)
    details = tree.report_.details
    assert details["proven_objective"] == pytest.approx(proven.objective_)
    assert details["proven_leaves"] == proven.tree_.n_leaves
    assert tree.objective_ < proven.objective_
    assert tree.report_.trace[-2:] == pytest.approx((proven.objective_, tree.objective_))
    best = OptimalSurvivalTree(max_depth=5).fit(X, y)  # a leaf for every cell
    assert tree.lower_bound_ <= best.objective_ <= tree.objective_ + 1e-9
    assert tree.gap_ == pytest.approx(tree.objective_ - tree.lower_bound_)
    assert "best tree of depth 3 with 8 leaves, which is proven; those below are not" in tree.export_text()
    assert "those below" not in proven.export_text()
    with pytest.warns(DataWarning, match="the set holds trees near the proven one, of its depth at most"):
        assert tree.rashomon_set(0.001).objective == pytest.approx(proven.objective_)
    assert tree.path_[-1].tree.n_leaves == 8


def test_it_begins_as_the_proven_tree_does(large):
    tree, X, y = large
    proven = OptimalSurvivalTree(max_depth=3).fit(X, y).tree_

    def same(node, other):
        if proven.feature[other] < 0:
            return True
        own = tree.tree_.rule(node), proven.rule(other)
        sides = zip((tree.tree_.left, tree.tree_.right), (proven.left, proven.right), strict=True)
        return own[0] == own[1] and all(same(mine[node], theirs[other]) for mine, theirs in sides)

    assert same(0, 0)


def test_a_saved_tree_says_the_same(large, tmp_path):
    tree, X, _ = large
    tree.save(tmp_path / "tree")
    again = load_model(tmp_path / "tree")
    assert again.status_ == Status.CONTINUED
    assert again.export_text() == tree.export_text()
    np.testing.assert_array_equal(again.predict(X), tree.predict(X))


def test_eight_leaves_stay_where_more_say_nothing():
    X, y = coins(1500, np.repeat([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 0.1, 0.05], 2))
    tree = OptimalSurvivalTree().fit(X, y)
    assert tree.selection_["max_depth"].max() == 3 + LEVELS  # compared
    assert tree.tree_.n_leaves == 8
    assert tree.status_ == Status.OPTIMAL


@pytest.mark.parametrize("price", PRICES)
def test_a_cost_per_leaf_is_in_units_of_a_subject(price, large):
    _, X, y = large
    trees = []
    for weight in (1.0, 2.0**-30, 2.0**30):  # powers of two: ties are decided alike
        search = OptimalSurvivalTree(max_depth=3).fit(X, y, sample_weight=np.full(len(X), weight))._parts._search
        trees.append(continued(search, search.best(3, 8, np.inf, None), price, StopSignal()))
    assert len({tuple(one.tree.feature.tolist()) for one in trees}) == 1
    assert trees[0].report.objective == pytest.approx(trees[1].report.objective * 2.0**30)


def test_competing_causes_go_on_too():
    X, y = coins(3000, CELLS)
    cause = np.where(y["event"], 1 + X["a"].to_numpy(), 0)
    tree = OptimalSurvivalTree().fit(X, time=y["time"], cause=cause)
    assert tree.status_ == Status.CONTINUED
    assert tree.tree_.n_leaves > 8
    assert tree.objective_ < tree.report_.details["proven_objective"]
    assert tree.predict_cumulative_incidence(X.iloc[:3], np.array([1.0, 5.0])).shape == (3, 2, 2)


def cut_off_in(monkeypatch, call, how):
    """Let time or the user end the fit when trees go on for the ``call``-th time."""
    through, calls = Search.continued, []

    def cut_off(self, tree, levels, horizon, stop):
        calls.append(1)
        if len(calls) == call:
            how(stop)
        return through(self, tree, levels, horizon, stop)

    monkeypatch.setattr(Search, "continued", cut_off)


def test_time_that_ends_among_the_folds_leaves_the_proven_tree_and_is_said(monkeypatch):
    X, y = coins(1500, np.geomspace(0.05, 6.4, 16))
    cut_off_in(monkeypatch, 3, lambda stop: stop.end_unless(np.inf))
    with pytest.warns(ConvergenceWarning, match="cross-validation ended at its time limit"):
        tree = OptimalSurvivalTree().fit(X, y)
    assert tree.tree_.n_leaves == 8
    assert tree.selection_["max_depth"].max() == 3


@pytest.mark.parametrize(
    ("how", "status"),
    [
        (lambda stop: stop.end_unless(np.inf), Status.TIME_LIMIT),
        (lambda stop: signal.raise_signal(signal.SIGINT), Status.INTERRUPTED),
    ],
)
def test_what_ends_before_the_tree_of_all_rows_has_gone_on_is_its_status(monkeypatch, how, status):
    X, y = coins(3000, CELLS)
    proven = OptimalSurvivalTree(max_depth=3).fit(X, y)
    cut_off_in(monkeypatch, 11, how)  # after the ten folds
    with pytest.warns(ConvergenceWarning, match=f"{how_it_ended('the search', status)} with objective"):
        tree = OptimalSurvivalTree().fit(X, y)
    assert tree.status_ is status
    assert tree.tree_.feature.tolist() == proven.tree_.feature.tolist()
    assert tree.objective_ == proven.objective_
    assert tree.lower_bound_ < tree.objective_
    assert tree.report_.details["proven_leaves"] == 8
    assert tree.selection_["chosen"].sum() == 1
    assert "those below" not in tree.export_text()
    assert tree.path_[-1].tree.n_leaves == 8


def test_a_continued_tree_whose_curves_were_not_compared_in_time_says_so(monkeypatch):
    X, y = coins(3000, CELLS)
    through = cross_validation.choose_curve

    def cut_off(folds, shrinkage, strengths, score, stop):
        stop.end_unless(np.inf)
        return through(folds, shrinkage, strengths, score, stop)

    monkeypatch.setattr(cross_validation, "choose_curve", cut_off)
    with pytest.warns(ConvergenceWarning, match="cross-validation ended at its time limit"):
        tree = OptimalSurvivalTree().fit(X, y)
    assert tree.status_ == Status.CONTINUED
    assert tree.leaf_ == "adaptive"


def test_a_tree_that_is_not_proven_does_not_go_on(large):
    _, X, y = large
    search = OptimalSurvivalTree(max_depth=3).fit(X, y)._parts._search
    found = search.best(3, 8, np.inf, None)
    cut_off = replace(found, report=replace(found.report, status=Status.TIME_LIMIT))
    assert continued(search, cut_off, 1.0, StopSignal()) is cut_off
    assert continued(search, found, 1e9, StopSignal()) is found  # no split below is worth that


@pytest.mark.parametrize(
    ("gains", "place"),
    [
        ([0.0, 0.0, 0.0], None),  # no better than the proven trees
        ([0.5, 0.5, 0.5], (2, 1)),  # equally good: the highest cost
        ([0.5, 0.5, 0.1], (1, 1)),  # the highest that is as good as the best
        ([0.5, 0.5, 0.498], (2, 1)),  # clearly worse fold by fold, and within the error of the least loss, .003
        ([0.5, 0.49, 0.49], (0, 1)),  # beyond that error
    ],
)
def test_the_highest_cost_that_is_as_good_as_the_best_is_taken(gains, place):
    rng = np.random.default_rng(0)
    usual = 1.0 + 0.01 * rng.normal(size=10)
    noise = 0.001 * rng.normal(size=(3, 2, 10))
    losses = usual - np.array(gains)[:, None, None] + noise
    losses[:, 0] += 0.05  # the first strength is worse
    assert best_price(losses, usual) == place
    assert best_price(losses + 10 * ERRORS, usual) is None


@pytest.mark.parametrize(("most", "status"), [(4, Status.OPTIMAL), (8, Status.OPTIMAL), (20, Status.CONTINUED)])
def test_max_leaves_limits_a_tree_that_goes_on(most, status, large):
    _, X, y = large
    tree = OptimalSurvivalTree(max_leaves=most, tune="cv").fit(X, y)
    assert tree.status_ == status
    assert 0.7 * most <= tree.tree_.n_leaves <= most
    assert tree.selection_["max_leaves"].max() <= most
    if status == Status.CONTINUED:
        assert tree.report_.details["cost_per_leaf_below"] >= min(PRICES)


def test_a_tree_that_goes_on_has_at_most_32_leaves_unless_more_are_allowed():
    X, y = coins(12_000, np.random.default_rng(3).permutation(np.geomspace(0.02, 6.4, 64)))
    assert 28 <= OptimalSurvivalTree().fit(X, y).tree_.n_leaves <= CONTINUED_LEAVES
    assert OptimalSurvivalTree(max_leaves=100, tune="cv").fit(X, y).tree_.n_leaves > 40
