"""OptimalSurvivalTree: objectives by their definitions, limits, weights, late entry, odd data."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sksurv.util import Surv

from softsurv import OptimalSurvivalTree, load_dataset
from softsurv.errors import DataWarning
from softsurv.results import Status

KINDS = [("relative_risk", "nelson_aalen"), ("relative_risk", "km"), ("ibs", "km"), ("ibs", "ipcw")]
TIMES = np.array([0.0, 0.3, 2.0, 8.0, 30.0])


def all_partitions(X):
    """Leaf of each row for every tree of depth <= 2 on every possible split."""
    splits = [X["x"] <= cut for cut in np.unique(X["x"])[:-1]]
    splits += [X["side"] == level for level in np.unique(X["side"])]
    nothing = pd.Series(True, index=X.index)
    for root, left, right in itertools.product([nothing, *splits], repeat=3):
        yield np.where(root, np.where(left, 0, 1), np.where(right, 2, 3))


# -- optimality -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("objective", ["relative_risk", "ibs"])
def test_no_tree_of_depth_two_is_better(objective, seed, make_rows, deviance, brier):
    X, y = make_rows(10, seed)
    X = X[["x", "side"]]
    tree = OptimalSurvivalTree(objective, max_depth=2, thresholds="all", min_samples_leaf=1).fit(X, y)
    loss = deviance if objective == "relative_risk" else brier
    assert tree.status_ is Status.OPTIMAL
    assert tree.gap_ == pytest.approx(0.0, abs=1e-9)
    by_leaves: dict[int, float] = {}
    seen: dict[bytes, float] = {}
    for leaf in all_partitions(X):
        key = np.unique(leaf, return_inverse=True)[1].tobytes()
        if key not in seen:
            seen[key] = loss(y, leaf)
        k = np.unique(leaf).size
        by_leaves[k] = min(by_leaves.get(k, np.inf), seen[key])
    assert tree.objective_ == pytest.approx(min(by_leaves.values()), abs=1e-9)
    sized = OptimalSurvivalTree(objective, max_depth=2, max_leaves=4, thresholds="all", min_samples_leaf=1)
    path = sized.fit(X, y).path_
    best = np.minimum.accumulate([by_leaves[k] for k in sorted(by_leaves)])
    assert_allclose([size.objective for size in path][: len(best)], best[: len(path)], atol=1e-9)


@pytest.mark.parametrize(("objective", "leaf"), KINDS)
@pytest.mark.parametrize("complexity", [0.0, 0.004])
def test_the_objective_is_that_of_the_tree(rows, objective, leaf, complexity, deviance, brier):
    X, y = rows
    tree = OptimalSurvivalTree(objective, max_depth=3, max_leaves=5, leaf=leaf, complexity=complexity).fit(X, y)

    def scored(leaves):
        return deviance(y, leaves) if objective == "relative_risk" else brier(y, leaves, leaf)

    for size in [*tree.path_, None]:
        one, objective_ = (tree.tree_, tree.objective_) if size is None else (size.tree, size.objective)
        expected = scored(one.apply(X)) + complexity * one.n_leaves
        assert objective_ == pytest.approx(expected, rel=1e-9)
    assert [size.max_leaves for size in tree.path_] == list(range(1, len(tree.path_) + 1))
    assert all(size.tree.n_leaves <= size.max_leaves for size in tree.path_)
    assert np.all(np.diff([size.objective for size in tree.path_]) <= 1e-12)
    assert tree.objective_ == pytest.approx(min(size.objective for size in tree.path_))


def test_limits_hold(rows, deviance):
    X, y = rows
    tree = OptimalSurvivalTree(max_depth=3, max_leaves=4, min_samples_leaf=17).fit(X, y)
    assert tree.tree_.n_leaves <= 4
    assert tree.tree_.depth <= 3
    assert tree.leaf_table_.n.min() >= 17
    costly = OptimalSurvivalTree(max_depth=3, complexity=1e3).fit(X, y)
    assert costly.tree_.n_leaves == 1
    assert costly.objective_ == pytest.approx(1e3 + deviance(y, np.zeros(len(y))))


def test_a_limit_on_depth_is_not_needed_for_the_brier_score(rows):
    tree = OptimalSurvivalTree("ibs", max_depth=None, complexity=0.02).fit(*rows)
    assert tree.status_ is Status.OPTIMAL
    assert tree.objective_ <= OptimalSurvivalTree("ibs", max_depth=3, complexity=0.02).fit(*rows).objective_ + 1e-9


def test_finer_thresholds_are_never_worse(rows):
    objectives = [OptimalSurvivalTree(max_depth=2, thresholds=k).fit(*rows).objective_ for k in (1, 10, "all")]
    assert objectives[2] <= min(objectives[:2]) + 1e-9


@pytest.mark.parametrize(("objective", "leaf"), KINDS)
def test_the_unit_of_weights_changes_nothing(objective, leaf, make_rows):
    """Weights that add up to one are no sign of a sample of one: constants that count subjects count the same ones."""
    X, y = make_rows(150, seed=3)
    y["event"][X["x"] < -0.3] = False  # a leaf without events
    y["event"][np.argsort(y["time"])[:20]] = False  # rows before the first event
    settings = {"max_depth": 2, "objective": objective, "leaf": leaf}
    one = OptimalSurvivalTree(**settings).fit(X, y)
    for unit in (1 / len(y), 40.0):
        scaled = OptimalSurvivalTree(**settings).fit(X, y, sample_weight=np.full(len(y), unit))
        assert_allclose(scaled.predict_survival_function(X, TIMES), one.predict_survival_function(X, TIMES), atol=1e-9)


@pytest.mark.parametrize(("objective", "leaf"), KINDS)
def test_weights_are_copies(rows, objective, leaf):
    X, y = rows
    copies = np.random.default_rng(0).integers(0, 3, len(y))
    index = np.repeat(np.arange(len(y)), copies)
    kept = X.iloc[index]
    settings = {"objective": objective, "leaf": leaf, "max_depth": 2, "thresholds": "all"}
    weighted = OptimalSurvivalTree(**settings).fit(X[["x", "side"]], y, sample_weight=copies)
    repeated = OptimalSurvivalTree(**settings).fit(kept[["x", "side"]], y[index])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    assert_allclose(
        weighted.predict_survival_function(kept, TIMES), repeated.predict_survival_function(kept, TIMES), atol=1e-9
    )


def test_late_entry_raises_the_early_hazard(rows):
    X, y = rows
    plain = OptimalSurvivalTree(max_depth=1).fit(X, y)
    entry = np.where(np.arange(len(y)) % 5 == 0, 0.0, 0.8 * y["time"])  # a fifth is there from the start
    for leaf in ("nelson_aalen", "km"):
        late = OptimalSurvivalTree(max_depth=1, leaf=leaf).fit(X, y, entry=entry)
        assert late.predict_survival_function(X, [1.0]).mean() < plain.predict_survival_function(X, [1.0]).mean()


def test_threads_find_the_same_tree(rows):
    one, two = (OptimalSurvivalTree(max_depth=4, n_jobs=k).fit(*rows) for k in (1, 2))
    assert one.tree_.to_dict() == two.tree_.to_dict()
    assert one.objective_ == two.objective_


# -- odd data -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("objective", "leaf"), KINDS)
@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (X, (np.arange(len(y)) == 3, y["time"])),
        lambda X, y: (X, (y["event"], np.full(len(y), 3.0))),
        lambda X, y: (X, (np.ones(len(y), bool), np.ceil(y["time"] / 5))),
        lambda X, y: (X.iloc[:1], ([True], [2.0])),
        lambda X, y: (X.iloc[:2], ([True, False], [2.0, 2.0])),
    ],
    ids=["one event", "equal times", "ties", "one row", "two rows"],
)
@pytest.mark.filterwarnings("ignore:no feature can be split")
def test_odd_data(rows, objective, leaf, change):
    X, y = change(*rows)
    tree = OptimalSurvivalTree(objective, max_depth=2, leaf=leaf).fit(X, y)
    survival = tree.predict_survival_function(X, TIMES)
    assert np.all((survival >= 0) & (survival <= 1))
    assert np.all(np.diff(survival) <= 0)
    assert np.isfinite(tree.predict(X)).all()
    assert tree.status_ is Status.OPTIMAL or (leaf == "ipcw" and tree.gap_ > 0)


def test_zero_times_are_said(rows):
    X, y = rows
    time = y["time"].copy()
    time[:3] = 0.0
    with pytest.warns(DataWarning, match="time is 0 in 3 of 120 rows"):
        tree = OptimalSurvivalTree(max_depth=2).fit(X, (y["event"], time))
    assert np.all(tree.predict_survival_function(X, [0.0]) <= 1)


def test_constant_features_give_one_curve(rows):
    with pytest.warns(DataWarning, match="no feature can be split, so all rows get one curve; check X"):
        tree = OptimalSurvivalTree().fit(rows[0].assign(x=1, side="left", noise=0), rows[1])
    assert tree.tree_.n_leaves == 1
    assert np.array_equal(tree.feature_importances_, np.zeros(3))


@pytest.mark.parametrize("name", ["gbsg2", "veterans", "whas500"])
def test_real_data(name, deviance):
    train, test = load_dataset(name).split(seed=0)
    tree = OptimalSurvivalTree(max_depth=3, min_samples_leaf=10, min_share=0.01).fit(train)
    assert tree.status_ is Status.OPTIMAL
    y = {"time": train.time.numpy(), "event": train.event.numpy()}
    structured = Surv.from_arrays(y["event"], y["time"])
    assert tree.objective_ == pytest.approx(deviance(structured, tree.apply(train)), rel=1e-9)
    assert tree.score(test.X, test.y) > 0.55


def test_the_certificate_is_of_the_curves_that_are_predicted(brier):
    """A pointwise minimiser may rise, a predicted curve does not: here they differ."""
    data = load_dataset("whas500")
    y = Surv.from_arrays(data.event.numpy(), data.time.numpy())
    tree = OptimalSurvivalTree("ibs", max_depth=2, complexity=0.0005, leaf="ipcw").fit(data)
    assert tree.objective_ == pytest.approx(brier(y, tree.apply(data), "ipcw") + 0.0005 * tree.tree_.n_leaves)
    assert tree.gap_ > 1e-4
    assert tree.status_ is Status.CONDITIONALLY_OPTIMAL
    assert tree.report_.details["assumption"] == "curves of leaves may rise"


def test_who_is_there_from_the_start_meets_the_events_at_time_0(rows):
    """One row that enters a moment later changes the objective by its own share alone."""
    X, y = rows
    time, entry = np.where(np.arange(len(y)) < 12, 0.0, y["time"]), np.zeros(len(y))
    entry[-1] = 1e-12
    with pytest.warns(DataWarning, match="time is 0"):
        whole = OptimalSurvivalTree(max_depth=2).fit(X, (y["event"], time))
    with pytest.warns(DataWarning, match="time is 0"):
        late = OptimalSurvivalTree(max_depth=2).fit(X, (y["event"], time), entry=entry)
    assert late.objective_ == pytest.approx(whole.objective_, rel=0.02)


def test_nullable_zeros_and_ones_beside_plain_ones():
    rng = np.random.default_rng(0)
    plain = pd.DataFrame({"a": rng.integers(0, 2, 80), "b": rng.integers(0, 2, 80)})
    y = rng.random(80) < 0.7, rng.exponential(size=80)
    known, nullable = (OptimalSurvivalTree(max_depth=2).fit(X, y) for X in (plain, plain.astype({"a": "Int64"})))
    assert nullable.export_text() == known.export_text()
