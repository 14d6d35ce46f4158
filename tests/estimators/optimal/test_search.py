"""Searches over training rows: costs of nodes by their definitions, gains of splits, and paths of sizes."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv import OptimalSurvivalTree
from softsurv.data.binarize import Binarizer
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.optimal import search as search_module
from softsurv.estimators.optimal.rows import Rows
from softsurv.estimators.optimal.search import SEARCHES, RelativeRiskSearch
from softsurv.exact.memory import Room
from softsurv.results import Status

KINDS = [("relative_risk", "nelson_aalen"), ("ibs", "km"), ("ibs", "ipcw")]


def search_of(rows, objective, leaf, **settings):
    data = survival_data(*rows)
    p = OptimalSurvivalTree(objective, leaf=leaf, min_samples_leaf=1, shrinkage=0.0, **settings)
    return SEARCHES[objective](Rows.of(data, Binarizer(5).fit(data.X)), p, leaf, Room(1e9))


@pytest.fixture(scope="module")
def searches(rows):
    return {kind: search_of(rows, *kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_what_splits_gain_is_the_cost_of_the_root_less_that_of_the_leaves(searches, kind):
    search = searches[kind]
    found = search.best(2, None, np.inf, None)
    assert found.report.status in (Status.OPTIMAL, Status.CONDITIONALLY_OPTIMAL)
    tree = found.tree
    leaf, gains = search.rows.leaf_of(tree), search.gains(tree)
    of_leaves = sum(search.loss(np.flatnonzero(leaf == k)) for k in range(tree.n_leaves))
    assert gains.sum() == pytest.approx(search.loss(np.arange(search.rows.n)) - of_leaves)
    assert (gains[tree.feature < 0] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_holds_the_best_tree_of_every_size(searches, kind):
    search = searches[kind]
    sizes, status = search.path(2, 4, np.inf)
    assert status == Status.OPTIMAL
    objectives = [size.objective for size in sizes]
    assert objectives == sorted(objectives, reverse=True)
    for size in sizes:
        assert size.tree.n_leaves <= size.max_leaves
        alone = search.best(2, size.max_leaves, np.inf, None)
        assert size.objective == pytest.approx(alone.report.objective)


@pytest.mark.parametrize(("kind", "cost"), [(KINDS[0], 8.0), (KINDS[1], 0.004), (KINDS[1], 1.0)])
def test_a_path_counts_the_cost_of_leaves_and_ends_with_the_best_tree(rows, kind, cost):
    search = search_of(rows, *kind, complexity=cost)
    sizes, _ = search.path(2, 4, np.inf)
    best = search.best(2, 4, np.inf, None)
    assert [size.max_leaves for size in sizes] == list(range(1, best.tree.n_leaves + 1))
    for size in sizes:
        alone = search.best(2, size.max_leaves, np.inf, None)
        assert size.objective == pytest.approx(alone.report.objective)


@pytest.mark.parametrize("leaf", ["km", "ipcw"])
def test_a_score_that_rounding_takes_below_0_is_proven_without_a_condition(leaf):
    weight = np.array([0.7, 0.7, 0.7, 0.19529541915921816, 0.531435563812618])
    event, time = np.arange(5) == 1, [2.0, 5.0, 4.0, 4.0, 4.0]
    tree = OptimalSurvivalTree("ibs", 1, leaf=leaf, min_samples_leaf=1)
    tree.fit(np.arange(5.0)[:, None], (event, time), sample_weight=weight)
    assert tree.status_ is Status.OPTIMAL
    assert tree.objective_ == pytest.approx(0.0, abs=1e-12)


def test_no_time_gives_no_path(rows):
    search = search_of(rows, "relative_risk", "nelson_aalen")
    sizes, status = search.path(3, 8, 0.0)
    assert (sizes, status) == ([], Status.TIME_LIMIT)


def test_a_cost_per_leaf_is_asked_for_and_found(rows):
    search = search_of(rows, "relative_risk", "nelson_aalen")
    free = search.best(2, None, np.inf, None)
    search.ask(1e6)
    alone = search.best(2, None, np.inf, None)
    assert (free.tree.n_leaves, alone.tree.n_leaves) == (4, 1)
    given = search_of(rows, "relative_risk", "nelson_aalen", complexity=1e6)
    assert given.best(2, None, np.inf, None).report.objective == pytest.approx(alone.report.objective)


def test_memory_is_counted_and_forgotten(rows):
    search = search_of(rows, "relative_risk", "nelson_aalen")
    before = search.held
    search.best(3, None, np.inf, None)
    assert search.search.n_cached > 0
    assert search.needed <= search.held
    search.rest(0.0)
    assert search.search.n_cached == 0
    assert search.held >= before > 0
    search.limit_to(Room(5e8))
    assert search.search.memory_limit == Room(5e8).left


def test_late_entry_has_no_brier_score(rows):
    X, y = rows
    data = survival_data(X, y, entry=y["time"] / 2)
    p = OptimalSurvivalTree("ibs")
    with pytest.raises(InvalidSurvivalDataError, match='entry must be left out for objective="ibs"'):
        SEARCHES["ibs"](Rows.of(data, Binarizer().fit(data.X)), p, "km", Room(1e9))
    assert RelativeRiskSearch(Rows.of(data, Binarizer(2).fit(data.X)), OptimalSurvivalTree(), "km", Room(1e9)).held > 0


def test_a_large_search_that_is_set_aside_is_made_again_and_finds_the_same(rows, monkeypatch):
    found = []
    for kept_bytes in (1e8, 0.0):
        monkeypatch.setattr(search_module, "KEPT_BYTES", kept_bytes)
        search = search_of(rows, "relative_risk", "nelson_aalen")
        assert search.held > 0
        search.set_aside()
        assert (search.held == 0) == (kept_bytes == 0)
        found.append(search.best(2, None, np.inf, None).report.objective)
        assert search.held > 0
    assert found[0] == found[1]
