"""Sizes of an optimal tree by cross-validation: losses of refitted trees, the choice among them, and its limits."""

from __future__ import annotations

import math
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sksurv.util import Surv

from softsurv import OptimalSurvivalTree, load_dataset
from softsurv.data.binarize import Binarizer
from softsurv.data.canonical import column_order, row_order
from softsurv.data.partition import stratified_folds
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.optimal.cross_validation import (
    UNTRIED_DEPTH,
    SizeChoice,
    choice_among,
    choose_size,
    in_time,
)
from softsurv.estimators.optimal.search import RelativeRiskSearch
from softsurv.estimators.optimal.sizes import Size
from softsurv.estimators.shared.on_demand import OnDemand
from softsurv.exact.kernels.cache import ENTRY_BYTES
from softsurv.exact.memory import Room
from softsurv.exact.objectives.brier import IbsScore
from softsurv.nonparametric import nelson_aalen
from softsurv.results import Status
from softsurv.stopping import StopSignal


@pytest.mark.parametrize("objective", ["relative_risk", "ibs"])
def test_cross_validation_chooses_depth_and_leaves(objective, make_rows):
    X, y = make_rows(200)
    tree = OptimalSurvivalTree(objective, max_depth=3, tune="cv").fit(X, y)
    table = tree.selection_
    assert table["chosen"].sum() == 1
    assert table["loss"].is_monotonic_increasing
    tried = {tuple(size) for size in table[["max_depth", "max_leaves"]].to_numpy()}
    assert tried == {(d, k) for d in range(4) for k in range(d + 1, 2**d + 1)}
    assert (table["complexity"] > 0).any()
    assert (table["leaves"] <= table["max_leaves"]).all()
    assert tree.complexity_ == table.loc[table["chosen"], "complexity"].item()
    chosen = table[table["chosen"]].iloc[0]
    assert chosen["difference"] <= 2 * chosen["error"]
    assert tree.tree_.depth <= chosen["max_depth"]
    assert tree.tree_.n_leaves <= chosen["max_leaves"]
    assert tree.shrinkage_ == chosen["shrinkage"]
    assert tree.tree_.n_leaves > 1  # the data cross over
    again = OptimalSurvivalTree(objective, max_depth=3, tune="cv").fit(X, y)
    assert again.selection_.equals(table)


def test_the_searches_of_all_folds_share_one_memory_limit(make_rows, monkeypatch):
    """While one of them works within the limit, the others keep a tenth of it at most; the choice is the same."""
    X, y = make_rows(200)
    free = OptimalSurvivalTree(max_depth=4, tune="cv", memory_limit=1e9).fit(X, y)
    searches, kept = [], []
    rest = RelativeRiskSearch.rest

    def watched(self, room):
        searches.append(self)
        rest(self, room)
        kept.append(sum(int(one.search.cache.used[0]) * ENTRY_BYTES for one in set(searches)))

    monkeypatch.setattr(RelativeRiskSearch, "rest", watched)
    bound = OptimalSurvivalTree(max_depth=4, tune="cv", memory_limit=1e6).fit(X, y)
    assert len(set(searches)) >= 10
    assert 0 < max(kept[:-1]) <= 1e5
    assert bound.selection_.equals(free.selection_)


def test_cross_validation_leaves_noise_alone():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(150, 4)), columns=list("abcd"))
    y = Surv.from_arrays(rng.random(150) < 0.7, rng.exponential(5, 150))
    tuned = OptimalSurvivalTree(max_depth=3, tune="cv").fit(X, y)
    assert tuned.tree_.n_leaves < OptimalSurvivalTree(max_depth=3).fit(X, y).tree_.n_leaves


def in_order(X, y):
    """The rows in the order in which they are dealt into folds."""
    data = survival_data(X, y)
    order = row_order(data, column_order(data.X, data))
    return X.iloc[order].reset_index(drop=True), y[order]


def test_the_held_out_loss_is_that_of_refitted_trees(make_rows):
    """One search per fold gives what fitting every size anew gives, with any shrinkage."""
    X, y = in_order(*make_rows(90))
    tree = OptimalSurvivalTree(max_depth=2, tune="cv", random_state=3).fit(X, y)
    table = tree.selection_[tree.selection_["complexity"] == 0]
    size = table.set_index(["max_depth", "max_leaves", "shrinkage"])
    folds = [fold for seed in (3, 4) for fold in stratified_folds(y["event"], 5, seed)]
    for shrinkage in (5.0, 80.0):
        losses = []
        for train, test in folds:
            part = OptimalSurvivalTree(max_depth=2, max_leaves=3, shrinkage=shrinkage).fit(X.iloc[train], y[train])
            theta = part.predict(X.iloc[test])
            hazard = nelson_aalen(y["time"][train], y["event"][train])(y["time"][test])
            losses.append(np.mean(theta * hazard - y["event"][test] * np.log(theta)))
        assert size.loc[(2, 3, shrinkage), "loss"] == pytest.approx(np.mean(losses))


@pytest.mark.parametrize("score", ["ibs", "concordance"])
@pytest.mark.parametrize(
    ("objective", "leaf"), [("relative_risk", "adaptive"), ("relative_risk", "km"), ("ibs", "ipcw")]
)
def test_sizes_are_compared_by_the_score_that_is_named(make_rows, objective, leaf, score):
    X, y = in_order(*make_rows(90))
    settings = {"max_depth": 1, "objective": objective, "leaf": leaf, "shrinkage": 10.0}
    tree = OptimalSurvivalTree(**settings, tune="cv", tune_score=score).fit(X, y)
    losses = []
    for seed in (0, 1):
        for train, test in stratified_folds(y["event"], 5, seed):
            part = OptimalSurvivalTree(**settings).fit(X.iloc[train], y[train])
            if score == "concordance":
                losses.append(1 - part.score(X.iloc[test], y[test]))
                continue
            brier = IbsScore.from_columns(y["time"][test], y["event"][test])
            survival = part.predict_survival_function(X.iloc[test], np.unique(y["time"][test]))
            losses.append(sum(brier.loss(np.array([k]), curve) for k, curve in enumerate(survival)))
    table = tree.selection_[tree.selection_["complexity"] == 0]
    size = table.set_index(["max_depth", "max_leaves"])
    assert size.loc[(1, 2), "loss"] == pytest.approx(np.mean(losses))


def test_the_largest_size_within_two_errors_is_chosen():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=10)
    losses = {
        Size(0, 1, 0.0, 5.0): np.full(10, 3.0),
        Size(1, 2, 0.0, 5.0): np.full(10, 1.0),
        Size(2, 3, 0.0, 5.0): 1.0 + 0.01 + 0.1 * noise,
        Size(2, 3, 0.0, 20.0): 1.0 + 0.005 + 0.1 * noise,
        Size(2, 4, 0.0, 5.0): 2.0 + 0.1 * noise,
        Size(2, 4, 0.7, 5.0): 1.0 + 0.02 + 0.1 * noise,
    }
    n_leaves = {size: 2.5 if size.complexity else float(size.leaves) for size in losses}
    choice = choice_among(losses, n_leaves, Status.OPTIMAL)
    assert (choice.depth, choice.leaves, choice.complexity, choice.shrinkage) == (2, 3, 0.0, 20.0)
    # a cost per leaf is taken only where it is clearly better than every limit
    priced = Size(2, 4, 0.7, 5.0)
    assert choice_among({**losses, priced: 0.95 + 0.1 * noise}, n_leaves, Status.OPTIMAL).complexity == 0.0
    choice = choice_among({**losses, priced: 0.7 + 0.1 * noise}, n_leaves, Status.OPTIMAL)
    assert (choice.leaves, choice.complexity) == (4, 0.7)
    table = choice.table.set_index(["max_depth", "max_leaves", "complexity", "shrinkage"])
    row = table.loc[(2, 4, 0.0, 5.0)]
    paired = losses[2, 4, 0.0, 5.0] - losses[1, 2, 0.0, 5.0]
    assert row["difference"] == pytest.approx(paired.mean())
    assert row["error"] == pytest.approx(paired.std(ddof=1) / np.sqrt(10))
    assert row["difference"] > 2 * row["error"]


@pytest.mark.parametrize(
    ("single", "leaves"),
    [(0.9, 1), (1.02, 1), (1.04, 4), (1.15, 4), (1.25, 8)],
    ids=["best", "within an error of the best", "beyond it", "worse than four leaves", "worse than all"],
)
def test_a_tree_is_split_where_splits_are_clearly_better_and_none_is_worse_than_one_leaf(single, leaves):
    noise = np.random.default_rng(0).normal(size=10)
    noise = (noise - noise.mean()) * np.sqrt(10) / noise.std(ddof=1)  # a standard error of 1
    losses = {
        Size(0, 1, 0.0, 5.0): single + 0.03 * noise,
        Size(1, 2, 0.0, 5.0): np.ones(10),
        Size(2, 4, 0.0, 5.0): 1.03 + 0.2 * noise,
        Size(3, 8, 0.0, 5.0): 1.2 + 0.2 * noise,
    }
    n_leaves = {size: float(size.leaves) for size in losses}
    assert choice_among(losses, n_leaves, Status.OPTIMAL).leaves == leaves


@pytest.mark.parametrize(("ratio", "most", "least"), [(1.0, 2, 0), (3.0, 6, 6)], ids=["noise", "a group at risk"])
def test_noise_is_seldom_split_and_a_group_at_risk_found(ratio, most, least):
    """Six draws of 300 rows, about 100 events, five features; the first divides the rows, or nothing does."""
    split = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.normal(size=(300, 5))).add_prefix("x")
        time = rng.exponential(1 / ratio ** (X["x0"] > 0))
        end = np.quantile(time, 1 / 3)
        split += OptimalSurvivalTree().fit(X, (time < end, np.minimum(time, end))).tree_.n_leaves > 1
    assert least <= split <= most


@pytest.mark.parametrize("objective", ["relative_risk", "ibs"])
def test_the_tree_of_a_chosen_cost_per_leaf_is_optimal_at_that_cost(objective, make_rows, monkeypatch):
    X, y = make_rows(120)
    cost = 2.0 if objective == "relative_risk" else 0.01
    size = SizeChoice(3, 8, cost, 10.0, pd.DataFrame([{"chosen": True}]), Status.OPTIMAL)
    monkeypatch.setattr("softsurv.estimators.optimal.tree.choose_size", lambda *_: size)
    tree = OptimalSurvivalTree(objective, max_depth=3, tune="cv").fit(X, y)
    plain = OptimalSurvivalTree(objective, max_depth=3, complexity=cost).fit(X, y)
    assert tree.complexity_ == cost
    assert tree.objective_ == pytest.approx(plain.objective_)
    assert tree.export_text() == plain.export_text()


def test_a_given_cost_per_leaf_is_kept(make_rows):
    X, y = make_rows(120)
    tree = OptimalSurvivalTree(max_depth=2, complexity=1.5, tune="cv").fit(X, y)
    assert set(tree.selection_["complexity"]) == {1.5}
    assert tree.complexity_ == 1.5


def test_a_choice_that_ran_out_of_time_goes_one_depth_further(make_rows, monkeypatch):
    """Larger was better as long as there was time."""
    X, _ = make_rows(200)
    y = np.ones(200, dtype=bool), np.random.default_rng(0).exponential(np.exp(X["x"]))
    path = RelativeRiskSearch.path
    monkeypatch.setattr(
        RelativeRiskSearch,
        "path",
        lambda self, depth, leaves, seconds: (
            path(self, depth, leaves, seconds) if depth < 2 else ([], Status.TIME_LIMIT)
        ),
    )
    with pytest.warns(ConvergenceWarning, match="cross-validation (ended|was interrupted)"):
        tree = OptimalSurvivalTree().fit(X, y)
    assert tree.selection_["max_depth"].max() == 1
    assert tree.tree_.depth == 2


@pytest.mark.parametrize(("leaves", "taken"), [(4, (3, 8)), (3, (2, 3))])
def test_one_depth_further_is_taken_only_where_the_largest_was_best(leaves, taken):
    made = OnDemand(pd.DataFrame)
    choice = SizeChoice(2, leaves, 0.0, 10.0, made, Status.TIME_LIMIT)
    found = in_time(choice, OptimalSurvivalTree(), (10.0, 80.0), {0, 1, 2})
    assert (found.depth, found.leaves, found.shrinkage) == (*taken, 10.0)
    assert in_time(choice, OptimalSurvivalTree(max_depth=4), (10.0,), {0, 1, 2}) is choice  # the user's limit


def test_nothing_said_of_the_size_means_that_it_is_chosen(make_rows):
    X, y = make_rows(150)
    auto = OptimalSurvivalTree().fit(X, y)
    assert auto.selection_["chosen"].sum() == 1
    assert auto.shrinkage_ == auto.selection_.loc[auto.selection_["chosen"], "shrinkage"].item()
    assert auto.tree_.n_leaves <= 8
    assert auto.leaf_table_.n.min() >= math.ceil(5 * 150 / y["event"].sum())
    for said in ({"max_depth": 2}, {"max_leaves": 3}, {"complexity": 0.1}, {"tune": None}):
        plain = OptimalSurvivalTree(**said).fit(X, y)
        assert plain.selection_.empty
        assert plain.shrinkage_ == 10.0


def test_a_time_limit_holds_for_the_choice_too(rows, monkeypatch):
    """The clock runs out at trees of depth three, however fast the machine is."""
    path, passed, now = RelativeRiskSearch.path, [0.0], time.monotonic

    def slow(self, depth, leaves, seconds):
        passed[0] += 1000.0 if depth == 3 else 0.0
        return path(self, depth, leaves, seconds)

    monkeypatch.setattr(RelativeRiskSearch, "path", slow)
    monkeypatch.setattr(time, "monotonic", lambda: now() + passed[0])
    with pytest.warns(ConvergenceWarning, match="cross-validation ended at its time limit"):
        tree = OptimalSurvivalTree(max_depth=6, thresholds="all", tune="cv", time_limit=1000.0).fit(*rows)
    assert tree.selection_["max_depth"].max() == 2
    assert tree.report_.details["selection"] == "time_limit"
    said = f"Cross-validation ended at its time limit with {len(tree.selection_)} sizes compared: another size may be"
    assert said in tree.export_text()
    assert tree.selection_["loss"].notna().all()


def test_no_time_to_compare_sizes_is_no_reason_for_a_single_leaf():
    """Where not one split was compared in time a small tree is searched for."""
    data = load_dataset("veterans")
    model = OptimalSurvivalTree(min_samples_leaf=5)
    binarizer = Binarizer(thresholds=10).fit(data.X)
    choice = choose_size(data, np.arange(data.n), binarizer, model, "nelson_aalen", 0, StopSignal(0.0), Room(1e9))
    assert choice.status == Status.TIME_LIMIT
    assert (choice.depth, choice.leaves) == (UNTRIED_DEPTH, 2**UNTRIED_DEPTH)


def test_one_event_is_too_few_to_choose_a_size(make_rows):
    X, y = make_rows(60)
    y["event"] = False
    y["event"][3] = True
    with pytest.raises(InvalidSurvivalDataError, match=r"at least 2 rows to choose the size .* got 1; .* tune=None"):
        OptimalSurvivalTree().fit(X, y)
    assert OptimalSurvivalTree(max_depth=1, tune=None).fit(X, y).tree_.n_leaves <= 2
