"""The tree of largest AUC against enumeration and scikit-learn."""

import time
from itertools import pairwise

import fuzz_exact
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles.two_classes import error_search, tiny
from sklearn.metrics import roc_auc_score

from softsurv.exact.whole_trees.auc import AucSearch
from softsurv.results import Status
from softsurv.stopping import StopSignal

few = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def partitions(columns, rows, depth, min_leaf):
    """The leaves of every tree, as tuples of tuples of rows."""
    found = {(tuple(rows),)} if len(rows) >= min_leaf else set()
    if depth:
        for column in columns.T:
            one, other = rows[column[rows]], rows[~column[rows]]
            if len(one) and len(other):
                left = partitions(columns, one, depth - 1, min_leaf)
                right = partitions(columns, other, depth - 1, min_leaf)
                found |= {a + b for a in left for b in right}
    return found


def area_by_definition(label, leaves, share, weight):
    """Area over the ROC hull of leaves ranked by their share of positives, from its corners."""
    order = sorted(leaves, key=lambda rows: -np.average(label[list(rows)], weights=weight[list(rows)]))
    positives, negatives = weight[label == 1].sum(), weight[label == 0].sum()
    miss, false = [1.0], [0.0]
    for rows in order:
        rows = list(rows)
        miss.append(miss[-1] - (weight[rows] * label[rows]).sum() / positives)
        false.append(false[-1] + (weight[rows] * (1 - label[rows])).sum() / negatives)
    grid = np.unique(np.append(np.clip(false, 0, share), [0.0, share]))
    false, miss = np.array(false), np.array(miss)
    total = 0.0
    for a, b in pairwise(grid):
        k = np.flatnonzero((false[:-1] <= a + 1e-12) & (false[1:] >= b - 1e-12))[0]
        at = np.interp([a, b], false[k : k + 2], miss[k : k + 2])
        total += (b - a) * at.mean()
    return total / share


@few
@given(st.integers(0, 10_000), st.integers(0, 2), st.sampled_from([1.0, 0.3]), st.sampled_from([0.0, 0.05]),
       st.sampled_from([None, 2, 3]), st.booleans(), st.sampled_from([1, 3]))  # fmt: skip
def test_tree_is_the_best_of_all(seed, depth, share, complexity, leaves, weighted, min_leaf):
    columns, label, rng = tiny(seed)
    weight = rng.integers(1, 6, len(label)) / 2 if weighted else np.ones(len(label))
    search = error_search(columns, label, depth, weight, min_leaf=min_leaf)
    result = AucSearch(search, share, complexity, leaves).solve(StopSignal())
    best = min(
        area_by_definition(label, tree, share, weight) + complexity * len(tree)
        for tree in partitions(columns, np.arange(len(label)), depth, min_leaf)
        if leaves is None or len(tree) <= leaves
    )
    assert result.status == Status.OPTIMAL
    assert result.loss == pytest.approx(best, abs=1e-9)
    assert result.bound == pytest.approx(best, abs=1e-9)
    leaf = result.tree.leaf_of(search.codes, search.nominal)
    own = [tuple(np.flatnonzero(leaf == k)) for k in range(len(result.tree.label))]
    assert area_by_definition(label, own, share, weight) + complexity * len(own) == pytest.approx(best, abs=1e-9)
    assert result.tree.tree.depth <= depth


def test_stopped_search_states_its_gap():
    columns, label, _ = tiny(1, n=300, splits=25)
    search = error_search(columns, label, 3)
    stopped = AucSearch(search).solve(StopSignal(0.0))
    full = AucSearch(search).solve(StopSignal(60.0))
    assert stopped.status == Status.TIME_LIMIT
    assert stopped.bound <= full.loss + 1e-9
    assert full.loss <= stopped.loss


def test_no_search_begins_after_the_time(monkeypatch):
    columns, label, _ = tiny(1, n=300, splits=25)
    search, solved = error_search(columns, label, 3), []
    monkeypatch.setattr(search.search, "is_long", lambda *_: True)
    best = search.best
    monkeypatch.setattr(search, "best", lambda *given, **how: solved.append(how["depth"]) or best(*given, **how))
    result = AucSearch(search).solve(StopSignal(0.0))
    assert solved == [2]
    assert result.status == Status.TIME_LIMIT


def test_estimator_maximises_auc():
    from softsurv import OptimalClassificationTree

    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 4))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=300) > 0, "yes", "no")
    scores = {}
    for objective in ("auc", "partial_auc", "accuracy"):
        tree = OptimalClassificationTree(objective, max_depth=2, thresholds=3).fit(X, y)
        scores[objective] = roc_auc_score(y == "yes", tree.predict_proba(X)[:, 1])
        assert tree.status_ == Status.OPTIMAL
        if objective == "auc":
            assert tree.objective_ == pytest.approx(1 - scores["auc"])
    assert scores["auc"] >= max(scores.values()) - 1e-12


@pytest.mark.parametrize("seconds", [0.0, 0.3])
def test_time_limit_holds_while_subsets_are_opened(seconds):
    """Opening the subsets of a deep tree takes minutes here; a good tree is there from the start."""
    columns, label, _ = tiny(2, n=600, splits=40)
    search = error_search(columns, label, 5)
    begin = time.process_time()  # other work on the machine takes none of it
    result = AucSearch(search).solve(StopSignal(seconds))
    assert result.status == Status.TIME_LIMIT
    assert time.process_time() - begin < seconds + 30
    assert result.bound <= result.loss < 0.4
    assert len(result.tree.label) == 4 or seconds > 0


def test_a_stop_is_heard_while_trees_grow_from_known_nodes(monkeypatch):
    """At depth two the first growth opens all nodes, and none was opened that looked at the clock from then on."""
    rng = np.random.default_rng(0)
    search, stop, grow = (
        error_search(rng.random((200, 12)) < 0.5, rng.integers(0, 2, 200), 2),
        StopSignal(),
        AucSearch._grow,
    )

    def fifth_is_the_last(self, tree):
        stop.interrupted = self.expanded == 4
        return grow(self, tree)

    full = AucSearch(search).solve(StopSignal())
    assert full.expanded > 6
    monkeypatch.setattr(AucSearch, "_grow", fifth_is_the_last)
    result = AucSearch(search).solve(stop)
    assert (result.status, result.expanded) == (Status.INTERRUPTED, 5)
    assert result.bound <= full.loss + 1e-9


def test_memory_limit_holds():
    columns, label, _ = tiny(2, n=600, splits=40)
    result = AucSearch(error_search(columns, label, 4), memory_limit=1e5).solve(StopSignal())
    assert result.status == Status.MEMORY_LIMIT
    assert result.bound <= result.loss


def test_no_weighted_search_begins_where_the_local_search_took_all_the_time(monkeypatch):
    columns, label, _ = tiny(5, n=200, splits=9)
    stop = StopSignal()
    monkeypatch.setattr(AucSearch, "_offer_changed", lambda self, stop: setattr(stop, "interrupted", True))
    monkeypatch.setattr(AucSearch, "_offer_weighted", None)  # not to be called
    with fuzz_exact.taken_for_long():
        result = AucSearch(error_search(columns, label, 3)).solve(stop)
    assert result.status == Status.INTERRUPTED
    assert result.bound <= result.loss < 0.5  # the accurate trees before it are kept
